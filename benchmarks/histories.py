"""Histories of any size for benchmarks: a trace or a labelled synthetic workload, resampled."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np

from advisor.domain.jobs import Job
from advisor.telemetry.synthetic import synthetic_workload
from advisor.telemetry.traces import TraceFile, TraceFormat

__all__ = ["base_history", "resampled"]

_JITTER_SECONDS = 900.0
_JITTER_LOG = 0.1


def base_history() -> tuple[str, list[Job]]:
    """The trace ``GSA_BENCH_TRACE`` (in ``GSA_BENCH_FORMAT``), else a synthetic workload: what it is, and its jobs."""
    given = os.environ.get("GSA_BENCH_TRACE")
    if given is None:
        jobs = list(synthetic_workload(1, datetime(2026, 3, 1, tzinfo=UTC)).jobs)
        return "synthetic workload", sorted(jobs, key=lambda job: job.submit)
    form = TraceFormat(os.environ.get("GSA_BENCH_FORMAT", TraceFormat.PHILLY))
    jobs = list(TraceFile(Path(given), form, None).read(None, datetime.now(UTC)).jobs)
    return f"{Path(given).name}", sorted(jobs, key=lambda job: job.submit)


def resampled(jobs: Sequence[Job], count: int, seed: int = 1) -> list[Job]:
    """``count`` jobs in the time span of ``jobs``: copies with owners of their own, jittered in time and duration."""
    rng = np.random.default_rng(seed)
    copies = math.ceil(count / len(jobs))
    found: list[Job] = []
    for copy in range(copies):
        shifts = rng.uniform(-_JITTER_SECONDS, _JITTER_SECONDS, len(jobs))
        factors = np.exp(rng.normal(0.0, _JITTER_LOG, len(jobs)))
        found += [_like(job, copy, float(s), float(f)) for job, s, f in zip(jobs, shifts, factors, strict=True)]
    found = [found[place] for place in sorted(rng.choice(len(found), size=count, replace=False).tolist())]
    return sorted(found, key=lambda job: job.submit)


def _like(job: Job, copy: int, shift_seconds: float, factor: float) -> Job:
    moved = timedelta(seconds=shift_seconds if copy else 0.0)
    start = None if job.start is None else job.start + moved
    end = job.end
    if start is not None and end is not None and job.start is not None:
        end = start + (end - job.start) * (factor if copy else 1.0)
    return replace(
        job,
        id=f"{copy}-{job.id}",
        submit=job.submit + moved,
        start=start,
        end=end,
        user=None if job.user is None else f"{job.user}-{copy}",
        namespace=None if job.namespace is None else f"{job.namespace}-{copy}",
    )
