"""Emptying nodes: checkpointable jobs of nearly empty nodes that would live on move to fuller ones, or stay all."""

from __future__ import annotations

import math

from advisor.simulator.cluster import SimulatedCluster
from advisor.simulator.nodes import SimulatedNode
from advisor.simulator.policies.placing import Placing
from advisor.simulator.tasks import Task

__all__ = ["Moving"]

_FULLEST = 0.75
_NODES_A_ROUND = 3
_MOVES_A_JOB = 3
_STEP_SECONDS = 300.0


class Moving:
    """One round: emptiest nodes first, each emptied wholly or not at all.

    A node is worth emptying if the GPU time it is expected to go on for is more than four switches of what is
    in use on it. A job goes to a node that is not empty, no emptier than the one it leaves, and whose expected life
    it prolongs by no more than half the life of the node it leaves.
    """

    def __init__(self, placing: Placing) -> None:
        self._placing = placing

    def round(self, cluster: SimulatedCluster) -> None:
        """Empty up to three nodes."""
        nodes = [node for node in cluster.ready.values() if self._movable(cluster, node)]
        nodes.sort(key=lambda node: (node.in_use, node.number))
        lives = self._placing.lives(nodes, cluster.now).tolist()
        emptied = 0
        taken: set[int] = set()
        for node, life in zip(nodes, lives, strict=True):
            if emptied == _NODES_A_ROUND:
                break
            worth = life * node.size > 4.0 * cluster.terms.switch_seconds * node.in_use
            if worth and node.number not in taken and (plan := self._plan(cluster, node, life)):
                for task, target in plan:
                    taken.add(target.number)
                    cluster.move(task, (target,))
                emptied += 1

    def _movable(self, cluster: SimulatedCluster, node: SimulatedNode) -> bool:
        if node.empty or node.static or node.in_use > _FULLEST * node.size:
            return False
        young = cluster.now - 2.0 * cluster.terms.switch_seconds
        return all(
            task.job.checkpointable
            and not task.job.urgent
            and len(task.on) == 1
            and task.moves < _MOVES_A_JOB
            and task.began + task.overhead <= young
            for task in node.holds
        )

    def _plan(
        self, cluster: SimulatedCluster, node: SimulatedNode, life: float
    ) -> list[tuple[Task, SimulatedNode]] | None:
        """Where each job of ``node`` goes, largest first; None if one of them has no place to go."""
        fuller = [
            other
            for other in cluster.ready.values()
            if other is not node and not other.empty and other.in_use >= node.in_use
        ]
        room = {other.number: float(other.whole) for other in fuller}
        plan = []
        for task in sorted(node.holds, key=lambda task: (-task.gpus, task.place)):
            need = math.ceil(task.gpus)
            found = [other for other in fuller if room[other.number] >= need]
            if not found:
                return None
            extensions = self._placing.extensions(cluster, task, found).tolist()
            cost, _, _, target = min(
                (extension // _STEP_SECONDS, room[other.number], other.number, at)
                for at, (extension, other) in enumerate(zip(extensions, found, strict=True))
            )
            if extensions[target] > life / 2.0:
                return None
            del cost
            room[found[target].number] -= need
            plan.append((task, found[target]))
        return plan
