"""The running product: what the API and the pages ask, answered from one consistent state.

A state is built whole and swapped whole, so that no answer mixes two models or two moments.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import structlog

from advisor.clock import Clock
from advisor.cycle import AdviceCycle, CycleMemory
from advisor.domain.forecasts import DemandForecast
from advisor.domain.jobs import Job
from advisor.domain.nodepools import ClusterSnapshot
from advisor.domain.plans import Advice, Money
from advisor.domain.slices import Allocation, SliceLength, SliceRequest
from advisor.errors import AdvisorError, Refused, Transient
from advisor.forecast.registry import DEMAND, DURATIONS, ModelRegistry
from advisor.history.store import HistoryStore
from advisor.planning.allocator import allocate
from advisor.reconciler.reconcile import ReconcileInputs
from advisor.settings import Settings
from dashboards.data import DemandPoint, HistorySummary, JobView
from serving import wiring
from serving.advice_json import advice_document
from serving.api.service import AllocationAsk, DurationAnswer, DurationAsk, ModelSummary, Readiness
from serving.foresight import Champions, Foresight
from serving.wiring import ClusterChoice, ClusterKind

__all__ = ["LiveAdvisor", "LiveParts"]

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveParts:
    """What the live advisor is made of. ``as_of`` pins the moment; None takes the history's end or the clock."""

    settings: Settings
    history: HistoryStore
    registry: ModelRegistry
    clock: Clock
    cluster: ClusterChoice
    as_of: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _State:
    """Everything one answer needs, all of one moment."""

    now: datetime
    jobs: tuple[Job, ...]
    foresight: Foresight
    advice: Advice
    snapshot: ClusterSnapshot
    memory: CycleMemory
    summary: HistorySummary


