"""How far a pool's demand has risen at a time in the last day: what the plain rule of warm capacity is ready for.

The GPUs to have ready are a quantile, over the last 24 h, of the largest rise of demand within ten minutes. It
needs no model and no prices, and is strong where small jobs come in trains.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["RISE_MINUTES", "recent_rises"]

Floats = NDArray[np.float64]

RISE_MINUTES = 10.0
"""The time within which a rise counts."""

_WINDOW_MINUTES = 24 * 60.0
_APART_MINUTES = 2.0


def recent_rises(demand: Floats, step_minutes: int, first: int, quantiles: Floats) -> Floats:
    """GPUs to have ready at the samples from ``first`` on, at each quantile: (samples, quantiles).

    ``demand`` are GPUs at each sample, NaN where nobody looked. At a sample only rises that had come to pass by
    then count, one every two minutes; 0 where none is known.
    """
    span = max(1, round(RISE_MINUTES / step_minutes))
    every = max(1, round(_APART_MINUTES / step_minutes))
    window = max(1, round(_WINDOW_MINUTES / step_minutes))
    padded = np.concatenate([np.full(window + span, np.nan), demand])
    highest = np.lib.stride_tricks.sliding_window_view(padded, span + 1).max(axis=1)
    # ``rises[i]`` began at sample i - window - span of the demand and ended at i - window.
    rises = highest - padded[: highest.size]
    asked = np.arange(first, demand.size, every)
    ended = asked[:, None] + window - np.arange(0, window, every)[None, :]
    found = _quantiles(rises[ended], quantiles)
    return np.repeat(found, every, axis=0)[: demand.size - first]


def _quantiles(rises: Floats, quantiles: Floats) -> Floats:
    """Quantiles of each row's known values, the smallest value at or above the level; 0 where a row has none."""
    ordered = np.sort(rises, axis=1)
    known = (~np.isnan(ordered)).sum(axis=1)
    place = np.ceil(known[:, None] * quantiles[None, :] - 1e-9).astype(np.int64) - 1
    found = np.take_along_axis(ordered, np.clip(place, 0, ordered.shape[1] - 1), axis=1)
    ready: Floats = np.where(known[:, None] > 0, found, 0.0)
    return ready
