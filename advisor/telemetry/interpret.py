"""One row of a table as one job, or the reason why it is none."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from advisor.domain.jobs import Job, Outcome
from advisor.telemetry.details import NO_TIME, DetailReader
from advisor.telemetry.mapping import COLUMN_FIELDS, TableMapping
from advisor.telemetry.tables import TraceTable
from advisor.telemetry.tally import UNKNOWN_OUTCOME, RejectionTally
from advisor.telemetry.times import TimeReader, number

__all__ = ["RowInterpreter", "Unfit"]

_TEXTS = ("user", "namespace", "name", "image", "gpu_kind", "pool")
_MOST_SECONDS = 1e10
# No cluster has more; a number beyond it is a slip that would drown every sum it enters.
_MOST_COUNT = 1e6
_DIGEST_BYTES = 10
# Mapped to a column later on, these must not make other jobs of rows without an id.
_NOT_OF_IDENTITY = frozenset(
    {"priority", "time_limit", "scheduled", "restarts", "created_by", "gpu_utilisation", "gpu_memory_peak"}
)

Row = Mapping[str, str]
"""The mapped cells of one row by our names, in the order of :data:`COLUMN_FIELDS`."""


class Unfit(Exception):
    """A row that is no job: under which reason it is counted, and what is wrong with it."""

    def __init__(self, reason: str, detail: str) -> None:
        """Give both."""
        self.reason = reason
        self.detail = detail
        super().__init__(f"{reason}: {detail}")


@dataclass(frozen=True, slots=True)
class _Times:
    """What a row says of a job's life; each None where it says nothing."""

    submit: datetime
    start: datetime | None
    end: datetime | None
    start_assumed: bool


