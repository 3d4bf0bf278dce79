"""What the history says of a namespace beside what is true of it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path

from advisor.domain.jobs import Job
from advisor.history.store import HistoryStore

__all__ = ["differences", "history_of"]

_SAME = (
    "id", "submit", "scheduled", "start", "outcome", "gpu_kind", "pool", "user", "created_by", "paused_seconds"
)  # fmt: skip
_FORCED = timedelta(seconds=5)
"""A pod deleted by force tells nothing of its end: it was there until a watch told otherwise."""


def history_of(home: Path, namespace: str) -> dict[str, Job]:
    """The jobs of ``namespace`` in the history below ``home``, by name."""
    with HistoryStore.open(f"sqlite:///{home / 'history.db'}") as store:
        return {job.name or "": job for job in store.jobs(datetime.now(UTC)) if job.namespace == namespace}


def differences(truth: Mapping[str, Job], found: Mapping[str, Job], forced: str = "vanished") -> list[str]:
    """Everything in which ``found`` differs from ``truth``; the end of the ``forced`` one may be told a bit later."""
    told = [f"invented {found[name]}" for name in found.keys() - truth.keys()]
    for name, true in truth.items():
        if name not in found:
            told.append(f"lost {name}")
            continue
        within = _FORCED if name == forced else timedelta(0)
        told += [f"{name} {line}" for line in _of_job(true, found[name], within)]
    return told


def _of_job(true: Job, job: Job, within: timedelta) -> Iterator[str]:
    for field in _SAME:
        if getattr(true, field) != getattr(job, field):
            yield f"{field}: {getattr(true, field)} read as {getattr(job, field)}"
    for field in ("restarts", "evictions"):
        if (getattr(true, field) or 0) != (getattr(job, field) or 0):
            yield f"{field}: {getattr(true, field)} read as {getattr(job, field)}"
    if abs(true.gpus - job.gpus) > 1e-9:
        yield f"gpus: {true.gpus} read as {job.gpus}"
    for field in ("end", "last_seen"):
        one, other = getattr(true, field), getattr(job, field)
        if (one is None) != (other is None) or (one is not None and not timedelta(0) <= other - one <= within):
            yield f"{field}: {one} read as {other}"