class LiveAdvisor:
    """Implements ``AdvisorService`` and ``DashboardData``; safe to call from several threads."""

    def __init__(self, parts: LiveParts) -> None:
        self._parts = parts
        self._state: _State | None = None
        self._failure: str | None = "the first cycle has not finished yet"
        self._one_at_a_time = threading.Lock()

    # -- keeping current -------------------------------------------------------------------------

    def refresh(self) -> float:
        """Read the history, load the champions, run one cycle and take its state; the seconds to the next look.

        On an error the last good state stays and the reason is told by :meth:`readiness`.

        Raises:
            AdvisorError: history, registry or cluster cannot be used now.
        """
        with self._one_at_a_time:
            try:
                self._state, wait = self._next_state()
            except AdvisorError as error:
                self._failure = str(error)
                _log.warning("cycle_failed", reason=str(error))
                raise
            self._failure = None
            return wait

    def _next_state(self) -> tuple[_State, float]:
        parts, last = self._parts, self._state
        now = self._moment()
        jobs = tuple(parts.history.jobs(now))
        summary = self._summary(jobs)
        foresight = Foresight.build(Champions.of(parts.registry), jobs, now, parts.settings.demand)
        cluster = wiring.open_cluster(parts.cluster, jobs, now)
        cycle = AdviceCycle(cluster, foresight.durations, foresight.demand, wiring.cycle_terms(parts.settings))
        memory = CycleMemory() if last is None else last.memory
        outcome = cycle.run(jobs, self._inputs(now), memory, foresight.champions.versions)
        advice = replace(
            outcome.advice,
            synthetic=summary.synthetic,
            reasons=(*outcome.advice.reasons, *foresight.champions.reasons),
        )
        if outcome.decisions:
            parts.history.record_decisions(outcome.decisions)
        parts.history.record_advice(now, advice_document(advice))
        _log.info("cycle_finished", time=now.isoformat(), pools=len(advice.pools), models=dict(advice.models))
        state = _State(
            now=now,
            jobs=jobs,
            foresight=foresight,
            advice=advice,
            snapshot=outcome.snapshot,
            memory=outcome.memory,
            summary=summary,
        )
        return state, outcome.next_look_seconds

    def _moment(self) -> datetime:
        """A live cluster is looked at now; one in memory lives where the history ends: at its last submission."""
        parts = self._parts
        if parts.as_of is not None:
            return parts.as_of
        if parts.cluster.kind is ClusterKind.KUBERNETES:
            return parts.clock.now()
        last = parts.history.last_submit()
        if last is None:
            raise Transient("the history is empty; ingest one first: gsa ingest trace ...")
        return last

    def _inputs(self, now: datetime) -> ReconcileInputs:
        parts = self._parts
        return ReconcileInputs(
            now=now,
            history_as_of=parts.history.last_event(now),
            rules=wiring.guard_rules(parts.settings),
            last_applied=lambda pool, field: parts.history.last_applied(pool, field, now),
            paused=parts.settings.guards.paused,
            interval_seconds=parts.settings.server.refresh_seconds,
        )

    def _summary(self, jobs: Sequence[Job]) -> HistorySummary:
        status = self._parts.history.status()
        return HistorySummary(
            jobs=len(jobs),
            first=jobs[0].submit if jobs else None,
            last=self._parts.history.last_event(self._moment()),
            sources=tuple(source.source for source in status.sources),
            dropped=sum(rejection.count for rejection in status.rejections),
            synthetic=status.synthetic,
        )

    def _current(self) -> _State:
        state = self._state
        if state is None:
            raise Transient(f"there is no advice yet: {self._failure}")
        return state

    # -- AdvisorService --------------------------------------------------------------------------

    def now(self) -> datetime:
        """The moment that answers refer to."""
        return self._current().now

    def synthetic(self) -> bool:
        """Whether the history is a generated workload."""
        return self._current().summary.synthetic

    def durations(self, asks: Sequence[DurationAsk]) -> tuple[DurationAnswer, ...]:
        """One answer per ask, in order, all from one state."""
        state = self._current()
        return _answers(state, asks)

    def demand(self, pool: str | None) -> tuple[DemandForecast, ...]:
        """Forecasts of every pool, or of one."""
        found = tuple(one.demand for one in self._current().advice.pools if pool is None or one.pool == pool)
        if pool is not None and not found:
            known = ", ".join(one.pool for one in self._current().advice.pools)
            raise Refused("pool", pool, f"known pools are {known}", "Use one of them.")
        return found

    def advice(self) -> Advice:
        """The newest advice."""
        return self._current().advice

    def allocate(self, asks: Sequence[AllocationAsk]) -> tuple[Allocation, ...]:
        """One allocation per ask, on the newest snapshot; nothing is reserved."""
        state = self._current()
        answers = _answers(state, [ask.job for ask in asks])
        requests = [_request(ask, answer, state.now) for ask, answer in zip(asks, answers, strict=True)]
        plans = {one.pool: one.slice_plan for one in state.advice.pools}
        terms = wiring.allocation_terms(self._parts.settings)
        return allocate(state.snapshot, requests, plans, terms, state.now)

    def models(self) -> tuple[ModelSummary, ...]:
        """Registered versions, newest first."""
        return tuple(
            ModelSummary(
                name=name,
                version=found.version,
                aliases=found.aliases,
                created=found.card.made_at,
                data_digest=found.card.data_digest,
                measures=found.card.measures,
                reasons=found.card.reasons,
                synthetic=found.card.synthetic,
            )
            for name in (DURATIONS, DEMAND)
            for found in self._parts.registry.versions(name)
        )

    def readiness(self) -> Readiness:
        """Ready once a state stands; a later failure is told beside it."""
        reasons = () if self._failure is None else (self._failure,)
        return Readiness(ready=self._state is not None, reasons=reasons)

    # -- DashboardData ---------------------------------------------------------------------------

    def money(self) -> Money:
        """Prices, for money beside minutes."""
        return wiring.money(self._parts.settings)

    def history(self) -> HistorySummary:
        """What the advice stands on."""
        return self._current().summary

    def recent_demand(self, pool: str, hours: float) -> tuple[DemandPoint, ...]:
        """The pool's demand over the last ``hours``, oldest first."""
        state = self._current()
        series = state.foresight.demand.series(pool)
        if series is None:
            return ()
        recent = range(max(0, len(series) - int(hours * 60 / series.step_minutes)), len(series))
        return tuple(
            DemandPoint(
                time=series.time_at(at),
                running=_known(series.running[at]),
                pending=None if series.pending is None else _known(series.pending[at]),
            )
            for at in recent
        )

    def jobs(self, text: str | None, limit: int) -> tuple[JobView, ...]:
        """The newest jobs whose id, user, namespace or name holds ``text``."""
        state = self._current()
        wanted = text.lower() if text else ""
        found: list[JobView] = []
        for job in reversed(state.jobs):
            if len(found) == limit:
                break
            if wanted in _searched(job) and (view := _view(state, job)) is not None:
                found.append(view)
        return tuple(found)

    def job(self, job_id: str) -> JobView | None:
        """One job, None if it is unknown or ended too long ago for its promise to be kept."""
        state = self._current()
        found = next((job for job in reversed(state.jobs) if job.id == job_id), None)
        return None if found is None else _view(state, found)


