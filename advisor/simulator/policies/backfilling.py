"""Backfilling: nodes are held for the first large job that does not fit, and lent to whoever will be gone by then."""

from __future__ import annotations

import math
from collections.abc import Sequence

from advisor.simulator.cluster import SimulatedCluster
from advisor.simulator.foresight import Foresight
from advisor.simulator.nodes import SimulatedNode
from advisor.simulator.policies.in_order import InOrder
from advisor.simulator.policies.reserving import Reservation, reserve
from advisor.simulator.tasks import Task

__all__ = ["Backfilling", "ShortestFirst"]


class Backfilling(InOrder):
    """First come, first served with EASY backfilling: while the limit is reached, one reservation at a time.

    It is for the first job that does not fit; where ``large_only``, for the first of several GPUs, however
    many small ones wait before it. When the reserved nodes will be free, and who will be gone by then, is read from
    medians of what remains.
    """

    reserves = True
    large_only = False

    def __init__(self, foresight: Foresight) -> None:
        super().__init__()
        self.foresight = foresight
        self._reservation: Reservation | None = None

    def start_in_order(self, cluster: SimulatedCluster) -> None:
        """Start whatever fits, in order, holding nodes for the first of several GPUs that does not."""
        self._reservation = None
        may_reserve = self.reserves and cluster.headroom == 0
        sizes = set(self.lines.sizes())
        while (task := self.lines.first(sizes)) is not None:
            if self.try_to_start(cluster, task):
                continue
            if may_reserve and (task.gpus > 1 or not self.large_only):
                may_reserve = False
                # The first GPU to become free goes to a small one anyway.
                self._reservation = reserve(cluster, self.foresight, task) if task.gpus > 1 else None
            if self._reservation is None or self._reservation.task is task or not cluster.with_room(task.gpus):
                # Without a reservation, whatever is as large as this fits no more than this.
                sizes.discard(task.gpus)
            elif not self._next_of_its_size(cluster, task):
                sizes.discard(task.gpus)

    def _next_of_its_size(self, cluster: SimulatedCluster, refused: Task) -> bool:
        """Start the first behind ``refused`` that will be gone in time; False if there is none."""
        for task in list(self.lines.of_size(refused.gpus)):
            if task is not refused and self.try_to_start(cluster, task):
                return True
        return False

    def choose(self, cluster: SimulatedCluster, task: Task) -> tuple[SimulatedNode, ...] | None:
        """Nodes with room that are not held, or are held until after its expected end."""
        held = self._reservation
        if held is None or held.task is task:
            return self.pick(cluster, task, None)
        expected = cluster.now + self.foresight.remaining(task.place, task.done)
        return self.pick(cluster, task, [n for n in cluster.with_room(task.gpus) if held.admits(n, expected)])

    def pick(
        self, cluster: SimulatedCluster, task: Task, nodes: Sequence[SimulatedNode] | None
    ) -> tuple[SimulatedNode, ...] | None:
        """The best of ``nodes``, in the order of best fit; of all with room where none are given."""
        if nodes is None:
            return cluster.best_fit(task.gpus)
        count = cluster.terms.nodes_for(task.gpus)
        return tuple(nodes[:count]) if len(nodes) >= count else None


class ShortestFirst(Backfilling):
    """Shortest predicted remaining time first, and nobody is ever stopped."""

    large_only = True

    def key(self, cluster: SimulatedCluster, task: Task) -> float:
        """Short ones first; three days of waiting make up for a remaining time e times longer."""
        del cluster
        return math.log(self.foresight.remaining(task.place, task.done)) + task.job.submit / (3 * 86400.0)
