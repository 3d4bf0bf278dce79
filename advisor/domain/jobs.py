"""A job: one run of work that asks for GPUs, and what is known about its end."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, TypeAlias

from advisor.domain.units import utc
from advisor.domain.usage import GpuUsage
from advisor.errors import Refused

__all__ = ["DEFAULT_POOL", "TOLD_BY_NODES", "Job", "JobIdentity", "Outcome", "pool_of"]

DEFAULT_POOL = "default"
"""Pool of a job that names neither a pool nor a GPU kind."""

JobIdentity: TypeAlias = tuple[str, str]
"""What makes a job this job and no other: its source ("" where it has none), and its id there."""

_ASKED = (
    "id",
    "source",
    "submit",
    "gpus",
    "user",
    "namespace",
    "name",
    "image",
    "gpu_kind",
    "pool",
    "cpus",
    "nodes",
    "priority",
    "time_limit_seconds",
    "calendar_known",
    "created_by",
)
"""What is known of a job when it is submitted; every other field becomes known, or true, only afterwards."""

TOLD_BY_NODES = ("cpus", "gpu_kind", "image", "nodes")
"""What a source may learn of a job only from where it runs, though others know it from the request."""


class Outcome(StrEnum):
    """How a job ended, where it is known that it did.

    A cancelled or failed job is a real end: its GPUs became free. ``CENSORED`` says that the end
    is not known (preempted by the system, telemetry lost); the job lasted at least until it was last seen.
    """

    COMPLETED = "completed"
    FAILED = "failed"
    CANCELLED = "cancelled"
    CENSORED = "censored"


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One run of work that asks for GPUs: a Pod, a Job, a gang of Pods, a Slurm job.

    ``outcome`` is None while the job waits or runs. ``gpus`` counts physical GPUs and may be a
    fraction (a share of one). ``start_assumed`` marks a start taken to be the submission because
    the source has none. ``calendar_known`` is False where the source's times are relative, so that
    hour and weekday mean nothing. ``scheduled`` is when it was given a node, between submission and
    start. ``created_by`` is the object that made its pods, such as ``Job/train-7``; ``restarts`` counts how
    often its containers began anew, ``evictions`` how often it was put back in the queue, and
    ``paused_seconds`` is the time between its runs, in which it held no GPUs. ``usage`` is what it did
    with its GPUs. ``told_by_node`` names those of :data:`TOLD_BY_NODES`, in that order, that nobody knew before it was
    given a node: they are no part of what was asked for.

    ``source`` is whose history it is part of, and None where it is part of none: a job asked about, or one that a
    source is just handing over. Two jobs are equal where the same is told of them, wherever it was kept: what tells
    them apart is their :attr:`identity`.
    """

    id: str
    submit: datetime
    gpus: float
    start: datetime | None = None
    end: datetime | None = None
    outcome: Outcome | None = None
    last_seen: datetime | None = None
    user: str | None = None
    namespace: str | None = None
    name: str | None = None
    image: str | None = None
    gpu_kind: str | None = None
    pool: str | None = None
    cpus: float | None = None
    nodes: int | None = None
    priority: int | None = None
    time_limit_seconds: float | None = None
    start_assumed: bool = False
    calendar_known: bool = True
    scheduled: datetime | None = None
    created_by: str | None = None
    restarts: int | None = None
    evictions: int | None = None
    paused_seconds: float = 0.0
    image_pull_seconds: float | None = None
    usage: GpuUsage | None = None
    told_by_node: tuple[str, ...] = ()
    source: str | None = field(default=None, compare=False)

    def __post_init__(self) -> None:
        """Check the order of times, the outcome, the GPUs and the start-up once.

        Raises:
            Refused: naming the field, its value, the limit and the remedy.
        """
        for name in ("submit", "scheduled", "start", "end", "last_seen"):
            moment = getattr(self, name)
            if moment is not None:
                object.__setattr__(self, name, utc(moment, name))
        if not self.id:
            raise Refused(
                "id", self.id, "a job needs an identity", "Map a column to id or leave it out of the mapping."
            )
        if not (math.isfinite(self.gpus) and self.gpus > 0):
            raise Refused(
                "gpus", self.gpus, "a job asks for more than 0 GPUs", "Leave CPU-only work out of the history."
            )
        if self.told_by_node != tuple(name for name in TOLD_BY_NODES if name in self.told_by_node):
            limit = f"these alone, in this order: {', '.join(TOLD_BY_NODES)}"
            raise Refused("told_by_node", self.told_by_node, limit, "Leave out what the request says.")
        self._check_order()
        self._check_outcome()
        self._check_startup()

    def _check_order(self) -> None:
        if self.start is not None and self.start < self.submit:
            raise Refused("start", self.start.isoformat(), "a job starts after its submission", "Correct the times.")
        begun = self.start if self.start is not None else self.submit
        if self.end is not None and self.end < begun:
            raise Refused("end", self.end.isoformat(), "a job ends after its start", "Correct the times.")
        if self.end is not None and self.start is None and self.outcome is not Outcome.CANCELLED:
            raise Refused("start", None, "a job that ended must have started", "Give its start, or mark it cancelled.")

    def _check_outcome(self) -> None:
        if self.outcome is Outcome.CENSORED:
            if self.end is not None or self.last_seen is None:
                raise Refused(
                    "outcome", "censored", "a censored job has no end and a last_seen", "Give last_seen only."
                )
        elif (self.end is None) != (self.outcome is None):
            raise Refused("outcome", self.outcome, "end and outcome come together", "Give both or neither.")

    def _check_startup(self) -> None:
        if self.scheduled is not None:
            until = self.start if self.start is not None else self.end
            if self.scheduled < self.submit or (until is not None and self.scheduled > until):
                limit = "a job is given a node after its submission and before its start"
                raise Refused("scheduled", self.scheduled.isoformat(), limit, "Correct the times.")
        for name in ("restarts", "evictions"):
            count = getattr(self, name)
            if count is not None and count < 0:
                raise Refused(name, count, "a count is at least 0", "Leave an unknown count out instead.")
        self._check_paused()
        pull = self.image_pull_seconds
        if pull is not None and not (math.isfinite(pull) and pull >= 0.0):
            limit = "pulling an image takes at least 0 s"
            raise Refused("image_pull_seconds", pull, limit, "Leave an unknown time out instead.")

    def _check_paused(self) -> None:
        paused, gone = self.paused_seconds, self.gone_at
        if not (math.isfinite(paused) and paused >= 0.0):
            raise Refused("paused_seconds", paused, "a pause lasts at least 0 s", "Leave it at 0 where none is known.")
        if paused > 0.0 and (self.start is None or (gone is not None and paused > (gone - self.start).total_seconds())):
            raise Refused("paused_seconds", paused, "a job pauses after its start and before its end", "Correct it.")

    @property
    def identity(self) -> JobIdentity:
        """By what it is told from all others, in a history and in all made of one: two sources may use one id."""
        return (self.source or "", self.id)

    @property
    def duration_seconds(self) -> float | None:
        """Run time in seconds without pauses, or None while the end is not known or if the job never started."""
        return None if self.end is None else self.run_seconds

    @property
    def run_seconds(self) -> float | None:
        """Seconds it ran, or was seen to run where it was lost sight of; None while it is there or if it never ran."""
        gone = self.gone_at
        if gone is None or self.start is None:
            return None
        return (gone - self.start).total_seconds() - self.paused_seconds

    @property
    def wait_seconds(self) -> float | None:
        """Seconds from submission to being given a node, or to the start where that is not known, and between runs.

        None while it waits, or where the start was only assumed.
        """
        begun = self.scheduled
        if begun is None:
            begun = None if self.start_assumed else self.start
        return None if begun is None else (begun - self.submit).total_seconds() + self.paused_seconds

    @property
    def startup_seconds(self) -> float | None:
        """Seconds from being given a node to the start; None unless both are known."""
        if self.scheduled is None or self.start is None or self.start_assumed:
            return None
        return (self.start - self.scheduled).total_seconds()

    @property
    def gone_at(self) -> datetime | None:
        """When the job stopped holding its GPUs as far as is known: its end, or when it was last seen."""
        return self.end if self.end is not None else self.last_seen

    def elapsed_seconds(self, now: datetime) -> float | None:
        """Seconds it has run at ``now``; None if it has not started by then."""
        if self.start is None or self.start > now:
            return None
        until = self.gone_at
        ran = ((now if until is None or until > now else until) - self.start).total_seconds()
        return max(ran - self.paused_seconds, 0.0)

    def as_asked(self) -> Job:
        """This job as it was submitted: nothing of what became of it, not even that it started at once."""
        return Job(**self._asked())

    def _asked(self) -> dict[str, Any]:
        return {name: self.asked(name) for name in _ASKED}

    def _given(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _ASKED}

    def asked(self, name: str) -> Any:  # noqa: ANN401 - whatever the field holds
        """What the request says of the field ``name``: None where only the node told it."""
        return None if name in self.told_by_node else getattr(self, name)

    def as_of(self, now: datetime) -> Job | None:
        """This job as it was known at ``now``: no later node, start, end or outcome; None if not yet submitted.

        How often it was restarted, how long it paused and what it did with its GPUs is known once it is gone, and what
        its node told once it was given one.
        """
        if self.submit > now:
            return None
        gone = self.gone_at
        if gone is not None and gone <= now:
            return self
        started = self.start if self.start is not None and self.start <= now else None
        placed = self.scheduled if self.scheduled is not None else self.start
        there = placed is not None and placed <= now
        return Job(
            **(self._given() if there else self._asked()),
            told_by_node=self.told_by_node if there else (),
            scheduled=self.scheduled if self.scheduled is not None and self.scheduled <= now else None,
            start=started,
            start_assumed=self.start_assumed,
            image_pull_seconds=None if started is None else self.image_pull_seconds,
        )


def pool_of(job: Job) -> str:
    """The pool whose demand this job belongs to: its pool, else its GPU kind, else ``default``."""
    return job.pool or job.gpu_kind or DEFAULT_POOL
