"""The families of policies that an evaluation compares, each swept over its one knob."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from advisor.domain.warm_reports import KEEP_ALIVE
from advisor.features.demand import DemandSeries
from advisor.features.recent_rises import recent_rises
from training.warm_index_schedule import IndexTable
from training.warm_replay import WarmWorld, held
from training.warm_schedule import WarmSchedule, keep_alive, static, trailing_maximum

__all__ = ["CANDIDATES", "families", "index_sweep", "rise_quantiles"]

Floats = NDArray[np.float64]

CLAIRVOYANT = "clairvoyant"
RISE_QUANTILE = "rise_quantile"
CANDIDATES: Mapping[str, float | None] = {"index_cautious": 0.5, "index_full": 1.0, RISE_QUANTILE: None}
"""What the advisor may serve, with the c of the boot rule where it is the index rule."""

_WAITING_RATIOS = (0, 0.5, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)
_KEEP_ALIVE_MINUTES = (0.5, 1, 2, 3, 5, 10, 15, 20, 30, 45, 60, 90, 120, 180, 240, 360, 480)
_TRAILING_MINUTES = (1, 5, 15, 30, 60, 120, 240, 480, 1440)
_STATIC_QUANTILES = (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99, 1.0)
_RISE_QUANTILES = (0.0, 0.5, 0.7, 0.8, 0.85, 0.9, 0.95, 0.975, 0.99, 1.0)
_SHORT_MINUTES = 3.0


def families(
    series: DemandSeries, span: tuple[int, int], foreseen: IndexTable, known: IndexTable, world: WarmWorld
) -> dict[str, list[WarmSchedule]]:
    """Every family over the samples of ``span``.

    ``foreseen`` is the index of the forecast, ``known`` that of what came. What another family learns from the past,
    it learns from before each sample.
    """
    first, stop = span
    demand = held(series.demand[:stop])
    windows = trailing_maximum(demand, series.step_minutes, _TRAILING_MINUTES)
    found = {
        KEEP_ALIVE: keep_alive(stop - first, _KEEP_ALIVE_MINUTES),
        "static": static(stop - first, _fleet_sizes(series, first), _SHORT_MINUTES),
        "trailing_max": [schedule.since(first) for schedule in windows],
        # Who knows what comes has no use for patience.
        CLAIRVOYANT: [replace(one, patience_minutes=0.0) for one in index_sweep(known, 1.0, world)],
    }
    for name, boot_weight in CANDIDATES.items():
        found[name] = rise_quantiles(series, span) if boot_weight is None else index_sweep(foreseen, boot_weight, world)
    return found


def index_sweep(table: IndexTable, boot_weight: float, world: WarmWorld) -> list[WarmSchedule]:
    """The index rule over prices of waiting."""
    return [table.schedule(ratio, boot_weight, world) for ratio in _WAITING_RATIOS]


def rise_quantiles(series: DemandSeries, span: tuple[int, int]) -> list[WarmSchedule]:
    """The plain rule over its quantiles."""
    first, stop = span
    ready = recent_rises(series.demand[:stop], series.step_minutes, first, np.array(_RISE_QUANTILES))
    return [
        WarmSchedule(setting={"quantile": q}, ahead=gpus, keep=gpus, patience_minutes=_SHORT_MINUTES)
        for q, gpus in zip(_RISE_QUANTILES, ready.T, strict=True)
    ]


def _fleet_sizes(series: DemandSeries, first: int) -> list[float]:
    """Whole nodes that would have held each quantile of the demand before ``first``, in GPUs."""
    past = series.demand[:first]
    past = past[~np.isnan(past)]
    if not past.size:
        return [0.0]
    nodes = np.ceil(np.quantile(past, _STATIC_QUANTILES) / series.node_gpus)
    return [float(n) * series.node_gpus for n in np.unique(nodes)]
