"""How many GPUs a pool will want, minutes to a day ahead, and how far its need may rise before that.

For every pool and horizon either the model speaks or the best simple baseline, whichever this pool's own
recent days favour; and the forecast says which, with how much skill, and why.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from advisor.domain.forecasts import DemandForecast, HorizonForecast, RiseForecast
from advisor.domain.units import SECONDS_PER_MINUTE, counted, shown_duration, utc
from advisor.domain.warm_rules import WarmRule
from advisor.errors import Refused
from advisor.features.demand import DemandSeries
from advisor.features.demand_releases import ReleasesNow
from advisor.features.demand_table import MEMORY_MINUTES, feature_rows
from advisor.features.recent_rises import recent_rises
from advisor.forecast.demand_baselines import LEVELS, BaselineTables, baseline_quantiles
from advisor.forecast.demand_gate import MODEL
from advisor.forecast.demand_law import ChangeLaw
from advisor.forecast.demand_model import DemandModel, PoolHorizon, PoolRecord
from advisor.forecast.demand_rise import RISE_LEVELS, RISE_PARTS, RiseFrequencies, free_parts, rise_horizons

__all__ = [
    "DEFAULT_HORIZONS",
    "FREQUENCIES",
    "HISTORY_MINUTES",
    "LEAST_HISTORY_DAYS",
    "LEVELS",
    "UNKNOWN",
    "DemandForecaster",
    "DemandModel",
    "median_held",
    "model_quantiles",
]

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

DEFAULT_HORIZONS = (5, 15, 30, 60, 1440)
"""Minutes ahead that are forecast where nobody asks for others."""

LEAST_HISTORY_DAYS = 2.0
"""Two seasons: days of history below which no model is fitted for a pool."""

HISTORY_MINUTES = MEMORY_MINUTES + 1500
"""How much of a series a forecast reads: the memory of the features and a day for the seasonal baseline."""

FREQUENCIES = "frequencies"
"""Served for rises where no model is: how often each was seen at this hour."""

UNKNOWN = "unknown"
"""Served for rises of a pool that nobody has seen, or not lately."""

_MEDIAN = LEVELS.index(0.5)
_EVEN_ODDS = np.array([0.45, 0.55])
_FRESH_STEPS = 3
_FRESH_MINUTES = 10.0
_DUST = 1e-6
_FALLBACKS = ("constant", "persistence")
_MEDIAN_HELD = "the median is held at the present demand: the model had no skill against persistence there"


def model_quantiles(law: ChangeLaw, demand: Floats, node_gpus: int, levels: Floats) -> Floats:
    """Demand in GPUs from the law of its change in nodes: (rows, :data:`LEVELS`), ordered and 0 or more.

    ``levels`` are those to ask of the law in place of the nominal ones. The median leaves "no change" only
    where the odds say so by more than 45 to 55: closer than that, moving it wins as often as it loses.
    """
    changes = law.quantiles(levels)
    around = law.quantiles(_EVEN_ODDS)
    stays = (around[:, 0] <= 0) & (around[:, 1] >= 0)
    changes[stays, _MEDIAN] = 0.0
    changes[stays, :_MEDIAN] = np.minimum(changes[stays, :_MEDIAN], 0.0)
    changes[stays, _MEDIAN + 1 :] = np.maximum(changes[stays, _MEDIAN + 1 :], 0.0)
    return np.maximum(demand[:, None] + changes * node_gpus, 0.0)


def median_held(gpus: Floats, now: Floats) -> Floats:
    """Quantiles (rows, :data:`LEVELS`) with the median at the present demand (rows), the others either side."""
    held = gpus.copy()
    held[:, _MEDIAN] = now
    held[:, :_MEDIAN] = np.minimum(held[:, :_MEDIAN], now[:, None])
    held[:, _MEDIAN + 1 :] = np.maximum(held[:, _MEDIAN + 1 :], now[:, None])
    return held


@dataclass(frozen=True, slots=True)
class _Asked:
    """A series as known at a moment, its newest known sample, and what keeps the model from speaking.

    ``releases`` are those foreseen of the jobs that run, by horizon; empty where nobody told.
    """

    series: DemandSeries
    at: int
    record: PoolRecord | None
    objection: str | None
    rows: Floats | None
    releases: Mapping[int, ReleasesNow] = field(default_factory=dict)


class DemandForecaster:
    """Serves a fitted model, or baselines of a pool's own history where there is none (``model`` None).

    It keeps nothing between calls: equal questions get equal answers.
    """

    def __init__(
        self,
        model: DemandModel | None = None,
        version: str | None = None,
        horizons_minutes: tuple[int, ...] = DEFAULT_HORIZONS,
    ) -> None:
        self._model = model
        self._version = version
        self._horizons = horizons_minutes if model is None else model.horizons_minutes

    def told_of_releases(self, pool: str) -> tuple[int, ...]:
        """The horizons (minutes) at which ``pool`` is better forecast if it is told what running jobs may release."""
        model = self._model
        return () if model is None else tuple(h for h in self._horizons if model.lower_model(pool, h) is not None)

    def forecast(
        self, series: DemandSeries, now: datetime, releases: Mapping[int, ReleasesNow] | None = None
    ) -> DemandForecast:
        """Demand of a pool at each horizon, from what ``series`` knew at ``now``.

        ``releases`` by horizon sharpen the quantiles below the median where :meth:`told_of_releases` names it.

        Without any known sample there are no horizons. A series that has fallen silent is frozen at its last
        known demand, without skill, so that nothing is scaled down because nobody looked.
        """
        known = series.until(now)
        at = known.last_known
        if at is None:
            reason = f"no history of pool {series.pool}: its demand is not known"
            return DemandForecast(pool=series.pool, made_at=now, gpus_now=0.0, horizons=(), reasons=(reason,))
        gpus_now = float(known.demand[at])
        silence = utc(now, "now") - known.time_at(at)
        if silence > _patience(series):
            return self._frozen(series.pool, now, gpus_now, silence)
        asked = replace(self._prepare(known, at), releases=releases or {})
        answers = [self._horizon(asked, h) for h in self._horizons if h % series.step_minutes == 0]
        told = self._said_of_releases(asked, [horizon for horizon, _ in answers if horizon.served == MODEL])
        reasons = [asked.objection, *_by_horizon(answers), told, *series.notes]
        served = any(horizon.served == MODEL for horizon, _ in answers)
        return DemandForecast(
            pool=series.pool,
            made_at=now,
            gpus_now=gpus_now,
            horizons=tuple(horizon for horizon, _ in answers),
            model_version=self._version if served else None,
            reasons=tuple(reason for reason in reasons if reason is not None),
        )

    def rise(self, series: DemandSeries, now: datetime) -> RiseForecast:
        """P(need rises by at least j nodes within h) from what ``series`` knew at ``now``.

        Without any known sample, and while the series is silent, every probability is zero and ``served``
        is ``unknown``.
        """
        known = series.until(now)
        at = known.last_known
        rule = recent = None
        if at is None or utc(now, "now") - known.time_at(at) > _patience(series):
            horizons = rise_horizons(series.step_minutes)
            table, served = np.zeros((len(horizons), RISE_LEVELS)), UNKNOWN
        else:
            asked = self._prepare(known, at)
            table, horizons, served = self._rise_table(asked)
            rule = None if asked.record is None or asked.objection is not None else asked.record.warm_rule
            recent = _recent_rise_nodes(known, at, rule)
        return RiseForecast(
            pool=series.pool,
            made_at=now,
            node_gpus=series.node_gpus,
            horizons_minutes=horizons,
            probabilities=tuple(tuple(float(p) for p in row) for row in table),
            served=served,
            rule=rule,
            recent_rise_nodes=recent,
        )

    def rises_at(self, series: DemandSeries, at: Indices) -> Floats:
        """What :meth:`rise` answers, for many samples of a series at once: (rows, horizons, levels).

        Each row uses what was known at its sample; ``series`` must be whole from the memory before the first.

        Raises:
            Refused: there is no model, or it was not fitted on this pool or on samples of this step.
        """
        record = None if self._model is None else self._model.pools.get(series.pool)
        objection = self._objection(series, record)
        if self._model is None or record is None or objection is not None:
            remedy = "Fit a model on this pool's history first."
            raise Refused("pool", series.pool, objection or "there is no model", remedy)
        table = record.rises.probabilities(series, at)
        model = self._model.rise_model(series.pool)
        if record.rise_verdict.served == MODEL and model is not None:
            rows = feature_rows(series, at, self._model.extra_state)
            readable = model.can_read(rows)
            table = table.copy()
            table[readable] = model.probabilities(
                rows[readable], self._model.rise_horizons_minutes, free_parts(series, at[readable])
            )
        return table

    def _rise_table(self, asked: _Asked) -> tuple[Floats, tuple[int, ...], str]:
        at = np.array([asked.at])
        if self._model is None or asked.record is None or asked.rows is None:
            horizons = rise_horizons(asked.series.step_minutes)
            seen = RiseFrequencies.from_history(asked.series, horizons)
            return seen.probabilities(asked.series, at)[0], horizons, FREQUENCIES
        horizons = self._model.rise_horizons_minutes
        model = self._model.rise_model(asked.series.pool)
        if asked.record.rise_verdict.served == MODEL and model is not None and model.can_read(asked.rows)[0]:
            return model.probabilities(asked.rows, horizons, free_parts(asked.series, at))[0], horizons, MODEL
        return asked.record.rises.probabilities(asked.series, at)[0], horizons, FREQUENCIES

    def _prepare(self, known: DemandSeries, at: int) -> _Asked:
        record = None if self._model is None else self._model.pools.get(known.pool)
        objection = self._objection(known, record)
        rows = None
        if objection is None and self._model is not None:
            first = max(0, at + 1 - HISTORY_MINUTES // known.step_minutes)
            recent = known.between(first, at + 1)
            rows = feature_rows(recent, np.array([at - first]), self._model.extra_state)
        return _Asked(known, at, record, objection, rows)

    def _objection(self, known: DemandSeries, record: PoolRecord | None) -> str | None:
        """Why the model cannot speak for this series at any horizon, None where it can."""
        if record is None:
            hours = known.known_minutes / 60.0
            if hours < LEAST_HISTORY_DAYS * 24.0:
                return f"needs two seasons ({LEAST_HISTORY_DAYS:g} days of history), has {hours:.3g} h"
            return "no model has been fitted for this pool yet"
        if self._model is not None and known.step_minutes != self._model.step_minutes:
            return f"the model reads samples {self._model.step_minutes} min apart, not {known.step_minutes}"
        return None

    def _horizon(self, asked: _Asked, horizon: int) -> tuple[HorizonForecast, str | None]:
        """The forecast at one horizon, and why it is not the model's, or is in spite of its skill."""
        fitted = None if asked.record is None else asked.record.horizons.get(horizon)
        if fitted is None or asked.objection is not None:
            tables = BaselineTables.from_history(asked.series, horizon)
            return _from_baseline(asked, horizon, tables, _FALLBACKS[0], None), None
        verdict = fitted.verdict
        if verdict.served != MODEL:
            return _from_baseline(asked, horizon, fitted.tables, verdict.served, verdict.skill), verdict.reason
        gpus = self._from_model(asked, horizon, fitted)
        if gpus is not None:
            doubt = None if verdict.reason is None else f"the model is served {verdict.reason}"
            if verdict.holds_median and doubt is None:
                doubt = _MEDIAN_HELD
            return _horizon_forecast(horizon, gpus, verdict.skill, MODEL), doubt
        reason = "something the model has always been told is not known now"
        return _from_baseline(asked, horizon, fitted.tables, verdict.best_baseline, None), reason

    def _from_model(self, asked: _Asked, horizon: int, fitted: PoolHorizon) -> Floats | None:
        model = None if self._model is None else self._model.change_model(asked.series.pool, horizon)
        if model is None or asked.rows is None or not model.booster.can_read(asked.rows)[0]:
            return None
        demand = asked.series.demand[[asked.at]]
        gpus = model_quantiles(model.law(asked.rows), demand, asked.series.node_gpus, fitted.levels)
        first: Floats = (median_held(gpus, demand) if fitted.verdict.holds_median else gpus)[0]
        lower = self._from_releases(asked, horizon)
        if lower is not None:
            first[:_MEDIAN] = np.minimum(lower[:_MEDIAN], first[_MEDIAN])
        return first

    def _from_releases(self, asked: _Asked, horizon: int) -> Floats | None:
        """Quantiles by the model that knows releases; None where it must not speak or was not told."""
        model = None if self._model is None else self._model.lower_model(asked.series.pool, horizon)
        releases = asked.releases.get(horizon)
        if model is None or releases is None or asked.rows is None:
            return None
        rows = np.append(asked.rows[0], releases.row(asked.series.node_gpus))[None]
        if not model.booster.can_read(rows)[0]:
            return None
        demand = asked.series.demand[[asked.at]]
        gpus: Floats = model_quantiles(model.law(rows), demand, asked.series.node_gpus, np.array(LEVELS))[0]
        return gpus

    def _said_of_releases(self, asked: _Asked, horizons: Sequence[HorizonForecast]) -> str | None:
        """What the lower quantiles were told of running jobs; None where none runs, or nothing was told."""
        told = {
            horizon.horizon_minutes: releases
            for horizon in horizons
            if (releases := asked.releases.get(horizon.horizon_minutes)) is not None and releases.gpus.size
            if self._from_releases(asked, horizon.horizon_minutes) is not None
        }
        if not told:
            return None
        ahead = ", ".join(shown_duration(minutes * SECONDS_PER_MINUTE) for minutes in told)
        back = ", ".join(f"{releases.law.mean:.1f}" for releases in told.values())
        running = max(float(releases.gpus.sum()) for releases in told.values())
        return (
            f"{ahead} ahead: below the median the forecast follows what running jobs are predicted to give back: "
            f"{back} of their {counted(running, 'GPU')}"
        )

    def _frozen(self, pool: str, now: datetime, gpus: float, silence: timedelta) -> DemandForecast:
        held = np.full(len(LEVELS), gpus)
        silent = shown_duration(silence.total_seconds())
        return DemandForecast(
            pool=pool,
            made_at=now,
            gpus_now=gpus,
            horizons=tuple(_horizon_forecast(h, held, None, _FALLBACKS[1]) for h in self._horizons),
            reasons=(f"nothing seen of pool {pool} for {silent}: frozen at its last known demand",),
        )


