"""What warm capacity would have been worth to the jobs of a trace: each policy with the packing of whole jobs.

Demand is what the trace offers: every job from its submission for as long as it ran. Forecasts see that series;
the jobs are then replayed on nodes, in several draws of how they fall into them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from advisor.domain.jobs import Job
from advisor.domain.units import counted
from advisor.domain.warm_reports import WarmPoint, WarmReport
from advisor.errors import Refused
from advisor.features.demand import DemandSeries, SeriesGrid, series_from_jobs
from training.demand_rows import DemandFitSettings
from training.warm_backtest import Progress, Steps, WarmEvaluation, refits_in, schedules_of, spans
from training.warm_choice import chosen, comparison
from training.warm_forecast import rolling_rises
from training.warm_jobs import JobRun, JobWindow, replay_jobs
from training.warm_policies import CANDIDATES
from training.warm_pools import warm_protocol
from training.warm_replay import WarmWorld
from training.warm_schedule import WarmSchedule

__all__ = ["evaluate_warm_on_jobs"]

Floats = NDArray[np.float64]

_LONG_DAYS = 45.0
_LONG_FIT = DemandFitSettings(row_minutes=10, most_rows=80_000, rounds=60, threads=1)
_TRIAL_SEEDS = 3
_P95 = 0.95
_EVERY = 2
_FELT = "wait_per_job_minutes"
"""Rules are told apart by what jobs wait: by GPUs, a few gangs that nothing could foresee would decide."""


@dataclass(frozen=True, eq=False)
class _Offered:
    """The jobs of one pool in order of submission, minutes from the first."""

    submit: Floats
    duration: Floats
    gpus: NDArray[np.int64]
    start: datetime
    series: DemandSeries
    notes: tuple[str, ...]

    def window(self, first: int, stop: int) -> JobWindow:
        """The minutes ``first`` up to ``stop``, and what ran already at their beginning."""
        inside = (self.submit >= first) & (self.submit < stop)
        running = (self.submit < first) & (self.submit + self.duration > first)
        return JobWindow(
            submit=self.submit[inside] - first,
            duration=self.duration[inside],
            gpus=self.gpus[inside],
            running_rest=(self.submit + self.duration - first)[running],
            running_gpus=self.gpus[running],
            minutes=float(stop - first),
        )


def evaluate_warm_on_jobs(
    jobs: Sequence[Job],
    pool: str,
    evaluation: WarmEvaluation | None = None,
    seeds: int = 10,
    progress: Progress | None = None,
) -> WarmReport:
    """Cost and wait of every policy at every setting for the jobs of the last part of a trace, as one pool.

    Raises:
        Refused: no job that ran, or too short a history.
    """
    offered = _offered(jobs, pool, evaluation.world if evaluation else WarmWorld())
    plan = _suited(evaluation or WarmEvaluation(), offered.series)
    trial, scored = spans([offered.series], plan)
    steps = Steps(
        progress,
        refits_in(trial, plan.trial_refit_days, 1) + refits_in(scored, plan.refit_days, 1) + seeds + _TRIAL_SEEDS,
    )
    tried, _ = _curves(offered, trial, (plan, plan.trial_refit_days, _TRIAL_SEEDS), steps)
    curves, refits = _curves(offered, scored, (plan, plan.refit_days, seeds), steps)
    protocol = warm_protocol([offered.series], scored, refits, plan.fit.seed, plan.world)
    assumed = (*(a for a in protocol.assumed if "perfectly packed" not in a), *_said(offered, plan.world, seeds))
    return WarmReport(
        protocol=replace(protocol, rows=len(offered.submit), assumed=assumed),
        pools={pool: comparison(curves, chosen(tried, tuple(CANDIDATES), _FELT))},
    )


def _said(offered: _Offered, world: WarmWorld, seeds: int) -> tuple[str, ...]:
    return (
        *offered.notes,
        f"nodes of {world.node_gpus} GPUs, best fit, ready {world.latency_minutes:g} min after they are ordered",
        "first come first served, but a job that does not fit is passed by those that do",
        f"means of {counted(seeds, 'draw')} in which each job is submitted up to a minute later",
    )


def _suited(plan: WarmEvaluation, series: DemandSeries) -> WarmEvaluation:
    """A long history is fitted on rows further apart, and less often."""
    if len(series) / 1440.0 <= _LONG_DAYS:
        return plan
    fit = replace(_LONG_FIT, seed=plan.fit.seed)
    return replace(plan, fit=fit, refit_days=7.0, trial_days=14.0, trial_refit_days=7.0)


def _offered(jobs: Sequence[Job], pool: str, world: WarmWorld) -> _Offered:
    ran = sorted((job for job in jobs if job.start is not None and _last(job) is not None), key=lambda job: job.submit)
    if not ran:
        raise Refused("trace", len(jobs), "no job of it ever ran", "Check the file, its mapping and the namespace.")
    start = ran[0].submit
    asked = [_asked(job, pool) for job in ran]
    end = ran[-1].submit
    grid = SeriesGrid(start=start, end=end, step_minutes=1, node_gpus=world.node_gpus)
    skipped = len(jobs) - len(ran)
    notes = [f"{counted(skipped, 'job')} that never ran, or whose end is not known, left out"] if skipped else []
    if any(job.gpus != int(job.gpus) for job in ran):
        notes.append("shares of a GPU are rounded up to whole ones")
    return _Offered(
        submit=np.array([(job.submit - start) / timedelta(minutes=1) for job in asked]),
        duration=np.array([(_last(job) or job.submit) - job.submit for job in asked]) / timedelta(minutes=1),
        gpus=np.array([job.gpus for job in asked]).astype(np.int64),
        start=start,
        series=series_from_jobs(asked, pool, grid, end),
        notes=tuple(notes),
    )


def _asked(job: Job, pool: str) -> Job:
    """The job as if it had started when it was submitted, and run for as long as it did."""
    ran = (_last(job) or job.submit) - (job.start or job.submit)
    return Job(
        id=job.id,
        submit=job.submit,
        start=job.submit,
        end=job.submit + ran,
        outcome=job.outcome,
        gpus=float(np.ceil(job.gpus)),
        pool=pool,
        start_assumed=True,
        calendar_known=job.calendar_known,
    )


def _last(job: Job) -> datetime | None:
    return job.end or job.last_seen


def _curves(
    offered: _Offered, span: tuple[int, int], how: tuple[WarmEvaluation, float, int], steps: Steps
) -> tuple[dict[str, tuple[WarmPoint, ...]], int]:
    """Every family's curve over the minutes of ``span``, the mean of several draws."""
    plan, refit_days, seeds = how
    series = offered.series
    forecasts = rolling_rises([series], span, refit_days, plan.fit, steps.done)
    schedules = schedules_of(series, (series.pool,), forecasts, plan.world)
    window = offered.window(*span)
    runs: dict[str, list[list[JobRun]]] = {family: [[] for _ in found[::_EVERY]] for family, found in schedules.items()}
    for seed in range(seeds):
        drawn = window.jittered(plan.fit.seed + seed)
        for family, found in schedules.items():
            for place, schedule in enumerate(found[::_EVERY]):
                runs[family][place].append(replay_jobs(drawn, schedule, plan.world))
        steps.done()
    return {
        family: tuple(
            _point(schedule, window, drawn, plan.world)
            for schedule, drawn in zip(found[::_EVERY], runs[family], strict=True)
        )
        for family, found in schedules.items()
    }, forecasts.refits


