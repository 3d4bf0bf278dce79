"""What a source hands over: jobs, and an honest count of what it had to leave out."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from advisor.domain.accounts import JobAccount
from advisor.domain.jobs import Job
from advisor.domain.start_latency import PoolStart
from advisor.domain.units import counted

__all__ = ["PARTITIONS", "JobBatch", "LeftOut", "Rejection", "left_out"]

PARTITIONS = "pools are partitions of Slurm, which has no NodePools: advice holds for them, manifests do not"
"""The note by which a source says that its pools are partitions; a store keeps it with the source's other notes."""


class LeftOut(StrEnum):
    """What was left out, and so what a count counts: a lost sample costs a job nothing."""

    JOBS = "jobs"
    PODS = "pods"
    OBJECTS = "objects"
    SERIES = "series"
    SAMPLES = "samples"

    def counted(self, number: int) -> str:
        """``number`` of them, as people write it."""
        return f"{number:,} {self}" if self is LeftOut.SERIES else counted(number, self.removesuffix("s"))


_PODS = frozenset(
    {
        "asks_for_no_gpus",
        "placeholder",
        "pod_without_creation",
        "reservation_of_a_scheduler",
        "turned_away_by_the_node",
    }
)
_SAMPLES = frozenset(
    {
        "blank",
        "counter_jumped",
        "infinite",
        "native_histogram",
        "no_device",
        "not_a_number",
        "out_of_range",
        "sample_is_no_pair",
        "sample_out_of_order",
        "scale_undecided",
        "utilisation_under_mig",
        "value_is_no_number",
        "value_out_of_range",
    }
)
_ROW = "unreadable_row"


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejection:
    """What was left out for one reason, with the first of it as a person would see it."""

    reason: str
    count: int
    example: str

    @property
    def of(self) -> LeftOut:
        """What ``count`` counts, by the reason; a row of a file stands for a job."""
        if self.reason in _PODS:
            return LeftOut.PODS
        if self.reason in _SAMPLES:
            return LeftOut.SAMPLES
        if self.reason == "series_without_uid":
            return LeftOut.SERIES
        if self.reason.startswith("unreadable_") and self.reason != _ROW:
            return LeftOut.OBJECTS
        return LeftOut.JOBS


def left_out(rejections: Iterable[Rejection]) -> dict[LeftOut, int]:
    """How much of each was left out, jobs first and always; of the others only what there is."""
    counts = dict.fromkeys(LeftOut, 0)
    for each in rejections:
        counts[each.of] += each.count
    return {of: count for of, count in counts.items() if count or of is LeftOut.JOBS}


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

    ``pods`` are the uids of the pods of each job, by its id, where it has any: by these work is recognised of which
    another source tells too. A source called ``a/b`` tells of a part of what one called ``a`` does.
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
    pods: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
