"""When targets are scraped, and series of what they showed then."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from advisor.telemetry.prometheus.samples import Series

__all__ = ["Row", "Scrapes", "series_of"]


@dataclass(frozen=True, slots=True)
class Scrapes:
    """A grid of ``interval`` seconds between two moments; each target has its own offset in it, in milliseconds.

    ``salt`` gives the second of two servers offsets of its own.
    """

    start: float
    end: float
    interval: float = 60.0
    salt: str = ""

    def of(self, target: str) -> NDArray[np.float64]:
        """The moments at which ``target`` is scraped."""
        offset = (crc32(f"{self.salt}{target}".encode()) % int(self.interval * 1000)) / 1000
        count = int(np.ceil((self.end - self.start - offset) / self.interval))
        return np.round(self.start + offset + self.interval * np.arange(max(count, 0)), 3)


class Row(NamedTuple):
    """A value shown from ``begin`` on until ``until`` (the end of the world for None)."""

    labels: Mapping[str, str]
    begin: float
    until: float | None
    value: float


@dataclass(slots=True)
class _Pieces:
    labels: Mapping[str, str]
    rows: list[Row] = field(default_factory=list)


def series_of(name: str, rows: Iterable[Row], times: NDArray[np.float64]) -> list[Series]:
    """Series of ``name`` as scraped at ``times``; rows of equal labels are one, labels without a value are none."""
    grouped: dict[tuple[tuple[str, str], ...], _Pieces] = {}
    for row in rows:
        labels = {"__name__": name, **{key: value for key, value in row.labels.items() if value}}
        grouped.setdefault(tuple(sorted(labels.items())), _Pieces(labels)).rows.append(row)
    made = (_joined(pieces, times) for pieces in grouped.values())
    return [series for series in made if len(series.times)]


def _joined(pieces: _Pieces, times: NDArray[np.float64]) -> Series:
    rows = sorted(pieces.rows, key=lambda row: row.begin)
    cuts = [_seen(row, times) for row in rows]
    if len(rows) == 1 or len({row.value for row in rows}) == 1 == len(_gaps(cuts)):
        found = times[cuts[0].start : cuts[-1].stop]
        # One value needs no memory of its own for each time.
        return Series(pieces.labels, found, np.broadcast_to(np.float64(rows[0].value), len(found)))
    stamps = np.concatenate([times[cut] for cut in cuts])
    values = np.concatenate(
        [np.full(len(times[cut]), row.value, dtype=np.float64) for row, cut in zip(rows, cuts, strict=True)]
    )
    return Series(pieces.labels, stamps, values)


def _gaps(cuts: Sequence[slice]) -> list[int]:
    """Where a stretch without a gap begins."""
    return [n for n, cut in enumerate(cuts) if n == 0 or cuts[n - 1].stop != cut.start]


def _seen(row: Row, times: NDArray[np.float64]) -> slice:
    first = int(np.searchsorted(times, row.begin, "left"))
    last = len(times) if row.until is None else int(np.searchsorted(times, row.until, "left"))
    return slice(first, max(first, last))
