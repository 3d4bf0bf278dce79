"""A simulated cluster: nodes that are launched, become ready, are filled, empty and go, as Karpenter lets them.

It carries out and books; who goes where, and what is wanted or kept, is for a policy to say.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from random import Random

from advisor.errors import Defect
from advisor.simulator.accounts import NOTHING, Accounts, plus_gone, plus_present
from advisor.simulator.engine import Engine
from advisor.simulator.nodes import SimulatedNode
from advisor.simulator.tasks import Task
from advisor.simulator.terms import ClusterTerms

__all__ = ["Priority", "SimulatedCluster"]


class Priority:
    """What comes first of all that happens at one moment: ends, nodes, submissions, boundaries, then ticks."""

    END = 0
    NODE = 1
    SUBMIT = 2
    BOUNDARY = 3
    TICK = 4


class SimulatedCluster:
    """Nodes of one size, and the tasks that run on them.

    ``freed`` tells whether GPUs have become free since a policy last looked, ``finished`` is told of every end,
    ``expired`` holds the empty nodes whose keep-alive has passed, ``free_gpus`` counts whole GPUs free on ready
    nodes, ``running_gpus`` what running tasks asked for.
    """

    def __init__(self, terms: ClusterTerms, engine: Engine, random: Random) -> None:
        self.terms = terms
        self.engine = engine
        self.ready: dict[int, SimulatedNode] = {}
        self.booting: dict[int, SimulatedNode] = {}
        self.running: dict[Task, None] = {}
        self.freed = False
        self.free_gpus = 0
        self.running_gpus = 0.0
        self.node_starts = 0
        self.expired: dict[int, SimulatedNode] = {}
        self.finished: Callable[[Task], None] | None = None
        self._lease: tuple[float, Callable[[Task], None]] | None = None
        self._random = random
        self._gone = NOTHING
        self._by_room: list[list[int]] = [[] for _ in range(terms.node_gpus + 1)]
        self._sharing: dict[int, SimulatedNode] = {}
        self._numbers = 0
        for _ in range(terms.static_nodes):
            node = self._new_node(static=True)
            node.running_at = node.asked
            self._become_ready(node)

    @property
    def now(self) -> float:
        """Seconds since the beginning."""
        return self.engine.clock.seconds

    @property
    def nodes(self) -> Iterator[SimulatedNode]:
        """Everything launched that has not gone."""
        yield from self.ready.values()
        yield from self.booting.values()

    @property
    def headroom(self) -> int | None:
        """How many more nodes the limit allows; None for any number. Lowering a limit removes nothing."""
        limit = self.terms.limit_nodes
        return None if limit is None else max(0, limit - len(self.ready) - len(self.booting))

    def accounts(self) -> Accounts:
        """What GPU time was spent on up to now."""
        return plus_present(self._gone, self.nodes, self.now)

    # Nodes -----------------------------------------------------------------------------------------------------

    def launch(self, count: int) -> None:
        """Ask for ``count`` nodes, fewer where the limit says so."""
        headroom = self.headroom
        for _ in range(count if headroom is None else min(count, headroom)):
            node = self._new_node()
            self.node_starts += 1
            free, paid = self.terms.start.draw(self._random)
            self.booting[node.number] = node
            self.engine.schedule(self.now + free, Priority.NODE, partial(self._machine_runs, node))
            self.engine.schedule(self.now + free + paid, Priority.NODE, partial(self._become_ready, node))

    def _new_node(self, *, static: bool = False) -> SimulatedNode:
        self._numbers += 1
        return SimulatedNode(number=self._numbers, size=self.terms.node_gpus, asked=self.now, static=static)

    def _machine_runs(self, node: SimulatedNode) -> None:
        node.running_at = self.now

    def _become_ready(self, node: SimulatedNode) -> None:
        self.booting.pop(node.number, None)
        node.become_ready(self.now)
        self.ready[node.number] = node
        insort(self._by_room[node.whole], node.number)
        self.free_gpus += node.whole
        self.freed = True
        self._emptied(node)

    def _emptied(self, node: SimulatedNode) -> None:
        if not node.static:
            at = self.now + self.terms.keep_alive_seconds
            self.engine.schedule(at, Priority.TICK, partial(self._expire, node, self.now))

    def _expire(self, node: SimulatedNode, since: float) -> None:
        if node.empty_since == since and node.number in self.ready:
            self.expired[node.number] = node

    def remove(self, node: SimulatedNode) -> None:
        """Let an empty node go.

        Raises:
            Defect: something runs on it, or it is static.
        """
        if not node.empty or node.static:
            raise Defect(f"node {node.number} cannot be removed")
        del self.ready[node.number]
        self.expired.pop(node.number, None)
        room = self._by_room[node.whole]
        del room[bisect_left(room, node.number)]
        self.free_gpus -= node.whole
        self._gone = plus_gone(self._gone, node, self.now, self.terms.least_billed_seconds)

    # Room ------------------------------------------------------------------------------------------------------

    def idle_nodes(self) -> list[SimulatedNode]:
        """Ready nodes on which nothing runs, oldest first."""
        return [self.ready[number] for number in self._by_room[self.terms.node_gpus]]

    def with_room(self, gpus: float) -> list[SimulatedNode]:
        """Ready nodes on which so much is free, fullest first, then oldest; for more than a node, the idle ones."""
        size = self.terms.node_gpus
        if gpus > size:
            return self.idle_nodes()
        found: dict[int, SimulatedNode] = {}
        if gpus < 1:
            sharing = (node for node in self._sharing.values() if node.fits(gpus))
            found = {node.number: node for node in sorted(sharing, key=_share_order(gpus))}
        for room in self._by_room[max(1, int(gpus)) :]:
            found.update((number, self.ready[number]) for number in room if number not in found)
        return list(found.values())

    def best_fit(self, gpus: float) -> tuple[SimulatedNode, ...] | None:
        """The fullest node with room, the oldest of those; for more than a node, the oldest idle ones; None if none."""
        size = self.terms.node_gpus
        count = self.terms.nodes_for(gpus)
        if gpus >= 1 and count == 1:
            for room in self._by_room[int(gpus) :]:
                if room:
                    return (self.ready[room[0]],)
            return None
        found = self.with_room(gpus if count == 1 else size)
        return tuple(found[:count]) if len(found) >= count else None

    # Work ------------------------------------------------------------------------------------------------------

    def start(self, task: Task, nodes: Sequence[SimulatedNode], *, alone: bool = False) -> None:
        """Let ``task`` run on ``nodes``: work of more than a node has whole ones, ``alone`` any work has."""
        now = self.now
        whole = alone or len(nodes) > 1
        if task.on or task.finish is not None or len(nodes) != self.terms.nodes_for(task.gpus):
            raise Defect(f"job {task.job.id} cannot start on {len(nodes)} nodes")
        left = task.gpus
        for node in nodes:
            used = min(left, float(node.size))
            left -= used
            before = node.whole
            node.take(task, used, now, all_of_it=whole)
            self._moved(node, before)
            self.expired.pop(node.number, None)
        if task.queued_since is not None:
            task.waited += now - task.queued_since
            task.queued_since = None
        task.on = tuple(node.number for node in nodes)
        task.overhead = self.terms.switch_seconds if task.run else 0.0
        task.began = now
        task.run += 1
        self.running[task] = None
        self.running_gpus += task.gpus
        ends = now + task.overhead + task.job.seconds - task.done
        self.engine.schedule(ends, Priority.END, partial(self._end, task, task.run))
        if self._lease is not None:
            self.engine.schedule(
                now + task.overhead + self._lease[0], Priority.BOUNDARY, partial(self._boundary, task, task.run)
            )

    def lease(self, seconds: float, boundary: Callable[[Task], None]) -> None:
        """Tell ``boundary`` of every running task each time another ``seconds`` of its run are over."""
        self._lease = (seconds, boundary)

    def _boundary(self, task: Task, run: int) -> None:
        if task.run != run or not task.on or self._lease is None:
            return
        seconds, boundary = self._lease
        self.engine.schedule(self.now + seconds, Priority.BOUNDARY, partial(self._boundary, task, run))
        boundary(task)

    def stop(self, task: Task) -> None:
        """Suspend a running task: what it has achieved is kept, the time spent on restoring is lost.

        Raises:
            Defect: it does not run, or is not checkpointable.
        """
        if not task.on or not task.job.checkpointable:
            raise Defect(f"job {task.job.id} cannot be suspended")
        self._leave(task)
        task.queued_since = self.now

    def move(self, task: Task, nodes: Sequence[SimulatedNode]) -> None:
        """Suspend a running task and resume it elsewhere at once."""
        self.stop(task)
        self.start(task, nodes)
        task.moves += 1

    def preempt(self, task: Task) -> None:
        """Suspend a running task in favour of others."""
        self.stop(task)
        task.preemptions += 1

    def _end(self, task: Task, run: int) -> None:
        if task.run != run or not task.on:
            return
        self._leave(task)
        task.done = task.job.seconds
        task.finish = self.now
        if self.finished is not None:
            self.finished(task)

    def _leave(self, task: Task) -> None:
        now = self.now
        done = task.useful(now)
        task.lost += (now - task.began) - (done - task.done)
        task.done = done
        for number in task.on:
            node = self.ready[number]
            before = node.whole
            node.release(task, now)
            self._moved(node, before)
            if node.empty:
                self._emptied(node)
        task.on = ()
        del self.running[task]
        # Sums of shares leave a rounding error behind, an empty cluster does not.
        self.running_gpus = self.running_gpus - task.gpus if self.running else 0.0
        self.freed = True

    def _moved(self, node: SimulatedNode, before: int) -> None:
        """Keep the nodes sorted by how much is free on them."""
        if node.shares:
            self._sharing[node.number] = node
        else:
            self._sharing.pop(node.number, None)
        if node.whole != before:
            room = self._by_room[before]
            del room[bisect_left(room, node.number)]
            insort(self._by_room[node.whole], node.number)
            self.free_gpus += node.whole - before


def _share_order(gpus: float) -> Callable[[SimulatedNode], tuple[int, int]]:
    """The tightest open GPU first, then the oldest node; nodes that would open a fresh GPU come later anyway."""

    def order(node: SimulatedNode) -> tuple[int, int]:
        fitting = [free for free in node.shares.values() if free >= round(gpus * 1000)]
        return (min(fitting, default=1001), node.number)

    return order
