"""How far a pool's need may rise before a moment: the raw material of warm capacity.

Need is GPUs running + pending in whole nodes. A rise over h minutes is the largest need within them less
the need now; at level j it asks for j nodes more.
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

__all__ = ["RISE_HORIZONS", "RISE_LEVELS", "RiseFrequencies", "RiseModel", "rise_horizons", "rises_within"]

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

RISE_HORIZONS = (5, 10, 15, 30, 60, 120, 240)
"""Minutes within which rises are foreseen."""

RISE_LEVELS = 8
"""Nodes of rise told apart; more counts as that many."""

_HOURS = 24
_PRIOR_DAYS = 3.0
_DUST = 1e-6


def rise_horizons(step_minutes: int) -> tuple[int, ...]:
    """Those of the horizons that samples ``step_minutes`` apart can answer; at least the first one that is longer."""
    fitting = tuple(h for h in RISE_HORIZONS if h >= step_minutes and h % step_minutes == 0)
    return fitting or (step_minutes,)


def rises_within(series: DemandSeries, at: Indices, minutes: float) -> Floats:
    """Nodes of need that were added at most within ``minutes`` after each sample; NaN where not all was seen."""
    steps = series.steps(minutes)
    need = np.ceil(series.demand / series.node_gpus - _DUST)
    unseen = np.isnan(need)
    # Trailing over the steps that end at a sample, so the window after ``at`` is read ``steps`` later.
    highest = maximum_filter1d(np.where(unseen, -np.inf, need), steps, mode="nearest", origin=(steps - 1) // 2)
    gaps = np.concatenate([[0], np.cumsum(unseen)])
    end = at + steps
    inside = end < len(series)
    reached = np.minimum(end, len(series) - 1)
    whole = inside & (gaps[reached + 1] == gaps[at])
    return np.where(whole, np.maximum(highest[reached] - need[at], 0.0), np.nan)


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
    """Boosted classes of the rise for each horizon of one group of pools.

    The last class of a booster holds every rise from its number on; ``tails`` tells how those were
    spread over the levels above, one row a horizon.
    """

    boosters: Mapping[int, ClassBooster]
    tails: Mapping[int, tuple[float, ...]]

    def probabilities(self, rows: Floats, horizons: tuple[int, ...]) -> Floats:
        """P(rise within each horizon >= each level) for each row of features: (rows, horizons, levels)."""
        table = np.empty((len(rows), len(horizons), RISE_LEVELS))
        for place, horizon in enumerate(horizons):
            booster, tail = self.boosters[horizon], self.tails[horizon]
            last = booster.classes - 1
            above = np.cumsum(booster.probabilities(rows)[:, ::-1], axis=1)[:, ::-1]
            table[:, place, :last] = above[:, 1:]
            table[:, place, last:] = above[:, -1:] * np.array(tail)[None, :]
        return monotone(np.clip(table, 0.0, 1.0))

    def can_read(self, rows: Floats) -> NDArray[np.bool_]:
        """Which rows every booster can read."""
        readable: NDArray[np.bool_] = np.all([b.can_read(rows) for b in self.boosters.values()], axis=0)
        return readable

    def to_json(self, saved: Mapping[int, dict[str, Any]]) -> dict[str, Any]:
        """What must be kept beside the boosters' files, already ``saved``."""
        return {str(h): {"booster": saved[h], "tail": list(self.tails[h])} for h in self.boosters}
