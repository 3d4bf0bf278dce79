"""An in-memory service and dashboard data, made of synthetic domain values that are labelled as such."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

import numpy as np

from advisor.domain.forecasts import (
    DemandForecast,
    DurationForecast,
    OutcomeChances,
)
from advisor.domain.gpus import GpuShare
from advisor.domain.jobs import Job
from advisor.domain.plans import Advice, Money
from advisor.domain.promises import KeptPromises
from advisor.domain.slices import Allocation, Decision, Slice, SliceLength
from advisor.errors import Transient
from dashboards.data import DemandPoint, HistorySummary, JobView, RegisteredModel
from serving.answers import of_several
from serving.api.service import AllocationAsk, DurationAnswer, DurationAsk, ModelSummary, Readiness, Unknown
from tests.serving.fake_values import (
    NOON,
    a_forecast,
    a_promise,
    an_advice,
    an_explanation,
    some_jobs,
    some_kept_promises,
    some_models,
)


@dataclass
class FakeService:
    """An ``AdvisorService`` that answers the same to everybody; set a field to make it fail."""

    advice_now: Advice | None = field(default_factory=an_advice)
    forecast: DurationForecast = field(default_factory=a_forecast)
    is_synthetic: bool = True
    not_ready: tuple[str, ...] = ()
    trouble: Exception | None = None
    asked: list[DurationAsk] = field(default_factory=list)

    def now(self) -> datetime:
        return NOON

    def synthetic(self) -> bool:
        return self.is_synthetic

    def durations(self, asks: Sequence[DurationAsk], *, explain: bool = False) -> tuple[DurationAnswer, ...]:
        del explain
        if self.trouble is not None:
            raise self.trouble
        self.asked.extend(asks)
        return tuple(
            DurationAnswer(id=ask.id, as_of=NOON, forecast=self.forecast, elapsed_seconds=ask.elapsed_seconds)
            for ask in asks
        )

    def demand(self, pool: str | None) -> tuple[DemandForecast, ...]:
        forecasts = tuple(entry.demand for entry in self.advice().pools if pool in {None, entry.pool})
        if not forecasts:
            raise Unknown("pool", pool, "known pools are a100 and l4-shared", "Use one of them.")
        return forecasts

    def advice(self) -> Advice:
        if self.trouble is not None:
            raise self.trouble
        if self.advice_now is None:
            raise Transient("no advice cycle has run yet")
        return self.advice_now

    def allocate(self, asks: Sequence[AllocationAsk]) -> tuple[Allocation, ...]:
        return tuple(_allocation(ask) for ask in asks)

    def models(self) -> tuple[ModelSummary, ...]:
        return (
            ModelSummary(
                name="durations",
                version="4",
                aliases=("champion",),
                created=NOON - timedelta(days=1),
                data_digest="sha256:5b1f",
                measures={"log_mae": 0.96},
                reasons=("beats the median of the last five",),
                synthetic=True,
            ),
        )

    def readiness(self) -> Readiness:
        return Readiness(ready=not self.not_ready, reasons=self.not_ready)


def _allocation(ask: AllocationAsk) -> Allocation:
    if ask.job.gpus > 64:
        return Allocation(request_id=ask.job.id, decision=Decision.REFUSED, reasons=("the cluster has 64 GPUs in all",))
    if ask.deadline is not None:
        return Allocation(
            request_id=ask.job.id,
            decision=Decision.DEFERRED,
            slice_count=2,
            deferred_until=NOON + timedelta(minutes=20),
            reasons=("a node frees in 20 min",),
        )
    one = Slice(NOON, GpuShare("a100-1", 0), SliceLength(ask.slice_minutes or 30.0))
    return Allocation(request_id=ask.job.id, decision=Decision.PLACED, slices=(one,), slice_count=1, reasons=("fits",))


@dataclass
class FakePages:
    """A ``DashboardData`` over the same values; set a field to make something missing."""

    advice_now: Advice | None = field(default_factory=an_advice)
    jobs_now: tuple[Job, ...] = field(default_factory=some_jobs)
    now_is: datetime | None = NOON
    history_trouble: str | None = None
    forecast: DurationForecast = field(default_factory=a_forecast)
    recent: tuple[DemandPoint, ...] | None = None
    kept: tuple[KeptPromises, ...] | None = field(default_factory=some_kept_promises)
    models: tuple[RegisteredModel, ...] | None = field(default_factory=some_models)

    def now(self) -> datetime:
        if self.now_is is None:
            raise Transient("no advice cycle has run yet")
        return self.now_is

    def advice(self) -> Advice:
        if self.advice_now is None:
            raise Transient("no advice cycle has run yet")
        return self.advice_now

    def money(self) -> Money:
        return Money(per_gpu_hour=2.5, per_waiting_gpu_minute=0.25)

    def history(self) -> HistorySummary:
        if self.history_trouble is not None:
            raise Transient(self.history_trouble)
        last = NOON - timedelta(minutes=2) if self.jobs_now else None
        return HistorySummary(
            jobs=82_310 if self.jobs_now else 0,
            first=None if last is None else last - timedelta(days=70),
            last=last,
            sources=("synthetic",) if self.jobs_now else (),
            dropped=17,
            synthetic=True,
        )

    def recent_demand(self, pool: str, hours: float) -> tuple[DemandPoint, ...]:
        if self.recent is not None:
            return self.recent
        steps = int(hours * 12)
        rng = np.random.default_rng(7)
        last = next((p.demand.gpus_now for p in self.advice().pools if p.pool == pool), 148.0)
        walk = np.cumsum(rng.normal(0, 0.011 * last, steps))
        walk = np.maximum(0.0, last - 3.0 + walk - walk[-1])
        points = [
            DemandPoint(
                time=NOON - timedelta(minutes=5 * (steps - i)), running=float(v), pending=float((i + 5) % 7) / 2
            )
            for i, v in enumerate(walk)
        ]
        points[20] = replace(points[20], running=None, pending=None)
        return tuple(points)

    def jobs(self, text: str | None, limit: int) -> tuple[JobView, ...]:
        found = [job for job in self.jobs_now if text is None or text in f"{job.id} {job.user} {job.name}"]
        return tuple(self._view(job) for job in found[:limit])

    def job(self, job_id: str, source: str | None = None) -> JobView | None:
        found = [job for job in self.jobs_now if job.id == job_id and source in {None, job.source}]
        if len(found) > 1:
            raise of_several("job", found, f"Ask for one, as in ?source={found[0].source}.")
        return self._view(found[0]) if found else None

    def kept_promises(self, days: int) -> tuple[KeptPromises, ...]:
        if self.kept is None:
            raise Transient("no advice cycle has run yet")
        return self.kept[-days:]

    def registered(self) -> tuple[RegisteredModel, ...]:
        if self.models is None:
            raise Transient("the model registry could not be reached")
        return self.models

    def _view(self, job: Job) -> JobView:
        elapsed = job.elapsed_seconds(self.now())
        running = elapsed is not None and job.outcome is None
        remaining = self.forecast.distribution.given_age(elapsed) if running else None
        return JobView(
            job=job,
            forecast=self.forecast,
            elapsed_seconds=elapsed,
            remaining=remaining,
            outcomes=OutcomeChances(completed=0.82, failed=0.13, cancelled=0.05) if job.gone_at is None else None,
            explanation=an_explanation(self.now()) if job.gone_at is None else None,
            promise=a_promise(job, self.forecast),
        )
