"""Everything recommended for one pool in one cycle: slices, sharing, warm capacity, keep-alive and limit.

The changes and the patch are left empty: they are the difference to what the cluster has, and belong to
whoever may act.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime

from advisor.domain.forecasts import DemandForecast, RiseForecast
from advisor.domain.nodepools import ClusterSnapshot, NodePool
from advisor.domain.plans import PoolAdvice, WarmPlan
from advisor.domain.slices import SlicePlan
from advisor.domain.start_latency import StartLatency
from advisor.domain.units import positive
from advisor.errors import Refused
from advisor.planning.costs import Prices, waiting_ratio
from advisor.planning.durations import PoolDurations
from advisor.planning.limits import GpuNeed, LimitAdvice, LimitTerms, gpu_limit_of, recommend_gpu_limit
from advisor.planning.sharing import SharingEvidence, recommend_sharing
from advisor.planning.slice_length import recommend_slices
from advisor.planning.slice_terms import SliceTerms
from advisor.planning.start_terms import measured_start
from advisor.planning.warm_capacity import WarmTerms, plan_warm

__all__ = ["AdviceTerms", "PoolForesight", "advise_pool", "gpu_need"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolForesight:
    """What is foreseen of one pool, and what is remembered of it.

    ``rise`` is None where nothing foresees rises. ``last_slices`` is the plan of the last cycle,
    ``recent_needs`` the needs of the last hours (see :func:`gpu_need`), ``sharing`` what telemetry says of
    memory and compute, None where it says nothing. ``start_latency`` is what was measured of the pool's nodes,
    None where nothing was.
    """

    durations: PoolDurations
    demand: DemandForecast
    rise: RiseForecast | None = None
    last_slices: SlicePlan | None = None
    recent_needs: tuple[GpuNeed, ...] = ()
    sharing: SharingEvidence | None = None
    start_latency: StartLatency | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AdviceTerms:
    """The terms of every part, and how far ahead a limit must reach.

    What a pool itself knows (its load, its shares, its start latency, the price ratio) is filled into
    ``slices`` from the snapshot, the warm terms and the prices.
    """

    slices: SliceTerms
    warm: WarmTerms = field(default_factory=WarmTerms)
    limits: LimitTerms = field(default_factory=LimitTerms)
    limit_horizon_minutes: float = 60.0

    def __post_init__(self) -> None:
        """Check the horizon.

        Raises:
            Refused: it is not above zero.
        """
        positive(self.limit_horizon_minutes, "limit_horizon_minutes", "minutes")


def advise_pool(
    pool: NodePool,
    snapshot: ClusterSnapshot,
    foresight: PoolForesight,
    terms: AdviceTerms,
    prices: Prices,
    now: datetime,
) -> PoolAdvice:
    """The advice for ``pool`` at ``now``, every part with its reasons.

    Raises:
        Refused: the forecasts are of another pool.
    """
    if foresight.demand.pool != pool.name:
        raise Refused("demand", foresight.demand.pool, f"it must be of pool {pool.name}", "Pass that pool's forecast.")
    current = foresight.last_slices or pool.slice_minutes
    terms = replace(terms, warm=measured_start(terms.warm, foresight.start_latency))
    slices = recommend_slices(pool.name, foresight.durations, _slice_terms(pool, snapshot, terms, prices), current)
    sharing = recommend_sharing(foresight.sharing)
    warm = plan_warm(foresight.rise, pool, prices, _warm_terms(pool, foresight, terms), now)
    limit = _limit(pool, snapshot, foresight, (terms, warm), now)
    return PoolAdvice(
        pool=pool.name,
        slice_plan=slices,
        sharing_factor=sharing.factor,
        warm=warm,
        gpu_limit=limit.gpus,
        demand=foresight.demand,
        durations=foresight.durations.pooled,
        reasons=(
            *(f"slices: {reason}" for reason in slices.reasons),
            *(f"sharing: {reason}" for reason in sharing.reasons),
            *(f"warm capacity: {reason}" for reason in warm.reasons),
            *(f"limit: {reason}" for reason in limit.reasons),
            *(f"demand: {reason}" for reason in foresight.demand.reasons),
        ),
    )


def gpu_need(demand: DemandForecast, warm: WarmPlan, terms: AdviceTerms) -> float:
    """Physical GPUs a limit must leave room for: the demand quantile over the horizon, and the warm ones on top."""
    ahead = [
        horizon.quantile(terms.limits.level)
        for horizon in demand.horizons
        if horizon.horizon_minutes <= terms.limit_horizon_minutes
    ]
    return max([demand.gpus_now, *ahead]) + warm.warm_gpus


def _slice_terms(pool: NodePool, snapshot: ClusterSnapshot, terms: AdviceTerms, prices: Prices) -> SliceTerms:
    ready = [node for node in snapshot.nodes_of(pool.name) if node.ready and not node.cordoned]
    gpus = sum(node.gpus for node in ready)
    load = terms.slices.load
    if load is None and gpus:
        names = {node.name for node in ready}
        used = sum(work.gpus for work in snapshot.workloads if work.node in names and not work.placeholder)
        load = min(1.0, used / gpus)
    return replace(
        terms.slices,
        load=load,
        slices=max(1, gpus * pool.sharing_factor) if gpus else terms.slices.slices,
        start_latency_minutes=max(terms.slices.start_latency_minutes, terms.warm.latency_minutes),
        urgent_price_ratio=waiting_ratio(prices),
    )


def _warm_terms(pool: NodePool, foresight: PoolForesight, terms: AdviceTerms) -> WarmTerms:
    """The warm terms with no more nodes than the cap on the pool's limit leaves."""
    cap = terms.limits.most_gpus
    if cap is None:
        return terms.warm
    left = max(0, int((cap - foresight.demand.gpus_now) // pool.largest_node_gpus))
    most = min(terms.warm.most_nodes, left)
    return replace(terms.warm, most_nodes=most, least_nodes=min(terms.warm.least_nodes, most))


def _limit(
    pool: NodePool,
    snapshot: ClusterSnapshot,
    foresight: PoolForesight,
    planned: tuple[AdviceTerms, WarmPlan],
    now: datetime,
) -> LimitAdvice:
    """The limit; without a skilled demand forecast it may rise but not fall, and one that is no count stays."""
    terms, warm = planned
    try:
        current = gpu_limit_of(pool)
    except Refused as error:
        return LimitAdvice(None, (f"it is left alone, since it cannot be read: {error}",))
    capacity = sum(node.gpus for node in snapshot.nodes_of(pool.name))
    need = gpu_need(foresight.demand, warm, terms)
    advice = recommend_gpu_limit(pool, need, capacity, foresight.recent_needs, terms.limits, now)
    if current is None or advice.gpus is None or advice.gpus >= current or foresight.demand.skilled:
        return advice
    return LimitAdvice(current, (f"kept at {current}: a demand forecast without skill does not lower it",))
