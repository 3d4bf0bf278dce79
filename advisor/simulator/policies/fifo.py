"""First come, first served: one task a node as of old, and as Karpenter and kube-scheduler do it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from advisor.simulator.cluster import SimulatedCluster
from advisor.simulator.nodes import SimulatedNode
from advisor.simulator.policies.lines import WaitingLines, missing_nodes
from advisor.simulator.tasks import Task

__all__ = ["Fifo"]

_NONE: Mapping[str, float] = MappingProxyType({})


class Fifo:
    """In order of submission, skipping what does not fit; the fullest node with room, the oldest of those.

    ``alone`` gives every job nodes of its own. What fits neither free nor booting capacity is launched at once.
    An empty node may go after its keep-alive, unless work of a node or more waits: the node counts towards it.
    """

    ticks = _NONE
    lease_seconds: float | None = None

    def __init__(self, *, alone: bool = False) -> None:
        self._alone = alone
        self._lines = WaitingLines()
        self._new: list[Task] = []

    @property
    def waiting(self) -> int:
        """How many jobs wait."""
        return len(self._lines)

    def key(self, cluster: SimulatedCluster, task: Task) -> float:
        """Smaller goes first."""
        del cluster
        return task.job.submit

    def submitted(self, cluster: SimulatedCluster, task: Task) -> None:
        """Queue it."""
        self._lines.add(task, self.key(cluster, task))
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
            self._start_in_order(cluster)
        else:
            for task in self._new:
                self._try(cluster, task)
        self._new.clear()

    def _start_in_order(self, cluster: SimulatedCluster) -> None:
        sizes = set(self._lines.sizes())
        while (task := self._lines.first(sizes)) is not None:
            # Whatever is as large as this fits no more than this.
            if not self._try(cluster, task):
                sizes.discard(task.gpus)

    def _try(self, cluster: SimulatedCluster, task: Task) -> bool:
        if self._alone:
            idle = cluster.idle_nodes()
            count = cluster.terms.nodes_for(task.gpus)
            nodes = tuple(idle[:count]) if len(idle) >= count else None
        else:
            nodes = cluster.best_fit(task.gpus)
        if nodes is None:
            return False
        self._lines.remove(task)
        cluster.start(task, nodes, alone=self._alone)
        return True

    def nodes_wanted(self, cluster: SimulatedCluster) -> int:
        """Enough for all that wait."""
        return missing_nodes(self._lines, cluster, alone=self._alone)

    def may_go(self, cluster: SimulatedCluster, node: SimulatedNode) -> bool:
        """Yes, unless it counts towards waiting work of a node or more."""
        del node
        return self._lines.largest() < cluster.terms.node_gpus and not (self._alone and self._lines)
