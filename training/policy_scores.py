"""The measures of a simulated run, by day, and what they come to over days and seeds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from advisor.domain.backtests import MeasuredDifference, PolicyScores
from advisor.domain.units import SECONDS_PER_DAY
from advisor.planning.costs import Prices, gpu_cost
from advisor.simulator.simulation import SimulatedRun

__all__ = ["SHORT_SECONDS", "DayTotals", "RunMeasures", "differences", "measures_of", "scores_of_runs"]

Floats = NDArray[np.float64]

SHORT_SECONDS = 900.0
"""Jobs of up to so many seconds count as short."""

_LEAST_SECONDS = 300.0
_DRAWS = 2000


@dataclass(frozen=True, slots=True)
class DayTotals:
    """Sums over the jobs submitted on each day, and the GPU-seconds paid and useful in it."""

    jobs: Floats
    waits: Floats
    short_jobs: Floats
    short_waits: Floats
    slowdowns: Floats
    paid: Floats
    useful: Floats

    def measures(self, weights: Floats) -> dict[str, Floats]:
        """The measures that are ratios of sums, for every row of ``weights`` [draw, day]; minutes where it is waits."""
        sums = {name: weights @ getattr(self, name) for name in DayTotals.__slots__}
        with np.errstate(invalid="ignore", divide="ignore"):
            return {
                "mean_wait_minutes": sums["waits"] / sums["jobs"],
                "mean_short_wait_minutes": sums["short_waits"] / sums["short_jobs"],
                "bounded_slowdown": sums["slowdowns"] / sums["jobs"],
                "paid_over_useful": sums["paid"] / sums["useful"],
                "gpu_utilisation": sums["useful"] / sums["paid"],
            }


@dataclass(frozen=True, slots=True, kw_only=True)
class RunMeasures:
    """One run: its scores, and its days for intervals."""

    scores: PolicyScores
    days: DayTotals


def measures_of(run: SimulatedRun, prices: Prices, setting: Mapping[str, float]) -> RunMeasures:
    """Everything reported of a run."""
    tasks = run.tasks
    submit = np.array([task.job.submit for task in tasks])
    seconds = np.array([task.job.seconds for task in tasks])
    finish = np.array([task.finish for task in tasks], dtype=np.float64)
    waits = np.maximum(finish - submit - seconds, 0.0) / 60.0
    lasting = np.maximum(seconds, _LEAST_SECONDS)
    slowdowns = np.maximum((waits * 60.0 + seconds) / lasting, 1.0)
    short = seconds <= SHORT_SECONDS
    horizon = run.horizon
    scores = PolicyScores(
        gpu_utilisation=_ratio(horizon.useful, horizon.accounts.paid),
        mean_wait_minutes=float(waits.mean()),
        p95_wait_minutes=float(np.quantile(waits, 0.95)),
        p99_wait_minutes=float(np.quantile(waits, 0.99)),
        longest_wait_minutes=float(waits.max()),
        mean_short_wait_minutes=float(waits[short].mean()) if short.any() else None,
        bounded_slowdown=float(slowdowns.mean()),
        fill_rate=_ratio(run.end.useful, run.end.accounts.held),
        cost=gpu_cost(prices, horizon.accounts.paid / 60.0),
        paid_over_useful=_ratio(horizon.accounts.paid, horizon.useful),
        node_starts=run.node_starts,
        preemptions=sum(task.preemptions for task in tasks),
        moves=sum(task.moves for task in tasks),
        lost_gpu_hours=sum(task.lost * task.gpus for task in tasks) / 3600.0,
        jobs=len(tasks),
        setting=dict(setting),
    )
    return RunMeasures(scores=scores, days=_days(run, submit, waits, short, slowdowns))


def _days(run: SimulatedRun, submit: Floats, waits: Floats, short: NDArray[np.bool_], slowdowns: Floats) -> DayTotals:
    """The sums of a run by day since its first submission."""
    day = ((submit - submit[0]) // SECONDS_PER_DAY).astype(np.intp)
    spent = np.array([(point.accounts.paid, point.useful) for point in run.days])
    paid, useful = np.diff(spent, axis=0).T
    days = max(int(day.max()) + 1, len(paid))

    def summed(values: Floats) -> Floats:
        total: Floats = np.bincount(day, values, days).astype(np.float64)
        return total

    return DayTotals(
        jobs=summed(np.ones(len(submit))),
        waits=summed(waits),
        short_jobs=summed(short.astype(np.float64)),
        short_waits=summed(waits * short),
        slowdowns=summed(slowdowns),
        paid=np.pad(paid, (0, days - len(paid))),
        useful=np.pad(useful, (0, days - len(useful))),
    )


def scores_of_runs(runs: Sequence[RunMeasures]) -> PolicyScores:
    """The mean over seeds; counts are rounded."""
    tables = [run.scores.to_json() for run in runs]
    means: dict[str, float | None] = {}
    for name in tables[0]:
        values = [table[name] for table in tables]
        if name != "setting":
            means[name] = None if None in values else float(np.mean(values))
    counts = {name: round(means[name] or 0.0) for name in ("node_starts", "preemptions", "moves", "jobs")}
    return PolicyScores(**{**means, **counts, "setting": tables[0]["setting"]})


def differences(
    ours: Sequence[RunMeasures], theirs: Sequence[RunMeasures], seed: int = 0
) -> dict[str, MeasuredDifference]:
    """Ours less theirs, with 95 % intervals from resampling days; the seeds of one day stay together.

    A measure that some set of days does not have (no short job) is left out.
    """
    a, b = _pooled(ours), _pooled(theirs)
    count = len(a.jobs)
    draws = np.random.default_rng(seed).multinomial(count, np.full(count, 1.0 / count), size=_DRAWS).astype(np.float64)
    whole = np.ones((1, count))
    found = {}
    for measure, mine in a.measures(whole).items():
        mean = mine[0] - b.measures(whole)[measure][0]
        spread = a.measures(draws)[measure] - b.measures(draws)[measure]
        spread = spread[np.isfinite(spread)]
        if np.isfinite(mean) and spread.size:
            low, high = np.quantile(spread, (0.025, 0.975))
            found[measure] = MeasuredDifference(float(mean), float(low), float(high))
    return found


def _pooled(runs: Sequence[RunMeasures]) -> DayTotals:
    """The sums over seeds; a shaken seed may have a day more, which counts with the last of the others."""
    count = min(len(run.days.jobs) for run in runs)

    def summed(name: str) -> Floats:
        total = np.zeros(count)
        for run in runs:
            values = getattr(run.days, name)
            total += values[:count]
            total[-1] += values[count:].sum()
        return total

    return DayTotals(*(summed(name) for name in DayTotals.__slots__))


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole > 0 else 0.0
