"""What is known about a pool's demand at a moment: declared columns, one row a sample.

Every column looks back only, and no further than seven days, so a row does not change when the future
is deleted nor when older history is. GPUs are counted in nodes, so that pools of different node sizes
speak one language.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import maximum_filter1d

from advisor.features.demand import (
    JOB_ENDS,
    JOB_STARTS,
    KNOWN_STATE,
    PENDING_JOBS,
    PENDING_SMALL_GPUS,
    RUNNING_JOBS,
    RUNNING_SMALL_GPUS,
    DemandSeries,
)
from advisor.features.demand_calendar import hour_and_weekday, zone_named
from advisor.features.table import Feature, FeatureSchema

__all__ = ["MEMORY_MINUTES", "demand_schema", "extra_state_of", "feature_rows"]

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Indices = NDArray[np.int64]

MEMORY_MINUTES = 7 * 24 * 60
"""How far back any column looks."""

_HOUR = 60
_DAY = 24 * _HOUR


class _Events:
    """What happened at each sample (a count, 0 where unknown), summed and dated once for every column."""

    def __init__(self, counts: Floats | Bools) -> None:
        self._counts = counts

    @cached_property
    def total(self) -> Floats:
        """Sum of everything before each sample, and of all at the end: one longer than the samples."""
        running = np.empty(self._counts.size + 1)
        running[0] = 0.0
        np.cumsum(self._counts, out=running[1:])
        return running

    @cached_property
    def last(self) -> Indices:
        """Index of the newest sample with an event up to each sample, -1 before the first."""
        last: Indices = np.maximum.accumulate(np.where(self._counts > 0, np.arange(self._counts.size), -1))
        return last


class _Past:
    """The rows that columns are computed from, each made once and only if asked for."""

    def __init__(self, series: DemandSeries, asked: Indices) -> None:
        self._series = series
        self._asked = asked
        self._step = series.step_minutes
        self._size = len(series)
        self._here = np.arange(self._size)

    def nodes(self, gpus: Floats | None) -> Floats:
        """GPUs in nodes; NaN throughout where the series has no such row."""
        return self.unknown if gpus is None else gpus / self._series.node_gpus

    def state(self, name: str) -> Floats:
        """A state row as it is; NaN throughout where the series has no such row."""
        return self._series.state.get(name, self.unknown)

    @cached_property
    def unknown(self) -> Floats:
        return np.full(self._size, np.nan)

    @cached_property
    def running(self) -> Floats:
        return self.nodes(self._series.running)

    @cached_property
    def pending(self) -> Floats:
        return self.nodes(self._series.pending)

    @cached_property
    def idle(self) -> Floats:
        if self._series.idle is None and self._series.capacity is not None:
            return self.capacity - self.running
        return self.nodes(self._series.idle)

    @cached_property
    def capacity(self) -> Floats:
        if self._series.capacity is None and self._series.idle is not None:
            return self.running + self.idle
        return self.nodes(self._series.capacity)

    @cached_property
    def demand(self) -> Floats:
        return self.nodes(self._series.demand)

    @cached_property
    def known_demand(self) -> _Events:
        return _Events(np.where(np.isnan(self.demand), 0.0, self.demand))

    @cached_property
    def known(self) -> _Events:
        return _Events(~np.isnan(self.demand))

    @cached_property
    def change(self) -> Floats:
        """Size of the change of demand since the sample before; NaN where either is unknown."""
        return np.abs(np.diff(self.demand, prepend=np.nan))

    @cached_property
    def known_change(self) -> tuple[_Events, _Events]:
        """Sizes of changes, and where they are known."""
        unknown = np.isnan(self.change)
        return _Events(np.where(unknown, 0.0, self.change)), _Events(~unknown)

    @cached_property
    def rises(self) -> _Events:
        return _Events(np.diff(self.demand, prepend=np.nan) > 0)

    @cached_property
    def falls(self) -> _Events:
        return _Events(np.diff(self.demand, prepend=np.nan) < 0)

    @cached_property
    def changes(self) -> _Events:
        return _Events(self.change > 0)

    @cached_property
    def starts(self) -> _Events:
        """Jobs started since the sample before: counted, or else the net rises of what runs."""
        return self._jobs(JOB_STARTS, 1.0)

    @cached_property
    def ends(self) -> _Events:
        """Jobs ended since the sample before: counted, or else the net falls of what runs."""
        return self._jobs(JOB_ENDS, -1.0)

    def _jobs(self, counted: str, sign: float) -> _Events:
        if counted in self._series.state:
            known: Floats | Bools = self.state(counted)
        elif RUNNING_JOBS in self._series.state:
            known = np.maximum(sign * np.diff(self.state(RUNNING_JOBS), prepend=np.nan), 0.0)
        else:
            known = sign * np.diff(self.running, prepend=np.nan) > 0
        return _Events(np.where(np.isnan(known), 0.0, known))

    @cached_property
    def nothing_pending(self) -> _Events:
        return _Events(self.pending == 0)

    @cached_property
    def anything_pending(self) -> _Events:
        return _Events(self.pending > 0)

    @cached_property
    def clock(self) -> tuple[Floats, Floats]:
        """Local hour and weekday; unknown where the source's times are relative."""
        if not self._series.calendar_known:
            return self.unknown, self.unknown
        # Local time is slow to look up, so only where it is asked for.
        hours, weekdays = self.unknown.copy(), self.unknown.copy()
        hour, weekday = hour_and_weekday(self._series.unix[self._asked], zone_named(self._series.zone))
        hours[self._asked], weekdays[self._asked] = hour, weekday
        return hours, weekdays

    def count(self, events: _Events, minutes: int) -> Floats:
        """How much of ``events`` lies in the trailing window."""
        first = np.maximum(self._here + 1 - self._window(minutes), 0)
        counted: Floats = events.total[1:] - events.total[first]
        return counted

    def above_mean(self, minutes: int) -> Floats:
        """Demand less the mean of its known samples in the trailing window."""
        known = self.count(self.known, minutes)
        return self.demand - _ratio(self.count(self.known_demand, minutes), known)

    def below_maximum(self, minutes: int) -> Floats:
        """The largest known demand of the trailing window less demand."""
        size = self._window(minutes)
        filled = np.where(np.isnan(self.demand), -np.inf, self.demand)
        # The origin moves the window from around the sample to what lies at and before it.
        highest = maximum_filter1d(filled, size, mode="constant", cval=-np.inf, origin=(size - 1) // 2)
        below: Floats = highest - self.demand
        return below

    def churn(self, minutes: int) -> Floats:
        """Mean absolute change of demand, in nodes an hour, over the trailing window."""
        sizes, known = self.known_change
        return _ratio(self.count(sizes, minutes), self.count(known, minutes)) * (_HOUR / self._step)

    def minutes_since(self, events: _Events) -> Floats:
        """Minutes since the last sample with an event, at most the memory.

        Where none was ever seen: the memory, or NaN while history is shorter than that.
        """
        age = ((self._here - events.last) * self._step).astype(np.float64)
        age[(events.last < 0) & (self._here * self._step < MEMORY_MINUTES)] = np.nan
        return np.minimum(age, MEMORY_MINUTES)

    def last_size(self, events: _Events) -> Floats:
        """Size of the last change among ``events``; NaN where the memory holds none."""
        recent = (events.last >= 0) & ((self._here - events.last) * self._step < MEMORY_MINUTES)
        return np.where(recent, self.change[np.maximum(events.last, 0)], np.nan)

    def where_pending_known(self, values: Floats) -> Floats:
        """``values``, or NaN throughout where the series cannot tell what waits."""
        return values if self._series.pending_known else self.unknown

    def _window(self, minutes: int) -> int:
        """Samples in a trailing window of that many minutes, at least one."""
        return max(1, minutes // self._step)


def _ratio(top: Floats, bottom: Floats) -> Floats:
    """``top`` / ``bottom``, NaN where there is nothing to divide by."""
    ratio = np.full(top.size, np.nan)
    np.divide(top, bottom, out=ratio, where=bottom > 0)
    return ratio


_COLUMNS: tuple[tuple[Feature, Callable[[_Past], Floats]], ...] = (
    (Feature("demand", "GPUs running and pending", "nodes"), lambda p: p.demand),
    (Feature("capacity", "GPUs the pool has", "nodes"), lambda p: p.capacity),
    (Feature("demand_of_capacity", "demand over capacity", "share"), lambda p: _ratio(p.demand, p.capacity)),
    (Feature("running", "GPUs running", "nodes"), lambda p: p.running),
    (Feature("pending", "GPUs waiting", "nodes"), lambda p: p.pending),
    (Feature("idle", "GPUs ready and unused", "nodes"), lambda p: p.idle),
    (
        Feature("pending_small", "GPUs waiting in jobs smaller than a node", "nodes"),
        lambda p: p.nodes(p.state(PENDING_SMALL_GPUS)),
    ),
    (
        Feature("running_small", "GPUs running in jobs smaller than a node", "nodes"),
        lambda p: p.nodes(p.state(RUNNING_SMALL_GPUS)),
    ),
    (Feature("running_jobs", "jobs running", "jobs"), lambda p: p.state(RUNNING_JOBS)),
    (Feature("pending_jobs", "jobs waiting", "jobs"), lambda p: p.state(PENDING_JOBS)),
    (
        Feature("mean_job_size", "GPUs running over jobs running", "nodes"),
        lambda p: _ratio(p.running, p.state(RUNNING_JOBS)),
    ),
    (
        Feature("since_nothing_pending", "time since nothing waited", "min"),
        lambda p: p.where_pending_known(p.minutes_since(p.nothing_pending)),
    ),
    (
        Feature("since_anything_pending", "time since anything waited", "min"),
        lambda p: p.where_pending_known(p.minutes_since(p.anything_pending)),
    ),
    (Feature("since_change", "time since demand changed", "min"), lambda p: p.minutes_since(p.changes)),
    (Feature("since_rise", "time since demand rose", "min"), lambda p: p.minutes_since(p.rises)),
    (Feature("since_fall", "time since demand fell", "min"), lambda p: p.minutes_since(p.falls)),
    (Feature("since_job_start", "time since a job started", "min"), lambda p: p.minutes_since(p.starts)),
    (Feature("since_job_end", "time since a job ended", "min"), lambda p: p.minutes_since(p.ends)),
    (Feature("last_rise", "size of the last rise of demand", "nodes"), lambda p: p.last_size(p.rises)),
    (Feature("last_fall", "size of the last fall of demand", "nodes"), lambda p: p.last_size(p.falls)),
    (Feature("rises_5_min", "rises of demand in the last 5 min", "count"), lambda p: p.count(p.rises, 5)),
    (Feature("rises_15_min", "rises of demand in the last 15 min", "count"), lambda p: p.count(p.rises, 15)),
    (Feature("rises_60_min", "rises of demand in the last 60 min", "count"), lambda p: p.count(p.rises, 60)),
    (Feature("rises_240_min", "rises of demand in the last 240 min", "count"), lambda p: p.count(p.rises, 240)),
    (Feature("falls_15_min", "falls of demand in the last 15 min", "count"), lambda p: p.count(p.falls, 15)),
    (Feature("falls_60_min", "falls of demand in the last 60 min", "count"), lambda p: p.count(p.falls, 60)),
    (Feature("falls_240_min", "falls of demand in the last 240 min", "count"), lambda p: p.count(p.falls, 240)),
    (Feature("job_starts_60_min", "job starts in the last 60 min", "jobs"), lambda p: p.count(p.starts, 60)),
    (Feature("job_starts_240_min", "job starts in the last 240 min", "jobs"), lambda p: p.count(p.starts, 240)),
    (Feature("job_ends_60_min", "job ends in the last 60 min", "jobs"), lambda p: p.count(p.ends, 60)),
    (
        Feature("above_mean_60_min", "demand above its mean of 60 min", "nodes"),
        lambda p: p.above_mean(60),
    ),
    (
        Feature("above_mean_240_min", "demand above its mean of 240 min", "nodes"),
        lambda p: p.above_mean(240),
    ),
    (
        Feature("below_maximum_60_min", "demand below its maximum of 60 min", "nodes"),
        lambda p: p.below_maximum(60),
    ),
    (
        Feature("below_maximum_240_min", "demand below its maximum of 240 min", "nodes"),
        lambda p: p.below_maximum(240),
    ),
    (Feature("below_maximum_day", "demand below its maximum of a day", "nodes"), lambda p: p.below_maximum(_DAY)),
    (Feature("churn_day", "mean absolute change over a day", "nodes/h"), lambda p: p.churn(_DAY)),
    (Feature("churn_week", "mean absolute change over a week", "nodes/h"), lambda p: p.churn(MEMORY_MINUTES)),
    (Feature("hour", "hour of the local day", "h"), lambda p: p.clock[0]),
    (Feature("weekday", "day of the local week, Monday 0", "day"), lambda p: p.clock[1]),
)
"""Every column and how it is computed from the past; a column whose source is absent is NaN."""


def demand_schema(extra_state: tuple[str, ...] = ()) -> FeatureSchema:
    """The columns in their order, those of further state rows last."""
    extra = (Feature(f"state_{name}", f"further state row {name}", "as given") for name in extra_state)
    return FeatureSchema((*(feature for feature, _ in _COLUMNS), *extra))


def extra_state_of(series: DemandSeries) -> tuple[str, ...]:
    """State rows of ``series`` that no declared column reads, in order of name."""
    return tuple(sorted(name for name in series.state if name not in KNOWN_STATE))


def feature_rows(series: DemandSeries, at: Indices, extra_state: tuple[str, ...] = ()) -> Floats:
    """What was known at samples ``at``: shape (len(at), columns), looking back only."""
    past = _Past(series, at)
    rows = np.empty((len(at), len(_COLUMNS) + len(extra_state)))
    for column, (_, compute) in enumerate(_COLUMNS):
        rows[:, column] = compute(past)[at]
    for column, name in enumerate(extra_state, start=len(_COLUMNS)):
        rows[:, column] = past.state(name)[at]
    return rows
