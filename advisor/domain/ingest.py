"""What a source hands over: jobs, and an honest count of what it had to leave out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from advisor.domain.accounts import JobAccount
from advisor.domain.jobs import Job
from advisor.domain.start_latency import PoolStart

__all__ = ["PARTITIONS", "JobBatch", "Rejection"]

PARTITIONS = "pools are partitions of Slurm, which has no NodePools: advice holds for them, manifests do not"
"""The note by which a source says that its pools are partitions; a store keeps it with the source's other notes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejection:
    """Rows left out for one reason, with the first of them as a person would see it."""

    reason: str
    count: int
    example: str


@dataclass(frozen=True, slots=True, kw_only=True)
class JobBatch:
    """Jobs read from ``source`` in one go, what was rejected, and up to when the source was read.

    ``notes`` say what was assumed (for instance "no start column: started at submission"), and
    ``synthetic`` marks a generated workload, which must be labelled wherever it is shown. ``starts`` are those of
    nodes, where the source tells of them. ``overlapping`` says that the next reading looks at much of the same again:
    its rejections are then not added to these, and the fullest reading counts. ``whole`` says that every job of the
    source that has not ended is in it, so that one it does not hold was lost sight of.

    ``accounts`` tell, by the id of a job, how the source came to what it says of it. What had gone before
    ``reaches_back_to`` may be missing from its jobs, so that of one submitted earlier it may know the last part alone;
    None where it knows jobs whole. Jobs without an end were there at ``seen_at``; None where that is not said.
    """

    source: str
    jobs: tuple[Job, ...]
    rejections: tuple[Rejection, ...] = ()
    watermark: datetime | None = None
    notes: tuple[str, ...] = ()
    synthetic: bool = False
    starts: tuple[PoolStart, ...] = ()
    overlapping: bool = False
    whole: bool = False
    accounts: Mapping[str, JobAccount] = field(default_factory=dict)
    reaches_back_to: datetime | None = None
    seen_at: datetime | None = None
