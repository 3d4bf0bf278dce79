"""First come, first served: one task a node as of old, and as Karpenter and kube-scheduler do it."""

from __future__ import annotations

from advisor.simulator.cluster import SimulatedCluster
from advisor.simulator.nodes import SimulatedNode
from advisor.simulator.policies.in_order import InOrder
from advisor.simulator.tasks import Task

__all__ = ["Karpenter", "Traditional"]


class Karpenter(InOrder):
    """In order of submission, skipping what does not fit; the fullest node first. Keep-alive is the cluster's."""


class Traditional(InOrder):
    """The same, with nodes of its own for every job."""

    alone = True

    def choose(self, cluster: SimulatedCluster, task: Task) -> tuple[SimulatedNode, ...] | None:
        """The oldest idle nodes."""
        idle = cluster.idle_nodes()
        count = cluster.terms.nodes_for(task.gpus)
        return tuple(idle[:count]) if len(idle) >= count else None
