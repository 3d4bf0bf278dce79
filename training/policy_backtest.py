"""What would this have changed? One history under every policy, with the forecasts that would have been served.

The durations are foretold by the replay of :mod:`training.answers`, refitted on schedule and without future, as of
each job's real submission; then every policy runs the held-out jobs, each run in a process of its own.
"""

from __future__ import annotations

import platform
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime

import lightgbm
import numpy as np

from advisor.domain.backtests import BacktestReport, MeasuredDifference, PolicyScores
from advisor.domain.jobs import Job, Outcome
from advisor.domain.reports import RunProtocol
from advisor.domain.units import counted, shown_duration
from advisor.errors import Refused
from advisor.history.snapshot import DIGEST_SHOWN, jobs_digest
from advisor.planning.costs import Prices
from advisor.simulator.foresight import Distributions, Foresight, Truth
from advisor.simulator.tasks import simulated_job
from training.answers import History, history_of, served
from training.backtest import BacktestSettings
from training.duration_table import Progress
from training.policies import (
    ADVISOR,
    ADVISOR_CHECKPOINTING,
    EVERYTHING_MOVES,
    KEEP_ALIVE_BEST,
    Contest,
    ContestTerms,
    entrants,
    static_nodes,
)
from training.policy_runs import Runs, run_all
from training.policy_scores import differences, scores_of_runs

__all__ = ["PolicyBacktest", "backtest_policies", "contest_of"]

_FITTED_BEST = 1e-9


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyBacktest:
    """What is compared, and how the forecasts are made; ``more`` names policies beyond those always there.

    ``workers`` is the number of processes, None for one a core.
    """

    terms: ContestTerms = field(default_factory=ContestTerms)
    durations: BacktestSettings = field(default_factory=BacktestSettings)
    prices: Prices = field(default_factory=Prices)
    more: tuple[str, ...] = ()
    workers: int | None = None


def backtest_policies(
    jobs: Sequence[Job], settings: PolicyBacktest, progress: Progress | None = None, *, synthetic: bool = False
) -> BacktestReport:
    """Replay the jobs from the split on under every policy.

    Raises:
        Refused: too few jobs, no job after the split that ran, a quota under the largest job, or an unknown policy.
    """
    wanted = entrants(settings.more)
    contest, history, refits = contest_of(jobs, settings, progress)
    runs = run_all(contest, wanted, settings.prices, settings.workers, progress)
    curve = sorted((name for name in runs if name.startswith("keep_alive_")), key=lambda n: _seconds(runs, n))
    best = _best_keep_alive({name: scores_of_runs(runs[name]) for name in curve}, scores_of_runs(runs[ADVISOR]))
    named = {name: runs[best if name == KEEP_ALIVE_BEST else name] for name in _reported(wanted)}
    return BacktestReport(
        protocol=replace(_protocol(contest, history, refits, settings), synthetic=synthetic),
        policies={name: scores_of_runs(found) for name, found in named.items()},
        differences=_differences(named, settings.durations.fit.seed),
        curves={"keep_alive": [scores_of_runs(runs[name]) for name in curve]},
    )


def contest_of(
    jobs: Sequence[Job], settings: PolicyBacktest, progress: Progress | None = None
) -> tuple[Contest, History, int]:
    """The held-out work with what was foreseen of it, the history, and how often models were fitted for it."""
    terms, durations = settings.terms, settings.durations
    history = history_of(jobs, durations.split, durations.fit, progress)
    places = [place for place in sorted(history.floors) if _ran(history.jobs[place])]
    if not places:
        raise Refused("jobs", 0, "no job after the split has run", "Bring in more history, or split earlier.")
    answers, refits, _ = served(history, durations.refit_days, durations.fit, progress)
    origin = datetime.fromtimestamp(history.split, UTC)
    marks = np.random.default_rng(durations.fit.seed).random(len(places)) < terms.checkpointable
    work = tuple(
        simulated_job(history.jobs[place], origin, checkpointable=bool(mark))
        for place, mark in zip(places, marks, strict=True)
    )
    foresights: dict[str, Foresight] = {
        "model": Distributions([answers.laws[place] for place in places]),
        "median_of_5": Distributions([history.floors[place] for place in places]),
        "truth": Truth([job.seconds for job in work]),
    }
    largest = max(job.gpus for job in work)
    nodes = static_nodes(history.jobs, history.split, terms, largest)
    return Contest(terms=terms, jobs=work, foresights=foresights, static_nodes=nodes), history, refits


