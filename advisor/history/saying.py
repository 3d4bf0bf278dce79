"""The log of ingests: how far each source was read, what was left out of it and what had to be assumed.

A source that is read every few minutes for years must not fill the store with what it says: of notes that differ by
their numbers alone the latest is kept, and an ingest that changed no job only moves on what the last one wrote.
"""

from __future__ import annotations

import re
from datetime import datetime

from sqlalchemy import Connection, func, insert, select, update

from advisor.domain.ingest import JobBatch, Rejection
from advisor.history.rows import to_microseconds
from advisor.history.schema import INGESTS, NOTES, REJECTIONS

__all__ = ["kind_of", "record_ingest"]

_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_MOST_KINDS = 100


def kind_of(note: str) -> str:
    """What notes have in common that say the same with other numbers.

    >>> kind_of("nodes that are gone: 1,204") == kind_of("nodes that are gone: 3")
    True
    """
    return _NUMBER.sub("#", note)


def record_ingest(
    connection: Connection,
    batch: JobBatch,
    rejections: tuple[Rejection, ...],
    counts: tuple[int, int, int],
    now: datetime,
) -> None:
    """Log the ingest of ``batch``, unless it brought nothing new; ``counts``: jobs added, changed, unchanged."""
    dropped = [_record_rejection(connection, batch, each) for each in rejections]
    said = [_record_note(connection, batch.source, note) for note in dict.fromkeys(batch.notes)]
    mine = select(func.max(INGESTS.c.id), func.max(INGESTS.c.watermark_us)).where(INGESTS.c.source == batch.source)
    last, reached = connection.execute(mine).one()
    watermark = None if batch.watermark is None else to_microseconds(batch.watermark)
    further = watermark is not None and (reached is None or watermark > reached)
    added, changed, unchanged = counts
    moved = {"time_us": to_microseconds(now), "watermark_us": watermark if further else reached}
    if added or changed or any(said) or (last is None and (further or any(dropped))):
        values = {"added": added, "changed": changed, "unchanged": unchanged, "synthetic": batch.synthetic}
        connection.execute(insert(INGESTS).values(source=batch.source, **values, **moved))
    elif further or any(dropped):
        connection.execute(update(INGESTS).where(INGESTS.c.id == last).values(moved))


def _record_note(connection: Connection, source: str, note: str) -> bool:
    """Whether ``note`` is of a new kind; one of a known kind takes the place of the last."""
    kind = kind_of(note)
    same = (NOTES.c.source == source) & (NOTES.c.kind == kind)
    known = connection.execute(select(NOTES.c.note).where(same)).scalar()
    if known is None:
        kinds = connection.execute(select(func.count()).where(NOTES.c.source == source)).scalar_one()
        if kinds >= _MOST_KINDS:
            return False
        connection.execute(insert(NOTES).values(source=source, kind=kind, note=note))
        return True
    if known != note:
        connection.execute(update(NOTES).where(same).values(note=note))
    return False


def _record_rejection(connection: Connection, batch: JobBatch, rejection: Rejection) -> bool:
    """Whether ``rejection`` was news.

    One with a known example only ever grows. Where readings overlap the example may be another each time, and
    adding up would count the same rows again and again: there one stands for its reason, that of the fullest reading.
    """
    same = (REJECTIONS.c.source == batch.source) & (REJECTIONS.c.reason == rejection.reason)
    if not batch.overlapping:
        same &= REJECTIONS.c.example == rejection.example
    fullest = select(REJECTIONS.c.id, REJECTIONS.c.count).where(same).order_by(REJECTIONS.c.count.desc()).limit(1)
    known = connection.execute(fullest).first()
    if known is None:
        values = {"source": batch.source, "reason": rejection.reason, "example": rejection.example}
        connection.execute(insert(REJECTIONS).values(**values, count=rejection.count))
        return True
    row, count = known
    if rejection.count <= count:
        return False
    grown = update(REJECTIONS).where(REJECTIONS.c.id == row)
    connection.execute(grown.values(count=rejection.count, example=rejection.example))
    return True
