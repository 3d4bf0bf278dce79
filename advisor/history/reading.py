"""Jobs as they were known at a time. Every question is asked with the time as of which it is answered."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, Connection, func, or_, select

from advisor.domain.jobs import Job, Outcome
from advisor.history.rows import SOURCED, from_microseconds, job_of, to_microseconds
from advisor.history.schema import INGESTS, JOBS

__all__ = [
    "JobChanges",
    "any_synthetic",
    "changed_since",
    "finished_between",
    "jobs_known",
    "last_event",
    "last_submit",
    "revision",
    "running_at",
    "watermark",
]

_VALUES = [JOBS.c[name] for name in SOURCED]
_ID, _SUBMIT, _START, _END = (SOURCED.index(name) for name in ("id", "submit_us", "start_us", "end_us"))


@dataclass(frozen=True, slots=True, kw_only=True)
class JobChanges:
    """What came in after a revision: jobs as stored, by submission, then id, then source.

    ``revision`` is the one to ask with next.
    """

    revision: int
    jobs: tuple[Job, ...]


def _known(connection: Connection, conditions: list[ColumnElement[bool]], as_of: datetime, order: int) -> list[Job]:
    """Jobs of the rows that meet ``conditions``, as known at ``as_of``, by the time in column ``order``, id and source.

    Sorted here and not by the database, whose order of texts depends on its collation.
    """
    rows = connection.execute(select(*_VALUES).where(*conditions))
    ordered = sorted(rows, key=lambda row: (row[order], row[_ID], row[-1]))
    known = (job_of(row).as_of(as_of) for row in ordered)
    return [job for job in known if job is not None]


def jobs_known(connection: Connection, as_of: datetime, since: datetime | None) -> list[Job]:
    """See :meth:`advisor.history.store.HistoryStore.jobs`."""
    conditions: list[ColumnElement[bool]] = [JOBS.c.submit_us <= to_microseconds(as_of)]
    if since is not None:
        first = to_microseconds(since)
        still_there = or_(JOBS.c.outcome.is_(None), JOBS.c.end_us >= first, JOBS.c.last_seen_us >= first)
        conditions.append(or_(still_there, JOBS.c.submit_us >= first))
    return _known(connection, conditions, as_of, _SUBMIT)


def finished_between(connection: Connection, start: datetime, end: datetime) -> list[Job]:
    """See :meth:`advisor.history.store.HistoryStore.finished_between`."""
    inside = [JOBS.c.end_us > to_microseconds(start), JOBS.c.end_us <= to_microseconds(end)]
    return _known(connection, inside, end, _END)


def running_at(connection: Connection, time: datetime) -> list[Job]:
    """See :meth:`advisor.history.store.HistoryStore.running_at`."""
    at = to_microseconds(time)
    not_ended = or_(JOBS.c.end_us.is_(None), JOBS.c.end_us > at)
    not_lost = or_(JOBS.c.outcome.is_(None), JOBS.c.outcome != str(Outcome.CENSORED), JOBS.c.last_seen_us > at)
    return _known(connection, [JOBS.c.start_us <= at, not_ended, not_lost], time, _START)


def last_event(connection: Connection, as_of: datetime | None) -> datetime | None:
    """See :meth:`advisor.history.store.HistoryStore.last_event`."""
    latest = []
    for name in ("submit_us", "start_us", "end_us", "last_seen_us"):
        column = JOBS.c[name]
        query = select(func.max(column))
        if as_of is not None:
            query = query.where(column <= to_microseconds(as_of))
        latest.append(connection.execute(query).scalar())
    known = [count for count in latest if count is not None]
    return from_microseconds(max(known)) if known else None


def last_submit(connection: Connection) -> datetime | None:
    """See :meth:`advisor.history.store.HistoryStore.last_submit`."""
    latest = connection.execute(select(func.max(JOBS.c.submit_us))).scalar()
    return None if latest is None else from_microseconds(latest)


def revision(connection: Connection) -> int:
    """See :meth:`advisor.history.store.HistoryStore.revision`."""
    return int(connection.execute(select(func.coalesce(func.max(INGESTS.c.id), 0))).scalar_one())


def changed_since(connection: Connection, seen: int | None) -> JobChanges:
    """See :meth:`advisor.history.store.HistoryStore.changed_since`."""
    # Read first: what is written between the two reads is told again by the next call, never missed.
    reached = revision(connection)
    query = select(*_VALUES)
    if seen is not None:
        query = query.where(JOBS.c.revision > seen)
    rows = sorted(connection.execute(query), key=lambda row: (row[_SUBMIT], row[_ID], row[-1]))
    return JobChanges(revision=reached, jobs=tuple(job_of(row) for row in rows))


def watermark(connection: Connection, source: str) -> datetime | None:
    """See :meth:`advisor.history.store.HistoryStore.watermark`."""
    query = select(func.max(INGESTS.c.watermark_us)).where(INGESTS.c.source == source)
    reached = connection.execute(query).scalar()
    return None if reached is None else from_microseconds(reached)


def any_synthetic(connection: Connection) -> bool:
    """See :meth:`advisor.history.store.HistoryStore.is_synthetic`."""
    query = select(INGESTS.c.id).where(INGESTS.c.synthetic, INGESTS.c.added > 0).limit(1)
    return connection.execute(query).first() is not None
