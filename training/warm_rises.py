"""Fit the rises of demand, judge them on each pool's last days, and see which rule of warm capacity pays there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial

import numpy as np
from numpy.typing import NDArray

from advisor.domain.warm_rules import WarmRule
from advisor.features.demand_table import feature_rows
from advisor.forecast.demand import FREQUENCIES
from advisor.forecast.demand_gate import DailyLosses, GateVerdict, judged
from advisor.forecast.demand_rise import (
    RiseFrequencies,
    RiseModel,
    exceedances,
    free_parts,
    rise_horizons,
    rises_within,
)
from training.demand_groups import groups_at, in_groups
from training.demand_replay import daily_means
from training.demand_rows import DemandFitSettings, PoolRows
from training.rise_boosters import fit_rises
from training.warm_forecast import foreseen, seen_shares
from training.warm_trial import WarmTrial, tried_rule

__all__ = ["LearntRises", "learn_rises"]

Floats = NDArray[np.float64]

_DAY = 86_400
_JUDGED = (10, 60)


@dataclass(frozen=True, slots=True)
class LearntRises:
    """Models of rises by group, and by pool the verdict on the model and the rule to follow."""

    models: Mapping[str, RiseModel] = field(default_factory=dict)
    verdicts: Mapping[str, GateVerdict] = field(default_factory=dict)
    rules: Mapping[str, WarmRule] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class _Earlier:
    """A model of rises that has not seen what came after ``begin``."""

    model: RiseModel
    horizons: tuple[int, ...]
    begin: float
    extra: tuple[str, ...]


def learn_rises(
    pools: Sequence[PoolRows],
    groups: dict[str, str],
    window: tuple[float, float],
    how: tuple[DemandFitSettings, tuple[str, ...], WarmTrial],
) -> LearntRises:
    """Models fitted on everything; verdicts and rules from models that had not seen ``window`` (Unix seconds)."""
    settings, extra, trial = how
    if not settings.rises:
        return LearntRises()
    begin, end = window
    horizons = rise_horizons(pools[0].series.step_minutes)
    judged_horizons = tuple(h for h in _JUDGED if h in horizons) or horizons[:1]
    before = groups_at(pools, begin, settings)
    found = _models(pools, before, judged_horizons, begin, settings)
    earlier = {
        rows: _Earlier(found[before[rows.pool]], judged_horizons, begin, extra)
        for rows in pools
        if before.get(rows.pool) in found
    }
    return LearntRises(
        _models(pools, groups, horizons, end, settings),
        {rows.pool: _judge(rows, one) for rows, one in earlier.items()},
        {rows.pool: _rule(rows, one, trial) for rows, one in earlier.items()},
    )


def _models(
    pools: Sequence[PoolRows],
    groups: dict[str, str],
    horizons: tuple[int, ...],
    until_unix: float,
    settings: DemandFitSettings,
) -> dict[str, RiseModel]:
    """The model of every group that could be fitted at all horizons."""
    fitted = in_groups(pools, groups, horizons, settings, partial(fit_rises, until_unix=until_unix))
    return {
        group: RiseModel({h: booster for h, (booster, _) in by.items()}, {h: within for h, (_, within) in by.items()})
        for group, by in fitted.items()
        if len(by) == len(horizons)
    }


def _judge(rows: PoolRows, earlier: _Earlier) -> GateVerdict:
    """Daily squared errors of the probabilities against the pool's own frequencies, both learnt before the window."""
    horizons, begin = earlier.horizons, earlier.begin
    past = rows.series.until(datetime.fromtimestamp(begin, UTC))
    outcomes = [rises_within(rows.series, rows.at, h) for h in horizons]
    chosen = np.flatnonzero((rows.unix >= begin) & ~np.isnan(np.array(outcomes)).any(axis=0))
    happened = np.stack([exceedances(y[chosen]) for y in outcomes], axis=1)
    at = rows.at[chosen]
    days = rows.unix[chosen] // _DAY

    def loss(table: Floats) -> Floats:
        return daily_means(((table - happened) ** 2).sum(axis=(1, 2)), days)

    frequencies = RiseFrequencies.from_history(past, horizons)
    theirs = {FREQUENCIES: loss(frequencies.probabilities(rows.series, at))}
    # Probabilities have no median to compare.
    none = np.zeros(0)
    ours = earlier.model.probabilities(rows.features[chosen], horizons, free_parts(rows.series, at))
    return judged(DailyLosses(loss(ours), theirs, none, none))


def _rule(rows: PoolRows, earlier: _Earlier, trial: WarmTrial) -> WarmRule:
    """The rule that pays on the window, every sample of it foreseen."""
    series, horizons = rows.series, earlier.horizons
    first = int(np.searchsorted(series.unix, earlier.begin))
    features = feature_rows(series, np.arange(first, len(series)), earlier.extra)
    chances = foreseen(earlier.model, features, horizons, seen_shares(series, first, horizons))
    return tried_rule(series, first, (horizons, chances), trial)
