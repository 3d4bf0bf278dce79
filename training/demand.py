"""Fit the demand model of all pools, judge it on each pool's last two weeks, and hand over both as one value."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from functools import partial
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from advisor.domain.units import utc
from advisor.features.demand import DemandSeries
from advisor.forecast.demand import FREQUENCIES
from advisor.forecast.demand_baselines import BaselineTables
from advisor.forecast.demand_gate import DailyLosses, GateVerdict, judged
from advisor.forecast.demand_model import DemandModel, PoolHorizon, PoolRecord
from advisor.forecast.demand_rise import (
    RiseFrequencies,
    RiseModel,
    exceedances,
    free_parts,
    rise_horizons,
    rises_within,
)
from training.demand_groups import groups_at, in_groups
from training.demand_replay import DemandReplay, daily_means
from training.demand_rows import DemandFitSettings, PoolRows, rows_of
from training.rise_boosters import fit_rises

__all__ = ["DemandFitSettings", "fit_demand", "replay_cuts"]

Floats = NDArray[np.float64]

_DAY = 86_400
_JUDGED_RISES = (10, 60)
_LEAST_REPLAY_SHARE = 0.5


def fit_demand(
    series: Sequence[DemandSeries], until: datetime, settings: DemandFitSettings | None = None
) -> DemandModel:
    """The demand model as of ``until``: boosters on all history, and per pool and horizon what to serve.

    The last two weeks (half of a shorter history) are first replayed with boosters that had not seen them;
    from that come the correction of levels and the verdicts of the skill gate. A pool without enough
    history is recorded with its baselines, and the verdict says so.

    Raises:
        Refused: no series, two of one pool, different steps, or a horizon that is no multiple of the step.
    """
    chosen = settings or DemandFitSettings()
    known = [one.until(until) for one in series]
    pools, extra = rows_of(known, chosen.row_minutes)
    for horizon in chosen.horizons_minutes:
        pools[0].series.steps(horizon)
    end = utc(until, "until").timestamp()
    replay = DemandReplay(pools, chosen)
    cuts = replay_cuts(pools, end, chosen)
    for cut, following in pairwise(cuts):
        replay.advance(cut, following)
    changes, groups = replay.fit(end)
    rises, verdicts = _rises(pools, groups, (cuts[0], end), chosen)
    return DemandModel(
        step_minutes=known[0].step_minutes,
        horizons_minutes=chosen.horizons_minutes,
        rise_horizons_minutes=rise_horizons(known[0].step_minutes),
        extra_state=extra,
        changes=changes,
        rises=rises,
        pools={
            rows.pool: _record(rows, replay, end, chosen, groups.get(rows.pool), verdicts.get(rows.pool))
            for rows in pools
        },
        fitted_until=until,
    )


def replay_cuts(pools: Sequence[PoolRows], end: float, settings: DemandFitSettings) -> list[float]:
    """When the replay before ``end`` refits, first cut first, ``end`` last.

    It begins ``replay_days`` before the end, but leaves half of the history, and its least, to learn from.
    """
    first = min((float(rows.series.unix[0]) for rows in pools if len(rows.series)), default=end)
    learnt = max(settings.least_history_days * _DAY, (end - first) * _LEAST_REPLAY_SHARE)
    begin = max(end - settings.replay_days * _DAY, first + learnt)
    steps = max(1, round((end - begin) / (settings.refit_days * _DAY)))
    return [float(cut) for cut in np.linspace(min(begin, end), end, steps + 1)]


def _record(
    rows: PoolRows,
    replay: DemandReplay,
    end: float,
    settings: DemandFitSettings,
    group: str | None,
    rise_verdict: GateVerdict | None,
) -> PoolRecord:
    horizons = {
        h: PoolHorizon(
            _verdict(rows, replay, end, settings, h),
            replay.levels(rows.pool, h, end),
            BaselineTables.from_history(rows.series, h),
        )
        for h in settings.horizons_minutes
    }
    unjudged = GateVerdict(FREQUENCIES, FREQUENCIES, 0, None, None, "not judged")
    return PoolRecord(
        group=group or "",
        horizons=horizons,
        rises=RiseFrequencies.from_history(rows.series, rise_horizons(rows.series.step_minutes)),
        rise_verdict=rise_verdict or unjudged,
        known_minutes=rows.series.known_minutes,
    )


def _verdict(
    rows: PoolRows, replay: DemandReplay, end: float, settings: DemandFitSettings, horizon: int
) -> GateVerdict:
    known = rows.known_days(end)
    if known < settings.least_history_days:
        needs = f"needs two seasons ({settings.least_history_days:g} days of history), has {known * 24.0:.3g} h"
        return GateVerdict("constant", "constant", 0, None, None, needs)
    return replay.verdict(rows.pool, horizon, end)


def _rises(
    pools: Sequence[PoolRows], groups: dict[str, str], window: tuple[float, float], settings: DemandFitSettings
) -> tuple[dict[str, RiseModel], dict[str, GateVerdict]]:
    """Models of rises by group, fitted on everything, and the verdicts of models that had not seen ``window``."""
    if not settings.rises:
        return {}, {}
    begin, end = window
    horizons = rise_horizons(pools[0].series.step_minutes)
    judged_horizons = tuple(h for h in _JUDGED_RISES if h in horizons) or horizons[:1]
    models = _rise_models(pools, groups, horizons, end, settings)
    before = groups_at(pools, begin, settings)
    earlier = _rise_models(pools, before, judged_horizons, begin, settings)
    verdicts = {
        rows.pool: _judge_rises(rows, earlier[before[rows.pool]], judged_horizons, begin)
        for rows in pools
        if before.get(rows.pool) in earlier
    }
    return models, verdicts


def _rise_models(
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


def _judge_rises(rows: PoolRows, model: RiseModel, horizons: tuple[int, ...], begin: float) -> GateVerdict:
    """Daily squared errors of the probabilities against the pool's own frequencies, both learnt before ``begin``."""
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
    ours = model.probabilities(rows.features[chosen], horizons, free_parts(rows.series, at))
    return judged(DailyLosses(loss(ours), theirs, none, none))
