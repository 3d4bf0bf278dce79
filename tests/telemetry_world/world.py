"""A world: a fleet, the work on it, and what is known to be true of it."""

from __future__ import annotations

import random
from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

from tests.telemetry_world.cluster import simulated, works_of
from tests.telemetry_world.fleet import fleet
from tests.telemetry_world.load import Loads
from tests.telemetry_world.stories import Room, draw_plans
from tests.telemetry_world.things import Attempt, JobObject, Node, Pod, Sharing, Work

__all__ = ["MONDAY", "World", "WorldSpec", "a_world"]

MONDAY = 1_772_409_600
"""2026-03-02T00:00:00Z, where worlds begin."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WorldSpec:
    """What to draw: ``jobs`` pieces of work in ``days`` on ``gpus`` GPUs cut in one way."""

    days: float = 14
    gpus: int = 50
    jobs: int = 2000
    seed: int = 0
    sharing: Sharing = Sharing.WHOLE
    start: int = MONDAY

    @property
    def end(self) -> int:
        """When the world is looked at: nothing after it is known."""
        return self.start + int(self.days * 86400)


@dataclass(frozen=True)
class World:
    """Nodes and pieces of work, as far as they have come by the end."""

    spec: WorldSpec
    nodes: tuple[Node, ...]
    works: tuple[Work, ...]

    @property
    def start(self) -> int:
        """When it begins."""
        return self.spec.start

    @property
    def end(self) -> int:
        """When it is looked at."""
        return self.spec.end

    def until(self, days: float) -> World:
        """The same world, looked at after so many days."""
        spec = replace(self.spec, days=days)
        nodes = (replace(one, removed=_before(one.removed, spec.end)) for one in self.nodes if one.created < spec.end)
        works = (_clipped(work, spec.end) for work in self.works)
        return World(spec, tuple(nodes), tuple(work for work in works if work.pods or work.objects))

    @cached_property
    def pods(self) -> tuple[Pod, ...]:
        """Every pod by creation."""
        found = {pod.uid: pod for work in self.works for pod in work.pods}
        return tuple(sorted(found.values(), key=lambda pod: (pod.created, pod.uid)))

    @cached_property
    def objects(self) -> tuple[JobObject, ...]:
        """Every Kubernetes Job by creation."""
        found = {(one.namespace, one.name, one.created): one for work in self.works for one in work.objects}
        return tuple(sorted(found.values(), key=lambda one: (one.created, one.name)))

    @cached_property
    def loads(self) -> Loads:
        """What the pods do with their GPUs."""
        return Loads.drawn(self.nodes, self.pods, (self.start, self.end), self.spec.seed)


def a_world(spec: WorldSpec | None = None) -> World:
    """The world of a seed, the same each time."""
    spec = spec or WorldSpec()
    rng = random.Random(spec.seed)
    nodes = fleet(spec.gpus, spec.sharing, spec.start, spec.end, rng)
    plans = draw_plans(spec.jobs, _room(spec, nodes), rng)
    histories = simulated(plans, nodes, spec.end, rng)
    works = [_clipped(work, spec.end) for history in histories for work in works_of(history)]
    return World(spec, nodes, tuple(work for work in works if work.pods or work.objects))


def _room(spec: WorldSpec, nodes: Iterable[Node]) -> Room:
    pool_gpus: dict[str, int] = {}
    node_gpus: dict[str, int] = {}
    for node in nodes:
        node_gpus[node.pool] = max(node_gpus.get(node.pool, 0), len(node.devices))
        if node.created < spec.start:
            pool_gpus[node.pool] = pool_gpus.get(node.pool, 0) + len(node.devices)
    return Room(spec.sharing, pool_gpus, node_gpus, spec.start, spec.end)


def _before(moment: int | None, end: int) -> int | None:
    return moment if moment is not None and moment < end else None


def _clipped(work: Work, end: int) -> Work:
    """``work`` without what comes at or after ``end``."""
    pods = tuple(_clipped_pod(pod, end) for pod in work.pods if pod.created < end)
    objects = tuple(_clipped_object(one, end) for one in work.objects if one.created < end)
    over = tuple(
        ending
        for run, ending in enumerate(work.endings)
        if all(pod.holds_until is not None for pod in pods if pod.run == run)
    )
    return replace(work, pods=pods, objects=objects, endings=over)


def _clipped_pod(pod: Pod, end: int) -> Pod:
    deleted = _before(pod.deleted, end)
    last = end if deleted is None else deleted
    scheduled = _before(pod.scheduled, last)
    ended = pod.ended if pod.ended is not None and pod.ended < end else None
    attempts = tuple(
        one if one.end is not None and one.end < end else Attempt(one.start) for one in pod.attempts if one.start < last
    )
    shows_reason = pod.reason_from is not None and pod.reason_from < end
    containers = tuple(replace(box, ended=_before(box.ended, end)) for box in pod.containers)
    return replace(
        pod,
        deleted=deleted,
        node=None if scheduled is None else pod.node,
        slots=() if scheduled is None else pod.slots,
        scheduled=scheduled,
        kubelet=_before(pod.kubelet, last),
        attempts=attempts,
        ended=ended,
        phase=None if ended is None else pod.phase,
        reason=pod.reason if shows_reason else None,
        reason_from=pod.reason_from if shows_reason else None,
        containers=containers,
    )


def _clipped_object(one: JobObject, end: int) -> JobObject:
    suspended = tuple((begun, _before(until, end)) for begun, until in one.suspended if begun < end)
    return replace(
        one,
        suspended=suspended,
        starts=tuple(start for start in one.starts if start < end),
        completed=_before(one.completed, end),
        failed=_before(one.failed, end),
        deleted=_before(one.deleted, end),
    )