def _known(gpus: float) -> float | None:
    return None if math.isnan(gpus) else float(gpus)


def _answers(state: _State, asks: Sequence[DurationAsk]) -> tuple[DurationAnswer, ...]:
    version = state.foresight.champions.versions[DURATIONS]
    jobs = [_asked(ask, at, state.now) for at, ask in enumerate(asks)]
    whole = state.foresight.durations.forecast(jobs, state.now)
    return tuple(
        DurationAnswer(
            id=ask.id,
            forecast=replace(forecast, model_version=None if forecast.model_version is None else version),
            elapsed_seconds=ask.elapsed_seconds,
        )
        for ask, forecast in zip(asks, whole, strict=True)
    )


def _asked(ask: DurationAsk, place: int, now: datetime) -> Job:
    """The job in question. Its place makes its id its own: what is asked about twice is not one job."""
    return Job(
        id=f"ask:{place}:{ask.id}",
        submit=now,
        gpus=ask.gpus,
        user=ask.user,
        namespace=ask.namespace,
        name=ask.name,
        image=ask.image,
        gpu_kind=ask.gpu_kind,
        pool=ask.pool,
        cpus=ask.cpus,
        nodes=ask.nodes,
    )


def _request(ask: AllocationAsk, answer: DurationAnswer, now: datetime) -> SliceRequest:
    law = answer.forecast.distribution
    return SliceRequest(
        id=ask.job.id,
        submit=now,
        gpus=ask.job.gpus,
        duration=law if answer.elapsed_seconds is None else law.given_age(answer.elapsed_seconds),
        pool=ask.job.pool,
        gpu_kind=ask.job.gpu_kind,
        urgent=ask.urgent,
        deadline=ask.deadline,
        slice_length=None if ask.slice_minutes is None else SliceLength(ask.slice_minutes),
    )


def _searched(job: Job) -> str:
    return " ".join(part for part in (job.id, job.user, job.namespace, job.name) if part).lower()


def _view(state: _State, job: Job) -> JobView | None:
    """The job with its promise; an open job without one is answered from what was known at its submission."""
    promise = state.foresight.promises.get(job.id)
    open_now = job.gone_at is None
    if promise is None and not open_now:
        return None
    if promise is None:
        promise = state.foresight.durations.forecast([job], state.now)[0]
    elapsed = job.elapsed_seconds(state.now)
    remaining = None
    if open_now and elapsed is not None:
        remaining = state.foresight.durations.forecast([job], state.now, [elapsed])[0].distribution
    return JobView(job=job, forecast=promise, elapsed_seconds=elapsed, remaining=remaining)
