"""The decision ledger and the advice given: what was decided, why, and whether it was carried out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, func, insert, select

from advisor.domain.decisions import DecisionRecord, Verdict
from advisor.domain.plans import Mode
from advisor.domain.units import utc
from advisor.history.rows import from_microseconds, to_microseconds
from advisor.history.schema import ADVICE, LEDGER

__all__ = [
    "StoredAdvice",
    "last_applied",
    "latest_advice",
    "read_decisions",
    "write_advice",
    "write_decisions",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredAdvice:
    """The advice of one cycle, as the JSON document that was shown."""

    time: datetime
    document: Mapping[str, Any]


def write_decisions(connection: Connection, decisions: Sequence[DecisionRecord]) -> None:
    """See :meth:`advisor.history.store.HistoryStore.record_decisions`."""
    rows = {each.id: _row(each) for each in decisions}
    known = select(LEDGER.c.decision).where(LEDGER.c.decision.in_(list(rows)))
    for decision in connection.scalars(known):
        del rows[decision]
    if rows:
        connection.execute(insert(LEDGER), list(rows.values()))


def _row(decision: DecisionRecord) -> dict[str, Any]:
    return {
        "decision": decision.id,
        "time_us": to_microseconds(decision.time),
        "pool": decision.pool,
        "object": decision.object,
        "field": decision.field,
        "old": decision.old,
        "new": decision.new,
        "wanted": decision.wanted,
        "verdict": str(decision.verdict),
        "mode": str(decision.mode),
        "reasons": list(decision.reasons),
        "models": dict(decision.models),
    }


def read_decisions(connection: Connection, limit: int, as_of: datetime | None) -> list[DecisionRecord]:
    """See :meth:`advisor.history.store.HistoryStore.decisions`."""
    query = select(LEDGER).order_by(LEDGER.c.time_us.desc(), LEDGER.c.id.desc()).limit(limit)
    if as_of is not None:
        query = query.where(LEDGER.c.time_us <= to_microseconds(as_of))
    return [
        DecisionRecord(
            time=from_microseconds(row.time_us),
            pool=row.pool,
            object=row.object,
            field=row.field,
            old=row.old,
            new=row.new,
            wanted=row.wanted,
            verdict=Verdict(row.verdict),
            mode=Mode(row.mode),
            reasons=tuple(row.reasons),
            models=row.models,
        )
        for row in connection.execute(query)
    ]


def last_applied(connection: Connection, pool: str, field: str, as_of: datetime | None) -> datetime | None:
    """See :meth:`advisor.history.store.HistoryStore.last_applied`."""
    query = select(func.max(LEDGER.c.time_us)).where(
        LEDGER.c.pool == pool, LEDGER.c.field == field, LEDGER.c.verdict == str(Verdict.APPLIED)
    )
    if as_of is not None:
        query = query.where(LEDGER.c.time_us <= to_microseconds(as_of))
    latest = connection.execute(query).scalar()
    return None if latest is None else from_microseconds(latest)


def write_advice(connection: Connection, time: datetime, document: Mapping[str, Any]) -> None:
    """See :meth:`advisor.history.store.HistoryStore.record_advice`."""
    moment = utc(time, "time")
    latest = latest_advice(connection, moment)
    if latest is not None and latest.time == moment and latest.document == dict(document):
        return
    connection.execute(insert(ADVICE).values(time_us=to_microseconds(moment), document=dict(document)))


def latest_advice(connection: Connection, as_of: datetime | None) -> StoredAdvice | None:
    """See :meth:`advisor.history.store.HistoryStore.latest_advice`."""
    query = select(ADVICE).order_by(ADVICE.c.time_us.desc(), ADVICE.c.id.desc()).limit(1)
    if as_of is not None:
        query = query.where(ADVICE.c.time_us <= to_microseconds(as_of))
    row = connection.execute(query).first()
    return None if row is None else StoredAdvice(time=from_microseconds(row.time_us), document=row.document)
