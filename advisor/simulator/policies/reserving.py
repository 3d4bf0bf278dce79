"""Holding nodes for work that could not start, by when they are expected to be free: backfilling.

Used where running work cannot be stopped: without it large jobs are passed by small ones for ever.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from advisor.simulator.cluster import SimulatedCluster
from advisor.simulator.foresight import Foresight
from advisor.simulator.nodes import SimulatedNode
from advisor.simulator.tasks import Task

__all__ = ["Reservation", "reserve"]


@dataclass(frozen=True, slots=True)
class Reservation:
    """Nodes held for ``task`` until ``at`` seconds: whoever is expected to be gone by then may use them."""

    task: Task
    at: float
    nodes: frozenset[int]

    def admits(self, node: SimulatedNode, expected_end: float) -> bool:
        """Whether work that is expected to end then may start on ``node``."""
        return node.number not in self.nodes or expected_end <= self.at


def reserve(cluster: SimulatedCluster, foresight: Foresight, task: Task) -> Reservation | None:
    """The node or nodes expected to be free earliest for ``task``, by the median of what remains of all on them.

    None where there are too few nodes.
    """
    now = cluster.now
    count = cluster.terms.nodes_for(task.gpus)
    nodes = list(cluster.ready.values())
    if len(nodes) < count:
        return None
    running = list(cluster.running)
    ends: dict[Task, float] = {}
    if running:
        places = np.array([one.place for one in running])
        ages = np.array([one.useful(now) for one in running])
        left = foresight.remaining_of(places, ages)
        ends = {
            one: now + max(0.0, one.began + one.overhead - now) + float(seconds)
            for one, seconds in zip(running, left, strict=True)
        }
    need = cluster.terms.node_gpus if count > 1 else math.ceil(task.gpus)
    by_time = sorted((_free_at(node, ends, need, now), node.number) for node in nodes)[:count]
    return Reservation(task, by_time[-1][0], frozenset(number for _, number in by_time))


def _free_at(node: SimulatedNode, ends: Mapping[Task, float], need: float, now: float) -> float:
    """When so many whole GPUs are expected to be free on ``node``."""
    free = float(node.whole)
    if free >= need:
        return now
    for task in sorted(node.holds, key=lambda one: ends[one]):
        free += max(node.holds[task].gpus, 0.0)
        if free >= need:
            return ends[task]
    return math.inf
