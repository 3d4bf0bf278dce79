"""What was read of a world beside its truth, and everything in which they differ."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from advisor.domain.ingest import JobBatch
from advisor.domain.jobs import Job
from tests.telemetry_world.observer import Expected

__all__ = ["Compared", "differences"]


@dataclass(frozen=True)
class Compared:
    """What came of reading one telemetry, beside the truth."""

    truth: tuple[Expected, ...]
    batch: JobBatch

    @property
    def jobs(self) -> dict[str, Job]:
        return {job.id: job for job in self.batch.jobs}


def differences(compared: Compared) -> list[str]:
    """Everything in which what was read differs from the truth."""
    found, jobs = [], compared.jobs
    for each in compared.truth:
        if each.job is None:
            continue
        job = jobs.pop(each.job.id, None)
        if job is None:
            found.append(f"lost {each.work.name}: {each.job}")
            continue
        found += [f"{each.job.id} {line}" for line in _of_job(each, each.job, job)]
    found += [f"invented {job}" for job in jobs.values()]
    return found


SAME = ("submit", "namespace", "name", "pool", "gpu_kind", "user", "created_by", "time_limit_seconds")


def _of_job(each: Expected, true: Job, job: Job) -> Iterator[str]:
    for name in SAME:
        if getattr(true, name) != getattr(job, name):
            yield f"{name}: {getattr(true, name)} read as {getattr(job, name)}"
    if each.gpus_known and abs(true.gpus - job.gpus) > 1e-6:
        yield f"gpus: {true.gpus} read as {job.gpus}"
    if not each.in_doubt:
        yield from _of_its_life(each, true, job)


def _of_its_life(each: Expected, true: Job, job: Job) -> Iterator[str]:
    if true.outcome is not job.outcome:
        yield f"outcome: {true.outcome} read as {job.outcome} ({each.work})"
    for name, within in (("scheduled", 0.0), ("start", each.start_within), ("gone_at", each.end_within)):
        one, other = getattr(true, name), getattr(job, name)
        apart = None if one is None or other is None else abs((one - other).total_seconds())
        if (one is None) != (other is None) or (apart is not None and apart > within + 1.0):
            yield f"{name}: {one} read as {other}, {within} s allowed"
    if abs(true.paused_seconds - job.paused_seconds) > each.paused_within + 1.0:
        yield f"paused: {true.paused_seconds} read as {job.paused_seconds}"
    for name in ("restarts", "evictions"):
        if (getattr(true, name) or 0) != (getattr(job, name) or 0):
            yield f"{name}: {getattr(true, name)} read as {getattr(job, name)}"
