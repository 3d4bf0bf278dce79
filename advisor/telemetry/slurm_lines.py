"""One line of Slurm's accounting as the runs it stands for, or the reason why it stands for none."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import datetime
from zoneinfo import ZoneInfo

from advisor.domain.jobs import TOLD_BY_NODES
from advisor.telemetry.interpret import Unfit
from advisor.telemetry.mapping import TimeKind, TimeRule
from advisor.telemetry.slurm_arrays import MOST_TASKS, job_ids
from advisor.telemetry.slurm_fields import Fate, GpuAsk, count_in, fate_of, gpus_in, length_seconds
from advisor.telemetry.slurm_runs import SacctRun
from advisor.telemetry.slurm_table import GPU_COLUMNS
from advisor.telemetry.times import TimeReader

__all__ = ["NoGpus", "SacctLines"]

_NO_TIME = frozenset({"", "none", "unknown", "n/a", "0"})
# Times as seconds have ten digits; a date without dashes has eight.
_FEWEST_UNIX_DIGITS = 9
_MOST_COUNT = 1_000_000
_MOST_TASKS_OF_A_FILE = 1_000_000


class NoGpus(Exception):
    """A line that names no GPUs, on ``partition``: none were wanted, or the site does not count them."""

    def __init__(self, partition: str) -> None:
        """Say where."""
        self.partition = partition
        super().__init__(f"no GPUs on partition {partition!r}")


class SacctLines:
    """Reads lines under one header; it remembers what had to be assumed."""

    def __init__(self, at: Mapping[str, int], zone: ZoneInfo, *, zone_stated: bool, now: datetime) -> None:
        """Cells stand ``at`` the places of their columns; local times are of ``zone``."""
        self._at = at
        self._now = now
        self._local = TimeReader(TimeRule(zone=zone, zone_stated=zone_stated))
        self._unix = TimeReader(TimeRule(kind=TimeKind.UNIX))
        self._gpu_columns = [column for column in GPU_COLUMNS if column in at]
        self._room = _MOST_TASKS_OF_A_FILE
        self.mixed = 0

    def notes(self) -> tuple[str, ...]:
        """What had to be assumed about times, as sentences."""
        return self._local.notes()

    def runs(self, row: int, cells: Sequence[str]) -> Iterator[SacctRun]:
        """Every run of the line: one, or one for each waiting task of an array.

        Raises:
            NoGpus: it names none.
            Unfit: it cannot be used, with the reason.
        """
        text = {column: cells[place].strip() for column, place in self._at.items()}
        nodes = self._nodes(text)
        asked = self._gpus(text, nodes)
        fate = fate_of(text["state"])
        ids = job_ids(text["jobid"], min(MOST_TASKS, self._room))
        run = SacctRun(
            row=row,
            id=ids.ids[0],
            root=ids.root,
            throttle=ids.throttle,
            fate=fate,
            submit=self._submission(text["submit"]),
            # Of a job that waits, Slurm's start is a plan.
            start=None if fate is Fate.WAITS else self._moment("start", text["start"]),
            end=None if fate in {Fate.RUNS, Fate.WAITS} else self._moment("end", text["end"]),
            elapsed_seconds=length_seconds(text.get("elapsed", "")),
            # No limit of zero seconds is a limit.
            time_limit_seconds=length_seconds(text.get("timelimit", "")) or None,
            gpus=float(asked.count),
            gpu_kind=asked.kind,
            user=text.get("user") or None,
            namespace=text.get("account") or None,
            pool=_partition(text) or None,
            name=text.get("jobname") or None,
            cpus=self._cpus(text),
            nodes=nodes,
            told_by_node=() if fate is Fate.WAITS else self._told_by_node(text, asked, nodes),
            priority=count_in(text.get("priority", "")),
        )
        self.mixed += asked.mixed
        if len(ids.ids) == 1:
            yield run
            return
        self._room -= len(ids.ids)
        for task in ids.ids:
            yield replace(run, id=task)

    def _submission(self, text: str) -> datetime:
        moment = self._moment("submit", text)
        if moment is None:
            raise Unfit("bad_time", f"submit {text!r} is no time")
        return moment

    def _moment(self, column: str, text: str) -> datetime | None:
        if text.lower() in _NO_TIME:
            return None
        seconds = len(text) >= _FEWEST_UNIX_DIGITS and text.isascii() and text.isdigit()
        try:
            moment = (self._unix if seconds else self._local).moment(text)
        except (ValueError, OverflowError) as error:
            raise Unfit("bad_time", f"{column} {text!r}: {error}") from error
        if moment > self._now:
            limit = f"{column} {text!r} lies after {self._now.isoformat()}; is the zone right?"
            raise Unfit("future_time", limit)
        return moment

    def _gpus(self, text: Mapping[str, str], nodes: int | None) -> GpuAsk:
        """What was allocated, else what was asked for."""
        shared = False
        for column in self._gpu_columns:
            cell = text[column]
            if not cell:
                continue
            asked = gpus_in(cell)
            if asked.count:
                # This column alone says what each node is asked for.
                return replace(asked, count=asked.count * (nodes or 1)) if column == "reqgres" else asked
            shared = shared or asked.shared
        if shared:
            raise Unfit("shared_gpus", f"parts of GPUs (shard, MPS or MIG): {dict(text)}")
        raise NoGpus(_partition(text))

    def _told_by_node(self, text: Mapping[str, str], asked: GpuAsk, nodes: int | None) -> tuple[str, ...]:
        """What only the allocation says: while a job waits, no column tells it."""
        told = {
            "cpus": self._first_count(text, "reqcpus") is None and self._cpus(text) is not None,
            "gpu_kind": asked.kind is not None and asked.kind not in self._kinds_asked(text),
            "nodes": self._first_count(text, "reqnodes", "nnodes") is None and nodes is not None,
        }
        return tuple(name for name in TOLD_BY_NODES if told.get(name, False))

    def _kinds_asked(self, text: Mapping[str, str]) -> Iterator[str | None]:
        """The kinds of GPU that requests name."""
        for column in self._gpu_columns:
            if column.startswith("req"):
                with suppress(Unfit):
                    yield gpus_in(text[column]).kind

    def _cpus(self, text: Mapping[str, str]) -> int | None:
        return self._first_count(text, "reqcpus", "alloccpus", "ncpus")

    def _nodes(self, text: Mapping[str, str]) -> int | None:
        return self._first_count(text, "reqnodes", "nnodes", "allocnodes")

    def _first_count(self, text: Mapping[str, str], *columns: str) -> int | None:
        """The first count above zero: a job that waits has no nodes and CPUs yet, and is told by what it asks for."""
        for column in columns:
            count = count_in(text.get(column, ""))
            if count and count <= _MOST_COUNT:
                return count
        return None


def _partition(text: Mapping[str, str]) -> str:
    """The partition; of several that a waiting job would take, the first."""
    return text.get("partition", "").partition(",")[0]
