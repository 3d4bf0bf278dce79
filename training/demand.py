"""Fit the demand model of all pools, judge it on each pool's last two weeks, and hand over both as one value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from advisor.domain.units import utc
from advisor.features.demand import DemandSeries
from advisor.forecast.demand import FREQUENCIES
from advisor.forecast.demand_baselines import BaselineTables
from advisor.forecast.demand_gate import GateVerdict
from advisor.forecast.demand_model import DemandModel, PoolHorizon, PoolRecord
from advisor.forecast.demand_rise import RiseFrequencies, rise_horizons
from training.demand_lower import KnownReleases, LowerFit, fit_lower
from training.demand_replay import DemandReplay
from training.demand_rows import DemandFitSettings, PoolRows, rows_of
from training.warm_rises import LearntRises, learn_rises
from training.warm_trial import WarmTrial

__all__ = ["DemandFitSettings", "fit_demand", "replay_cuts"]

Floats = NDArray[np.float64]

_DAY = 86_400
_LEAST_REPLAY_SHARE = 0.5


def fit_demand(
    series: Sequence[DemandSeries],
    until: datetime,
    settings: DemandFitSettings | None = None,
    trial: WarmTrial | None = None,
    releases: KnownReleases | None = None,
) -> DemandModel:
    """The demand model as of ``until``: boosters on all history, and per pool and horizon what to serve.

    The last two weeks (half of a shorter history) are first replayed with boosters that had not seen them;
    from that come the correction of levels and the verdicts of the skill gate. A pool without enough
    history is recorded with its baselines, and the verdict says so. The same days tell which rule of warm capacity
    each pool follows; ``trial`` is what they are replayed with. Where ``releases`` are given (by the samples of the
    series as cut off at ``until``), models that know them are fitted for the quantiles below the median.

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
    lower = fit_lower(pools, groups, releases, end, chosen)
    learnt = learn_rises(pools, groups, (cuts[0], end), (chosen, extra, trial or WarmTrial()))
    return DemandModel(
        step_minutes=known[0].step_minutes,
        horizons_minutes=chosen.horizons_minutes,
        rise_horizons_minutes=rise_horizons(known[0].step_minutes),
        extra_state=extra,
        changes=changes,
        rises=learnt.models,
        pools={
            rows.pool: _with_lower(
                _record(rows, replay, end, chosen, (groups.get(rows.pool), learnt)), rows.pool, lower
            )
            for rows in pools
        },
        fitted_until=until,
        lower=lower.models,
    )


def _with_lower(record: PoolRecord, pool: str, lower: LowerFit) -> PoolRecord:
    horizons = {h: replace(at, lower=lower.verdicts.get((pool, h))) for h, at in record.horizons.items()}
    return replace(record, horizons=horizons)


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
    learnt: tuple[str | None, LearntRises],
) -> PoolRecord:
    group, rises = learnt
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
        rise_verdict=rises.verdicts.get(rows.pool, unjudged),
        known_minutes=rows.series.known_minutes,
        warm_rule=rises.rules.get(rows.pool),
    )


def _verdict(
    rows: PoolRows, replay: DemandReplay, end: float, settings: DemandFitSettings, horizon: int
) -> GateVerdict:
    known = rows.known_days(end)
    if known < settings.least_history_days:
        needs = f"needs two seasons ({settings.least_history_days:g} days of history), has {known * 24.0:.3g} h"
        return GateVerdict("constant", "constant", 0, None, None, needs)
    return replay.verdict(rows.pool, horizon, end)
