"""The decision ledger and the advice given: what was decided, why, and whether it was carried out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, func, insert, select

from advisor.domain.plans import Change, Mode
from advisor.domain.units import utc
from advisor.history.rows import from_microseconds, to_microseconds
from advisor.history.schema import ADVICE, LEDGER

__all__ = [
    "Decision",
    "StoredAdvice",
    "last_applied",
    "latest_advice",
    "read_decisions",
    "write_advice",
    "write_decisions",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What was decided about one field of one object at ``time``, and whether it was carried out.

    ``id`` is given by the store, None before that.
    """

    time: datetime
    pool: str
    change: Change
    mode: Mode
    applied: bool
    id: int | None = None

    def __post_init__(self) -> None:
        """Keep the time in UTC."""
        object.__setattr__(self, "time", utc(self.time, "time"))


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredAdvice:
    """The advice of one cycle, as the JSON document that was shown."""

    time: datetime
    document: Mapping[str, Any]


def write_decisions(connection: Connection, decisions: Sequence[Decision]) -> None:
    """See :meth:`advisor.history.store.HistoryStore.record_decisions`."""
    if not decisions:
        return
    rows = [
        {
            "time_us": to_microseconds(each.time),
            "pool": each.pool,
            "object": each.change.object,
            "field": each.change.field,
            "old": each.change.old,
            "new": each.change.new,
            "allowed": each.change.allowed,
            "reasons": list(each.change.reasons),
            "mode": str(each.mode),
            "applied": each.applied,
        }
        for each in decisions
    ]
    connection.execute(insert(LEDGER), rows)


def read_decisions(connection: Connection, limit: int, as_of: datetime | None) -> list[Decision]:
    """See :meth:`advisor.history.store.HistoryStore.decisions`."""
    query = select(LEDGER).order_by(LEDGER.c.time_us.desc(), LEDGER.c.id.desc()).limit(limit)
    if as_of is not None:
        query = query.where(LEDGER.c.time_us <= to_microseconds(as_of))
    return [
        Decision(
            id=row.id,
            time=from_microseconds(row.time_us),
            pool=row.pool,
            change=Change(
                object=row.object,
                field=row.field,
                old=row.old,
                new=row.new,
                allowed=row.allowed,
                reasons=tuple(row.reasons),
            ),
            mode=Mode(row.mode),
            applied=row.applied,
        )
        for row in connection.execute(query)
    ]


def last_applied(connection: Connection, pool: str, field: str, as_of: datetime | None) -> datetime | None:
    """See :meth:`advisor.history.store.HistoryStore.last_applied`."""
    query = select(func.max(LEDGER.c.time_us)).where(LEDGER.c.pool == pool, LEDGER.c.field == field, LEDGER.c.applied)
    if as_of is not None:
        query = query.where(LEDGER.c.time_us <= to_microseconds(as_of))
    latest = connection.execute(query).scalar()
    return None if latest is None else from_microseconds(latest)


def write_advice(connection: Connection, time: datetime, document: Mapping[str, Any]) -> None:
    """See :meth:`advisor.history.store.HistoryStore.record_advice`."""
    connection.execute(insert(ADVICE).values(time_us=to_microseconds(utc(time, "time")), document=dict(document)))


def latest_advice(connection: Connection, as_of: datetime | None) -> StoredAdvice | None:
    """See :meth:`advisor.history.store.HistoryStore.latest_advice`."""
    query = select(ADVICE).order_by(ADVICE.c.time_us.desc(), ADVICE.c.id.desc()).limit(1)
    if as_of is not None:
        query = query.where(ADVICE.c.time_us <= to_microseconds(as_of))
    row = connection.execute(query).first()
    return None if row is None else StoredAdvice(time=from_microseconds(row.time_us), document=row.document)
