"""Which node a job goes to, and how long a node will live: as :mod:`advisor.planning.placement`, at every event.

The price of a placement is the time by which the newcomer is expected to keep the node up alone; nodes whose
prices differ by less than five minutes count as equal, then the fullest goes first, then the oldest.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from advisor.planning.fleet import CELL_MIDDLES, CELL_WIDTHS
from advisor.simulator.cluster import SimulatedCluster
from advisor.simulator.foresight import Foresight
from advisor.simulator.nodes import SimulatedNode
from advisor.simulator.tasks import Task

__all__ = ["Placing"]

Floats = NDArray[np.float64]

_STEP_SECONDS = 300.0


class Placing:
    """Chooses nodes by what ``foresight`` says of everything on them."""

    def __init__(self, foresight: Foresight) -> None:
        self._foresight = foresight

    def choose(
        self, cluster: SimulatedCluster, task: Task, nodes: Sequence[SimulatedNode] | None = None
    ) -> tuple[SimulatedNode, ...] | None:
        """The best of ``nodes`` (all with room, where none are given); the oldest of the idle for a gang."""
        count = cluster.terms.nodes_for(task.gpus)
        found = cluster.with_room(task.gpus) if nodes is None else nodes
        if len(found) < count:
            return None
        if count > 1 or len(found) == 1:
            return tuple(found[:count])
        steps = np.floor(self.extensions(cluster, task, found) / _STEP_SECONDS).tolist()
        best = min(range(len(found)), key=lambda at: (steps[at], found[at].free, found[at].number))
        return (found[best],)

    def extensions(self, cluster: SimulatedCluster, task: Task, nodes: Sequence[SimulatedNode]) -> Floats:
        """Seconds by which ``task`` is expected to prolong the life of each of ``nodes``."""
        place, age = np.array([task.place]), np.array([task.useful(cluster.now)])
        survival = 1.0 - self._foresight.ended_by(place, age, CELL_MIDDLES)[0]
        found: Floats = self.all_ended(nodes, cluster.now) @ (survival * CELL_WIDTHS)
        return found

    def all_ended(self, nodes: Sequence[SimulatedNode], now: float) -> Floats:
        """P(everything on the node has ended) at every cell's middle, [node, cell]."""
        product = np.ones((len(nodes), CELL_MIDDLES.size))
        tasks = [task for node in nodes for task in node.holds]
        if tasks:
            places = np.array([task.place for task in tasks])
            ages = np.array([task.useful(now) for task in tasks])
            ended = self._foresight.ended_by(places, ages, CELL_MIDDLES)
            counts = np.array([len(node.holds) for node in nodes])
            busy = np.flatnonzero(counts)
            starts = np.concatenate([[0], np.cumsum(counts[busy])[:-1]])
            product[busy] = np.multiply.reduceat(ended, starts, axis=0)
        return product

    def lives(self, nodes: Sequence[SimulatedNode], now: float) -> Floats:
        """Median seconds until everything on each node has ended, read from the cells; the last middle at most."""
        lives = np.empty(len(nodes))
        for at, row in enumerate(self.all_ended(nodes, now)):
            lives[at] = np.interp(0.5, np.maximum.accumulate(row), CELL_MIDDLES)
        return lives
