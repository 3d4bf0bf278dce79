"""How far a pool's demand may rise before a moment: the raw material of warm capacity.

Need is GPUs running + pending in whole nodes. A rise over h minutes is the largest need within them less
the need now; at level j it asks for j nodes more. The model foresees the rise of demand itself, in parts of a
node: which part of it the GPUs left free on nodes in use can take is known at the moment, not learnt.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import maximum_filter1d

from advisor.features.demand import DemandSeries
from advisor.features.demand_calendar import hour_and_weekday, zone_named
from advisor.forecast.demand_booster import ClassBooster

__all__ = [
    "RISE_HORIZONS",
    "RISE_LEVELS",
    "RISE_PARTS",
    "RiseFrequencies",
    "RiseModel",
    "demand_rises_within",
    "exceedances",
    "free_parts",
    "monotone",
    "rise_horizons",
    "rise_shares",
    "rises_within",
]

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

RISE_HORIZONS = (5, 10, 15, 30, 60, 120, 240)
"""Minutes within which rises are foreseen."""

RISE_LEVELS = 8
"""Nodes of rise told apart; more counts as that many."""

RISE_PARTS = 8
"""Equal parts of a node in which rises of demand are told apart: single GPUs where a node has eight."""

_GRID = np.arange((RISE_LEVELS + 1) * RISE_PARTS) / RISE_PARTS
_HOURS = 24
_PRIOR_DAYS = 3.0
_DUST = 1e-6


def rise_horizons(step_minutes: int) -> tuple[int, ...]:
    """Those of the horizons that samples ``step_minutes`` apart can answer; at least the first one that is longer."""
    fitting = tuple(h for h in RISE_HORIZONS if h >= step_minutes and h % step_minutes == 0)
    return fitting or (step_minutes,)


def rises_within(series: DemandSeries, at: Indices, minutes: float) -> Floats:
    """Nodes of need that were added at most within ``minutes`` after each sample; NaN where not all was seen."""
    return _highest_rise(np.ceil(series.demand / series.node_gpus - _DUST), at, series.steps(minutes))


def demand_rises_within(series: DemandSeries, at: Indices, minutes: float) -> Floats:
    """By how much demand rose at most within ``minutes`` after each sample, in nodes and parts of them."""
    return _highest_rise(series.demand / series.node_gpus, at, series.steps(minutes))


def _highest_rise(nodes: Floats, at: Indices, steps: int) -> Floats:
    unseen = np.isnan(nodes)
    # Trailing over the steps that end at a sample, so the window after ``at`` is read ``steps`` later.
    highest = maximum_filter1d(np.where(unseen, -np.inf, nodes), steps, mode="nearest", origin=(steps - 1) // 2)
    gaps = np.concatenate([[0], np.cumsum(unseen)])
    end = at + steps
    inside = end < nodes.size
    reached = np.minimum(end, nodes.size - 1)
    whole = inside & (gaps[reached + 1] == gaps[at])
    return np.where(whole, np.maximum(highest[reached] - nodes[at], 0.0), np.nan)


def free_parts(series: DemandSeries, at: Indices) -> Indices:
    """Parts of a node left free if demand filled as few nodes as it can, at each sample."""
    nodes = series.demand[at] / series.node_gpus
    free = np.ceil(nodes - _DUST) - nodes
    return np.floor(free * RISE_PARTS + _DUST).astype(np.int64)


def rise_shares(rises: Floats) -> Floats:
    """The share of ``rises`` (nodes) above each part of a node, 0 first."""
    ordered = np.sort(rises)
    above: Floats = 1.0 - np.searchsorted(ordered, _GRID + _DUST, side="right") / max(len(ordered), 1)
    return above


def exceedances(rises: Floats) -> Floats:
    """For each rise, 1 at the levels it reaches: shape (rows, levels)."""
    return (rises[:, None] >= np.arange(1, RISE_LEVELS + 1)[None, :]).astype(np.float64)


def monotone(table: Floats) -> Floats:
    """Probabilities (..., horizons, levels) made never to fall with the horizon nor to rise with the level."""
    return np.minimum.accumulate(np.maximum.accumulate(table, axis=-2), axis=-1)


@dataclass(frozen=True, eq=False)
class RiseFrequencies:
    """How often each rise was seen, by local hour: the forecast of a pool without a model.

    ``table`` has the shape (24 hours, horizons, levels). An hour with few days is drawn towards all hours.
    """

    table: Floats

    @classmethod
    def from_history(cls, series: DemandSeries, horizons: tuple[int, ...]) -> RiseFrequencies:
        """Frequencies over every sample whose horizon has ended; zero where nothing was ever seen."""
        at = np.arange(len(series))
        hours = np.zeros(len(series), dtype=np.int64)
        if series.calendar_known and len(series):
            hours = hour_and_weekday(series.unix, zone_named(series.zone))[0].astype(np.int64)
        prior = _PRIOR_DAYS * 60.0 / series.step_minutes
        table = np.zeros((_HOURS, len(horizons), RISE_LEVELS))
        for row, horizon in enumerate(horizons):
            rises = rises_within(series, at, horizon) if len(series) else np.zeros(0)
            known = ~np.isnan(rises)
            if not known.any():
                continue
            reached = exceedances(rises[known])
            overall = reached.mean(axis=0)
            counts = np.bincount(hours[known], minlength=_HOURS)
            for level in range(RISE_LEVELS):
                seen = np.bincount(hours[known], reached[:, level], _HOURS)
                table[:, row, level] = (seen + prior * overall[level]) / (counts + prior)
        return cls(monotone(table))

    def probabilities(self, series: DemandSeries, at: Indices) -> Floats:
        """P(rise within each horizon >= each level) from samples ``at``: (rows, horizons, levels)."""
        if not series.calendar_known:
            # Without hours every sample counted as the first hour.
            return np.repeat(self.table[:1], len(at), axis=0)
        hours = hour_and_weekday(series.unix[at], zone_named(series.zone))[0].astype(np.int64)
        return self.table[hours]


@dataclass(frozen=True, eq=False)
class RiseModel:
    """Boosted classes of the rise of demand for each horizon of one group of pools.

    ``within`` tells for each horizon how the rises of each class were spread: the share of them above
    each part of a node, shape (classes, parts).
    """

    boosters: Mapping[int, ClassBooster]
    within: Mapping[int, Floats]

    def exceedance(self, rows: Floats, horizons: tuple[int, ...]) -> Floats:
        """P(demand rises within each horizon by more than each part of a node): (rows, horizons, parts).

        Parts are eighths of a node from 0 on; the chance grows with the horizon and shrinks with the part.
        """
        table = np.stack([self.boosters[h].probabilities(rows) @ self.within[h] for h in horizons], axis=1)
        return monotone(np.clip(table, 0.0, 1.0))

    def probabilities(self, rows: Floats, horizons: tuple[int, ...], free: Indices) -> Floats:
        """P(need rises within each horizon by j nodes or more) for each row: (rows, horizons, levels).

        ``free`` are the parts of a node that each row has free: the j-th node is wanted for what exceeds
        them and j - 1 nodes.
        """
        table = self.exceedance(rows, horizons)
        at = free[:, None] + RISE_PARTS * np.arange(RISE_LEVELS)[None, :]
        return np.take_along_axis(table, at[:, None, :], axis=2)

    def can_read(self, rows: Floats) -> NDArray[np.bool_]:
        """Which rows every booster can read."""
        readable: NDArray[np.bool_] = np.all([b.can_read(rows) for b in self.boosters.values()], axis=0)
        return readable

    def to_json(self, saved: Mapping[int, dict[str, Any]]) -> dict[str, Any]:
        """What must be kept beside the boosters' files, already ``saved``."""
        return {str(h): {"booster": saved[h], "within": self.within[h].tolist()} for h in self.boosters}
