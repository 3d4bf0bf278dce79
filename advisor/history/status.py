"""What the store holds, and what was dropped on the way in, as values that print as a table or as JSON."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, func, select

from advisor.domain.ingest import PARTITIONS, Rejection
from advisor.history.rows import from_microseconds
from advisor.history.schema import INGESTS, JOBS, NOTES, REJECTIONS

__all__ = ["OPEN", "HistoryStatus", "SourceStatus", "read_status"]

WAITING, RUNNING = "waiting", "running"
OPEN = frozenset({WAITING, RUNNING})
"""States of jobs without an outcome, as of the last event of their source."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceStatus:
    """What came from one source: jobs by outcome, the times they span, what was assumed and what was dropped.

    ``outcomes`` counts jobs by outcome, and those without one as ``waiting`` or ``running``; ``notes``
    say what had to be assumed, the latest of each kind; ``watermark`` is up to when the source was read, and
    ``last_ingest`` when it was last read with any news.
    """

    source: str
    jobs: int
    outcomes: dict[str, int]
    first_submit: datetime | None
    last_event: datetime | None
    watermark: datetime | None
    last_ingest: datetime | None
    synthetic: bool
    notes: tuple[str, ...]
    rejections: tuple[Rejection, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryStatus:
    """Everything the store holds, source by source, in the order of their names."""

    sources: tuple[SourceStatus, ...]

    @property
    def partitioned(self) -> frozenset[str]:
        """The sources whose pools are partitions of Slurm, not NodePools."""
        return frozenset(source.source for source in self.sources if PARTITIONS in source.notes)

    @property
    def jobs(self) -> int:
        """Jobs of all sources."""
        return sum(source.jobs for source in self.sources)

    @property
    def outcomes(self) -> dict[str, int]:
        """Jobs of all sources by outcome, ``waiting`` or ``running``."""
        totals: dict[str, int] = {}
        for source in self.sources:
            for outcome, count in source.outcomes.items():
                totals[outcome] = totals.get(outcome, 0) + count
        return dict(sorted(totals.items()))

    @property
    def first_submit(self) -> datetime | None:
        """The earliest submission, None while there is no job."""
        return min((s.first_submit for s in self.sources if s.first_submit is not None), default=None)

    @property
    def last_event(self) -> datetime | None:
        """The latest submission, start, end or sighting, None while there is no job."""
        return max((s.last_event for s in self.sources if s.last_event is not None), default=None)

    @property
    def synthetic(self) -> bool:
        """Whether the jobs were generated and must be labelled so."""
        return any(source.synthetic for source in self.sources)

    @property
    def notes(self) -> tuple[str, ...]:
        """What was assumed, each once."""
        return tuple(dict.fromkeys(note for source in self.sources for note in source.notes))

    @property
    def rejections(self) -> tuple[Rejection, ...]:
        """What was dropped, by reason over all sources, with the first example of each."""
        return _merged([each for source in self.sources for each in source.rejections])


def read_status(connection: Connection) -> HistoryStatus:
    """See :meth:`advisor.history.store.HistoryStore.status`."""
    names: set[str] = set()
    for table in (INGESTS, JOBS, REJECTIONS):
        names |= set(connection.execute(select(table.c.source).distinct()).scalars())
    return HistoryStatus(sources=tuple(_source(connection, name) for name in sorted(names)))


def _source(connection: Connection, name: str) -> SourceStatus:
    mine = INGESTS.c.source == name
    read = select(func.max(INGESTS.c.time_us), func.max(INGESTS.c.watermark_us)).where(mine)
    last_ingest, watermark = connection.execute(read).one()
    generated = select(INGESTS.c.id).where(mine, INGESTS.c.synthetic).limit(1)
    notes = select(NOTES.c.note).where(NOTES.c.source == name).order_by(NOTES.c.id)
    outcomes = _outcomes(connection, name)
    spans = select(
        func.min(JOBS.c.submit_us),
        func.max(JOBS.c.submit_us),
        func.max(JOBS.c.start_us),
        func.max(JOBS.c.end_us),
        func.max(JOBS.c.last_seen_us),
    )
    first, *last = connection.execute(spans.where(JOBS.c.source == name)).one()
    return SourceStatus(
        source=name,
        jobs=sum(outcomes.values()),
        outcomes=outcomes,
        first_submit=_latest([first]),
        last_event=_latest(last),
        watermark=_latest([watermark]),
        last_ingest=_latest([last_ingest]),
        synthetic=connection.execute(generated).first() is not None,
        notes=tuple(connection.execute(notes).scalars()),
        rejections=_rejections(connection, name),
    )


def _outcomes(connection: Connection, source: str) -> dict[str, int]:
    # Counted per state; a job without outcome runs if it has started, and waits otherwise.
    started = JOBS.c.start_us.is_not(None)
    query = (
        select(JOBS.c.outcome, started, func.count())
        .where(JOBS.c.source == source)
        .group_by(JOBS.c.outcome, started)
    )  # fmt: skip
    totals: dict[str, int] = {}
    for outcome, has_started, count in connection.execute(query):
        state = outcome or (RUNNING if has_started else WAITING)
        totals[state] = totals.get(state, 0) + int(count)
    return dict(sorted(totals.items()))


def _rejections(connection: Connection, source: str) -> tuple[Rejection, ...]:
    columns = (REJECTIONS.c.reason, REJECTIONS.c.count, REJECTIONS.c.example)
    query = select(*columns).where(REJECTIONS.c.source == source).order_by(REJECTIONS.c.id)
    rows = connection.execute(query)
    return _merged([Rejection(reason=reason, count=int(count), example=example) for reason, count, example in rows])


def _merged(rejections: list[Rejection]) -> tuple[Rejection, ...]:
    """One rejection a reason, the most frequent first."""
    by_reason: dict[str, Rejection] = {}
    for each in rejections:
        first = by_reason.get(each.reason)
        count = each.count + (0 if first is None else first.count)
        example = each.example if first is None else first.example
        by_reason[each.reason] = Rejection(reason=each.reason, count=count, example=example)
    return tuple(sorted(by_reason.values(), key=lambda each: (-each.count, each.reason)))


def _latest(counts: list[Any]) -> datetime | None:
    known = [int(count) for count in counts if count is not None]
    return from_microseconds(max(known)) if known else None
