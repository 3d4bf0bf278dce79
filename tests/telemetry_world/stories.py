"""What is going to happen to each piece of work once it is given its GPUs, drawn before anything is simulated."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass, replace

from tests.telemetry_world.fleet import POOLS, QUARTERS, REPLICAS, SPOT
from tests.telemetry_world.things import Ask, Container, Ending, Sharing

__all__ = ["Plan", "PlannedRun", "Room", "draw_plans"]

_USERS = ("ada", "grace", "alan", "edsger", "barbara", "tim")
_NAMESPACES = ("ml", "vision", "speech", "inference")
_LONGEST = 5 * 86400
_LOAD = {Sharing.WHOLE: 0.45, Sharing.TIME_SLICED: 0.15, Sharing.MIG: 0.2, Sharing.HAMI: 0.25}
"""Share of its GPUs that a pool is asked for. Where GPUs are shared as many pods stand for less."""
_HEAD = Container(name="main", image="registry.example/train:1.4")


@dataclass(frozen=True, slots=True)
class PlannedRun:
    """One run: how long it lasts, how it stops, seconds until it is queued after the one before, in-pod restarts."""

    seconds: float
    ending: Ending = Ending.DONE
    pause: int = 0
    crashes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """A piece of work to come. ``kind`` is who makes its pods, empty for bare ones; ``pods`` is the size of the gang.

    ``tasks`` is more than 0 for a Job of so many completions, ``pods`` at a time. ``linger`` is how long objects stay
    after the end. ``queued`` work is suspended until it is placed (Kueue), ``rejected`` work loses its first pod at
    the node's door, ``stuck`` pods never start, ``again`` work is followed by another of its name.
    """

    story: str
    submit: int
    pool: str
    namespace: str
    name: str
    user: str | None
    ask: Ask
    containers: tuple[Container, ...]
    runs: tuple[PlannedRun, ...]
    kind: str = ""
    pods: int = 1
    tasks: int = 0
    linger: int = 3600
    deadline: int | None = None
    queued: bool = False
    rejected: bool = False
    stuck: str | None = None
    again: bool = False
    noise: str | None = None


@dataclass(frozen=True, slots=True)
class Room:
    """What the fleet offers: how its GPUs are cut, GPUs of each pool and of its biggest node, and the time there is."""

    sharing: Sharing
    pool_gpus: dict[str, int]
    node_gpus: dict[str, int]
    start: int
    end: int


_Story = Callable[[Plan, random.Random, Room], Plan]


def draw_plans(jobs: int, room: Room, rng: random.Random) -> list[Plan]:
    """``jobs`` plans in order of submission, scaled so that every pool is as busy as it should be."""
    stories = [story for story, _ in _MIXTURE]
    # Every story is told once before any is told twice, so that small worlds have them all.
    told = stories[:jobs] + rng.choices(stories, [weight for _, weight in _MIXTURE], k=max(jobs - len(stories), 0))
    rng.shuffle(told)
    plans = [story(_base(number, room, rng), rng, room) for number, story in enumerate(told)]
    return sorted(_scaled(plans, room), key=lambda plan: (plan.submit, plan.name))


def _base(number: int, room: Room, rng: random.Random) -> Plan:
    pools = [pool for pool in POOLS if pool != SPOT and room.pool_gpus.get(pool)]
    pool = rng.choices(pools, [room.pool_gpus[pool] for pool in pools])[0]
    last = room.end - 60
    ask, container = _ask(pool, room, rng)
    linger = rng.choices(
        (rng.randrange(5), rng.randrange(120, 900), rng.randrange(900, 4500), 6 * 3600), (3, 40, 53, 4)
    )
    return Plan(
        story="bare",
        submit=int(rng.uniform(room.start + 60, last)),
        pool=pool,
        namespace=rng.choice(_NAMESPACES),
        name=f"work-{number:05d}",
        user=rng.choice(_USERS) if rng.random() < 0.7 else None,
        ask=ask,
        containers=(container,),
        runs=(PlannedRun(_relative(rng)),),
        linger=linger[0],
    )


def _relative(rng: random.Random) -> float:
    return math.exp(rng.gauss(0.0, 1.4))


def _ask(pool: str, room: Room, rng: random.Random) -> tuple[Ask, Container]:
    """What one pod asks for, as slots and as its container writes it."""
    kind = POOLS[pool]
    if room.sharing is Sharing.TIME_SLICED:
        count = rng.choices((1, 2, REPLICAS), (70, 20, 10))[0]
        return _plain("gpu", count, count / REPLICAS)
    if room.sharing is Sharing.MIG and "A100" in kind.label:
        unit, slices = rng.choice((("mig_3g_20gb", 3), ("mig_2g_10gb", 2), ("mig_1g_5gb", 1), ("mig_1g_5gb", 1)))
        return _plain(unit, 1, slices / 7)
    if room.sharing is Sharing.HAMI:
        parts = rng.choice((1, 2, QUARTERS))
        asks = {
            "nvidia_com_gpu": 1.0,
            "nvidia_com_gpucores": 100.0 * parts / QUARTERS,
            "nvidia_com_gpumem": float(kind.memory_mib * parts // QUARTERS),
        }
        # The memory is a whole number of MiB, so it may round to a hair less than the cores do.
        return Ask("gpu", parts, parts / QUARTERS, on_one_card=True), replace(_HEAD, asks=asks)
    count = min(rng.choices((1, 2, 4, 8), (70, 15, 10, 5))[0], room.node_gpus[pool])
    return _plain("gpu", count, float(count))


def _plain(unit: str, count: int, gpus: float) -> tuple[Ask, Container]:
    return Ask(unit, count, gpus), replace(_HEAD, asks={f"nvidia_com_{unit}": float(count)})


def _ended(plan: Plan, ending: Ending) -> Plan:
    return replace(plan, runs=(replace(plan.runs[0], ending=ending),))


def _single(kind: str, story: str, ending: Ending = Ending.DONE) -> _Story:
    def tell(plan: Plan, rng: random.Random, room: Room) -> Plan:
        return replace(_ended(plan, ending), kind=kind, story=story)

    return tell


def _crashing(plan: Plan, rng: random.Random, room: Room) -> Plan:
    return replace(plan, story="crashing", runs=(replace(plan.runs[0], crashes=rng.randrange(1, 4)),))


def _retried(plan: Plan, rng: random.Random, room: Room) -> Plan:
    last = rng.choice((Ending.DONE, Ending.DONE, Ending.ERROR))
    failed = [
        PlannedRun(_relative(rng) / 3, Ending.ERROR, 0 if n == 0 else 10 * 2**n) for n in range(rng.randrange(1, 3))
    ]
    return replace(plan, story="retried", kind="Job", runs=(*failed, PlannedRun(_relative(rng), last, 40)))


def _over_time(plan: Plan, rng: random.Random, room: Room) -> Plan:
    return replace(_ended(plan, Ending.DEADLINE), story="over_time", kind="Job", deadline=1)


def _in_time(plan: Plan, rng: random.Random, room: Room) -> Plan:
    return replace(plan, story="in_time", kind="Job", deadline=30 * 86400)


def _evicted_job(plan: Plan, rng: random.Random, room: Room) -> Plan:
    runs = (PlannedRun(_relative(rng), Ending.EVICTED), PlannedRun(_relative(rng), Ending.DONE, 10))
    return replace(plan, story="evicted_job", kind="Job", runs=runs)


def _suspended(plan: Plan, rng: random.Random, room: Room) -> Plan:
    times = rng.randrange(3)
    runs = [
        PlannedRun(_relative(rng) / 2, Ending.SUSPENDED, 0 if n == 0 else rng.randrange(300, 7200))
        for n in range(times)
    ]
    last = PlannedRun(_relative(rng), Ending.DONE, rng.randrange(300, 7200) if times else 0)
    return replace(plan, story="suspended", kind="Job", queued=True, runs=(*runs, last))


def _gang(kind: str) -> _Story:
    def tell(plan: Plan, rng: random.Random, room: Room) -> Plan:
        one = next(iter(plan.containers[0].asks)).removeprefix("nvidia_com_")
        # One slot a pod keeps a gang within the smallest fleet that has as many.
        gpus = plan.ask.gpus / plan.ask.count
        container = plan.containers[0]
        if not plan.ask.on_one_card:
            container = replace(container, asks={f"nvidia_com_{one}": 1.0})
            plan = replace(plan, ask=Ask(plan.ask.unit, 1, gpus), containers=(container,))
        # Of each MIG profile every GPU has at least one instance; of anything else as many as make it whole.
        each = 1.0 if plan.ask.unit != "gpu" else plan.ask.gpus
        most = int(room.pool_gpus[plan.pool] / each + 1e-9)
        ending = rng.choice((Ending.DONE, Ending.DONE, Ending.DONE, Ending.ERROR, Ending.DELETED))
        pods = min(rng.randrange(2, 9), most)
        return replace(_ended(plan, ending), story=f"gang_{kind}", kind=kind, pods=pods)

    return tell


def _tasks(plan: Plan, rng: random.Random, room: Room) -> Plan:
    """A Job of more completions than it has pods at a time; two at a time where there is room for them."""
    turns = rng.randrange(3, 6)
    pods = 2 if plan.ask.count == 1 and room.pool_gpus[plan.pool] >= 2 else 1
    runs = tuple(PlannedRun(_relative(rng) / 3) for _ in range(turns))
    return replace(plan, story="tasks", kind="Job", tasks=turns * pods, pods=pods, runs=runs)


def _on_spot(kind: str) -> _Story:
    def tell(plan: Plan, rng: random.Random, room: Room) -> Plan:
        if not room.pool_gpus.get(SPOT):
            return plan
        ask, container = _ask(SPOT, room, rng)
        return replace(plan, story="on_spot", kind=kind, pool=SPOT, ask=ask, containers=(container,))

    return tell


def _short(plan: Plan, rng: random.Random, room: Room) -> Plan:
    return replace(plan, story="short", runs=(PlannedRun(-rng.randrange(10, 61)),), linger=rng.randrange(600, 7200))


def _gone_at_once(plan: Plan, rng: random.Random, room: Room) -> Plan:
    """Its object goes with it; where it was short as well, perhaps before anybody looked."""
    runs = (PlannedRun(-rng.randrange(5, 31)),) if rng.random() < 0.4 else plan.runs
    return replace(plan, story="gone_at_once", runs=runs, linger=rng.randrange(3))


def _stuck(why: str) -> _Story:
    def tell(plan: Plan, rng: random.Random, room: Room) -> Plan:
        return replace(_ended(plan, Ending.DELETED), story=f"stuck_{why}", stuck=why, linger=rng.randrange(1800, 86400))

    return tell


def _again(plan: Plan, rng: random.Random, room: Room) -> Plan:
    return replace(plan, story="name_again", kind="Job", again=True, linger=rng.randrange(120, 600))


def _rejected(kind: str) -> _Story:
    def tell(plan: Plan, rng: random.Random, room: Room) -> Plan:
        return replace(plan, story="rejected", kind=kind, rejected=True, linger=max(plan.linger, 600))

    return tell


def _with_init(plan: Plan, rng: random.Random, room: Room) -> Plan:
    """An init container that asks for twice what the work does, or a sidecar with as much."""
    if plan.ask.on_one_card or plan.ask.unit != "gpu" or room.node_gpus[plan.pool] < 2:
        return plan
    sidecar = rng.random() < 0.5
    asks = {"nvidia_com_gpu": 1.0}
    first = Container(
        name="metrics" if sidecar else "check",
        image="registry.example/side:2",
        asks=asks if sidecar else {"nvidia_com_gpu": 2.0},
        init=True,
        sidecar=sidecar,
    )
    ask = Ask("gpu", 2, 2 * plan.ask.gpus / plan.ask.count)
    return replace(plan, story="with_init", ask=ask, containers=(first, replace(plan.containers[0], asks=asks)))


def _with_helper(plan: Plan, rng: random.Random, room: Room) -> Plan:
    """A second container that ends before the work does."""
    helper = Container(name="fetch", image="registry.example/fetch:1", ended=0)
    return replace(plan, story="with_helper", containers=(*plan.containers, helper))


def _noise(what: str) -> _Story:
    def tell(plan: Plan, rng: random.Random, room: Room) -> Plan:
        plan = replace(_ended(plan, Ending.DELETED), story=what, noise=what, user=None)
        if what == "reservation":
            return replace(plan, namespace="kai-resource-reservation")
        if what == "cpu_only":
            container = Container(name="web", image="registry.example/web:3", asks={"cpu": 0.5})
            return replace(plan, containers=(container,), ask=Ask("none", 0, 0.0))
        return plan

    return tell


_MIXTURE: tuple[tuple[_Story, float], ...] = (
    (_single("", "bare"), 17),
    (_single("", "bare_failed", Ending.ERROR), 4),
    (_single("", "out_of_memory", Ending.OUT_OF_MEMORY), 2),
    (_single("", "cancelled", Ending.DELETED), 4),
    (_single("", "evicted", Ending.EVICTED), 2),
    (_single("Job", "job"), 14),
    (_single("Job", "job_failed", Ending.ERROR), 3),
    (_single("ReplicaSet", "served", Ending.DELETED), 4),
    (_single("StatefulSet", "served", Ending.DELETED), 2),
    (_crashing, 3),
    (_retried, 5),
    (_over_time, 2),
    (_in_time, 2),
    (_evicted_job, 2),
    (_suspended, 6),
    (_gang("PyTorchJob"), 4),
    (_gang("JobSet"), 3),
    (_gang("RayCluster"), 2),
    (_gang("Job"), 2),
    (_tasks, 2),
    (_on_spot(""), 3),
    (_on_spot("Job"), 3),
    (_short, 4),
    (_gone_at_once, 2),
    (_stuck("unschedulable"), 1),
    (_stuck("image"), 1),
    (_again, 1),
    (_rejected(""), 0.5),
    (_rejected("Job"), 1),
    (_with_init, 2),
    (_with_helper, 2),
    (_noise("placeholder"), 1),
    (_noise("reservation"), 0.5),
    (_noise("cpu_only"), 1),
)
"""Each story with its weight in the mixture."""


def _scaled(plans: list[Plan], room: Room) -> list[Plan]:
    """``plans`` with seconds for relative durations: a negative one is meant in seconds as it stands."""
    wanted = dict.fromkeys(room.pool_gpus, 0.0)
    for plan in plans:
        wanted[plan.pool] += plan.ask.gpus * plan.pods * sum(max(run.seconds, 0.0) for run in plan.runs)
    seconds = room.end - room.start
    unit = {
        pool: _LOAD[room.sharing] * seconds * room.pool_gpus[pool] / gpus for pool, gpus in wanted.items() if gpus > 0
    }
    return [_in_seconds(plan, unit.get(plan.pool, 3600.0)) for plan in plans]


def _in_seconds(plan: Plan, unit: float) -> Plan:
    def seconds(run: PlannedRun) -> int:
        return int(-run.seconds) if run.seconds < 0 else int(min(max(run.seconds * unit, 90.0), _LONGEST))

    runs = tuple(replace(run, seconds=seconds(run)) for run in plan.runs)
    limit = None if plan.deadline is None else (int(runs[0].seconds) if plan.deadline == 1 else plan.deadline)
    return replace(plan, runs=runs, deadline=limit)
