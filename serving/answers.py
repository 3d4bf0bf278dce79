"""Answers from one state of the live advisor: everything one answer needs, all of one moment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from advisor.cycle import CycleMemory
from advisor.domain.explanations import DurationExplanation
from advisor.domain.forecasts import DurationDistribution
from advisor.domain.jobs import Job
from advisor.domain.nodepools import ClusterSnapshot, Workload
from advisor.domain.plans import Advice
from advisor.domain.slices import SliceLength, SliceRequest
from advisor.forecast.registry import DURATIONS
from dashboards.data import HistorySummary, JobView
from serving.api.service import AllocationAsk, DurationAnswer, DurationAsk
from serving.foresight import Foresight

__all__ = ["LiveState", "duration_answers", "job_view", "remaining_of_running", "searched_text", "slice_request"]


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveState:
    """Everything one answer needs, all of one moment."""

    now: datetime
    known: tuple[object, ...]
    jobs: tuple[Job, ...]
    foresight: Foresight
    advice: Advice
    snapshot: ClusterSnapshot
    memory: CycleMemory
    summary: HistorySummary


def duration_answers(
    state: LiveState, asks: Sequence[DurationAsk], *, explain: bool = False
) -> tuple[DurationAnswer, ...]:
    """One answer per ask, in order."""
    version = state.foresight.champions.versions[DURATIONS]
    jobs = [_asked(ask, at, state.now) for at, ask in enumerate(asks)]
    durations = state.foresight.durations
    whole = durations.forecast(jobs, state.now)
    running = [place for place, ask in enumerate(asks) if ask.elapsed_seconds]
    if running:
        # How a job will end depends on the age it has reached; how long it runs as a whole is told from its start.
        ages = [asks[place].elapsed_seconds or 0.0 for place in running]
        aged = durations.forecast([jobs[place] for place in running], state.now, ages)
        for place, answer in zip(running, aged, strict=True):
            whole[place] = replace(whole[place], outcomes=answer.outcomes)
    why = durations.explain(jobs, state.now, [ask.elapsed_seconds or 0.0 for ask in asks]) if explain else []
    return tuple(
        DurationAnswer(
            id=ask.id,
            forecast=replace(forecast, model_version=None if forecast.model_version is None else version),
            elapsed_seconds=ask.elapsed_seconds,
            explanation=why[place] if explain else None,
        )
        for place, (ask, forecast) in enumerate(zip(asks, whole, strict=True))
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
        priority=ask.priority,
        time_limit_seconds=ask.time_limit_seconds,
    )


def slice_request(ask: AllocationAsk, answer: DurationAnswer, now: datetime) -> SliceRequest:
    """The request for slices that ``ask`` means, with the duration predicted for it."""
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


def remaining_of_running(state: LiveState) -> dict[str, DurationDistribution]:
    """How much longer each running workload of the snapshot may take."""
    running = [w for w in state.snapshot.workloads if w.start is not None and w.node is not None and not w.placeholder]
    ages = [(state.now - w.start).total_seconds() for w in running if w.start is not None]
    jobs = [_of_workload(workload) for workload in running]
    forecasts = state.foresight.durations.forecast(jobs, state.now, [max(0.0, age) for age in ages])
    return {workload.id: one.distribution for workload, one in zip(running, forecasts, strict=True)}


def _of_workload(workload: Workload) -> Job:
    return Job(
        id=workload.job_id or f"workload:{workload.id}",
        submit=workload.submit,
        start=workload.start,
        gpus=workload.gpus,
        user=workload.user,
        namespace=workload.namespace,
        name=workload.name,
        pool=workload.pool,
    )


def searched_text(job: Job) -> str:
    """What a search for jobs looks at, in lower case."""
    return " ".join(part for part in (job.id, job.user, job.namespace, job.name) if part).lower()


def _why(state: LiveState, job: Job, elapsed: float | None) -> DurationExplanation:
    return state.foresight.durations.explain([job], state.now, [elapsed or 0.0])[0]


def job_view(state: LiveState, job: Job, *, explain: bool = False) -> JobView | None:
    """The job with its promise; an open job without one is answered from what was known at its submission.

    An open job is explained where that is asked for; of one that has ended only the promise is kept.
    """
    promise = state.foresight.promises.get(job.id)
    open_now = job.gone_at is None
    if promise is None and not open_now:
        return None
    if promise is None:
        promise = state.foresight.durations.forecast([job], state.now)[0]
    elapsed = job.elapsed_seconds(state.now)
    remaining, outcomes = None, promise.outcomes
    if open_now and elapsed is not None:
        as_it_runs = state.foresight.durations.forecast([job], state.now, [elapsed])[0]
        remaining, outcomes = as_it_runs.distribution, as_it_runs.outcomes
    return JobView(
        job=job,
        forecast=promise,
        elapsed_seconds=elapsed,
        remaining=remaining,
        outcomes=outcomes if open_now else None,
        explanation=_why(state, job, elapsed) if explain and open_now else None,
    )