def _ran(job: Job) -> bool:
    return job.run_seconds is not None


def _reported(runs: Sequence[str]) -> list[str]:
    """The policies behind the runs, the swept one once."""
    return list(dict.fromkeys(KEEP_ALIVE_BEST if name.startswith("keep_alive_") else name for name in runs))


def _seconds(runs: Runs, name: str) -> float:
    return runs[name][0].scores.setting["keep_alive_seconds"]


def _best_keep_alive(curve: dict[str, PolicyScores], ours: PolicyScores) -> str:
    """The shortest wait to be had for no more than ours costs; where nothing is, the cheapest."""
    affordable = [n for n, s in curve.items() if s.paid_over_useful <= ours.paid_over_useful * (1.0 + _FITTED_BEST)]
    if affordable:
        return min(affordable, key=lambda name: curve[name].mean_wait_minutes)
    return min(curve, key=lambda name: curve[name].paid_over_useful)


def _differences(named: Runs, seed: int) -> dict[str, dict[str, MeasuredDifference]]:
    """Ours less each other; where the other may move everything, so may ours."""
    others = EVERYTHING_MOVES - {ADVISOR_CHECKPOINTING}
    ours = {name: ADVISOR_CHECKPOINTING if name in others else ADVISOR for name in named if name != ADVISOR}
    return {name: differences(named[mine], named[name], seed) for name, mine in ours.items()}


def _protocol(contest: Contest, history: History, refits: int, settings: PolicyBacktest) -> RunProtocol:
    return RunProtocol(
        data_digest=jobs_digest(history.jobs)[:DIGEST_SHOWN],
        rows=len(history.jobs),
        split_time=datetime.fromtimestamp(history.split, UTC),
        refits=refits,
        seed=settings.durations.fit.seed,
        versions={"lightgbm": lightgbm.__version__, "numpy": np.__version__, "python": platform.python_version()},
        assumed=tuple(_assumed(contest, history, refits)),
    )


def _assumed(contest: Contest, history: History, refits: int) -> Iterator[str]:
    terms = contest.terms
    held_out = [job for job in history.jobs if job.submit.timestamp() >= history.split]
    yield f"one NodePool of nodes with {counted(terms.node_gpus, 'GPU')}; memory, CPUs and kinds of GPU are left out"
    yield (
        f"a node takes {shown_duration(terms.start_latency_seconds)} from its request, all of it paid; requests are"
        " gathered for 1 s, at most 10 s; machines are billed by the second, a minute at least"
    )
    yield f"stopping and resuming a job takes {shown_duration(terms.switch_seconds)} of its GPUs and loses nothing else"
    yield f"{100 * terms.checkpointable:g} % of the jobs, drawn at random, are marked checkpointable"
    yield "jobs last as long as they did, wherever they run, and work of several nodes has whole ones"
    yield "the cluster is empty at the split; costs count up to the last submission, waits to the last end"
    yield "durations were foretold from the real history: where a policy lets jobs wait, its ends come later than that"
    if terms.seeds > 1:
        yield "all seeds but the first move submissions by up to a minute, those of one second together"
    if not refits:
        yield "too few jobs had ended to fit a model: the median of five stands in throughout"
    if lost := sum(job.outcome is Outcome.CENSORED and _ran(job) for job in held_out):
        yield f"{counted(lost, 'job')} of unknown end taken to have ended when last seen"
    if idle := sum(not _ran(job) for job in held_out):
        yield f"not replayed: {counted(idle, 'job')} that never ran or run still"
