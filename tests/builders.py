"""Builders in the domain's words: say what matters to the test, the rest is filled in."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from advisor.domain.forecasts import DemandForecast, DurationDistribution, HorizonForecast
from advisor.domain.jobs import Job, Outcome
from advisor.domain.nodepools import ClusterSnapshot, Node, NodePool, Workload
from advisor.domain.plans import Advice, Mode, PoolAdvice, WarmPlan
from advisor.domain.slices import SliceClass, SlicePlan, SliceRequest
from advisor.domain.usage import ComputeSource, GpuUsage
from advisor.features.demand import DemandSeries

NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
"""A Monday noon, where most small test worlds begin."""


def a_job(name: str = "job-1", *, submit: datetime = NOON, seconds: float | None = 600.0, **more: Any) -> Job:
    """A completed one-GPU job of ten minutes; ``seconds=None`` makes one that still runs."""
    start = more.pop("start", submit)
    fields: dict[str, Any] = {"id": name, "submit": submit, "gpus": 1.0, "start": start, "user": "ada", **more}
    if seconds is not None and start is not None:
        fields.setdefault("end", start + timedelta(seconds=seconds))
        fields.setdefault("outcome", Outcome.COMPLETED)
    return Job(**fields)


def a_job_of_every_field(**more: Any) -> Job:
    """A job of which everything is known: no field has the value it would have by default."""
    fields: dict[str, Any] = {
        "source": "slurm",
        "id": "full",
        "submit": NOON,
        "gpus": 4.0,
        "start": NOON + timedelta(seconds=90),
        "end": NOON + timedelta(seconds=690),
        "outcome": Outcome.FAILED,
        "last_seen": NOON + timedelta(seconds=690),
        "user": "ada",
        "namespace": "vision",
        "name": "train-17",
        "image": "registry/train:3",
        "gpu_kind": "a100",
        "pool": "gpu",
        "cpus": 8.0,
        "nodes": 2,
        "priority": 5,
        "time_limit_seconds": 3600.0,
        "start_assumed": True,
        "calendar_known": False,
        "scheduled": NOON + timedelta(seconds=30),
        "created_by": "Job/train",
        "restarts": 1,
        "evictions": 2,
        "paused_seconds": 45.0,
        "image_pull_seconds": 12.0,
        "usage": a_usage(),
        "told_by_node": ("image",),
    }
    return Job(**{**fields, **more})


def a_usage(**more: Any) -> GpuUsage:
    """What a busy job of 20 GB did with its GPUs, read from the profiling counters."""
    fields = {"compute_mean": 0.6, "compute_source": ComputeSource.SM_ACTIVE, "memory_peak_bytes": 20e9, **more}
    return GpuUsage(**fields)


def lognormal_durations(median_seconds: float, sigma: float = 1.0) -> DurationDistribution:
    """A log-normal duration distribution on a fine grid, cut at four standard deviations."""
    from scipy.stats import norm  # noqa: PLC0415 - only the tests that need it pay for the import

    edges = np.linspace(np.log(median_seconds) - 4 * sigma, np.log(median_seconds) + 4 * sigma, 161)
    cdf = norm.cdf((edges - np.log(median_seconds)) / sigma)
    cdf = (cdf - cdf[0]) / (cdf[-1] - cdf[0])
    return DurationDistribution(edges, cdf)


def a_node_pool(name: str = "default", **more: Any) -> NodePool:
    """A dynamic NodePool of 8-GPU nodes with Karpenter's own defaults and three minutes of keep-alive."""
    fields: dict[str, Any] = {"consolidate_after": "180s", "slice_minutes": 15.0, **more}
    return NodePool(name=name, **fields)


def a_node(name: str = "node-1", *, pool: str = "default", gpus: int = 8, **more: Any) -> Node:
    """A ready node of 8 GPUs, made at noon."""
    return Node(name=name, pool=pool, gpus=gpus, **{"created": NOON, **more})


def a_cluster(*pools: NodePool, nodes: tuple[Node, ...] = (), **more: Any) -> ClusterSnapshot:
    """A cluster seen at noon; one default pool where none is given."""
    return ClusterSnapshot(**{"time": NOON, "pools": pools or (a_node_pool(),), "nodes": nodes, **more})


