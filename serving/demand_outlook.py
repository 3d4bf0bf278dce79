"""Demand of each pool from the history as of a time, as the advice cycle and the pages ask for it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import numpy as np

from advisor.domain.forecasts import DemandForecast, DurationForecast, RiseForecast
from advisor.domain.jobs import Job, Outcome, pool_of
from advisor.domain.units import SECONDS_PER_MINUTE
from advisor.features.demand import DemandSeries, SeriesGrid, series_from_jobs
from advisor.features.demand_releases import ReleasesNow
from advisor.forecast.demand import DemandForecaster
from advisor.forecast.demand_model import DemandModel
from advisor.settings import DemandSettings

__all__ = ["DemandOutlook"]

_STEP_MINUTES = 5

Durations = Callable[[Sequence[Job], datetime], list[DurationForecast]]
"""Answers how long each job lasts, counted from its start."""


class DemandOutlook:
    """Demand of each pool from the history as of a time, as the advice cycle asks for it.

    ``durations`` say how long jobs last from their start on; without them nothing is foreseen of releases.
    """

    def __init__(
        self,
        model: DemandModel | None,
        version: str | None,
        settings: DemandSettings,
        durations: Durations | None = None,
    ) -> None:
        self._durations = durations
        self._forecaster = DemandForecaster(model, version, settings.horizons_minutes)
        self._step_minutes = _STEP_MINUTES if model is None else model.step_minutes
        self._zone = settings.timezone
        self._made: dict[str, tuple[datetime, DemandSeries]] = {}

    def demand(self, pool: str, jobs: Sequence[Job], now: datetime) -> DemandForecast:
        """Demand at each horizon, under the name the cluster knows the pool by."""
        series = self._series(pool, jobs, now)
        releases = self._releases(jobs, now, self._forecaster.told_of_releases(series.pool))
        return replace(self._forecaster.forecast(series, now, releases), pool=pool)

    def rise(self, pool: str, jobs: Sequence[Job], now: datetime) -> RiseForecast | None:
        """How far need may rise."""
        return replace(self._forecaster.rise(self._series(pool, jobs, now), now), pool=pool)

    def series(self, pool: str) -> DemandSeries | None:
        """The pool's demand as the last forecast read it, None before the first."""
        made = self._made.get(pool)
        return None if made is None else made[1]

    def _releases(self, jobs: Sequence[Job], now: datetime, horizons: tuple[int, ...]) -> dict[int, ReleasesNow]:
        """What the jobs that run now may release within each horizon; nothing where the model does not ask for it."""
        if not horizons or self._durations is None:
            return {}
        running = [job for job in jobs if job.start is not None and job.start <= now and not _gone(job, now)]
        laws = [answer.distribution for answer in self._durations(running, now)]
        gpus = np.array([job.gpus for job in running], dtype=np.float64)
        ages = [(now - job.start).total_seconds() for job in running if job.start is not None]
        found = {}
        for horizon in horizons:
            within = horizon * SECONDS_PER_MINUTE
            ends = [float(law.ends_within(np.array([age]), within)[0]) for law, age in zip(laws, ages, strict=True)]
            found[horizon] = ReleasesNow(gpus, np.array(ends, dtype=np.float64))
        return found

    def _series(self, pool: str, jobs: Sequence[Job], now: datetime) -> DemandSeries:
        """Made once for each moment: forecast, rise and charts read the same."""
        made = self._made.get(pool)
        if made is None or made[0] != now:
            known = _named(jobs, pool)
            first = jobs[0].submit if jobs else now
            grid = SeriesGrid(
                start=_on_grid(first, now, self._step_minutes),
                end=now,
                step_minutes=self._step_minutes,
                zone=self._zone,
            )
            made = (now, series_from_jobs(known, _name(jobs, pool), grid, now))
            self._made[pool] = made
        return made[1]


def _gone(job: Job, now: datetime) -> bool:
    """Whether it holds no GPUs any more: as in the series, one that merely was seen last still runs."""
    gone = job.last_seen if job.outcome is Outcome.CENSORED else job.end
    return gone is not None and gone <= now


def _on_grid(first: datetime, now: datetime, step_minutes: int) -> datetime:
    """The latest start not after ``first`` from which whole steps lead to ``now``: the newest sample is of now."""
    step = timedelta(minutes=step_minutes)
    return now - -((first - now) // step) * step


def _name(jobs: Sequence[Job], pool: str) -> str:
    """What the history calls this pool: the model knows it by that name."""
    names = {pool_of(job) for job in jobs}
    return names.pop() if len(names) == 1 else pool


def _named(jobs: Sequence[Job], pool: str) -> Sequence[Job]:
    name = _name(jobs, pool)
    return jobs if all(pool_of(job) == name for job in jobs) else [replace(job, pool=name) for job in jobs]