class RowInterpreter:
    """Turns the rows of one table into jobs; it remembers ids, running gaps and what had to be assumed."""

    def __init__(self, mapping: TableMapping, source: str, now: datetime) -> None:
        """Read by ``mapping``; rows without an id get one that begins with ``source``."""
        self._mapping = mapping
        self._source = source
        self._now = now
        self._times = TimeReader(mapping.time)
        self._details = DetailReader(mapping, self._times, now)
        self._ids: set[str] = set()
        self._contents: dict[bytes, int] = {}
        self._at: dict[str, int] = {}
        self._end_of_file: datetime | None = None
        self._open_ended = 0

    def jobs(self, table: TraceTable, tally: RejectionTally) -> Iterator[Job | None]:
        """For every row its job, or None if it is counted in ``tally``; those without an end come last.

        A job whose end the table does not tell was last seen at the table's last event.
        """
        columns = self._mapping.columns
        self._at = {ours: table.header.index(columns[ours]) for ours in COLUMN_FIELDS if ours in columns}
        unfinished: list[tuple[int, dict[str, Any]]] = []
        for at, cells in table.rows:
            fields = self._fields(at, cells, tally)
            if fields is not None and fields.get("outcome") is Outcome.CENSORED and fields["last_seen"] is None:
                unfinished.append((at, fields))
            else:
                yield None if fields is None else Job(**fields)
        for at, fields in unfinished:
            yield self._last_seen_at_the_end(at, fields, tally)

    @property
    def last_event(self) -> datetime | None:
        """The latest time of any job read so far."""
        return self._end_of_file

    def notes(self) -> tuple[str, ...]:
        """What had to be assumed, as sentences."""
        columns = self._mapping.columns
        said = list(self._times.notes())
        if "start" not in columns and not {"duration", "end"} <= set(columns):
            begun = (
                "when it was given a node, else at its submission" if "scheduled" in columns else "at its submission"
            )
            said.append(f"no start column: every job is taken as started {begun}")
        if "outcome" not in columns:
            said.append("no outcome column: every job with an end counts as completed")
        if "gpus" not in columns:
            said.append("no GPU column: every job counts as one GPU")
        if "id" not in columns:
            said.append("no id column: jobs are recognised by the content of their rows")
        if self._open_ended:
            said.append(f"jobs without an end, last seen at the last event of the file (censored): {self._open_ended}")
        said.extend(self._details.notes())
        return tuple(said)

    def _fields(self, at: int, cells: Sequence[str], tally: RejectionTally) -> dict[str, Any] | None:
        row = {ours: cells[position].strip() for ours, position in self._at.items()}
        try:
            # First of all, whatever else is wrong with the row: intervals add up over every row.
            submit = self._submission(row)
            identity = self._identity(row)
            fields = self._job(identity, submit, row)
        except Unfit as error:
            tally.add(error.reason, f"row {at}: {error.detail}")
            return None
        fields.update(self._details.read(at, row, fields))
        for moment in (fields["submit"], fields["scheduled"], fields["start"], fields["end"], fields["last_seen"]):
            if moment is not None and (self._end_of_file is None or moment > self._end_of_file):
                self._end_of_file = moment
        self._ids.add(identity)
        return fields

    def _job(self, identity: str, submit: datetime, row: Row) -> dict[str, Any]:
        times = self._life(submit, row)
        outcome = self._outcome(row, times)
        censored = outcome is Outcome.CENSORED
        self._check(times, row, outcome)
        fields: dict[str, Any] = {
            "id": identity,
            "submit": times.submit,
            "start": times.start,
            "end": None if censored else times.end,
            "last_seen": times.end if censored else None,
            "outcome": outcome,
            "start_assumed": times.start_assumed,
            "gpus": self._gpus(row),
            "calendar_known": self._mapping.time.calendar_known,
        }
        for ours in _TEXTS:
            fields[ours] = row.get(ours) or None
        if identity in self._ids:
            raise Unfit("duplicate_id", f"id {identity!r} stands on an earlier row")
        return fields

    def _identity(self, row: Row) -> str:
        if "id" in self._at:
            identity = row["id"]
            if not identity:
                raise Unfit("no_id", "its id is empty")
            return identity
        content = "\x1f".join(cell for ours, cell in row.items() if ours not in _NOT_OF_IDENTITY)
        digest = hashlib.blake2b(content.encode(), digest_size=_DIGEST_BYTES).digest()
        # Rows may be equal in everything that was recorded and still be two jobs of one bulk submission.
        nth = self._contents[digest] = self._contents.get(digest, 0) + 1
        return f"{self._source}-{digest.hex()}" + (f"-{nth}" if nth > 1 else "")

    def _life(self, submit: datetime, row: Row) -> _Times:
        start, end = self._moment(row, "start"), self._moment(row, "end")
        length = self._duration(row) if row.get("duration") else None
        assumed = False
        try:
            if start is None and end is not None and length is not None and self._ran(length):
                start = end - self._positive(length)
            elif start is None and "start" not in self._at:
                start, assumed = self._moment(row, "scheduled") or submit, True
            if end is None and start is not None and length is not None:
                end = start + self._positive(length)
        except OverflowError as error:
            raise Unfit("bad_time", f"start or end lies beyond any calendar: {dict(row)}") from error
        return _Times(submit, start, end, assumed)

    def _ran(self, length: timedelta) -> bool:
        """Whether a duration beside an end tells a start: with a start column left empty, zero says it never ran."""
        return "start" not in self._at or length > timedelta(0)

    def _submission(self, row: Row) -> datetime:
        text = row["submit"]
        try:
            return self._times.submission(text)
        except (ValueError, OverflowError) as error:
            raise Unfit("bad_time", f"submit {text!r}: {error}") from error

    def _moment(self, row: Row, ours: str) -> datetime | None:
        text = row.get(ours)
        if text is None or text.lower() in NO_TIME:
            return None
        try:
            return self._times.moment(text)
        except (ValueError, OverflowError) as error:
            raise Unfit("bad_time", f"{ours} {text!r}: {error}") from error

    def _duration(self, row: Row) -> timedelta:
        value = self._number(row, "duration")
        if abs(value) * self._mapping.duration_unit.total_seconds() > _MOST_SECONDS:
            raise Unfit("bad_number", f"duration {row['duration']!r} is centuries long")
        return value * self._mapping.duration_unit

    def _positive(self, length: timedelta) -> timedelta:
        if length <= timedelta(0):
            raise Unfit("not_positive_duration", f"duration {length.total_seconds():g} s")
        return length

    def _number(self, row: Row, ours: str) -> float:
        text = row[ours]
        try:
            return number(text)
        except ValueError as error:
            raise Unfit("bad_number", f"{ours} {text!r}") from error

    def _gpus(self, row: Row) -> float:
        if "gpus" not in self._at:
            return 1.0
        gpus = self._number(row, "gpus") / self._mapping.gpus_divisor
        text = row["gpus"]
        if not 0 <= gpus <= _MOST_COUNT:
            raise Unfit("bad_number", f"gpus {text!r}")
        if gpus == 0:
            raise Unfit("no_gpus", f"gpus {text!r}")
        if gpus > 1 and gpus != int(gpus):
            raise Unfit("fractional_gpus", f"gpus {text!r}: above one only whole GPUs can be asked")
        return gpus

    def _outcome(self, row: Row, times: _Times) -> Outcome:
        if "outcome" not in self._at:
            return Outcome.CENSORED if times.end is None else Outcome.COMPLETED
        word = row["outcome"]
        outcome = self._mapping.outcomes.get(word)
        if outcome is None:
            raise Unfit(f"{UNKNOWN_OUTCOME}{word[:40]}", f"outcome {word!r} is not listed in [outcomes]")
        return outcome

    def _check(self, times: _Times, row: Row, outcome: Outcome) -> None:
        if outcome is not Outcome.CENSORED:
            if times.end is None:
                raise Unfit("no_end", f"{outcome} without an end")
            if times.start is None and outcome is not Outcome.CANCELLED:
                raise Unfit("no_start", f"{outcome} without a start")
        self._check_order(times)
        latest = max(moment for moment in (times.submit, times.start, times.end) if moment is not None)
        if latest > self._now:
            raise Unfit("future_time", f"{latest.isoformat()} lies after {self._now.isoformat()}: {dict(row)}")

    def _check_order(self, times: _Times) -> None:
        submit, start, end = times.submit, times.start, times.end
        if start is not None and start < submit:
            raise Unfit("start_before_submit", f"start {start.isoformat()} before submit {submit.isoformat()}")
        begun = submit if start is None else start
        if end is not None and end < begun:
            raise Unfit("end_before_start", f"end {end.isoformat()} before {begun.isoformat()}")
        if end is not None and end == start:
            raise Unfit("not_positive_duration", f"start and end are both {end.isoformat()}")

    def _last_seen_at_the_end(self, at: int, fields: dict[str, Any], tally: RejectionTally) -> Job | None:
        if fields["start"] is not None and fields["start"] == self._end_of_file:
            tally.add("not_positive_duration", f"row {at}: it started with the last event of the file and has no end")
            return None
        self._open_ended += 1
        return Job(**{**fields, "last_seen": self._end_of_file})
