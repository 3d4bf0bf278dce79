"""What a demand model must beat: forecasts that anybody could make from a pool's own history.

``persistence``   demand stays what it is
``constant``      demand plus the quantiles of every change this pool has seen over the horizon
``hour_of_day``   the same, of changes that began in the same local hour
``seasonal``      the demand of the same local hour yesterday and a week before
``smoothing``     an exponential average of demand plus the quantiles of its misses
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from advisor.errors import Defect
from advisor.features.demand import DemandSeries
from advisor.features.demand_calendar import hour_and_weekday, same_local_time, zone_named

__all__ = ["BASELINES", "LEVELS", "BaselineTables", "baseline_quantiles", "sorted_quantiles"]

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

LEVELS = (0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.8, 0.9, 0.95, 0.99)
"""Levels of every demand forecast."""

BASELINES = ("persistence", "constant", "hour_of_day", "seasonal", "smoothing")

_HOURS = 24
_DAY_SECONDS = 86_400
_SEASONAL_WINDOW_MINUTES = 60
_HALF_LIFE_MINUTES = 60
_HALF_LIVES_KEPT = 8
_FEWEST_AN_HOUR = 24
_FEWEST_CHANGES = 12


@dataclass(frozen=True, eq=False)
class BaselineTables:
    """Quantiles of one pool's changes over one horizon, in GPUs at :data:`LEVELS`; what the baselines know.

    ``by_hour`` has a row for each local hour. A table is NaN where too little was seen.
    """

    changes: Floats
    by_hour: Floats
    misses: Floats

    @classmethod
    def from_history(cls, series: DemandSeries, horizon_minutes: int) -> BaselineTables:
        """Tables from every change of ``series`` that has ended within it."""
        steps = series.steps(horizon_minutes)
        later = series.demand[steps:]
        count = later.size
        changes = later - series.demand[:count]
        overall = _quantiles_or_nan(changes, _FEWEST_CHANGES)
        misses = _quantiles_or_nan(later - _smoothed(series)[:count], _FEWEST_CHANGES)
        by_hour = np.tile(overall, (_HOURS, 1))
        if series.calendar_known and count:
            hours = _local_hours(series, np.arange(count))
            for hour in range(_HOURS):
                seen = _quantiles_or_nan(changes[hours == hour], _FEWEST_AN_HOUR)
                by_hour[hour] = np.where(np.isnan(seen), overall, seen)
        return cls(overall, by_hour, misses)

    def to_json(self) -> dict[str, Any]:
        """As numbers, with null for what is not known."""
        return {name: _or_null(getattr(self, name)) for name in ("changes", "by_hour", "misses")}

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> BaselineTables:
        """What :meth:`to_json` wrote."""
        return cls(*(np.array(document[name], dtype=np.float64) for name in ("changes", "by_hour", "misses")))


def baseline_quantiles(
    name: str, tables: BaselineTables, series: DemandSeries, at: Indices, horizon_minutes: int
) -> Floats:
    """Demand in GPUs that a baseline forecasts from samples ``at``: shape (len(at), levels), ordered, 0 or more.

    Rows are NaN where the baseline has too little history to speak.

    Raises:
        Defect: there is no baseline called ``name``.
    """
    now = series.demand[at]
    if name == "persistence":
        found = np.repeat(now[:, None], len(LEVELS), axis=1)
    elif name == "constant":
        found = now[:, None] + tables.changes
    elif name == "hour_of_day":
        # Relative times have no hours, so every hour is the first, and all rows of the table are equal.
        hours = _local_hours(series, at) if series.calendar_known else np.zeros(len(at), dtype=np.int64)
        found = now[:, None] + tables.by_hour[hours]
    elif name == "seasonal":
        found = _seasonal(series, at, horizon_minutes)
    elif name == "smoothing":
        found = _smoothed(series)[at][:, None] + tables.misses
    else:
        raise Defect(f"there is no baseline called {name!r}")
    return np.maximum(found, 0.0)


def sorted_quantiles(values: Floats, levels: Floats) -> Floats:
    """Empirical quantiles of each row's known values; NaN where a row knows none. Shape (rows, levels)."""
    ordered = np.sort(values, axis=1)
    known = (~np.isnan(ordered)).sum(axis=1)
    place = np.ceil(levels[None, :] * known[:, None] - 1e-9).astype(np.int64) - 1
    picked = np.take_along_axis(ordered, np.clip(place, 0, max(values.shape[1] - 1, 0)), axis=1)
    return np.where(known[:, None] > 0, picked, np.nan)


def _seasonal(series: DemandSeries, at: Indices, horizon_minutes: int) -> Floats:
    """Quantiles of the demand in the hour up to the same local time one day and seven days before the target."""
    window = max(1, _SEASONAL_WINDOW_MINUTES // series.step_minutes)
    target = series.unix[at] + horizon_minutes * 60
    # Whole seasons back until the moment lies in the past.
    days = max(1, -(-horizon_minutes * 60 // _DAY_SECONDS))
    weeks = 7 * max(1, -(-days // 7))
    if not series.calendar_known:
        sources = [target - back * _DAY_SECONDS for back in (days, weeks)]
    else:
        zone = zone_named(series.zone)
        sources = [same_local_time(target, np.full(len(at), back), zone) for back in (days, weeks)]
    step = series.step_minutes * 60
    gathered = []
    for source in sources:
        # A longer local day may put its hour after now by the hour that clocks were moved.
        last = np.minimum((source - series.unix[0]) // step if len(series) else source, at)
        index = last[:, None] - np.arange(window)[None, :]
        gathered.append(np.where(index >= 0, series.demand[np.maximum(index, 0)], np.nan))
    return sorted_quantiles(np.concatenate(gathered, axis=1), np.array(LEVELS))


def _smoothed(series: DemandSeries) -> Floats:
    """Exponential average of known demand with a half-life of an hour; NaN before anything was known."""
    per_step = 0.5 ** (series.step_minutes / _HALF_LIFE_MINUTES)
    reach = max(1, _HALF_LIFE_MINUTES * _HALF_LIVES_KEPT // series.step_minutes)
    weights = per_step ** np.arange(reach)
    known = ~np.isnan(series.demand)
    if not len(series):
        return series.demand
    total = np.convolve(np.where(known, series.demand, 0.0), weights)[: len(series)]
    weight = np.convolve(known.astype(np.float64), weights)[: len(series)]
    average = np.full(len(series), np.nan)
    np.divide(total, weight, out=average, where=weight > weights[-1] / 2)
    return average


def _local_hours(series: DemandSeries, at: Indices) -> Indices:
    hours, _ = hour_and_weekday(series.unix[at], zone_named(series.zone))
    return hours.astype(np.int64)


def _quantiles_or_nan(values: Floats, fewest: int) -> Floats:
    known = values[~np.isnan(values)]
    if known.size < fewest:
        return np.full(len(LEVELS), np.nan)
    found: Floats = np.quantile(known, LEVELS, method="inverted_cdf")
    return found


def _or_null(values: Floats) -> list[Any]:
    """Nested lists with null where a number is not known."""
    plain = values.astype(object)
    plain[np.isnan(values)] = None
    listed: list[Any] = plain.tolist()
    return listed
