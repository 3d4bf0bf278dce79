"""What would this have changed? One history under every policy, with the forecasts that would have been served.

The durations are foretold by the replay of :mod:`training.answers`, refitted on schedule and without future, as of
each job's real submission; then every policy runs the held-out jobs, each run in a process of its own.
"""

from __future__ import annotations

import multiprocessing
import os
import platform
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from random import Random
from typing import TypeAlias

import lightgbm
import numpy as np

from advisor.domain.backtests import BacktestReport, MeasuredDifference, PolicyScores
from advisor.domain.jobs import Job, Outcome
from advisor.domain.reports import RunProtocol
from advisor.domain.units import counted, shown_duration
from advisor.errors import Refused
from advisor.planning.costs import Prices
from advisor.simulator.foresight import Distributions, Foresight, Truth
from advisor.simulator.simulation import simulate
from advisor.simulator.tasks import SimulatedJob, simulated_job
from training.answers import History, history_of, served
from training.backtest import BacktestSettings, digest_of
from training.duration_table import Progress
from training.policies import (
    ADVISOR,
    ADVISOR_CHECKPOINTING,
    EVERYTHING_MOVES,
    KEEP_ALIVE_BEST,
    Contest,
    ContestTerms,
    entrant,
    entrants,
    static_nodes,
)
from training.policy_scores import RunMeasures, differences, measures_of, scores_of_runs

__all__ = ["PolicyBacktest", "backtest_policies", "contest_of"]

Runs: TypeAlias = dict[str, list[RunMeasures]]

_SHAKE_SECONDS = 60.0
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
    runs = _run_all(contest, wanted, settings, progress)
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


# Runs ------------------------------------------------------------------------------------------------------------


_shared: tuple[Contest, Prices] | None = None
"""What every run of a worker process needs, handed over once."""


def _share(contest: Contest, prices: Prices) -> None:
    global _shared  # noqa: PLW0603 - a process pool has no other place for what all its tasks share
    _shared = (contest, prices)


def _run_shared(name: str, seed: int) -> RunMeasures:
    assert _shared is not None  # noqa: S101 - every worker begins with _share
    return _run(_shared[0], _shared[1], name, seed)


def _run(contest: Contest, prices: Prices, name: str, seed: int) -> RunMeasures:
    """One policy, once, on work shaken by ``seed``."""
    chosen = entrant(name, contest)
    jobs = _shaken(contest.jobs, seed)
    if chosen.everything:
        jobs = [(place, replace(job, checkpointable=True)) for place, job in jobs]
    places, work = zip(*jobs, strict=True)
    run = simulate(work, chosen.cluster, chosen.policy, seed, places)
    return measures_of(run, prices, chosen.setting)


def _shaken(jobs: Sequence[SimulatedJob], seed: int) -> list[tuple[int, SimulatedJob]]:
    """The jobs with their places, in order of submission: as they were for seed 0, else each second moved as one."""
    if seed == 0:
        return list(enumerate(jobs))
    random = Random(seed)  # noqa: S311 - no secrets here
    moves: dict[float, float] = {}
    for job in jobs:
        if job.submit not in moves:
            moves[job.submit] = random.uniform(-_SHAKE_SECONDS, _SHAKE_SECONDS)
    moved = [(place, replace(job, submit=max(0.0, job.submit + moves[job.submit]))) for place, job in enumerate(jobs)]
    return sorted(moved, key=lambda one: (one[1].submit, one[0]))


def _run_all(contest: Contest, names: Sequence[str], settings: PolicyBacktest, progress: Progress | None) -> Runs:
    """Every run, the dear ones first, so that no process is left waiting for a last long one."""
    dear = sorted(names, key=lambda name: name.startswith(("keep_alive", "static", "traditional", "karpenter")))
    tasks = [(name, seed) for name in dear for seed in range(contest.terms.seeds)]
    found: dict[tuple[str, int], RunMeasures] = {}
    for done, (task, measures) in enumerate(_results(contest, tasks, settings), start=1):
        found[task] = measures
        if progress is not None:
            progress("replays", done, len(tasks))
    return {name: [found[name, seed] for seed in range(contest.terms.seeds)] for name in names}


def _results(
    contest: Contest, tasks: Sequence[tuple[str, int]], settings: PolicyBacktest
) -> Iterator[tuple[tuple[str, int], RunMeasures]]:
    workers = min(settings.workers or os.cpu_count() or 1, len(tasks))
    if workers == 1:
        for task in tasks:
            yield task, _run(contest, settings.prices, *task)
        return
    # Forking a process whose libraries have started threads may hang it.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(
        workers, mp_context=context, initializer=_share, initargs=(contest, settings.prices)
    ) as pool:
        futures = {pool.submit(_run_shared, *task): task for task in tasks}
        for future in as_completed(futures):
            yield futures[future], future.result()


# The report ------------------------------------------------------------------------------------------------------


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
        data_digest=digest_of(history.jobs),
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
