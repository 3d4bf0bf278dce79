"""GPUs and shares of them."""

from __future__ import annotations

from dataclasses import dataclass

from advisor.errors import Refused

__all__ = ["GpuShare"]


@dataclass(frozen=True, slots=True, order=True)
class GpuShare:
    """One share of one physical GPU: the whole GPU where ``replicas`` is 1, else ``1 / replicas`` of it.

    ``gpu`` and ``share`` count from 0 on their node.
    """

    node: str
    gpu: int
    share: int = 0
    replicas: int = 1

    def __post_init__(self) -> None:
        """Check that the share exists on its GPU.

        Raises:
            Refused: ``replicas`` below 1, or ``share`` or ``gpu`` out of range.
        """
        if self.replicas < 1:
            raise Refused("replicas", self.replicas, "a GPU has at least one share", "Use 1 for a whole GPU.")
        if not 0 <= self.share < self.replicas:
            raise Refused("share", self.share, f"shares are numbered 0 to {self.replicas - 1}", "Correct the index.")
        if self.gpu < 0:
            raise Refused("gpu", self.gpu, "GPUs are numbered from 0", "Correct the index.")

    @property
    def physical_gpus(self) -> float:
        """How much of a physical GPU this is."""
        return 1.0 / self.replicas
