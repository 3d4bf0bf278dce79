"""Who is stopped for whom, at the ends of leases and under a quota: the gang rule.

A running job is at a boundary when its own lease ends, and at a common moment every lease length if it has run
for five minutes since its start. It gives way to a waiting job whose remaining time is shorter by more than two
switches and whose key is better, and only if the jobs stopped are together worth no more than the one that starts:
the sum of 1 / V over them is at most its 1 / V. Work of several nodes is stopped whole, and only for other such work.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from itertools import islice

import numpy as np

from advisor.simulator.cluster import SimulatedCluster
from advisor.simulator.foresight import Foresight
from advisor.simulator.nodes import SimulatedNode
from advisor.simulator.policies.lines import WaitingLines
from advisor.simulator.tasks import Task

__all__ = ["Leases"]

_TRIED = 40
_YOUNGEST_SECONDS = 300.0
_RELOCATED_SHARE = 0.2
_HAIR = 1e-9

KeyOf = Callable[[Task, float], float]
"""The key of a job of which so many seconds remain."""


@dataclass(slots=True)
class _Offer:
    """What a node would have to give up for a gang: worse work, and work that is put back in the queue."""

    node: SimulatedNode
    cost: float = 0.0
    worse: list[Task] = field(default_factory=list)
    relocated: list[Task] = field(default_factory=list)


class Leases:
    """Applies the gang rule for the jobs that wait in ``lines``; ``requeue`` takes back whoever was stopped."""

    def __init__(
        self,
        foresight: Foresight,
        lines: WaitingLines,
        key: KeyOf,
        requeue: Callable[[SimulatedCluster, Task], None],
    ) -> None:
        self._foresight = foresight
        self._lines = lines
        self._key = key
        self._requeue = requeue
        self._owns: dict[Task, tuple[int, float]] = {}

    def own_boundary(self, cluster: SimulatedCluster, task: Task) -> None:
        """The lease of one job ends."""
        if self._lines and cluster.headroom == 0 and task.job.checkpointable and not task.job.urgent:
            self._serve(cluster, {task: self._foresight.remaining(task.place, task.useful(cluster.now))})

    def common_boundary(self, cluster: SimulatedCluster) -> None:
        """The leases of all that have run for a while end together, so that nodes can be freed together."""
        if not self._lines or cluster.headroom != 0:
            return
        now = cluster.now
        there = [
            task
            for task in cluster.running
            if task.job.checkpointable and not task.job.urgent and now - task.began - task.overhead >= _YOUNGEST_SECONDS
        ]
        if there:
            places = np.array([task.place for task in there])
            ages = np.array([task.useful(now) for task in there])
            remaining = self._foresight.remaining_of(places, ages)
            order = np.argsort(-remaining, kind="stable")
            self._serve(cluster, {there[at]: float(remaining[at]) for at in order})

    def _serve(self, cluster: SimulatedCluster, there: dict[Task, float]) -> None:
        """Let the first that wait have what those at a boundary (to seconds remaining, longest first) give up."""
        longest = max(there.values())
        for waiter in list(islice(self._lines.in_order(), _TRIED)):
            own = self._own(cluster, waiter)
            if own + 2.0 * cluster.terms.switch_seconds >= longest and not waiter.job.urgent:
                continue
            if cluster.terms.nodes_for(waiter.gpus) > 1:
                chosen = self._for_gang(cluster, waiter, own, there)
            else:
                chosen = self._on_one_node(cluster, waiter, own, there)
            if chosen is None:
                continue
            nodes, victims = chosen
            self._lines.remove(waiter)
            del self._owns[waiter]
            for victim in victims:
                there.pop(victim, None)
                cluster.preempt(victim)
            cluster.start(waiter, nodes)
            for victim in victims:
                self._requeue(cluster, victim)
            if not there:
                return

    def _own(self, cluster: SimulatedCluster, waiter: Task) -> float:
        """What remains of a waiting job, the switch included; it stays the same until the job has run again."""
        known = self._owns.get(waiter)
        if known is not None and known[0] == waiter.run:
            return known[1]
        remaining = self._foresight.remaining(waiter.place, waiter.done)
        own = remaining + (cluster.terms.switch_seconds if waiter.run else 0.0)
        self._owns[waiter] = (waiter.run, own)
        return own

    def _worse(
        self, cluster: SimulatedCluster, there: dict[Task, float], waiter: Task, own: float
    ) -> dict[Task, float]:
        """Those at a boundary that would give way to ``waiter``, longest first."""
        key, urgent = self._lines.key(waiter), waiter.job.urgent
        least = -math.inf if urgent else own + 2.0 * cluster.terms.switch_seconds
        found = {}
        for task, remaining in there.items():
            if remaining <= least:
                break
            if self._key(task, remaining) > key:
                found[task] = remaining
        return found

    def _on_one_node(
        self, cluster: SimulatedCluster, waiter: Task, own: float, there: dict[Task, float]
    ) -> tuple[tuple[SimulatedNode, ...], list[Task]] | None:
        """The node where fewest GPUs have to be given up, of those the one with the longest work."""
        by_node: dict[int, list[Task]] = {}
        best: tuple[tuple[float, float], int, list[Task]] | None = None
        worse = self._worse(cluster, there, waiter, own)
        closed: set[int] = set()
        for task in worse:
            if len(task.on) > 1 or task.on[0] in closed:
                continue
            number = task.on[0]
            victims = by_node.setdefault(number, [])
            victims.append(task)
            if cluster.ready[number].room_without(victims) < waiter.gpus - _HAIR:
                continue
            closed.add(number)
            if not waiter.job.urgent and sum(1.0 / worse[victim] for victim in victims) > 1.0 / own:
                continue
            order = (sum(victim.gpus for victim in victims), -min(worse[victim] for victim in victims))
            if best is None or order < best[0]:
                best = (order, number, victims)
        return None if best is None else ((cluster.ready[best[1]],), best[2])

    def _for_gang(
        self, cluster: SimulatedCluster, waiter: Task, own: float, there: dict[Task, float]
    ) -> tuple[tuple[SimulatedNode, ...], list[Task]] | None:
        """As many nodes as the gang needs, cheapest first, a stopped gang's other nodes next."""
        count = cluster.terms.nodes_for(waiter.gpus)
        concerned = {number for task in there for number in task.on}
        if len(concerned) + len(cluster.idle_nodes()) < count:
            return None
        worse = self._worse(cluster, there, waiter, own)
        size = cluster.terms.node_gpus
        offers = (_offer(node, worse, there, size) for node in cluster.ready.values())
        by_cost = sorted((one for one in offers if one is not None), key=lambda one: (one.cost, one.node.number))
        if len(by_cost) < count:
            return None
        chosen = _cheapest(by_cost, count, _RELOCATED_SHARE * waiter.gpus)
        if chosen is None:
            return None
        stopped = list(dict.fromkeys(task for offer in chosen for task in offer.worse))
        if not waiter.job.urgent and sum(1.0 / worse[task] for task in stopped) > 1.0 / own:
            return None
        relocated = [task for offer in chosen for task in offer.relocated]
        return tuple(offer.node for offer in chosen), [*stopped, *relocated]


