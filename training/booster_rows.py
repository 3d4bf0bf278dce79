"""Which rows a booster of demand is fitted on: those whose outcome was known in time, the quiet ones thinned."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from training.demand_rows import PoolRows

__all__ = ["features_of", "thinned", "usable"]

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Indices = NDArray[np.int64]


def usable(
    pools: Sequence[PoolRows], outcomes: Sequence[Floats], horizon_minutes: int, until_unix: float
) -> list[Indices]:
    """Rows of each pool whose outcome had come to pass and was seen."""
    return [
        np.flatnonzero(~np.isnan(y) & (rows.unix + horizon_minutes * 60 <= until_unix))
        for rows, y in zip(pools, outcomes, strict=True)
    ]


def thinned(eventful: Bools, most: int) -> tuple[Indices, Floats]:
    """At most about ``most`` rows, and the weights with which they stand for all.

    Most rows are moments after which nothing changed; those are thinned first, as they differ least.
    """
    events, quiet = np.flatnonzero(eventful), np.flatnonzero(~eventful)
    if eventful.size <= most:
        return np.arange(eventful.size), np.ones(eventful.size)
    every_event = max(1, -(-2 * events.size // most))
    events = events[::every_event]
    every_quiet = max(1, -(-quiet.size // max(1, most - events.size)))
    quiet = quiet[::every_quiet]
    kept = np.concatenate([events, quiet])
    weights = np.concatenate([np.full(events.size, every_event), np.full(quiet.size, every_quiet)])
    order = np.argsort(kept)
    return kept[order], weights[order].astype(np.float64)


def features_of(pools: Sequence[PoolRows], usable: Sequence[Indices], kept: Indices) -> Floats:
    """Rows of features of the ``kept`` among all usable rows of all pools, without a copy of the others."""
    ends = np.cumsum([len(u) for u in usable])
    parts = np.split(kept, np.searchsorted(kept, ends[:-1]))
    starts = np.concatenate([[0], ends[:-1]])
    return np.concatenate(
        [rows.features[u[k - start]] for rows, u, k, start in zip(pools, usable, parts, starts, strict=True)]
    )
