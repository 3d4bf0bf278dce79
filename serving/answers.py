"""Answers from one state of the live advisor: everything one answer needs, all of one moment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import NamedTuple

from advisor.cycle import CycleMemory
from advisor.domain.explanations import DurationExplanation
from advisor.domain.forecasts import DurationDistribution, DurationForecast
from advisor.domain.jobs import Job, JobIdentity
from advisor.domain.nodepools import ClusterSnapshot, Workload
from advisor.domain.plans import Advice
from advisor.domain.promises import Promise
from advisor.domain.slices import SliceLength, SliceRequest
from advisor.errors import Defect, Refused
from dashboards.data import HistorySummary, JobView
from serving.api.service import AllocationAsk, DurationAnswer, DurationAsk
from serving.foresight import Foresight

__all__ = [
    "LiveState",
    "duration_answers",
    "job_views",
    "of_several",
    "remaining_of_running",
    "searched_text",
    "slice_request",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveState:
    """What one cycle left to answer from, and the foresight it was made with, which is fed meanwhile.

    ``now`` is the moment of the cycle; durations are answered as of the foresight's own, which is never earlier.
    """

    now: datetime
    foresight: Foresight
    advice: Advice
    snapshot: ClusterSnapshot
    memory: CycleMemory
    summary: HistorySummary
    next_look_seconds: float


def duration_answers(
    state: LiveState, asks: Sequence[DurationAsk], *, explain: bool = False
) -> tuple[DurationAnswer, ...]:
    """One answer per ask, in order."""
    with state.foresight.looking() as look:
        jobs = [_job_asked_about(ask, at, look.now) for at, ask in enumerate(asks)]
        whole = look.durations.forecast(jobs, look.now)
        running = [place for place, ask in enumerate(asks) if ask.elapsed_seconds]
        if running:
            # How a job will end depends on the age it has reached; how long it runs in all is told from its start.
            ages = [asks[place].elapsed_seconds or 0.0 for place in running]
            aged = look.durations.forecast([jobs[place] for place in running], look.now, ages)
            for place, answer in zip(running, aged, strict=True):
                whole[place] = replace(whole[place], outcomes=answer.outcomes)
        elapsed = [ask.elapsed_seconds or 0.0 for ask in asks]
        why = look.durations.explain(jobs, look.now, elapsed) if explain else []
    return tuple(
        DurationAnswer(
            id=ask.id,
            as_of=look.now,
            forecast=look.champions.named_by_registry(forecast),
            elapsed_seconds=ask.elapsed_seconds,
            explanation=why[place] if explain else None,
        )
        for place, (ask, forecast) in enumerate(zip(asks, whole, strict=True))
    )


def _job_asked_about(ask: DurationAsk, place: int, now: datetime) -> Job:
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
    """How much longer each running workload of the snapshot may take.

    Raises:
        Refused: a workload names a job that several sources have, and not its source.
    """
    running = [w for w in state.snapshot.workloads if w.start is not None and w.node is not None and not w.placeholder]
    ages = [(state.now - w.start).total_seconds() for w in running if w.start is not None]
    jobs = [_of_workload(workload, _source_of(workload, state.foresight)) for workload in running]
    forecasts = state.foresight.forecast(jobs, state.now, [max(0.0, age) for age in ages])
    return {workload.id: one.distribution for workload, one in zip(running, forecasts, strict=True)}


def _source_of(workload: Workload, foresight: Foresight) -> str | None:
    """Whose job the workload is, where the history knows it as one that has not ended."""
    if workload.job_id is None or workload.job_source is not None:
        return workload.job_source
    _, found = foresight.called(workload.job_id)
    there = [job for job in found if job.gone_at is None]
    if len(there) > 1:
        where = f"job_id of workload {workload.id}"
        raise of_several(where, there, "Name one of them as job_source in the description of the cluster.")
    return there[0].source if there else None


def of_several(where: str, jobs: Sequence[Job], remedy: str) -> Refused:
    """The refusal to choose between ``jobs``, which share the id that stood in ``where``."""
    sources = ", ".join(job.source or "none" for job in jobs)
    return Refused(where, jobs[0].id, f"it names {len(jobs)} jobs, one each of {sources}", remedy)


def _of_workload(workload: Workload, source: str | None) -> Job:
    return Job(
        id=workload.job_id or f"workload:{workload.id}",
        source=source,
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


def job_views(
    foresight: Foresight,
    now: datetime,
    jobs: Sequence[Job],
    promises: Mapping[JobIdentity, Promise],
    *,
    explain: bool = False,
) -> list[JobView]:
    """The ``jobs`` as known at ``now``, each with what it was promised.

    An open job without a promise is answered from what was known at its submission; of one that is gone only the
    promise is kept, so that it must have one. Open jobs are explained on request.
    """
    places = [place for place, job in enumerate(jobs) if job.gone_at is None]
    open_now = [jobs[place] for place in places]
    ages = [job.elapsed_seconds(now) or 0.0 for job in open_now]
    with foresight.looking() as look:
        whole = look.durations.forecast(open_now, now)
        aged = look.durations.forecast(open_now, now, ages)
        why = look.durations.explain(open_now, now, ages) if explain else [None] * len(open_now)
    named = [look.champions.named_by_registry(forecast) for forecast in whole]
    asked = dict(zip(places, map(_Asked, named, aged, why), strict=True))
    return [_view(job, now, promises.get(job.identity), asked.get(place)) for place, job in enumerate(jobs)]


class _Asked(NamedTuple):
    """What is said of an open job now: in all, given its age, and why."""

    whole: DurationForecast
    aged: DurationForecast
    why: DurationExplanation | None


def _view(job: Job, now: datetime, promise: Promise | None, asked: _Asked | None) -> JobView:
    forecast = promise.forecast if promise is not None else asked.whole if asked is not None else None
    if forecast is None:
        raise Defect(f"job {job.id!r} is gone and nothing was promised to it")
    elapsed = job.elapsed_seconds(now)
    return JobView(
        job=job,
        forecast=forecast,
        elapsed_seconds=elapsed,
        remaining=None if asked is None or elapsed is None else asked.aged.distribution,
        outcomes=None if asked is None else asked.aged.outcomes,
        explanation=None if asked is None else asked.why,
        promise=promise,
    )