def _recent_rise_nodes(known: DemandSeries, at: int, rule: WarmRule | None) -> int | None:
    """Nodes beyond the GPUs free on those in use that the plain rule has ready; None where another rule is followed."""
    if rule is None or rule.quantile is None:
        return None
    gpus = recent_rises(known.demand[: at + 1], known.step_minutes, at, np.array([rule.quantile]))[0, 0]
    free = float(free_parts(known, np.array([at]))[0]) / RISE_PARTS
    return max(0, math.ceil(float(gpus) / known.node_gpus - free - _DUST))


def _by_horizon(answers: Sequence[tuple[HorizonForecast, str | None]]) -> list[str]:
    """Each reason once, after the horizons it holds for."""
    horizons: dict[str, list[str]] = {}
    for horizon, reason in answers:
        if reason is not None:
            horizons.setdefault(reason, []).append(shown_duration(horizon.horizon_minutes * SECONDS_PER_MINUTE))
    return [f"{', '.join(ahead)} ahead: {reason}" for reason, ahead in horizons.items()]


def _patience(series: DemandSeries) -> timedelta:
    """How old the newest sample may be before the series counts as silent."""
    return timedelta(minutes=max(_FRESH_MINUTES, _FRESH_STEPS * series.step_minutes))


def _from_baseline(
    asked: _Asked, horizon: int, tables: BaselineTables, wanted: str, skill: float | None
) -> HorizonForecast:
    """The wanted baseline's forecast, or that of the next simpler one which has enough history to speak."""
    for name in (wanted, *_FALLBACKS):
        gpus = baseline_quantiles(name, tables, asked.series, np.array([asked.at]), horizon)[0]
        if not np.isnan(gpus).any():
            break
    return _horizon_forecast(horizon, gpus, skill, name)


def _horizon_forecast(horizon: int, gpus: Floats, skill: float | None, served: str) -> HorizonForecast:
    return HorizonForecast(
        horizon_minutes=horizon,
        levels=LEVELS,
        gpus=tuple(float(g) for g in np.maximum.accumulate(gpus)),
        skill=skill,
        served=served,
    )
