"""The forecasters of one moment: champions loaded from the registry, brought up to date with the history.

Rebuilding from the store equals never having stopped, so whenever something changed a new
:class:`Foresight` is built beside the old one and takes its place when it is ready.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import TypeVar

import structlog

from advisor.domain.forecasts import DemandForecast, DurationForecast, RiseForecast
from advisor.domain.jobs import Job, pool_of
from advisor.errors import AdvisorError, Refused, Transient
from advisor.features.demand import DemandSeries, SeriesGrid, series_from_jobs
from advisor.features.replay import EventKind, events_of
from advisor.forecast.demand import DemandForecaster
from advisor.forecast.demand_model import DemandModel
from advisor.forecast.duration import DurationPredictor
from advisor.forecast.duration_model import DurationModel
from advisor.forecast.registry import DEMAND, DURATIONS, ModelRegistry, Registered
from advisor.settings import DemandSettings

__all__ = ["Champions", "DemandOutlook", "Foresight"]

_PROMISES_KEPT = 500
_STEP_MINUTES = 5

Model = TypeVar("Model", DurationModel, DemandModel)

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Champions:
    """The versions to serve; None where none was promoted or its artefact cannot be read.

    ``named`` are the versions that the registry named, readable or not.
    """

    durations: DurationModel | None
    demand: DemandModel | None
    versions: Mapping[str, str | None]
    named: Mapping[str, str | None]
    reasons: tuple[str, ...]

    @classmethod
    def of(cls, registry: ModelRegistry) -> Champions:
        """Load both champions; one that cannot be read is passed over, with the reason, and baselines answer."""
        reasons: list[str] = []
        durations, demand = _champion(registry, DURATIONS, reasons), _champion(registry, DEMAND, reasons)
        duration_model = _loaded(durations, DurationModel.load, reasons)
        demand_model = _loaded(demand, DemandModel.load, reasons)
        for reason in reasons:
            _log.warning("champion_passed_over", reason=reason)
        named = {
            DURATIONS: None if durations is None else durations.version,
            DEMAND: None if demand is None else demand.version,
        }
        return cls(
            durations=duration_model,
            demand=demand_model,
            versions={
                DURATIONS: None if duration_model is None else named[DURATIONS],
                DEMAND: None if demand_model is None else named[DEMAND],
            },
            named=named,
            reasons=tuple(reasons),
        )

    def current(self, registry: ModelRegistry) -> bool:
        """Whether the registry still names these versions; while it cannot be reached, the last good ones stay."""
        try:
            named = {name: registry.champion_version(name) for name in (DURATIONS, DEMAND)}
        except Transient as error:
            _log.warning("registry_unreachable", reason=str(error))
            return True
        return named == dict(self.named)


def _loaded(champion: Registered | None, load: Callable[[Path], Model], reasons: list[str]) -> Model | None:
    if champion is None:
        return None
    try:
        return load(champion.folder)
    except Refused as error:
        reasons.append(f"the champion of {champion.name} cannot be served: {error}")
        return None


def _champion(registry: ModelRegistry, name: str, reasons: list[str]) -> Registered | None:
    try:
        champion = registry.champion(name)
    except AdvisorError as error:
        reasons.append(str(error))
        return None
    if champion is None:
        reasons.append(f"no version of {name} has been promoted: baselines answer (train one: gsa train)")
    return champion


class DemandOutlook:
    """Demand of each pool from the history as of a time, as the advice cycle asks for it."""

    def __init__(self, model: DemandModel | None, version: str | None, settings: DemandSettings) -> None:
        self._forecaster = DemandForecaster(model, version, settings.horizons_minutes)
        self._step_minutes = _STEP_MINUTES if model is None else model.step_minutes
        self._zone = settings.timezone
        self._made: dict[str, tuple[datetime, DemandSeries]] = {}

    def demand(self, pool: str, jobs: Sequence[Job], now: datetime) -> DemandForecast:
        """Demand at each horizon, under the name the cluster knows the pool by."""
        return replace(self._forecaster.forecast(self._series(pool, jobs, now), now), pool=pool)

    def rise(self, pool: str, jobs: Sequence[Job], now: datetime) -> RiseForecast | None:
        """How far need may rise."""
        return replace(self._forecaster.rise(self._series(pool, jobs, now), now), pool=pool)

    def series(self, pool: str) -> DemandSeries | None:
        """The pool's demand as the last forecast read it, None before the first."""
        made = self._made.get(pool)
        return None if made is None else made[1]

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


@dataclass(frozen=True, slots=True, kw_only=True)
class Foresight:
    """Forecasters current at ``now``, and what was promised to the newest jobs when they were submitted."""

    now: datetime
    durations: DurationPredictor
    demand: DemandOutlook
    champions: Champions
    promises: Mapping[str, DurationForecast]

    @classmethod
    def build(cls, champions: Champions, jobs: Sequence[Job], now: datetime, settings: DemandSettings) -> Foresight:
        """Replay ``jobs`` up to ``now``; the newest are asked about as they are submitted, to keep the promise."""
        predictor = DurationPredictor(champions.durations)
        newest = sorted(jobs, key=lambda job: job.submit)[-_PROMISES_KEPT:]
        promises: dict[str, DurationForecast] = {}
        if newest:
            begin = newest[0].submit
            predictor.replay([job for job in jobs if job.submit < begin], _just_before(begin))
            promises = _with_promises(predictor, jobs, begin, now)
            promises = {job: _served_as(champions, promise) for job, promise in promises.items()}
        return cls(
            now=now,
            durations=predictor,
            demand=DemandOutlook(champions.demand, champions.versions[DEMAND], settings),
            champions=champions,
            promises=promises,
        )


def _served_as(champions: Champions, forecast: DurationForecast) -> DurationForecast:
    """The forecast under the version that people know the model by: the registry's."""
    version = champions.versions[DURATIONS]
    return replace(forecast, model_version=None if forecast.model_version is None else version)


def _just_before(moment: datetime) -> datetime:
    return moment - datetime.resolution


def _with_promises(
    predictor: DurationPredictor, jobs: Sequence[Job], begin: datetime, now: datetime
) -> dict[str, DurationForecast]:
    """Take in everything from ``begin`` on, asking about each job just before its submission is taken in."""
    promises: dict[str, DurationForecast] = {}
    for event in events_of(jobs, now):
        if event.moment < begin:
            continue
        if event.kind is EventKind.SUBMITTED:
            asked = event.job.as_of(event.moment)
            promises[event.job.id] = predictor.forecast([asked or event.job], event.moment)[0]
            predictor.submitted(event.job)
        elif event.kind is EventKind.ENDED:
            predictor.ended(event.job)
        else:
            predictor.started(event.job)
    return promises
