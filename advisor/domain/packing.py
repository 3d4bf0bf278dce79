"""What is packed onto what: the shapes of pods and of nodes, in thousandths, so that sums are exact."""

from __future__ import annotations

from dataclasses import dataclass, field

from advisor.errors import Refused

__all__ = ["MILLI", "HostShape", "PodShape"]

MILLI = 1000
"""A whole CPU or GPU in the thousandths that shapes are counted in."""


@dataclass(frozen=True, slots=True, order=True, kw_only=True)
class PodShape:
    """What a pod asks for: CPU, memory, and ``gpu_milli`` of each of ``gpus`` GPUs.

    ``kinds`` are the GPU models it accepts; empty means any.
    """

    cpu_milli: int = 0
    memory_mib: int = 0
    gpus: int = 0
    gpu_milli: int = 0
    kinds: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        """Check that the parts make sense together.

        Raises:
            Refused: something negative, a part of a GPU outside (0, 1000], or a part of no GPU.
        """
        for name in ("cpu_milli", "memory_mib", "gpus"):
            if getattr(self, name) < 0:
                raise Refused(name, getattr(self, name), "a request is never negative", "Mend the list of pods.")
        if self.gpus and not 0 < self.gpu_milli <= MILLI:
            limit = f"of each GPU between 1 and {MILLI} thousandths are asked for"
            raise Refused("gpu_milli", self.gpu_milli, limit, "Mend the list of pods.")
        if not self.gpus and self.gpu_milli:
            raise Refused("gpu_milli", self.gpu_milli, "no GPU is asked for, so no part of one", "Give num_gpu.")

    @property
    def is_shared(self) -> bool:
        """Whether it leaves a part of a GPU to others."""
        return self.gpus > 0 and self.gpu_milli < MILLI

    @property
    def total_gpu_milli(self) -> int:
        """All it asks of GPUs, in thousandths of one."""
        return self.gpus * self.gpu_milli


@dataclass(frozen=True, slots=True, kw_only=True)
class HostShape:
    """What a node has; ``kind`` is its GPU model."""

    name: str
    cpu_milli: int
    memory_mib: int
    gpus: int
    kind: str = ""

    def __post_init__(self) -> None:
        """Check that nothing is negative.

        Raises:
            Refused: something is.
        """
        for name in ("cpu_milli", "memory_mib", "gpus"):
            if getattr(self, name) < 0:
                raise Refused(name, getattr(self, name), "a node has no less than nothing", "Mend the list of nodes.")
