"""What a simulated cluster is made of: its nodes, how they start, when they go, what is billed."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from random import Random

from advisor.domain.units import finite, positive
from advisor.errors import Refused

__all__ = ["ClusterTerms", "StartParts"]


@dataclass(frozen=True, slots=True, kw_only=True)
class StartParts:
    """Samples of the three parts of a node's start, in seconds; one of each is drawn, independently, for every node.

    ``launch`` runs from the request until the machine runs and is free, as a pending machine is;
    ``register`` until the node has joined and ``initialise`` until its GPUs can be allocated are paid.
    """

    launch: tuple[float, ...] = (0.0,)
    register: tuple[float, ...] = (0.0,)
    initialise: tuple[float, ...] = (300.0,)

    def __post_init__(self) -> None:
        """Check every sample.

        Raises:
            Refused: a part without samples, or a negative or infinite one.
        """
        for name in ("launch", "register", "initialise"):
            samples = getattr(self, name)
            if not samples or any(finite(sample, name) < 0 for sample in samples):
                raise Refused(name, samples, "a part needs samples of 0 s or more", "Give measured seconds.")

    @classmethod
    def constant(cls, seconds: float) -> StartParts:
        """Every node takes ``seconds``, all of them paid."""
        return cls(initialise=(seconds,))

    @property
    def mean_seconds(self) -> float:
        """From request to a usable GPU, on average."""
        return sum(math.fsum(part) / len(part) for part in (self.launch, self.register, self.initialise))

    def draw(self, random: Random) -> tuple[float, float]:
        """The free and the paid seconds of one node's start."""
        # A single sample draws nothing, so that worlds without chance do not depend on a seed.
        launch, register, initialise = (
            part[0] if len(part) == 1 else random.choice(part) for part in (self.launch, self.register, self.initialise)
        )
        return launch, register + initialise


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterTerms:
    """One NodePool as Karpenter runs it.

    ``limit_nodes`` is the most nodes there may be, None for as many as are wanted (a limit stated in GPUs counts
    in whole nodes: :meth:`of_gpu_limit`). ``static_nodes`` are there from the beginning and never removed.
    A node that has been empty for ``keep_alive_seconds`` (``consolidateAfter``) goes. Requests for nodes
    are gathered until none has come for ``batch_idle_seconds``, at most for ``batch_most_seconds``. Machines are
    billed by the second, at least ``least_billed_seconds``. Stopping and resuming a job takes
    ``switch_seconds``, during which its GPUs are held and nothing useful is done.
    """

    node_gpus: int = 8
    start: StartParts = field(default_factory=StartParts)
    keep_alive_seconds: float = 180.0
    limit_nodes: int | None = None
    static_nodes: int = 0
    batch_idle_seconds: float = 1.0
    batch_most_seconds: float = 10.0
    least_billed_seconds: float = 60.0
    switch_seconds: float = 60.0

    def __post_init__(self) -> None:
        """Check every number once.

        Raises:
            Refused: naming the field, its value and what it may be.
        """
        positive(self.node_gpus, "node_gpus", "GPUs")
        for name in (
            "keep_alive_seconds",
            "static_nodes",
            "batch_idle_seconds",
            "batch_most_seconds",
            "least_billed_seconds",
            "switch_seconds",
        ):
            if finite(getattr(self, name), name) < 0:
                raise Refused(name, getattr(self, name), "it must be 0 or more", "Use 0 for none.")
        if self.limit_nodes is not None and self.limit_nodes < 1:
            raise Refused("limit_nodes", self.limit_nodes, "a quota holds at least 1 node", "Leave it out for none.")

    @staticmethod
    def of_gpu_limit(gpus: int, node_gpus: int) -> int:
        """Nodes under ``limits: {nvidia.com/gpu: gpus}``: what is no whole node blocks the next one.

        >>> ClusterTerms.of_gpu_limit(20, 8)
        2
        """
        return gpus // node_gpus

    def nodes_for(self, gpus: float) -> int:
        """Nodes that work of ``gpus`` needs: 1 up to a node's size, else as many whole ones as hold it."""
        return max(1, math.ceil(gpus / self.node_gpus))
