"""Replay demand forecasts as they would have been made: fit, predict ahead, learn what happened, refit.

Everything at a cut uses outcomes that had come to pass by then: the boosters, the baselines' tables, the
correction of levels and the verdict of the gate.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from advisor.forecast.demand import model_quantiles
from advisor.forecast.demand_baselines import BASELINES, LEVELS, BaselineTables, baseline_quantiles
from advisor.forecast.demand_gate import FULL_WINDOW_DAYS, MODEL, PERSISTENCE, DailyLosses, GateVerdict, judged
from advisor.forecast.demand_law import corrected_levels
from advisor.forecast.demand_model import ChangeModel
from training.demand_boosters import fit_change
from training.demand_groups import groups_at, in_groups
from training.demand_rows import DemandFitSettings, PoolRows

__all__ = ["DemandReplay", "Scored", "daily_means", "pinball"]

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

_DAY = 86_400
_JUDGED_LEVELS = (0.8, 0.9, 0.95, 0.99)
"""The gate listens to the upper quantiles, which capacity is decided by."""
_JUDGED = np.array([LEVELS.index(level) for level in _JUDGED_LEVELS])
_MEDIAN = LEVELS.index(0.5)
_FEWEST_TRANSFORM_DAYS = 2.0


@dataclass(frozen=True, slots=True, eq=False)
class Scored:
    """Forecasts of one pool at one horizon between two cuts, beside what happened.

    ``quantiles`` maps the model and every baseline to GPUs at every level, (rows, levels); the model is
    NaN where none was fitted. ``served`` is what the gate would have served,
    its median held at ``now`` where ``holds_median``.
    """

    pool: str
    horizon_minutes: int
    unix: NDArray[np.int64]
    now: Floats
    outcome: Floats
    quantiles: dict[str, Floats]
    served: str
    holds_median: bool = False


@dataclass(slots=True)
class _Memory:
    """What has been learnt of one pool at one horizon: brackets of transforms, upper losses, losses at the median."""

    ended: list[NDArray[np.int64]] = field(default_factory=list)
    lower: list[Floats] = field(default_factory=list)
    upper: list[Floats] = field(default_factory=list)
    losses: dict[str, list[Floats]] = field(default_factory=lambda: {name: [] for name in (MODEL, *BASELINES)})
    medians: dict[str, list[Floats]] = field(default_factory=lambda: {name: [] for name in (MODEL, PERSISTENCE)})


class DemandReplay:
    """The sequence of cuts over a set of pools; each cut learns from all before it."""

    def __init__(self, pools: Sequence[PoolRows], settings: DemandFitSettings) -> None:
        self._pools = pools
        self._settings = settings
        self._memory: dict[tuple[str, int], _Memory] = {}

    def fit(self, cut: float) -> tuple[dict[str, dict[int, ChangeModel]], dict[str, str]]:
        """Boosters of every group and horizon from what had ended by ``cut``, and each pool's group.

        Pools with less than the least history are in no group.
        """
        groups = groups_at(self._pools, cut, self._settings)
        horizons = self._settings.horizons_minutes
        found = in_groups(self._pools, groups, horizons, self._settings, partial(fit_change, until_unix=cut))
        return found, groups

    def advance(self, cut: float, end: float) -> list[Scored]:
        """Fit at ``cut``, forecast every row from then up to ``end``, and remember how it came out.

        Levels and verdicts follow what came day by day, since that costs no fit.
        """
        fitted, groups = self.fit(cut)
        scored = []
        for rows in self._pools:
            if rows.pool not in groups:
                continue
            past = rows.series.until(datetime.fromtimestamp(cut, UTC))
            for horizon in self._settings.horizons_minutes:
                model = fitted[groups[rows.pool]].get(horizon)
                tables = BaselineTables.from_history(past, horizon)
                days = (self._forecast(rows, horizon, model, tables, day) for day in _days(cut, end))
                scored += [day for day in days if day is not None]
        return scored

    def levels(self, pool: str, horizon: int, cut: float) -> Floats:
        """The levels to ask of the law, from transforms of recent outcomes; the nominal ones while too few."""
        nominal = np.array(LEVELS)
        memory = self._memory.get((pool, horizon))
        if memory is None or not memory.ended:
            return nominal
        ended, lower, upper = np.concatenate(memory.ended), np.concatenate(memory.lower), np.concatenate(memory.upper)
        since = cut - self._settings.calibration_days * _DAY
        recent = (ended <= cut) & (ended > since) & ~np.isnan(lower)
        if not recent.any() or ended[recent].max() - ended[recent].min() < _FEWEST_TRANSFORM_DAYS * _DAY:
            return nominal
        return corrected_levels(nominal, lower[recent], upper[recent])

    def verdict(self, pool: str, horizon: int, cut: float) -> GateVerdict:
        """What recent days say about the model of one pool at one horizon."""
        memory = self._memory.get((pool, horizon))
        if memory is None:
            nothing = np.zeros(0)
            return judged(DailyLosses(nothing, {}, nothing, nothing))
        ended = np.concatenate(memory.ended)
        recent = (ended <= cut) & (ended > cut - FULL_WINDOW_DAYS * _DAY)
        days = ended[recent] // _DAY
        upper, median = (
            {name: daily_means(np.concatenate(x)[recent], days) for name, x in losses.items()}
            for losses in (memory.losses, memory.medians)
        )
        baselines = {name: upper[name] for name in BASELINES}
        return judged(DailyLosses(upper[MODEL], baselines, median[MODEL], median[PERSISTENCE]))

    def _forecast(
        self,
        rows: PoolRows,
        horizon: int,
        model: ChangeModel | None,
        tables: BaselineTables,
        window: tuple[float, float],
    ) -> Scored | None:
        cut, end = window
        changes = rows.changes(horizon)
        chosen = np.flatnonzero((rows.unix >= cut) & (rows.unix < end) & ~np.isnan(changes))
        if not chosen.size:
            return None
        at = rows.at[chosen]
        now = rows.series.demand[at]
        outcome = rows.series.demand[at + rows.series.steps(horizon)]
        quantiles = {name: baseline_quantiles(name, tables, rows.series, at, horizon) for name in BASELINES}
        lower = upper = np.full(chosen.size, np.nan)
        if model is None:
            # A pool that never changed: the constant knows all that a model would.
            quantiles[MODEL] = quantiles["constant"]
        else:
            law = model.law(rows.features[chosen])
            levels = self.levels(rows.pool, horizon, cut)
            quantiles[MODEL] = model_quantiles(law, now, rows.series.node_gpus, levels)
            lower, upper = law.transforms(changes[chosen])
        verdict = self.verdict(rows.pool, horizon, cut)
        self._remember((rows.pool, horizon), rows.unix[chosen] + horizon * 60, (lower, upper), outcome, quantiles)
        return Scored(
            rows.pool,
            horizon,
            rows.unix[chosen],
            now,
            outcome,
            quantiles,
            verdict.served,
            verdict.holds_median and verdict.served == MODEL,
        )

    def _remember(
        self,
        key: tuple[str, int],
        ended: NDArray[np.int64],
        bracket: tuple[Floats, Floats],
        outcome: Floats,
        quantiles: Mapping[str, Floats],
    ) -> None:
        memory = self._memory.setdefault(key, _Memory())
        memory.ended.append(ended)
        memory.lower.append(bracket[0])
        memory.upper.append(bracket[1])
        for name, found in quantiles.items():
            losses = pinball(outcome, found[:, _JUDGED], _JUDGED_LEVELS)
            memory.losses[name].append(losses.mean(axis=1))
        for name, kept in memory.medians.items():
            kept.append(np.abs(outcome - quantiles[name][:, _MEDIAN]))


def _days(begin: float, end: float) -> list[tuple[float, float]]:
    """The stretch cut into days, the last of which may be short."""
    edges = [*np.arange(begin, end, _DAY).tolist(), end]
    return list(pairwise(edges))


def pinball(outcome: Floats, quantiles: Floats, levels: Sequence[float]) -> Floats:
    """Quantile loss of each outcome at each level: (rows, levels), in the unit of the outcome."""
    miss = outcome[:, None] - quantiles
    loss: Floats = np.maximum(np.array(levels) * miss, (np.array(levels) - 1.0) * miss)
    return loss


def daily_means(losses: Floats, days: Indices) -> Floats:
    """Mean loss of each day, oldest first."""
    _, where = np.unique(days, return_inverse=True)
    means: Floats = np.bincount(where, losses) / np.bincount(where)
    return means