def _point(schedule: WarmSchedule, window: JobWindow, runs: Sequence[JobRun], world: WarmWorld) -> WarmPoint:
    used = sum(run.used for run in runs)
    owned = sum(run.paid + run.boots for run in runs) * world.node_gpus
    starts = sum(run.starts for run in runs)
    boots = sum(run.boots for run in runs) * world.boot_billed + starts * world.start_cost_minutes
    paid = sum(run.paid for run in runs) + boots
    unmet = sum(float(run.waits @ window.gpus) for run in runs)
    waits = np.concatenate([run.waits for run in runs])
    return WarmPoint(
        setting=schedule.setting,
        cost=_over(paid * world.node_gpus, used),
        mean_wait_minutes=_over(unmet, unmet + used),
        p95_wait_minutes=float(np.quantile(waits, _P95)) if waits.size else 0.0,
        node_starts=round(starts / len(runs)),
        utilisation=_over(used, owned),
        wait_per_new_gpu_minutes=_over(unmet, float(window.gpus.sum()) * len(runs)),
        boot_share=_over(boots * world.node_gpus, used),
        wait_per_job_minutes=float(waits.mean()) if waits.size else 0.0,
    )


def _over(top: float, bottom: float) -> float:
    return top / bottom if bottom > 0 else 0.0
