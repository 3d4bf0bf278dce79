"""What becomes of the plans on a fleet: an event loop over queues, pods and nodes that are lost."""

from __future__ import annotations

import heapq
import itertools
import random
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from tests.telemetry_world.making import a_pod, ended_pods, objects_of, pod_names
from tests.telemetry_world.placement import FreeSlots
from tests.telemetry_world.stories import Plan
from tests.telemetry_world.things import Ending, JobObject, Node, Pod, Slot, Work

__all__ = ["History", "simulated", "works_of"]


@dataclass(slots=True)
class History:
    """What has happened to one plan so far.

    ``pods`` are those that are over or stuck, ``running`` those that are there; ``waiting`` since when its pods wait.
    ``admitted`` and ``suspended`` are the moments a queued Job was let in and put back.
    """

    plan: Plan
    pods: list[Pod] = field(default_factory=list)
    running: list[Pod] = field(default_factory=list)
    endings: list[Ending] = field(default_factory=list)
    run: int = 0
    waiting: int = 0
    admitted: list[int] = field(default_factory=list)
    suspended: list[int] = field(default_factory=list)
    over: int | None = None
    objects: tuple[JobObject, ...] = ()


def simulated(plans: Sequence[Plan], nodes: Sequence[Node], until: int, rng: random.Random) -> list[History]:
    """The histories of ``plans``, run to their own ends; no new name is begun after ``until``."""
    simulation = _Simulation(nodes, until, rng)
    for plan in plans:
        simulation.at(plan.submit, partial(simulation.submit, plan))
    return simulation.run()


