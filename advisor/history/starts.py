"""How long nodes took to start: one row for each, each part as it was learnt first."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, insert, select, update

from advisor.domain.start_latency import NodeStart, PoolStart, StartLatency, StartPart
from advisor.history.rows import from_microseconds, to_microseconds
from advisor.history.schema import STARTS

__all__ = ["read_start_latencies", "write_starts"]

_NEWEST = 200
"""So many starts of a pool at most are looked at: machines, images and clouds change."""

_COLUMNS = {part: STARTS.c[f"{part}_seconds"] for part in StartPart}


def write_starts(connection: Connection, source: str, starts: Iterable[PoolStart]) -> int:
    """Keep what ``starts`` know beyond what is stored; how many rows that changed.

    A part that is known stays as it is: the pod that was first on a node may be gone when it is looked at again,
    and another would pass for it.
    """
    written = 0
    for each in starts:
        seconds = {f"{part}_seconds": value for part, value in each.start.seconds.items()}
        key = (
            (STARTS.c.source == source)
            & (STARTS.c.claim == each.claim)
            & (STARTS.c.asked_us == to_microseconds(each.asked))
        )
        stored = connection.execute(select(*_COLUMNS.values()).where(key)).mappings().first()
        if stored is None:
            whole: dict[str, Any] = {"source": source, "claim": each.claim, "asked_us": to_microseconds(each.asked)}
            connection.execute(insert(STARTS).values({**whole, "pool": each.pool, **seconds}))
        elif new := {name: value for name, value in seconds.items() if stored[name] is None}:
            connection.execute(update(STARTS).where(key).values(new))
        else:
            continue
        written += 1
    return written


def read_start_latencies(connection: Connection, as_of: datetime) -> tuple[StartLatency, ...]:
    """See :meth:`advisor.history.store.HistoryStore.start_latencies`."""
    found: list[PoolStart] = []
    for pool in connection.execute(select(STARTS.c.pool).distinct()).scalars().all():
        newest = (
            select(STARTS)
            .where(STARTS.c.pool == pool, STARTS.c.asked_us <= to_microseconds(as_of))
            .order_by(STARTS.c.asked_us.desc())
            .limit(_NEWEST)
        )
        starts = (_start(row) for row in connection.execute(newest).mappings())
        found += [each for each in starts if each.known_at <= as_of]
    return StartLatency.by_pool(found)


def _start(row: Any) -> PoolStart:  # noqa: ANN401 - a row of any columns
    seconds = {part: float(row[column.name]) for part, column in _COLUMNS.items() if row[column.name] is not None}
    asked = from_microseconds(row["asked_us"])
    return PoolStart(claim=row["claim"], pool=row["pool"], asked=asked, start=NodeStart(seconds))
