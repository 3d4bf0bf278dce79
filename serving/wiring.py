"""The composition root: every long-lived object of the online path is made here, from settings.

Deliberately dull. The online path never trains, so nothing here may reach ``training``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from pathlib import Path

from advisor.clock import ManualClock, SystemClock
from advisor.cluster.description import default_description, load_description
from advisor.cluster.kubernetes import KubernetesCluster
from advisor.cluster.memory import MemoryCluster
from advisor.cluster.port import ClusterPort
from advisor.cycle import CycleTerms
from advisor.domain.jobs import Job, pool_of
from advisor.domain.nodepools import ClusterSnapshot
from advisor.domain.plans import Advice, Money
from advisor.errors import Refused
from advisor.forecast.registry import ModelRegistry
from advisor.history.store import HistoryStore
from advisor.planning.advice import AdviceTerms
from advisor.planning.allocation_terms import AllocationTerms
from advisor.planning.costs import Prices
from advisor.planning.slice_terms import LatencyTarget, SliceTerms
from advisor.planning.warm_capacity import WarmTerms
from advisor.reconciler.guards import GuardRules
from advisor.settings import Settings

__all__ = [
    "ClusterChoice",
    "ClusterKind",
    "allocation_terms",
    "cycle_terms",
    "guard_rules",
    "money",
    "open_cluster",
    "open_history",
    "open_registry",
    "prices_of",
]

_SHARED_BOOT_WEIGHT, _SEPARATE_BOOT_WEIGHT = 1.0, 0.5


class ClusterKind(StrEnum):
    """Which cluster is looked at."""

    MEMORY = "memory"
    KUBERNETES = "kubernetes"


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterChoice:
    """The cluster to look at: Kubernetes, or one in memory, described by ``file`` or made from the history."""

    kind: ClusterKind = ClusterKind.MEMORY
    file: Path | None = None
    node_gpus: int = 8


def open_history(settings: Settings) -> HistoryStore:
    """The history store, made and migrated where needed."""
    return HistoryStore.open(settings.storage.history)


def open_registry(settings: Settings) -> ModelRegistry:
    """The model registry."""
    return ModelRegistry.open(settings.storage.tracking, settings.storage.artifact_root)


def open_cluster(choice: ClusterChoice, jobs: Sequence[Job], now: datetime) -> ClusterPort:
    """The cluster behind ``choice``; where none is described, one that holds what the history says runs at ``now``.

    Raises:
        Refused: a description file for Kubernetes, or one that describes no possible cluster.
        Transient: Kubernetes cannot be reached.
    """
    if choice.kind is ClusterKind.KUBERNETES:
        if choice.file is not None:
            raise Refused("--cluster-file", str(choice.file), "Kubernetes describes itself", "Leave the file out.")
        return KubernetesCluster.connect(SystemClock())
    snapshot = (
        _with_kinds(default_description(_needs(jobs, now), now, choice.node_gpus), jobs)
        if choice.file is None
        else load_description(choice.file, now)
    )
    return MemoryCluster(snapshot, ManualClock(snapshot.time))


def _needs(jobs: Sequence[Job], now: datetime) -> dict[str, float]:
    """GPUs running at ``now`` by pool of the history; a pool that is idle now needs none but is there."""
    needs: dict[str, float] = {}
    for job in jobs:
        running = job.elapsed_seconds(now) is not None and job.gone_at is None
        needs[pool_of(job)] = needs.get(pool_of(job), 0.0) + (job.gpus if running else 0.0)
    return needs


def _with_kinds(snapshot: ClusterSnapshot, jobs: Sequence[Job]) -> ClusterSnapshot:
    """The assumed pools with the GPU kind that all of their jobs asked for, where there is just one."""
    asked: dict[str, set[str | None]] = {}
    for job in jobs:
        asked.setdefault(pool_of(job), set()).add(job.gpu_kind)
    kinds = {name: next(iter(found)) for name, found in asked.items() if len(found) == 1}
    return replace(
        snapshot,
        pools=tuple(replace(pool, gpu_kind=kinds.get(pool.name)) for pool in snapshot.pools),
        nodes=tuple(replace(node, gpu_kind=kinds.get(node.pool)) for node in snapshot.nodes),
    )


def money(settings: Settings) -> Money:
    """The prices as they are shown."""
    return prices_of(settings).money


def cycle_terms(settings: Settings) -> CycleTerms:
    """The terms of one advice cycle."""
    return CycleTerms(
        advice=AdviceTerms(slices=_slice_terms(settings), warm=_warm_terms(settings)),
        prices=prices_of(settings),
        mode=settings.mode,
    )


def guard_rules(settings: Settings) -> GuardRules:
    """The limits that guards hold changes to."""
    guards, warm = settings.guards, settings.warm
    return GuardRules(
        stale_after_minutes=guards.stale_after_minutes,
        cool_down_minutes=guards.cool_down_minutes,
        largest_step=guards.largest_step,
        keep_alive_seconds=(warm.least_keep_alive_seconds, warm.most_keep_alive_seconds),
        slice_minutes=(settings.slices.least_minutes, GuardRules().slice_minutes[1]),
        most_warm_nodes=warm.most_nodes,
    )


def allocation_terms(settings: Settings, advice: Advice) -> AllocationTerms:
    """How requests for slices are placed: in each pool with the start latency that ``advice`` plans it with."""
    return replace(
        AllocationTerms(),
        minimum_slice_minutes=settings.slices.least_minutes,
        default_slice_minutes=settings.slices.current_minutes,
        start_latency_seconds=settings.warm.start_latency_seconds,
        start_latencies={pool.pool: pool.warm.start_latency_seconds for pool in advice.pools},
    )


def prices_of(settings: Settings) -> Prices:
    """What GPU time and waiting cost."""
    prices = settings.prices
    return Prices(
        per_gpu_hour=prices.per_gpu_hour,
        per_waiting_gpu_minute=prices.per_waiting_gpu_minute,
        currency=prices.currency,
        boot_billed=prices.boot_billed,
    )


def _slice_terms(settings: Settings) -> SliceTerms:
    slices = settings.slices
    target = slices.urgent_wait_minutes
    return SliceTerms(
        switch_minutes=slices.switch_cost_minutes,
        switch_share=slices.switch_share,
        reclaim_share=slices.reclaim_share,
        urgent_per_minute=slices.urgent_per_hour / 60.0,
        latency=None if target is None else LatencyTarget(target),
        minimum_minutes=slices.least_minutes,
        max_classes=slices.classes,
        margin=slices.saving_to_change,
        default_minutes=slices.current_minutes,
    )


def _warm_terms(settings: Settings) -> WarmTerms:
    warm = settings.warm
    return WarmTerms(
        start_latency_seconds=warm.start_latency_seconds,
        boot_weight=_SHARED_BOOT_WEIGHT if warm.shared else _SEPARATE_BOOT_WEIGHT,
        most_nodes=warm.most_nodes,
        shortest_keep_alive_seconds=warm.least_keep_alive_seconds,
        longest_keep_alive_seconds=warm.most_keep_alive_seconds,
    )
