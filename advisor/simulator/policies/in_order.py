"""Jobs in the order of a key, skipping what does not fit: what all policies here have in common."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from advisor.simulator.cluster import SimulatedCluster
from advisor.simulator.nodes import SimulatedNode
from advisor.simulator.policies.lines import WaitingLines, missing_nodes
from advisor.simulator.tasks import Task

__all__ = ["InOrder"]


class InOrder:
    """By submission, on the fullest node with room, the oldest of those; subclasses have other keys and choices.

    What fits neither free nor booting capacity is launched at once. An empty node may go after its keep-alive,
    unless work of a node or more waits: the node counts towards it.
    """

    ticks: Mapping[str, float] = MappingProxyType({})
    lease_seconds: float | None = None
    alone = False

    def __init__(self) -> None:
        self.lines = WaitingLines()
        self._new: list[Task] = []

    @property
    def waiting(self) -> int:
        """How many jobs wait."""
        return len(self.lines)

    def key(self, cluster: SimulatedCluster, task: Task) -> float:
        """Smaller goes first."""
        del cluster
        return task.job.submit

    def choose(self, cluster: SimulatedCluster, task: Task) -> tuple[SimulatedNode, ...] | None:
        """Nodes on which ``task`` may start now; None if there are none."""
        return cluster.best_fit(task.gpus)

    def submitted(self, cluster: SimulatedCluster, task: Task) -> None:
        """Queue it; a task that was stopped comes back this way too."""
        self.lines.add(task, self.key(cluster, task))
        self._new.append(task)

    def ended(self, cluster: SimulatedCluster, task: Task) -> None:
        """Nothing to remember."""

    def boundary(self, cluster: SimulatedCluster, task: Task) -> None:
        """Nobody is ever stopped."""

    def tick(self, cluster: SimulatedCluster, name: str) -> None:
        """No rounds."""

    def act(self, cluster: SimulatedCluster) -> None:
        """Start whatever fits, in order; where nothing was freed, only newcomers can fit."""
        if cluster.freed:
            self.start_in_order(cluster)
        else:
            for task in self._new:
                if task in self.lines:
                    self.try_to_start(cluster, task)
        self._new.clear()

    def start_in_order(self, cluster: SimulatedCluster) -> None:
        """Start whatever fits, in order."""
        sizes = set(self.lines.sizes())
        while (task := self.lines.first(sizes)) is not None:
            if not self.try_to_start(cluster, task):
                # Whatever is as large as this fits no more than this.
                sizes.discard(task.gpus)

    def try_to_start(self, cluster: SimulatedCluster, task: Task) -> bool:
        """Start ``task`` if there are nodes for it."""
        nodes = self.choose(cluster, task)
        if nodes is None:
            return False
        self.lines.remove(task)
        cluster.start(task, nodes, alone=self.alone)
        return True

    def nodes_wanted(self, cluster: SimulatedCluster) -> int:
        """Enough for all that wait."""
        return missing_nodes(self.lines, cluster, alone=self.alone)

    def may_go(self, cluster: SimulatedCluster, node: SimulatedNode) -> bool:
        """Yes, unless it counts towards waiting work of a node or more."""
        del node
        return self.lines.largest() < cluster.terms.node_gpus and not (self.alone and self.lines)