class _Simulation:
    def __init__(self, nodes: Sequence[Node], until: int, rng: random.Random) -> None:
        self._events: list[tuple[int, int, Callable[[int], None]]] = []
        self._order = itertools.count()
        self._free = FreeSlots()
        self._queues: dict[str, deque[History]] = {}
        self._histories: list[History] = []
        self._until = until
        self._rng = rng
        for node in nodes:
            self.at(node.created, partial(self._node_came, node))
            if node.removed is not None:
                self.at(node.removed, partial(self._node_lost, node))

    def at(self, time: int, event: Callable[[int], None]) -> None:
        heapq.heappush(self._events, (time, next(self._order), event))

    def run(self) -> list[History]:
        while self._events:
            time, _, event = heapq.heappop(self._events)
            event(time)
        waiting = [history.plan.name for history in self._histories if history.over is None]
        if waiting:
            raise AssertionError(f"the fleet is too small for {waiting}")
        return self._histories

    def submit(self, plan: Plan, now: int) -> None:
        history = History(plan)
        self._histories.append(history)
        if plan.stuck is not None or plan.ask.count == 0:
            self._never_queued(history, now)
        else:
            self._queue(history, now)

    def _never_queued(self, history: History, now: int) -> None:
        """A pod that never starts, or one that needs no GPU."""
        plan = history.plan
        gone = now + plan.linger if plan.stuck else now + int(plan.runs[0].seconds)
        if plan.stuck == "image":
            # It is given a node, but its image is never there; it holds no GPU that anybody else would want.
            pod = a_pod(plan, pod_names(plan, 0, self._rng)[0], now, self._rng)
            places = self._free.take(plan.pool, replace(plan.ask, count=0, on_one_card=False), 1)
            if places is not None:
                pod = replace(pod, node=places[0][0], scheduled=now + 1, kubelet=now + 2)
        else:
            pod = a_pod(plan, pod_names(plan, 0, self._rng)[0], now, self._rng)
        history.pods.append(replace(pod, deleted=gone))
        history.over = gone

    def _queue(self, history: History, now: int) -> None:
        history.waiting = now
        queue = self._queues.setdefault(history.plan.pool, deque())
        queue.append(history)
        self._serve(history.plan.pool, now)

    def _serve(self, pool: str, now: int) -> None:
        """Place from the front of the queue until the first does not fit."""
        queue = self._queues.get(pool, deque())
        while queue:
            first = queue[0]
            places = self._free.take(pool, first.plan.ask, first.plan.pods)
            if places is None:
                return
            queue.popleft()
            if first.plan.rejected and not first.pods:
                self._reject(first, places[0][0], now)
                for node, slots in places:
                    self._free.give_back(node, slots)
            else:
                self._start(first, places, now)

    def _reject(self, history: History, node: Node, now: int) -> None:
        """The node turns the first pod away; an owner makes another, a bare pod was all there was."""
        pod = a_pod(history.plan, pod_names(history.plan, 0, self._rng)[0], history.waiting, self._rng)
        pod = replace(pod, node=node, scheduled=now, kubelet=now + 1, ended=now + 1, phase="Failed", noise="rejected")
        pod = replace(pod, reason="UnexpectedAdmissionError", reason_from=now + 1)
        history.pods.append(pod)
        if history.plan.kind:
            self.at(now + 10, lambda then: self._queue(history, then))
        else:
            history.over = now + 1
            history.pods[-1] = replace(pod, deleted=now + 1 + history.plan.linger)

    def _start(self, history: History, places: Sequence[tuple[Node, tuple[Slot, ...]]], now: int) -> None:
        plan, rng = history.plan, self._rng
        if plan.queued:
            history.admitted.append(now)
        created = now if plan.queued else history.waiting + (1 if plan.kind in ("Job", "JobSet") else 0)
        names = pod_names(plan, history.run, rng)
        made = []
        for name, (node, slots) in zip(names, places, strict=True):
            scheduled = max(now, created) + rng.randrange(2)
            kubelet = scheduled + rng.randrange(2)
            pod = a_pod(plan, name, created, rng)
            made.append(replace(pod, node=node, slots=slots, scheduled=scheduled, kubelet=kubelet, run=history.run))
        history.running, end = ended_pods(plan, made, plan.runs[history.run], rng)
        number = history.run
        self.at(end, lambda then: self._finish(history, number, then))

    def _finish(self, history: History, number: int, now: int) -> None:
        if history.run != number or not history.running:
            return  # A lost node came before.
        ending = history.plan.runs[number].ending
        self._let_go(history, ending)
        history.run += 1
        if ending is Ending.SUSPENDED:
            history.suspended.append(now)
        if history.run < len(history.plan.runs):
            self.at(now + max(history.plan.runs[history.run].pause, 1), lambda then: self._queue(history, then))
        else:
            self._close(history, now)
        self._serve(history.plan.pool, now)

    def _let_go(self, history: History, ending: Ending) -> None:
        for pod in history.running:
            if pod.node is not None:
                self._free.give_back(pod.node, pod.slots)
        history.pods += history.running
        history.running = []
        history.endings.append(ending)

    def _close(self, history: History, now: int) -> None:
        history.over = now
        plan = history.plan
        history.objects, history.pods = objects_of(history, self._rng)
        gone = history.objects[0].deleted if history.objects else None
        if plan.again and gone is not None and gone + 60 < self._until:
            again = replace(plan, submit=gone + 60, again=False)
            self.at(again.submit, lambda then: self.submit(again, then))

    def _node_came(self, node: Node, now: int) -> None:
        self._free.add(node)
        self._serve(node.pool, now)

    def _node_lost(self, node: Node, now: int) -> None:
        self._free.remove(node)
        for history in self._histories:
            if any(pod.node is node for pod in history.running):
                self._lose(history, now)

    def _lose(self, history: History, now: int) -> None:
        """Its pod went with the node (work on such nodes has one); a Job begins the run again."""
        (pod,) = history.running
        attempts = tuple(replace(one, end=None, reason=None) for one in pod.attempts if one.start < now)
        lost = replace(pod, attempts=attempts, ended=None, phase=None, deleted=now)
        history.running = [replace(lost, reason="NodeLost", reason_from=max(now - 90, (pod.kubelet or now) + 1))]
        self._let_go(history, Ending.NODE_LOST)
        if history.plan.kind == "Job":
            runs = history.plan.runs
            history.plan = replace(history.plan, runs=(*runs[: history.run], runs[history.run], *runs[history.run :]))
            history.run += 1
            self.at(now + 20, lambda then: self._queue(history, then))
        else:
            self._close(history, now)


def works_of(history: History) -> list[Work]:
    """The pieces of work in one history: one, or as many as there are tasks."""
    plan = history.plan
    creator = (plan.kind, plan.name) if plan.kind not in ("", "ReplicaSet", "StatefulSet") else None
    one = Work(
        story=plan.story,
        namespace=plan.namespace,
        name=plan.name,
        user=plan.user,
        creator=creator,
        objects=history.objects,
        pods=tuple(history.pods + history.running),
        endings=tuple(history.endings),
        pool=plan.pool,
        containers=plan.containers,
    )
    if creator is not None and not plan.tasks:
        return [one]
    alone = []
    for pod in one.pods:
        ending = tuple(one.endings[pod.run : pod.run + 1])
        alone.append(replace(one, name=pod.name, creator=None, pods=(pod,), endings=ending))
    return alone
