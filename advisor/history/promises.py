"""What was promised to jobs, written once each, and how the promises were kept."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from itertools import islice

from sqlalchemy import ColumnElement, Connection, and_, case, func, insert, or_, select

from advisor.domain.jobs import Outcome
from advisor.domain.promises import KeptPromises, Promise
from advisor.history.rows import Row, from_microseconds, to_microseconds
from advisor.history.schema import JOBS, PROMISES

__all__ = ["kept_by_day", "promised", "read_promises", "write_promises"]

_CHUNK = 500
_SECOND_US = 1_000_000
_DAY_US = 86_400 * _SECOND_US

_Key = tuple[str, str]


def write_promises(connection: Connection, promises: Iterable[Promise]) -> int:
    """See :meth:`advisor.history.store.HistoryStore.record_promises`."""
    # Of several to one job the first counts, as it would have, had they come one by one.
    first = {(promise.source, promise.job_id): promise for promise in reversed(list(promises))}
    for key in promised(connection, list(first)):
        del first[key]
    if first:
        connection.execute(insert(PROMISES), [_row(promise) for promise in first.values()])
    return len(first)


def read_promises(connection: Connection, keys: Sequence[_Key]) -> dict[_Key, Promise]:
    """See :meth:`advisor.history.store.HistoryStore.promises`."""
    wanted = set(keys)
    found: dict[_Key, Promise] = {}
    for ids in _chunks({job_id for _, job_id in keys}):
        for row in connection.execute(select(PROMISES).where(PROMISES.c.id.in_(ids))):
            if (row.source, row.id) in wanted:
                found[row.source, row.id] = _promise(row)
    return found


def kept_by_day(connection: Connection, as_of: datetime, since: datetime | None) -> list[KeptPromises]:
    """See :meth:`advisor.history.store.HistoryStore.kept_promises`."""
    at = to_microseconds(as_of)
    ended, ran_us = _ran(at)
    day = (JOBS.c.submit_us // _DAY_US).label("day")
    overdue = and_(~ended, ran_us > PROMISES.c.p90_seconds * _SECOND_US)
    joined = and_(JOBS.c.source == PROMISES.c.source, JOBS.c.id == PROMISES.c.id)
    query = (
        select(
            day,
            PROMISES.c.replayed,
            _count(ended),
            _count(overdue),
            _count(and_(ended, ran_us <= PROMISES.c.p50_seconds * _SECOND_US)),
            _count(and_(ended, ran_us <= PROMISES.c.p90_seconds * _SECOND_US)),
        )
        .select_from(JOBS.join(PROMISES, joined))
        .where(JOBS.c.submit_us <= at, JOBS.c.start_us <= at)
        .group_by(day, PROMISES.c.replayed)
        .order_by(day, PROMISES.c.replayed)
    )
    if since is not None:
        query = query.where(JOBS.c.submit_us >= to_microseconds(since))
    return [
        KeptPromises(
            begin=from_microseconds(int(number) * _DAY_US),
            replayed=bool(replayed),
            ended=int(ends),
            overdue=int(late),
            within_p50=int(p50),
            within_p90=int(p90),
        )
        for number, replayed, ends, late, p50, p90 in connection.execute(query)
    ]


def _ran(at: int) -> tuple[ColumnElement[bool], ColumnElement[float]]:
    """Whether a job had ended at ``at`` (microseconds), and how long it had been seen to run by then.

    Without its pauses, as a promise has it; they are known once the job is gone.
    """
    ended = and_(JOBS.c.end_us.is_not(None), JOBS.c.end_us <= at)
    lost = and_(JOBS.c.outcome.is_not(None), JOBS.c.outcome == str(Outcome.CENSORED), JOBS.c.last_seen_us <= at)
    until = case((ended, JOBS.c.end_us), (lost, JOBS.c.last_seen_us), else_=at)
    paused = case((or_(ended, lost), JOBS.c.paused_seconds), else_=0.0)
    return ended, until - JOBS.c.start_us - paused * _SECOND_US


def _count(condition: ColumnElement[bool]) -> ColumnElement[int]:
    return func.sum(case((condition, 1), else_=0))


def promised(connection: Connection, keys: Sequence[_Key]) -> Iterator[_Key]:
    """See :meth:`advisor.history.store.HistoryStore.promised`."""
    wanted = set(keys)
    for ids in _chunks({job_id for _, job_id in keys}):
        for source, job_id in connection.execute(
            select(PROMISES.c.source, PROMISES.c.id).where(PROMISES.c.id.in_(ids))
        ):
            if (source, job_id) in wanted:
                yield source, job_id


def _chunks(ids: Iterable[str]) -> Iterator[list[str]]:
    iterator = iter(ids)
    while chunk := list(islice(iterator, _CHUNK)):
        yield chunk


def _row(promise: Promise) -> dict[str, object]:
    return {
        "source": promise.source,
        "id": promise.job_id,
        "asked_us": to_microseconds(promise.asked_at),
        "replayed": promise.replayed,
        "served": promise.served,
        "model_version": promise.model_version,
        "key": promise.key,
        "key_count": promise.key_count,
        "p50_seconds": promise.p50_seconds,
        "p90_seconds": promise.p90_seconds,
        "typical_seconds": promise.typical_seconds,
        "mean_seconds": promise.mean_seconds,
        "law": [list(knot) for knot in promise.law],
        "reasons": list(promise.reasons),
    }


def _promise(row: Row) -> Promise:
    source, job_id, asked_us, replayed, served, version, key, count, p50, p90, typical, mean, law, reasons = row
    return Promise(
        source=source,
        job_id=job_id,
        asked_at=from_microseconds(asked_us),
        replayed=replayed,
        served=served,
        model_version=version,
        key=key,
        key_count=count,
        p50_seconds=p50,
        p90_seconds=p90,
        typical_seconds=typical,
        mean_seconds=mean,
        law=tuple((level, seconds) for level, seconds in law),
        reasons=tuple(reasons),
    )
