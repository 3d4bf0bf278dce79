"""What work on shared GPUs needs of a node that does not exist yet.

Karpenter plans a node by the *physical* GPUs of its type and knows nothing of shares, so until a node
is there and advertises its shares, each share asked for is planned as a whole GPU.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from advisor.errors import Refused

__all__ = ["Sharing", "StartFromZero", "start_from_zero"]


class Sharing(StrEnum):
    """How a GPU is cut into shares."""

    NONE = "none"
    TIME_SLICING = "time-slicing"
    MPS = "mps"


@dataclass(frozen=True, slots=True)
class StartFromZero:
    """Whether an empty pool starts a node for a pod, what Karpenter plans for it, and what it will really use."""

    starts: bool
    planned_gpus: int
    physical_gpus: float
    warnings: tuple[str, ...] = ()


def start_from_zero(containers: Sequence[int], node_gpus: int, shares: int, sharing: Sharing) -> StartFromZero:
    """What becomes of a pod whose containers ask for these shares, in an empty pool of ``node_gpus``-GPU nodes.

    Raises:
        Refused: a container that asks for more than one share under MPS, which the device plugin refuses.
    """
    if sharing is Sharing.MPS and any(asked > 1 for asked in containers):
        raise Refused(
            "containers", max(containers), "under MPS a container gets at most one share", "Ask for 1 per container."
        )
    asked = sum(containers)
    physical = asked / (1 if sharing is Sharing.NONE else shares)
    if asked <= node_gpus:
        return StartFromZero(starts=True, planned_gpus=asked, physical_gpus=physical)
    warning = (
        f"Karpenter plans {asked} physical GPUs for it and no node has more than {node_gpus}: nothing is started, "
        f"although {physical:g} GPUs would do once a node is there; tell Karpenter the shares with a NodeOverlay"
    )
    return StartFromZero(starts=False, planned_gpus=asked, physical_gpus=physical, warnings=(warning,))
