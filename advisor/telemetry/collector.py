"""From a source into the store: what is newer than the watermark, in one transaction."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from advisor.domain.ingest import Rejection
from advisor.history.store import HistoryStore
from advisor.telemetry.source import Progress, Source

__all__ = ["Collected", "collect"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Collected:
    """What one collection brought: jobs added, better known and known already, and what was left out and why.

    ``watermark`` is up to when the source has been read; ``notes`` say what was assumed.
    """

    source: str
    added: int
    changed: int
    unchanged: int
    rejections: tuple[Rejection, ...]
    notes: tuple[str, ...]
    watermark: datetime | None
    synthetic: bool


def collect(source: Source, store: HistoryStore, now: datetime, progress: Progress | None = None) -> Collected:
    """Read what ``source`` has after the store's watermark and append it; doing it again changes nothing.

    ``progress`` is told of the rows written. Nothing is kept unless everything is.

    Raises:
        Refused: the source's input is wrong as a whole, or it may not be mixed with what is stored.
        Transient: source or store cannot be reached now.
    """
    batch = source.read(store.watermark(source.name), now)
    result = store.append(batch, now, progress)
    return Collected(
        source=batch.source,
        added=result.added,
        changed=result.changed,
        unchanged=result.unchanged,
        rejections=(*batch.rejections, *result.rejections),
        notes=(*batch.notes, *result.notes),
        watermark=batch.watermark,
        synthetic=batch.synthetic,
    )