def a_pool_advice(
    pool: str = "default", *, skilled: bool = True, slice_minutes: float | None = 15.0, **more: Any
) -> PoolAdvice:
    """Advice that agrees with :func:`a_node_pool` in everything; say what it should differ in.

    ``keep_alive_seconds``, ``warm_gpus`` and ``node_gpus`` go to the warm plan, ``gpu_limit`` to the advice.
    """
    one = SliceClass(
        name="all",
        longest_minutes=None,
        share_of_jobs=1.0,
        mean_minutes=20.0,
        minutes=slice_minutes,
        current_minutes=15.0,
        rule_of_thumb_minutes=15.0,
        closed_form_minutes=12.65,
        cost=0.1,
        current_cost=0.2,
        binding_constraint=None,
        curve=(),
        reasons=("the cheapest",),
    )
    warm = WarmPlan(
        pool=pool,
        warm_gpus=more.pop("warm_gpus", 0),
        boot_nodes=0,
        keep_nodes=0,
        node_gpus=more.pop("node_gpus", 8),
        keep_alive_seconds=more.pop("keep_alive_seconds", 180),
        start_latency_seconds=300.0,
        served="model" if skilled else "persistence",
        curve=(),
        reasons=("keeping pays this long",),
    )
    horizon = HorizonForecast(
        horizon_minutes=30,
        levels=(0.5, 0.9),
        gpus=(8.0, 16.0),
        skill=0.2 if skilled else None,
        served="model" if skilled else "persistence",
    )
    return PoolAdvice(
        pool=pool,
        slice_plan=SlicePlan(pool=pool, switch_cost_minutes=1.0, classes=(one,), reasons=()),
        sharing_factor=1,
        warm=warm,
        demand=DemandForecast(pool=pool, made_at=NOON, gpus_now=8.0, horizons=(horizon,)),
        durations=DurationDistribution.point(1200.0),
        **{"gpu_limit": None, **more},
    )


def an_advice(*pools: PoolAdvice, mode: Mode = Mode.RECOMMEND, **more: Any) -> Advice:
    """The advice of one cycle at noon, served by models."""
    return Advice(**{"time": NOON, "mode": mode, "pools": pools, "models": {"durations": "3", "demand": "2"}, **more})


def exponential_durations(mean_seconds: float) -> DurationDistribution:
    """An exponential duration distribution on a grid fine enough for closed forms to three digits."""
    edges = np.log(mean_seconds) + np.linspace(np.log(1e-5), np.log(40.0), 2000)
    cdf = -np.expm1(-np.exp(edges) / mean_seconds)
    cdf[0], cdf[-1] = 0.0, 1.0
    return DurationDistribution(edges, cdf)


def a_slice_request(name: str = "task-1", *, minutes: float = 60.0, gpus: float = 1.0, **more: Any) -> SliceRequest:
    """A one-GPU task submitted at noon that almost surely runs for ``minutes``."""
    duration = more.pop("duration", DurationDistribution.point(minutes * 60.0, spread=1e-6))
    return SliceRequest(**{"id": name, "submit": NOON, "gpus": gpus, "duration": duration, **more})


def a_workload(name: str = "pod-1", *, node: str | None = "node-1", gpus: float = 1.0, **more: Any) -> Workload:
    """A one-GPU workload that was submitted and started an hour before noon."""
    hour_ago = NOON - timedelta(hours=1)
    return Workload(**{"id": name, "gpus": gpus, "submit": hour_ago, "start": hour_ago, "node": node, **more})


def a_history(count: int = 400, *, seed: int = 1, owners: int = 6, begin: datetime = NOON) -> list[Job]:
    """A busy cluster: owners with habits of their own, bursts, short waits, every kind of end, in order of submission.

    The last jobs still run or wait at the moment of the last submission, as seen from there.
    """
    rng = np.random.default_rng(seed)
    medians = np.exp(rng.normal(6.5, 1.5, size=owners))
    jobs, moment = [], begin
    for number in range(count):
        moment += timedelta(seconds=0.0 if rng.random() < 0.2 else round(float(rng.exponential(120.0))))
        owner = int(rng.integers(owners))
        start = moment + timedelta(seconds=0.0 if rng.random() < 0.7 else round(float(rng.exponential(60.0))))
        seconds = round(float(medians[owner] * np.exp(rng.normal(0.0, 0.3))), 3) + 1.0
        outcome = (Outcome.COMPLETED, Outcome.FAILED, Outcome.CANCELLED)[int(rng.choice(3, p=[0.7, 0.2, 0.1]))]
        gpus = float(rng.choice([1, 1, 1, 2, 8]))
        more = {"user": f"user-{owner}", "gpus": gpus, "outcome": outcome, "nodes": 1}
        jobs.append(a_job(f"job-{number}", submit=moment, start=start, seconds=seconds, **more))
    return jobs


def a_demand_series(running: Any, *, pool: str = "default", step_minutes: int = 5, **more: Any) -> DemandSeries:
    """A pool that ran these GPUs from noon on; nothing is seen pending unless said."""
    row = np.asarray(running, dtype=np.float64)
    return DemandSeries(**{"pool": pool, "start": NOON, "step_minutes": step_minutes, "running": row, **more})


def a_clockwork_series(days: float = 10.0, *, pool: str = "clockwork", seed: int = 1, **more: Any) -> DemandSeries:
    """A pool where two nodes of work come every hour for 20 min, on top of a level that wanders: easy to foresee."""
    rng = np.random.default_rng(seed)
    count = int(days * 288)
    minute = np.arange(count) * 5
    level = 8.0 * np.cumsum(rng.choice([-1, 0, 1], size=count, p=[0.01, 0.98, 0.01]))
    running = np.abs(level) + 16.0 * (minute % 60 < 20)
    return a_demand_series(running, pool=pool, **{"pending": np.zeros(count), **more})
