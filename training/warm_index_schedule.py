"""The index rule over a span of moments: what it would have had ready and kept at each, at any price of waiting.

The chance of a rise is read at every part of a node, so that GPUs left free on nodes in use count: the level a
part belongs to is only known in the replay. The rule itself is the planner's own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from advisor.features.demand import DemandSeries
from advisor.forecast.demand_rise import RISE_LEVELS, RISE_PARTS, demand_rises_within
from advisor.planning.warm_index import ladder, least_boot_weight, least_keep_stake
from training.warm_replay import WarmWorld
from training.warm_schedule import WarmSchedule

__all__ = ["WAITING_WEIGHT", "IndexTable", "foresight", "index_table", "together"]

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

WAITING_WEIGHT = 0.5
"""The part of the price of waiting that counts, as in service."""

_MOMENTS_AT_ONCE = 2_000
_KNOWN_MINUTES = (*range(1, 16), 20, 25, 30, 40, 50, 60, 75, 90, 105, 120, 150, 180, 210, 240)


@dataclass(frozen=True, eq=False)
class IndexTable:
    """At every moment and part of a node, from which stake on it is kept and from which weight on it is booted.

    Both have the shape (moments, parts) and only grow with the part; ``node_gpus`` are the GPUs of a node.
    """

    keep: Floats
    boot: Floats
    node_gpus: int

    def schedule(self, waiting_ratio: float, boot_weight: float, world: WarmWorld) -> WarmSchedule:
        """What the rule asks for where a waiting GPU-minute is worth ``waiting_ratio`` paid ones.

        ``boot_weight`` is the c of the boot rule. An idle node that is no longer worth keeping stays for a start
        latency all the same, as the shortest keep-alive has it: that costs nothing measurable and spares starts.
        """
        worth = WAITING_WEIGHT * waiting_ratio
        stake = world.boot_minutes + worth * world.latency_minutes
        gpus = self.node_gpus / RISE_PARTS
        return WarmSchedule(
            setting={"waiting_ratio": waiting_ratio},
            ahead=(self.boot < boot_weight * worth).sum(axis=1) * gpus,
            keep=(self.keep < stake).sum(axis=1) * gpus,
            patience_minutes=world.latency_minutes,
        )


def index_table(
    horizons_minutes: Sequence[float],
    exceedances: Sequence[NDArray[np.float32]] | Sequence[Floats],
    node_gpus: int,
    world: WarmWorld,
) -> IndexTable:
    """The table of moments with chances (moments, horizons, parts) of one pool, or of several that are one."""
    keep, boot = [], []
    for first in range(0, len(exceedances[0]), _MOMENTS_AT_ONCE):
        here = [table[first : first + _MOMENTS_AT_ONCE].astype(np.float64) for table in exceedances]
        part = np.moveaxis(here[0] if len(here) == 1 else together(here), 1, 0)
        minutes, chance = ladder(np.asarray(horizons_minutes, dtype=np.float64), part, world.latency_minutes)
        keep.append(least_keep_stake(minutes, chance))
        boot.append(least_boot_weight(minutes, chance, world.latency_minutes, world.boot_minutes))
    # A part counts only if all below it do.
    grown = [np.maximum.accumulate(np.concatenate(parts), axis=1) for parts in (keep, boot)]
    return IndexTable(grown[0], grown[1], node_gpus)


def together(exceedances: Sequence[Floats]) -> Floats:
    """The chances of the sum of rises that come independently of each other: several pools as one.

    Pools need not peak at the same minute, so this errs on the side of more.
    """
    size = exceedances[0].shape[-1]
    length = 1 << (len(exceedances) * size).bit_length()
    product = np.prod([np.fft.rfft(_masses(table), length, axis=-1) for table in exceedances], axis=0)
    sums = np.fft.irfft(product, length, axis=-1)[..., :size]
    above: Floats = np.clip(1.0 - np.cumsum(sums, axis=-1), 0.0, 1.0)
    return above


def _masses(exceedance: Floats) -> Floats:
    """The chance of each part being the rise; the last entry gathers every rise beyond the parts told apart."""
    edge = np.ones_like(exceedance[..., :1])
    masses: Floats = -np.diff(np.concatenate([edge, exceedance, 0.0 * edge], axis=-1), axis=-1)
    return masses


def foresight(series: DemandSeries, at: Indices) -> tuple[tuple[float, ...], Floats]:
    """Horizons, and chances that are 0 or 1, since they are read from what came: the clairvoyant's forecast."""
    horizons = tuple(float(h) for h in _KNOWN_MINUTES if h % series.step_minutes == 0)
    parts = np.arange((RISE_LEVELS + 1) * RISE_PARTS) / RISE_PARTS
    rises = [demand_rises_within(series, at, h) for h in horizons]
    return horizons, np.stack([np.nan_to_num(r)[:, None] > parts[None, :] + 1e-6 for r in rises], axis=1).astype(
        np.float64
    )
