"""The runs of a backtest, each in a process of its own: kept apart so that those processes import little."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import replace
from random import Random
from typing import TypeAlias

from advisor.planning.costs import Prices
from advisor.simulator.simulation import simulate
from advisor.simulator.tasks import SimulatedJob
from training.policies import Contest, entrant
from training.policy_scores import RunMeasures, measures_of

__all__ = ["Runs", "run_all"]

Runs: TypeAlias = dict[str, list[RunMeasures]]
"""Every seed of every run, by name."""

Progress: TypeAlias = Callable[[str, int, int], None]

_SHAKE_SECONDS = 60.0


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


def run_all(
    contest: Contest, names: Sequence[str], prices: Prices, workers: int | None, progress: Progress | None = None
) -> Runs:
    """Every seed of every run, by ``workers`` processes (None: one a core).

    The dear ones come first, so that no process is left waiting for a last long one.
    """
    dear = sorted(names, key=lambda name: name.startswith(("keep_alive", "static", "traditional", "karpenter")))
    tasks = [(name, seed) for name in dear for seed in range(contest.terms.seeds)]
    found: dict[tuple[str, int], RunMeasures] = {}
    for done, (task, measures) in enumerate(_results(contest, tasks, prices, workers), start=1):
        found[task] = measures
        if progress is not None:
            progress("replays", done, len(tasks))
    return {name: [found[name, seed] for seed in range(contest.terms.seeds)] for name in names}


def _results(
    contest: Contest, tasks: Sequence[tuple[str, int]], prices: Prices, most: int | None
) -> Iterator[tuple[tuple[str, int], RunMeasures]]:
    workers = min(most or os.cpu_count() or 1, len(tasks))
    if workers == 1:
        for task in tasks:
            yield task, _run(contest, prices, *task)
        return
    # Forking a process whose libraries have started threads may hang it.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(workers, mp_context=context, initializer=_share, initargs=(contest, prices)) as pool:
        futures = {pool.submit(_run_shared, *task): task for task in tasks}
        for future in as_completed(futures):
            yield futures[future], future.result()
