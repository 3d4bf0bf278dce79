"""The demand forecast measured on a history of jobs: the series they make, and what their durations are worth to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from advisor.domain.jobs import Job
from advisor.domain.reports import DemandReport
from advisor.features.demand import DemandSeries, SeriesGrid, series_by_pool
from advisor.features.demand_pools import PoolKey, pooled
from training.answers import history_of, served
from training.backtest import BacktestSettings, Predicted
from training.demand_backtest import DemandEvaluation, Progress, cuts_and_split, evaluate_demand
from training.demand_lower import known_releases
from training.demand_rows import rows_of
from training.release_study import ReleaseStudy

__all__ = ["TraceDemand", "evaluate_demand_of_jobs"]

_PREDICTED_FROM = 0.2
_STUDY_ROW_MINUTES = 15
_HOUR = timedelta(hours=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceDemand:
    """How jobs become series: pools by ``key``, a sample every ``step_minutes``, nodes of ``node_gpus``.

    ``releases`` also measures what predicted durations are worth, which replays the durations first.
    """

    key: PoolKey = PoolKey.POOL
    step_minutes: int = 5
    node_gpus: int = 8
    zone: str = "UTC"
    releases: bool = True
    durations: BacktestSettings = field(default_factory=lambda: BacktestSettings(split=_PREDICTED_FROM))
    evaluation: DemandEvaluation = field(default_factory=DemandEvaluation)


def evaluate_demand_of_jobs(
    jobs: Sequence[Job], horizons_minutes: Sequence[int], trace: TraceDemand, progress: Progress | None = None
) -> DemandReport:
    """The report of :func:`evaluate_demand` on the pools of ``jobs``, with what releases are worth in each.

    The series end with the last submission: what comes after is a cluster that nobody hands work any more. Durations
    are those predicted at submission by models refitted on schedule, from the first fifth of the jobs on.

    Raises:
        Refused: too short a history, or a horizon that is no multiple of the step.
    """
    ordered = sorted(pooled(jobs, trace.key), key=lambda job: job.submit)
    series = _series(ordered, trace)
    report = evaluate_demand(series, horizons_minutes, trace.evaluation, progress)
    if not trace.releases:
        return report
    history = history_of(ordered, trace.durations.split, trace.durations.fit)
    answers, _, _ = served(history, trace.durations.refit_days, trace.durations.fit, None)
    settings = replace(
        trace.evaluation.fit, horizons_minutes=tuple(horizons_minutes), row_minutes=_STUDY_ROW_MINUTES, rises=False
    )
    cuts, split = cuts_and_split(series, trace.evaluation)
    study = ReleaseStudy(cuts=tuple(c for c in cuts if c >= split), since=history.split, settings=settings)
    pools, _ = rows_of(series, settings.row_minutes)
    predicted = Predicted(history.jobs, answers.laws, history.split)
    known = known_releases(predicted, series, horizons_minutes)
    found = {rows.pool: study.scores(rows, known.pools[rows.pool]) for rows in pools}
    return replace(report, releases={pool: scores for pool, scores in found.items() if scores})


def _series(jobs: Sequence[Job], trace: TraceDemand) -> list[DemandSeries]:
    first, last = jobs[0].submit, jobs[-1].submit
    start = datetime.fromtimestamp(first.timestamp() // _HOUR.total_seconds() * _HOUR.total_seconds(), UTC)
    grid = SeriesGrid(
        start=start, end=last, step_minutes=trace.step_minutes, node_gpus=trace.node_gpus, zone=trace.zone
    )
    return list(series_by_pool(jobs, grid, last).values())
