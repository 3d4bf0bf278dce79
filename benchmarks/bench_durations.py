"""Duration predictions in the process: fitting, asking and learning, each beside the bare look-up in the trees.

``GSA_BENCH_JOBS`` (default 20,000) jobs are fitted on, then twice as many, each in a process of its own so that
its peak memory is its own. The history is a labelled synthetic workload or ``GSA_BENCH_TRACE``.
"""

from __future__ import annotations

import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import numpy as np

from advisor.domain.jobs import Job, Outcome
from advisor.features.duration import DurationFeatures
from advisor.forecast.duration import DurationPredictor
from advisor.forecast.duration_model import DurationModel
from advisor.forecast.hazard import HazardModel
from benchmarks.histories import base_history, resampled
from training.duration import fit_durations

CALLS = 500
BATCH = 1000
KEYS = 100_000


def main() -> None:
    """Measure, and print one table; with a number as argument, fit on so many jobs and say what that took."""
    if len(sys.argv) > 1:
        print(json.dumps(_fitted(int(sys.argv[1]))))
        return
    jobs = int(os.environ.get("GSA_BENCH_JOBS", "20000"))
    named, history = base_history()
    print(f"history: {named}, resampled")
    one, two = (_in_its_own_process(count) for count in (jobs, 2 * jobs))
    for took in (one, two):
        print(f"fit on {took['jobs']:>9,} jobs: {took['seconds']:7.1f} s, peak {took['gigabytes']:.2f} GB")
    print(f"twice the jobs: {two['seconds'] / one['seconds']:.2f} x the time")
    _asking(resampled(history, min(jobs, 20_000)))
    print(f"state of {KEYS:,} keys: {_state_megabytes(KEYS):.0f} MB")


def _in_its_own_process(jobs: int) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.bench_durations", str(jobs)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def _fitted(count: int) -> dict[str, float]:
    history = resampled(base_history()[1], count)
    begin = time.perf_counter()
    model = fit_durations(history, history[-1].submit)
    seconds = time.perf_counter() - begin
    if model is None:
        raise SystemExit("too few jobs to fit")
    return {
        "jobs": count,
        "seconds": seconds,
        "gigabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
    }


def _asking(history: list[Job]) -> None:
    now = history[-1].submit
    model = fit_durations(history, now)
    if model is None:
        raise SystemExit("too few jobs to fit")
    predictor = DurationPredictor(model)
    predictor.replay(history, now)
    asks = [replace(job.as_asked(), id=f"ask-{n}", submit=now) for n, job in enumerate(history[-BATCH:])]
    bare = _median_ms(_look_ups(model))
    print(f"{'':<32}{'p50 ms':>10}{'x bare':>9}")
    rows = {
        "bare look-up in all trees": bare,
        "one prediction": _median_ms(lambda n: predictor.forecast([asks[n % BATCH]], now)),
        f"{BATCH} predictions at once, each": _median_ms(lambda _: predictor.forecast(asks, now), calls=5) / BATCH,
        "one completion absorbed": _absorbing(predictor, asks),
    }
    for name, milliseconds in rows.items():
        print(f"{name:<32}{milliseconds:>10.3f}{milliseconds / bare:>9.2f}")


def _look_ups(model: DurationModel) -> Callable[[int], object]:
    """Leaves of both forests and the hazard at all bins for one row: what no prediction can do without."""
    row = np.zeros((1, len(model.columns)))
    hazard: HazardModel = model.hazard
    shown = np.zeros((len(hazard.bins), hazard.columns), dtype=np.float32)
    return lambda _: (model.leaves_of(row), hazard.raw(shown))


def _absorbing(predictor: DurationPredictor, asks: list[Job]) -> float:
    jobs = [replace(ask, id=f"run-{n}", start=ask.submit) for n, ask in enumerate(asks[:CALLS])]
    for job in jobs:
        predictor.submitted(job)
    ended = [replace(job, end=job.submit + timedelta(minutes=5), outcome=Outcome.COMPLETED) for job in jobs]
    return _median_ms(lambda n: predictor.ended(ended[n]), calls=len(ended))


def _state_megabytes(keys: int) -> float:
    """Resident memory of so many keys (owners, and owners with their GPU count), each with one job that has ended."""
    job = next(job for job in base_history()[1] if job.end is not None)
    before = _resident_megabytes()
    features = DurationFeatures()
    for number in range(keys // 2):
        own = replace(job, id=f"job-{number}", user=f"user-{number}", name=None, image=None)
        features.submitted(own)
        features.ended(own, own.end or own.submit)
    found = _resident_megabytes() - before
    del features
    return found


def _resident_megabytes() -> float:
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize() / 1e6


def _median_ms(call: Callable[[int], object], calls: int = CALLS) -> float:
    taken = []
    for number in range(calls):
        begin = time.perf_counter()
        call(number)
        taken.append(time.perf_counter() - begin)
    return 1000.0 * statistics.median(taken)


if __name__ == "__main__":
    main()
