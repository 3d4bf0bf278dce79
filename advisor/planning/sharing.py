"""How many shares a GPU is cut into, and what a pod that asks for shares needs of an empty pool.

A share is neither memory nor compute set aside: sharing rests on measured peaks, or is not advised.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from advisor.domain.nodepools import NodePool
from advisor.domain.units import finite, positive
from advisor.errors import Refused

__all__ = [
    "FromZero",
    "SharingAdvice",
    "SharingEvidence",
    "SharingStrategy",
    "WorkKind",
    "from_zero",
    "recommend_sharing",
]

_MEMORY_RESERVE = 1.1
_BUSY_HOUR_SUM = 0.5
_Q95_SUM = 1.0
_LEAST_HOURS = 24.0


class SharingStrategy(StrEnum):
    """How a GPU is cut: one whole, by time-slicing, or by MPS."""

    NONE = "none"
    TIME_SLICING = "time-slicing"
    MPS = "mps"


class WorkKind(StrEnum):
    """What the pods of a pool do; training bears fewer neighbours than inference."""

    TRAINING = "training"
    INFERENCE = "inference"


_MOST_SHARES = {WorkKind.TRAINING: 2, WorkKind.INFERENCE: 4}


@dataclass(frozen=True, slots=True, kw_only=True)
class SharingEvidence:
    """What was measured of the pods that would share, one entry per pod.

    Memory peaks in GiB, ``busy_hour`` the mean duty (0 to 1) of a pod's busiest hour, ``duty_q95`` the
    95th percentile of its duty, ``hours`` how long the shortest of these histories is.
    """

    usable_memory_gib: float
    memory_peaks_gib: tuple[float, ...]
    busy_hour: tuple[float, ...]
    duty_q95: tuple[float, ...]
    hours: float
    kind: WorkKind

    def __post_init__(self) -> None:
        """Check that the rows belong together.

        Raises:
            Refused: rows of different lengths, or a number that is no measurement.
        """
        positive(self.usable_memory_gib, "usable_memory_gib", "GiB")
        if not len(self.memory_peaks_gib) == len(self.busy_hour) == len(self.duty_q95):
            raise Refused("duty_q95", len(self.duty_q95), "one entry per pod in every row", "Drop pods with gaps.")
        for row in ("memory_peaks_gib", "busy_hour", "duty_q95"):
            for value in getattr(self, row):
                if finite(value, row) < 0:
                    raise Refused(row, value, "a measurement is 0 or more", "Drop the sample.")


@dataclass(frozen=True, slots=True)
class SharingAdvice:
    """The sharing factor (1: whole GPUs), and why."""

    factor: int
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class FromZero:
    """What a pod that asks for shares needs of a pool without nodes: physical GPUs, and whether a type has them."""

    fits: bool
    physical_gpus: int
    reasons: tuple[str, ...]


def recommend_sharing(evidence: SharingEvidence | None) -> SharingAdvice:
    """The largest number of shares that memory and compute bear; 1 where nothing, or too little, was measured.

    Shares are handed out blindly, so the k most demanding pods must fit together: 1.1 times their
    memory peaks within the usable memory (one overflow kills, so never quantiles), their busiest hours
    summing to at most half a GPU and their 95th percentiles to at most one.
    """
    if evidence is None or not evidence.memory_peaks_gib:
        return SharingAdvice(1, ("no telemetry of memory and compute: whole GPUs only",))
    if evidence.hours < _LEAST_HOURS:
        reason = f"{evidence.hours:.0f} h of telemetry: peaks keep growing for a day, so at least 24 h are needed"
        return SharingAdvice(1, (reason,))
    most = _MOST_SHARES[evidence.kind]
    factor, stopped = 1, f"at most {most} tasks of {evidence.kind} share a GPU"
    for shares in range(2, most + 1):
        broken = _broken_rule(evidence, shares)
        if broken is not None:
            stopped = f"{shares} would not do: {broken}"
            break
        factor = shares
    return SharingAdvice(factor, (f"{factor} of the most demanding pods fit one GPU together", stopped))


def _broken_rule(evidence: SharingEvidence, shares: int) -> str | None:
    """The first test that the ``shares`` most demanding pods fail together, None if they pass all."""

    def most(row: tuple[float, ...]) -> float:
        # With fewer pods than shares the most demanding one stands in for those to come.
        largest = sorted(row, reverse=True)[:shares]
        return sum(largest) + (shares - len(largest)) * max(row)

    memory = _MEMORY_RESERVE * most(evidence.memory_peaks_gib)
    if memory > evidence.usable_memory_gib:
        return f"1.1 x their memory peaks is {memory:.1f} GiB of {evidence.usable_memory_gib:.1f}"
    busy = most(evidence.busy_hour)
    if busy > _BUSY_HOUR_SUM:
        return f"their busiest hours sum to {busy:.2f} of a GPU, above 0.5"
    peak = most(evidence.duty_q95)
    return f"the 95th percentiles of their duty sum to {peak:.2f}, above 1" if peak > _Q95_SUM else None


def from_zero(
    pool: NodePool, container_shares: Sequence[int], strategy: SharingStrategy = SharingStrategy.TIME_SLICING
) -> FromZero:
    """Whether Karpenter would start a node of an empty ``pool`` for a pod whose containers ask for these shares.

    Before a node exists Karpenter counts the *physical* GPUs of an instance type, so a pod that asks for
    n shares in all needs a type with n physical GPUs, although one cut GPU would do once the node runs.

    Raises:
        Refused: no container asks for a GPU, or one asks for less than one share.
    """
    if not container_shares or min(container_shares) < 1:
        raise Refused("container_shares", tuple(container_shares), "each asks for 1 share or more", "Drop the rest.")
    asked = sum(container_shares)
    if strategy is SharingStrategy.MPS and max(container_shares) > 1:
        return FromZero(False, asked, ("under MPS a container may ask for one share only; the device plugin refuses",))
    if asked > pool.largest_node_gpus:
        reason = (
            f"{asked} shares count as {asked} physical GPUs while the pool is empty, its largest type has "
            f"{pool.largest_node_gpus}: no node would start"
        )
        return FromZero(False, asked, (reason,))
    if asked > 1 and pool.sharing_factor > 1:
        reason = f"needs a type with {asked} physical GPUs while the pool is empty, though cut ones would do later"
        return FromZero(True, asked, (reason,))
    return FromZero(True, asked, ())
