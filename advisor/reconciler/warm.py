"""Warm capacity as objects: how many chunks a CapacityBuffer comes to, and which priority a placeholder may have."""

from __future__ import annotations

import math
from dataclasses import dataclass

from advisor.errors import Refused

__all__ = ["DEFAULT_CUTOFF", "BufferCount", "buffer_count", "check_placeholder_priority"]

DEFAULT_CUTOFF = -10
"""Pods below this priority make Cluster Autoscaler start nothing, by default; before 1.12 it was 0."""

_HIGHEST = -1


@dataclass(frozen=True, slots=True)
class BufferCount:
    """Chunks of a buffer, with a warning where older autoscalers would come to another number."""

    chunks: int
    warnings: tuple[str, ...] = ()


def buffer_count(
    *,
    replicas: int | None,
    percent: int | None,
    workload_replicas: int,
    limit_gpus: int | None,
    gpus_each: int,
) -> BufferCount:
    """Chunks of a buffer: min(max(replicas, percent of the workload), what the limit holds).

    A percentage is rounded up, a limit down to whole chunks. Releases before this was settled took the
    *smaller* of replicas and percentage.

    >>> buffer_count(replicas=5, percent=80, workload_replicas=10, limit_gpus=6, gpus_each=1).chunks
    6

    Raises:
        Refused: none of replicas, percent and limit is given, or a chunk without a GPU.
    """
    if gpus_each < 1:
        raise Refused("gpus_each", gpus_each, "a chunk holds at least one GPU", "Give the GPUs of a chunk.")
    share = None if percent is None else math.ceil(percent * workload_replicas / 100)
    sizes = [size for size in (replicas, share) if size is not None]
    ceiling = None if limit_gpus is None else limit_gpus // gpus_each
    if not sizes and ceiling is None:
        raise Refused("buffer", None, "a buffer needs replicas, a percentage or a limit", "Give one of them.")
    wanted = [max(sizes)] if sizes else []
    chunks = min([*wanted, *([] if ceiling is None else [ceiling])])
    older = min([*sizes, *([] if ceiling is None else [ceiling])])
    if older == chunks:
        return BufferCount(chunks)
    warning = f"older releases take the smaller of replicas and percentage: {older} chunks instead of {chunks}"
    return BufferCount(chunks, (warning,))


def check_placeholder_priority(priority: int, cutoff: int = DEFAULT_CUTOFF) -> None:
    """Nothing where a placeholder of this priority is both pre-empted by real work and still scaled up for.

    Raises:
        Refused: 0 or more, or below the autoscaler's cut-off.
    """
    if priority < cutoff:
        raise Refused(
            "placeholder priority",
            priority,
            f"below cutoff {cutoff}, will not scale up",
            f"Use {max(cutoff, DEFAULT_CUTOFF)} to -1." if cutoff < 0 else "Raise the autoscaler's release or cut-off.",
        )
    if priority > _HIGHEST:
        raise Refused("placeholder priority", priority, "real work must be able to pre-empt it", "Use -1 to -10.")
