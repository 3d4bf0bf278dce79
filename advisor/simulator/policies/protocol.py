"""What a policy is: whoever decides which job goes where, how many nodes are wanted, and which may go."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from advisor.simulator.cluster import SimulatedCluster
from advisor.simulator.nodes import SimulatedNode
from advisor.simulator.tasks import Task

__all__ = ["Policy"]


class Policy(Protocol):
    """Decides on one cluster; a policy is used for one run only.

    ``ticks`` names the rounds it wants, with seconds between; ``lease_seconds`` is how long it leases GPUs for
    before it wants to be asked again, None where whoever runs keeps them.
    """

    ticks: Mapping[str, float]
    lease_seconds: float | None

    @property
    def waiting(self) -> int:
        """How many jobs wait."""
        ...

    def submitted(self, cluster: SimulatedCluster, task: Task) -> None:
        """``task`` has come and waits."""
        ...

    def ended(self, cluster: SimulatedCluster, task: Task) -> None:
        """``task`` has ended; its GPUs are free."""
        ...

    def act(self, cluster: SimulatedCluster) -> None:
        """Start what shall start: asked at the end of every moment at which anything happened."""
        ...

    def boundary(self, cluster: SimulatedCluster, task: Task) -> None:
        """The lease of a running ``task`` ends now and is renewed unless the task is stopped."""
        ...

    def tick(self, cluster: SimulatedCluster, name: str) -> None:
        """A round of ``ticks`` is due."""
        ...

    def nodes_wanted(self, cluster: SimulatedCluster) -> int:
        """How many nodes shall be launched on top of those there are: asked when the batch window closes."""
        ...

    def may_go(self, cluster: SimulatedCluster, node: SimulatedNode) -> bool:
        """Whether a node whose keep-alive has passed may be removed."""
        ...