def _offer(node: SimulatedNode, worse: dict[Task, float], there: Collection[Task], size: int) -> _Offer | None:
    """What ``node`` would give up; None if anything on it may not be stopped."""
    offer = _Offer(node)
    for task in node.holds:
        if task in worse:
            offer.worse.append(task)
            offer.cost += 1.0 / worse[task] / len(task.on)
        elif task in there and len(task.on) == 1 and task.gpus < size:
            offer.relocated.append(task)
        else:
            return None
    return offer


def _cheapest(by_cost: list[_Offer], count: int, relocated_most: float) -> list[_Offer] | None:
    """``count`` offers, the others of a gang after its first, with no more relocated than allowed."""
    left = {offer.node.number: offer for offer in by_cost}
    chosen: list[_Offer] = []
    relocated = 0.0
    queue = list(by_cost)
    while queue and len(chosen) < count:
        offer = queue.pop(0)
        if left.pop(offer.node.number, None) is None:
            continue
        gpus = sum(task.gpus for task in offer.relocated)
        if relocated + gpus > relocated_most:
            continue
        relocated += gpus
        chosen.append(offer)
        partners = (number for task in offer.worse if len(task.on) > 1 for number in task.on)
        queue[:0] = [left[number] for number in partners if number in left]
    return chosen if len(chosen) == count else None
