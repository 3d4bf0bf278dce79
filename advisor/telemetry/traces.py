"""Job history from files: the public traces whose layout is known, and any table by a mapping."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path

from advisor.domain.ingest import JobBatch
from advisor.domain.jobs import Job, Outcome
from advisor.domain.units import counted, utc
from advisor.errors import Refused
from advisor.telemetry.interpret import RowInterpreter
from advisor.telemetry.mapping import TableMapping, TimeKind, TimeRule
from advisor.telemetry.openb import OPENB_COLUMNS, OPENB_MAPPING, OPENB_NOTES, prepare_openb
from advisor.telemetry.source import Progress
from advisor.telemetry.tables import TableFile, TraceTable
from advisor.telemetry.tally import RejectionTally

__all__ = ["TraceFile", "TraceFormat"]

_STEP = 2000


class TraceFormat(StrEnum):
    """The layouts a trace file may have."""

    PHILLY = "philly"
    PHILLY_USERS = "philly-users"
    OPENB = "openb"
    TABLE = "table"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Layout:
    """How one format is read: its mapping, the columns taken from the file, and what is done to them first.

    ``columns`` None stands for those of the mapping.
    """

    mapping: TableMapping
    columns: tuple[str, ...] | None = None
    prepare: Callable[[TraceTable], TraceTable] | None = None
    notes: tuple[str, ...] = ()


_LAYOUTS = {
    TraceFormat.PHILLY: _Layout(
        mapping=TableMapping(
            columns={
                "submit": "timestamp",
                "duration": "duration",
                "gpus": "num_gpus",
                "namespace": "cluster",
            }
        ),
        notes=("the trace holds jobs that passed and no others: demand built from it is a lower bound",),
    ),
    TraceFormat.PHILLY_USERS: _Layout(
        mapping=TableMapping(
            columns={
                "id": "u_id",
                "submit": "interval",
                "duration": "run_time",
                "gpus": "gpu_num",
                "nodes": "node_num",
                "user": "user",
                "outcome": "new_status",
            },
            # The first submission of the trace, as its publishers give it: Unix time 1502100181.
            time=TimeRule(kind=TimeKind.INTERVAL, origin=datetime(2017, 8, 7, 10, 3, 1, tzinfo=UTC)),
            outcomes={"Pass": Outcome.COMPLETED, "Failed": Outcome.FAILED, "Killed": Outcome.CANCELLED},
        ),
    ),
    TraceFormat.OPENB: _Layout(
        mapping=OPENB_MAPPING, columns=OPENB_COLUMNS, prepare=prepare_openb, notes=OPENB_NOTES
    ),
}  # fmt: skip


_LONGEST_HEADER = 200


def _cut(text: str) -> str:
    """As much of a header as a person reads; a file that is no table may have anything for one."""
    return text if len(text) <= _LONGEST_HEADER else text[: _LONGEST_HEADER - 1] + "…"


class TraceFile:
    """A file of jobs as a source. It is read whole every time: its rows may be in any order.

    Local times that happen twice are taken as the first of the two, those that never happen are read
    with the offset in force before the change; rows whose submission, start or end lies after ``now``
    are left out.
    """

    def __init__(
        self,
        path: Path,
        trace_format: TraceFormat,
        mapping: TableMapping | None = None,
        *,
        source: str | None = None,
        progress: Progress | None = None,
    ) -> None:
        """Read ``path``, laid out as ``trace_format``; ``mapping`` is for ``table``, and only for it.

        ``source`` names the stream of jobs and is the format's name by default. Files that continue
        each other share it; files of different clusters must not.

        Raises:
            Refused: a table without mapping, a mapping for anything else, or an empty source name.
        """
        if trace_format is TraceFormat.TABLE and mapping is None:
            known = ", ".join(each for each in TraceFormat if each is not TraceFormat.TABLE)
            remedy = f"Name its layout with --format ({known}), or describe its columns in TOML: --mapping FILE."
            raise Refused("mapping", None, "a file is read as format table, which needs a mapping", remedy)
        if trace_format is not TraceFormat.TABLE and mapping is not None:
            remedy = "Leave --mapping out, or use --format table."
            raise Refused("format", str(trace_format), "its columns are known, so it takes no mapping", remedy)
        if source is not None and not source.strip():
            raise Refused("source", source, "it must not be empty", "Leave it out, or give a name.")
        self._path = path
        self._format = trace_format
        self._layout = _LAYOUTS[trace_format] if mapping is None else _Layout(mapping=mapping)
        self._name = source if source is not None else str(trace_format)
        self._progress = progress

    @property
    def name(self) -> str:
        """The name given, or that of the format."""
        return self._name

    def read(self, since: datetime | None, now: datetime) -> JobBatch:
        """Every job of the file that lies before ``now``, whatever ``since``; see :class:`Source`.

        Raises:
            Refused: the file cannot be read, lacks a mapped column, or no row of it is a job.
        """
        del since  # a row may have been added anywhere in the file, so its times do not tell what is new
        tally = RejectionTally()
        table = self._table(tally)
        interpreter = RowInterpreter(self._layout.mapping, self._name, utc(now, "now"))
        jobs = tuple(self._counted(interpreter.jobs(table, tally), len(table.rows)))
        rejections = tally.rejections()
        if not jobs:
            every = "; ".join(f"{each.count} x {each.reason} ({each.example})" for each in rejections)
            limit = f"none of {counted(tally.total, 'row')} is a job: {every}"
            raise Refused("trace", str(self._path), limit, "Correct the mapping or the file.")
        return JobBatch(
            source=self._name,
            jobs=jobs,
            rejections=rejections,
            watermark=interpreter.last_event,
            notes=(*self._layout.notes, *interpreter.notes()),
        )

    def _table(self, tally: RejectionTally) -> TraceTable:
        file = TableFile(self._path)
        header = file.header()
        wanted = self._layout.columns or tuple(dict.fromkeys(self._layout.mapping.columns.values()))
        self._check(header, wanted)
        table = file.read(wanted, tally)
        return table if self._layout.prepare is None else self._layout.prepare(table)

    def _check(self, header: tuple[str, ...], wanted: tuple[str, ...]) -> None:
        """See that every wanted column is there once."""
        wrong = {column: found for column in wanted if (found := header.count(column)) != 1}
        if not wrong:
            return
        there = _cut(", ".join(header))
        if self._format is not TraceFormat.TABLE:
            limit = (
                f"{self._path.name} does not look like a table of that format: it should have {', '.join(wrong)} once, "
                f"and has {there}"
            )
            remedy = "Name another file or format, or describe its columns: --format table --mapping FILE."
            raise Refused("format", str(self._format), limit, remedy)
        column, found = next(iter(wrong.items()))
        field = next(ours for ours, theirs in self._layout.mapping.columns.items() if theirs == column)
        limit = f"{self._path.name} has {found or 'no'} such column among {there}"
        raise Refused(f"columns.{field}", column, limit, "Correct the name in the mapping.")

    def _counted(self, jobs: Iterator[Job | None], total: int) -> Iterator[Job]:
        """The jobs, telling the progress as rows go by."""
        for done, job in enumerate(jobs, start=1):
            if self._progress is not None and (done % _STEP == 0 or done == total):
                self._progress(done, total)
            if job is not None:
                yield job
