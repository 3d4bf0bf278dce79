"""Zeros that are no demand: telemetry that fell silent and was recorded as nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from advisor.features.demand import DemandSeries

__all__ = ["HOLE_MINUTES", "without_holes"]

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

HOLE_MINUTES = 60
"""Zeros that began suspiciously are believed after this long."""

_SUSPICIOUS_NODES = 4.0


def without_holes(series: DemandSeries) -> DemandSeries:
    """The series with suspicious zeros turned into gaps, for at most an hour each, and a note of how many.

    Zeros are suspicious where everything vanished within one step: all demand together with all idle GPUs,
    or, where idle GPUs are not told, demand of at least four nodes. Jobs end one by one and nodes leave
    after them, so one step takes both only when nobody looked. Whether a sample is suspicious depends on
    nothing that came later.
    """
    if not len(series):
        return series
    nothing = series.demand == 0
    if series.idle is not None:
        nothing &= series.idle == 0
    suspicious = _held(nothing & _vanished(series), nothing, HOLE_MINUTES // series.step_minutes)
    if not suspicious.any():
        return series
    note = (
        f"samples of pool {series.pool} that are zeros into which everything vanished at once, taken as gaps: "
        f"{int(suspicious.sum())}"
    )
    return replace(
        series,
        running=np.where(suspicious, np.nan, series.running),
        pending=_masked(series.pending, suspicious),
        idle=_masked(series.idle, suspicious),
        capacity=_masked(series.capacity, suspicious),
        state={name: np.where(suspicious, np.nan, row) for name, row in series.state.items()},
        notes=(*series.notes, note),
    )


def _vanished(series: DemandSeries) -> Bools:
    """Where the sample before still had so much that it cannot all be gone a step later."""
    if series.idle is None:
        much = series.demand >= _SUSPICIOUS_NODES * series.node_gpus
    else:
        much = (series.demand > 0) & (series.demand + series.idle >= series.node_gpus)
    return np.concatenate([[False], much[:-1]])


def _held(begins: Bools, nothing: Bools, longest: int) -> Bools:
    """Samples of nothing that follow a beginning without a break, at most ``longest`` of them."""
    here = np.arange(begins.size)
    begun = np.maximum.accumulate(np.where(begins, here, -1))
    broken = np.maximum.accumulate(np.where(~nothing, here, -1))
    held: Bools = nothing & (begun > broken) & (here - begun < max(1, longest))
    return held


def _masked(row: Floats | None, where: Bools) -> Floats | None:
    return None if row is None else np.where(where, np.nan, row)
