"""Every packing policy on one list of pods and one list of nodes: the report of ``gsa evaluate packing``."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Callable
from dataclasses import dataclass, field

import joblib
import numpy as np

from advisor.domain.packing import HostShape
from advisor.domain.packing_report import DepartureScores, PackingReport, PackingScores
from advisor.domain.reports import RunProtocol
from advisor.domain.units import SECONDS_PER_DAY
from advisor.errors import Refused
from advisor.planning.packing_costs import BestFit
from advisor.telemetry.packing_lists import NodeList, PodList
from training.packing_departures import Autoscaling, Departures, Policy, Replayed, replay_departures
from training.packing_replay import (
    ADVISOR,
    BEST_FIT,
    FRAGMENTATION_GRADIENT,
    Filled,
    PackingWorld,
    replay_filling,
)
from training.packing_streams import PodStream, guard_penalties, stream_of

__all__ = ["PackingSettings", "evaluate_packing"]

_POLICIES = (ADVISOR, FRAGMENTATION_GRADIENT, BEST_FIT)
_POOL_NODES = 400
_POOL_NODE_GPUS = 8
_FIXED_LOAD = 0.75
_WARM_UP = SECONDS_PER_DAY
_POOL_UNTIL = 3.0 * SECONDS_PER_DAY
_FIXED_UNTIL = 1.5 * SECONDS_PER_DAY


@dataclass(frozen=True, slots=True, kw_only=True)
class PackingSettings:
    """``sd`` is the error of predicted durations (standard deviation of the natural log).

    ``pool_gpus`` are in use in the autoscaled pool in the mean, ``fixed_gpus`` are there in the fixed cluster.
    """

    load: float = 1.3
    seeds: int = 10
    departures: bool = False
    sd: float = 1.0
    autoscaling: Autoscaling = field(default_factory=Autoscaling)
    pool_gpus: float = 350.0
    fixed_gpus: int = 1500
    processes: int = 1

    def __post_init__(self) -> None:
        """Check the bounds.

        Raises:
            Refused: no seed, or a negative error.
        """
        if self.seeds < 1:
            raise Refused("--seeds", self.seeds, "at least one is needed", "Use 10.")
        if not 0 <= self.sd < 10:
            raise Refused("--prediction-error", self.sd, "it lies between 0 and 10", "Use 1.")


@dataclass(frozen=True, slots=True)
class _Task:
    """One policy under one seed: filled, or replayed on a pool or on the fixed nodes."""

    kind: str
    policy: str
    seed: int


@dataclass(frozen=True, slots=True)
class _Worlds:
    filling: PackingWorld
    stream: PodStream | None
    settings: PackingSettings

    def run(self, task: _Task) -> Filled | Replayed:
        if self.stream is None or task.kind == "filling":
            return replay_filling(self.filling, (task.policy, task.seed))
        return self._pool(self.stream, task) if task.kind == "pool" else self._fixed(self.stream, task)

    def _pool(self, stream: PodStream, task: _Task) -> Replayed:
        hosts = [pool_host(self.filling.hosts)] * _POOL_NODES
        rng = np.random.default_rng(task.seed)
        pods = stream.only(hosts[:1]).copies(rng, self.settings.pool_gpus, _POOL_UNTIL, self.settings.sd)
        run = Departures(
            pods=pods, hosts=hosts, autoscaling=self.settings.autoscaling, measured=(_WARM_UP, _POOL_UNTIL)
        )
        cost = BestFit() if task.policy == ADVISOR else self.filling.costs()[task.policy]
        return replay_departures(run, Policy(cost=cost, sd=self.settings.sd if task.policy == ADVISOR else None))

    def _fixed(self, stream: PodStream, task: _Task) -> Replayed:
        rng = np.random.default_rng(task.seed)
        hosts = sampled(self.filling.hosts, self.settings.fixed_gpus, rng)
        gpus = sum(host.gpus for host in hosts)
        pods = stream.only(hosts).copies(rng, _FIXED_LOAD * gpus, _FIXED_UNTIL, self.settings.sd)
        run = Departures(pods=pods, hosts=hosts, autoscaling=None, measured=(_WARM_UP, _FIXED_UNTIL))
        ours = task.policy == ADVISOR
        policy = Policy(cost=self.filling.costs()[task.policy], sd=self.settings.sd if ours else None, guarded=ours)
        return replay_departures(run, policy, guard_penalties(hosts, {pod.shape for pod in pods}))


def evaluate_packing(
    pods: PodList, nodes: NodeList, settings: PackingSettings, progress: Callable[[int, int], None]
) -> PackingReport:
    """Fill the nodes under every policy and seed, and with ``departures`` let pods end as well.

    Raises:
        Refused: no pod asks for a GPU; with departures, none of them has times.
    """
    world = PackingWorld(shapes=tuple(pod.shape for pod in pods.pods), hosts=nodes.hosts, load=settings.load)
    stream = stream_of(pods.pods) if settings.departures else None
    kinds = ("filling", "pool", "fixed") if settings.departures else ("filling",)
    tasks = [_Task(kind, policy, seed) for kind in kinds for seed in range(settings.seeds) for policy in _POLICIES]
    worlds = _Worlds(world, stream, settings)
    found = {}
    runs = joblib.Parallel(n_jobs=settings.processes, return_as="generator")(
        joblib.delayed(worlds.run)(task) for task in tasks
    )
    for number, (task, result) in enumerate(zip(tasks, runs, strict=True), start=1):
        found[task] = result
        progress(number, len(tasks))
    policies = {name: _scores(name, found) for name in _POLICIES}
    return PackingReport(protocol=_protocol(pods, nodes, settings), policies=policies)


def pool_host(hosts: tuple[HostShape, ...]) -> HostShape:
    """The node kind of an autoscaled pool: the commonest with 8 GPUs, else the commonest."""
    big = [host for host in hosts if host.gpus == _POOL_NODE_GPUS] or [host for host in hosts if host.gpus]
    shapes = [(host.gpus, host.cpu_milli, host.memory_mib, host.kind) for host in big]
    common = max(sorted(set(shapes)), key=shapes.count)
    return next(host for host, shape in zip(big, shapes, strict=True) if shape == common)


def sampled(hosts: tuple[HostShape, ...], gpus: int, rng: np.random.Generator) -> list[HostShape]:
    """Nodes in random order, as many as give ``gpus``: a sample is done in minutes."""
    chosen: list[HostShape] = []
    for at in rng.permutation(len(hosts)):
        if sum(host.gpus for host in chosen) >= gpus:
            break
        chosen.append(hosts[at])
    return chosen


def _scores(policy: str, found: dict[_Task, Filled | Replayed]) -> PackingScores:
    own = {task: result for task, result in found.items() if task.policy == policy}
    filled = [result for result in own.values() if isinstance(result, Filled)]
    pool = [result for task, result in own.items() if task.kind == "pool" and isinstance(result, Replayed)]
    fixed = [result for task, result in own.items() if task.kind == "fixed" and isinstance(result, Replayed)]
    departures = None
    if pool and fixed:
        departures = DepartureScores(
            node_hours_over_bound_percent=_mean([100.0 * (r.node_hours / r.bound_node_hours - 1.0) for r in pool]),
            node_hours=_mean([r.node_hours for r in pool]),
            gpus_on_empty_nodes=_mean([r.gpus_on_empty_nodes for r in fixed]),
            boots=_mean([r.boots for r in pool]),
            mean_wait_seconds=_mean([r.mean_wait_seconds for r in pool]),
            delayed_percent=_mean([100.0 * r.delayed_share for r in pool]),
        )
    return PackingScores(
        allocated_percent=tuple(result.allocated_percent for result in filled),
        fragmented_percent=_mean([result.fragmented_percent for result in filled]),
        departures=departures,
    )


def _mean(values: list[float]) -> float:
    return float(np.mean(values))


def _protocol(pods: PodList, nodes: NodeList, settings: PackingSettings) -> RunProtocol:
    digest = hashlib.sha256(repr((pods.pods, nodes.hosts)).encode()).hexdigest()[:16]
    dropped = [f"{r.count} left out ({r.reason}: {r.example})" for r in (*pods.rejections, *nodes.rejections)]
    assumed = [
        f"pods are drawn in random order until they ask for {settings.load:g} times the GPUs there are; nothing ends",
        "allocated: the mean over the last half per cent of arrivals; a pod that fits nowhere is dropped",
        "nodes stand in a random order per seed, and the first of equals is taken",
        "what usually comes is taken from the list itself",
    ]
    if settings.departures:
        host = pool_host(nodes.hosts)
        scaling = settings.autoscaling
        assumed += [
            "departures: copies of the pods that ran for up to a day, shifted by whole days",
            f"durations are predicted with an error of {settings.sd:g} (sd of the natural log), not by a fitted model",
            f"the pool has nodes of {host.gpus} GPUs and {host.cpu_milli / 1000:g} CPUs",
            f"{settings.pool_gpus:g} GPUs of it are in use in the mean",
            f"a node boots in {scaling.boot_seconds:g} s, goes after {scaling.empty_seconds:g} s empty; boot is paid",
            "the bound repacks freely at every moment",
            f"the fixed cluster is a sample of the nodes with {settings.fixed_gpus} GPUs, at a load of {_FIXED_LOAD:g}",
            "there the advisor places by stranded GPUs, waste, expected extension and a guard for scarce nodes",
            "in the pool the advisor places by best fit and expected extension",
        ]
    return RunProtocol(
        data_digest=digest,
        rows=len(pods.pods),
        split_time=None,
        refits=0,
        seed=0,
        versions={"numpy": np.__version__, "python": platform.python_version()},
        assumed=(*assumed, *dropped),
    )
