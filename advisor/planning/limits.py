"""The GPU limit of a NodePool: whole nodes of its largest type, up at once, down only after a quiet time.

Limits count physical GPUs whatever the sharing factor.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from advisor.domain.nodepools import NodePool
from advisor.domain.quantities import LARGEST_QUANTITY, parse_quantity
from advisor.domain.units import counted, finite, positive, shown_duration, utc
from advisor.errors import Refused

__all__ = ["GpuNeed", "LimitAdvice", "LimitTerms", "gpu_limit_of", "recommend_gpu_limit", "whole_nodes"]

_HAIR = 1e-9


@dataclass(frozen=True, slots=True)
class GpuNeed:
    """GPUs that were wanted of a pool at a past moment, as its limit was then planned (not rounded)."""

    time: datetime
    gpus: float

    def __post_init__(self) -> None:
        """Keep the time in UTC and check the number.

        Raises:
            Refused: a number of GPUs below 0 or not finite.
        """
        object.__setattr__(self, "time", utc(self.time, "time"))
        if finite(self.gpus, "gpus") < 0:
            raise Refused("gpus", self.gpus, "a need is 0 GPUs or more", "Leave an unknown need out.")


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitTerms:
    """How limits move.

    ``level`` is the demand quantile a limit must cover; ``quiet_minutes`` how long demand must have
    stayed below before a limit goes down (one boot-and-run cycle of short work; it also absorbs a
    forecast that hovers around a node's edge); ``most_gpus`` what it may never exceed. A pool
    without a limit gets none unless ``set_missing``.
    """

    level: float = 0.95
    quiet_minutes: float = 30.0
    most_gpus: int | None = None
    set_missing: bool = False

    def __post_init__(self) -> None:
        """Check the numbers.

        Raises:
            Refused: a level outside (0, 1), no quiet time, or a negative cap.
        """
        if not 0.0 < finite(self.level, "level") < 1.0:
            raise Refused("level", self.level, "a quantile level lies strictly between 0 and 1", "Use 0.95.")
        positive(self.quiet_minutes, "quiet_minutes", "minutes")
        if self.most_gpus is not None and self.most_gpus < 0:
            raise Refused("most_gpus", self.most_gpus, "a cap is 0 or more", "Leave it out for none.")


@dataclass(frozen=True, slots=True)
class LimitAdvice:
    """The limit to write in physical GPUs (None: none), and why."""

    gpus: int | None
    reasons: tuple[str, ...]


def gpu_limit_of(pool: NodePool) -> int | None:
    """The pool's GPU limit in physical GPUs, rounded down and capped as Kubernetes does; None where it has none.

    Raises:
        Refused: a limit that is no quantity, or below 0.
    """
    text = pool.gpu_limit
    if text is None:
        return None
    try:
        number = parse_quantity(text.strip(), "limits")
    except Refused as error:
        raise Refused("limits", text, f"the GPU limit of {pool.name} must be a count of GPUs", "Write 16.") from error
    if number < 0:
        raise Refused("limits", text, f"the GPU limit of {pool.name} must be a count of GPUs", "Write 0 for none.")
    return min(math.floor(number), LARGEST_QUANTITY)


def whole_nodes(gpus: float, step: int) -> int:
    """``gpus`` rounded up to whole nodes of ``step``.

    >>> whole_nodes(10, 8), whole_nodes(16.0, 8), whole_nodes(0, 8)
    (16, 16, 0)
    """
    return max(0, math.ceil(gpus / step - _HAIR)) * step


def recommend_gpu_limit(
    pool: NodePool,
    need: float,
    capacity: int,
    recent: Sequence[GpuNeed],
    terms: LimitTerms,
    now: datetime,
) -> LimitAdvice:
    """The limit that lets ``need`` GPUs run, given the GPUs on nodes now (``capacity``) and recent needs.

    Karpenter launches a node only if all of its GPUs fit in what the limit leaves, and charges a choice
    of types with the largest; so the limit is what stands plus whole nodes of the largest type, and a multiple
    of that. Up at once; down only to the largest need of the quiet time, and not before one has been seen whole.
    A limit never removes nodes.

    Raises:
        Refused: a need below 0 or not finite, or a limit on the pool that is no count.
    """
    if finite(need, "need") < 0:
        raise Refused("need", need, "a need is 0 GPUs or more", "Leave an unknown need out.")
    current = gpu_limit_of(pool)
    if current is None and not terms.set_missing:
        return LimitAdvice(None, ("the pool has no GPU limit, and none is added",))
    uncapped = _covering(need, capacity, pool.largest_node_gpus)
    target = _capped(uncapped, pool, terms)
    wanted = (
        f"{need:.1f} GPUs wanted at the {terms.level:.0%} level, {capacity} on nodes: {uncapped} is whole nodes of "
        f"{counted(pool.largest_node_gpus, 'GPU')}; one launches only if all its GPUs fit in what the limit leaves"
    )
    reasons = [wanted]
    if target < uncapped:
        reasons.append(f"capped at {counted(target, 'GPU')}, the whole nodes within {terms.most_gpus}")
    if current is None or target >= current:
        return LimitAdvice(target, tuple(reasons))
    return _lowered(pool, current, target, capacity, (_quiet(recent, terms, now), tuple(reasons)))


def _covering(need: float, capacity: int, step: int) -> int:
    """What stands plus the whole nodes still missing, as a multiple of the step."""
    missing = whole_nodes(max(0.0, need - capacity), step)
    return whole_nodes(max(need, capacity + missing if missing else 0), step)


def _capped(target: int, pool: NodePool, terms: LimitTerms) -> int:
    if terms.most_gpus is None or target <= terms.most_gpus:
        return target
    return terms.most_gpus // pool.largest_node_gpus * pool.largest_node_gpus


def _quiet(recent: Sequence[GpuNeed], terms: LimitTerms, now: datetime) -> tuple[float | None, float]:
    """The largest need of the quiet time, None where it was not seen whole, and its minutes."""
    start = utc(now, "now") - timedelta(minutes=terms.quiet_minutes)
    if not any(seen.time <= start for seen in recent):
        return None, terms.quiet_minutes
    return max((seen.gpus for seen in recent if start <= seen.time <= now), default=None), terms.quiet_minutes


def _lowered(
    pool: NodePool,
    current: int,
    target: int,
    capacity: int,
    known: tuple[tuple[float | None, float], tuple[str, ...]],
) -> LimitAdvice:
    """A lower limit, held up by the largest need of the quiet time."""
    (largest, minutes), reasons = known
    span = shown_duration(minutes * 60.0)
    if largest is None:
        return LimitAdvice(current, (*reasons, f"kept at {current}: it goes down only after {span} of lower demand"))
    held = min(current, max(target, _covering(largest, capacity, pool.largest_node_gpus)))
    if held > target:
        reasons = (*reasons, f"{largest:.1f} GPUs were wanted within the last {span}: not below {held} before that")
    if held < capacity:
        reasons = (
            *reasons,
            f"the limit alone frees 0 GPUs: {capacity} on nodes of {held} allowed, until nodes are removed",
        )
    return LimitAdvice(held, reasons)
