"""Requests that can never be placed, each refused by a rule with a name; and where the others may go."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime, timedelta

from advisor.domain.nodepools import ClusterSnapshot, NodePool
from advisor.domain.slices import SliceRequest
from advisor.domain.units import counted, shown_duration
from advisor.errors import Refused
from advisor.planning.allocation_terms import AllocationTerms
from advisor.planning.limits import gpu_limit_of

__all__ = ["PoolFit", "PoolSize", "ceiling_of", "eligible_pools", "shares_of"]

_HAIR = 1e-9


@dataclass(frozen=True, slots=True)
class PoolFit:
    """How a request would lie in a pool.

    ``parts`` are the whole GPUs it takes on each node, largest first (one part unless it is larger than
    a node); for a share of one GPU ``parts`` is empty and ``shares`` says how many of its shares.
    """

    pool: str
    parts: tuple[int, ...]
    shares: int = 0


@dataclass(frozen=True, slots=True)
class PoolSize:
    """The most GPUs one node of a pool may have and the most the pool may, counting what stands; and its GPU kinds."""

    node_gpus: int
    gpus: int
    kinds: frozenset[str]


def ceiling_of(pool: NodePool, snapshot: ClusterSnapshot, terms: AllocationTerms) -> PoolSize:
    """How large ``pool`` may become: its limit or its replicas where it may grow, else what stands."""
    nodes = [node for node in snapshot.nodes_of(pool.name) if not node.cordoned]
    standing = sum(node.gpus for node in nodes)
    largest = max((node.gpus for node in nodes), default=0)
    kinds = frozenset(
        {node.gpu_kind for node in nodes if node.gpu_kind} | ({pool.gpu_kind} if pool.gpu_kind else set())
    )
    if pool.replicas is not None:
        largest = max(largest, pool.largest_node_gpus)
        return PoolSize(largest, max(standing, pool.replicas * pool.largest_node_gpus), kinds)
    if not terms.elastic:
        return PoolSize(largest, standing, kinds)
    try:
        limit = gpu_limit_of(pool)
    except Refused:
        # A limit that nobody can read is no leave to grow; what stands may be used, and the other pools go on.
        return PoolSize(largest, standing, kinds)
    most = max(standing, terms.most_gpus_unlimited if limit is None else limit)
    return PoolSize(max(largest, pool.largest_node_gpus), most, kinds)


def shares_of(gpus: float, replicas: int) -> int | None:
    """Shares that ``gpus`` (a fraction of one GPU) takes of a GPU cut into ``replicas``; None if it does not divide.

    >>> shares_of(0.5, 4), shares_of(0.3, 4), shares_of(0.5, 1)
    (2, None, None)
    """
    shares = gpus * replicas
    return round(shares) if abs(shares - round(shares)) < _HAIR and round(shares) >= 1 else None


def eligible_pools(
    request: SliceRequest,
    snapshot: ClusterSnapshot,
    sizes: dict[str, PoolSize],
    terms: AllocationTerms,
    now: datetime,
) -> tuple[PoolFit, ...]:
    """Where a request may go, in order of pool name.

    Raises:
        Refused: it can never be placed: unknown pool or GPU kind, a share that does not divide, more GPUs
            than any pool may ever have, or a deadline that cannot be met even by starting now.
    """
    _refuse_passed_deadline(request, terms, now)
    pools = _of_kind(request, _named(request, snapshot.pools), sizes)
    fits = [fit for pool in pools if (fit := _fit(request, pool, sizes[pool.name])) is not None]
    if not fits:
        divides = request.gpus >= 1 or any(shares_of(request.gpus, pool.sharing_factor) for pool in pools)
        raise _too_large(request, pools, sizes) if divides else _indivisible(request, pools)
    return tuple(sorted(fits, key=lambda fit: fit.pool))


def _refuse_passed_deadline(request: SliceRequest, terms: AllocationTerms, now: datetime) -> None:
    if request.deadline is None:
        return
    if request.deadline <= now:
        raise Refused("deadline", request.deadline.isoformat(), f"it has passed at {now.isoformat()}", "Move it later.")
    expected = request.duration.quantile(terms.duration_level)
    if now + timedelta(seconds=expected) > request.deadline:
        raise Refused(
            "deadline",
            request.deadline.isoformat(),
            f"started at once the task is expected to take {shown_duration(expected)}",
            "Move it later or ask for less work.",
        )


def _named(request: SliceRequest, pools: tuple[NodePool, ...]) -> tuple[NodePool, ...]:
    if request.pool is None:
        return pools
    named = tuple(pool for pool in pools if pool.name == request.pool)
    if not named:
        known = ", ".join(sorted(pool.name for pool in pools)) or "none"
        raise Refused("pool", request.pool, f"known pools are {known}", "Use one of them or leave it out.")
    return named


def _of_kind(request: SliceRequest, pools: tuple[NodePool, ...], sizes: dict[str, PoolSize]) -> tuple[NodePool, ...]:
    if request.gpu_kind is None:
        return pools
    right = tuple(pool for pool in pools if request.gpu_kind in sizes[pool.name].kinds)
    if not right:
        known = ", ".join(sorted(set().union(*(sizes[pool.name].kinds for pool in pools)))) or "not stated by any pool"
        where = "" if request.pool is None else f" in pool {request.pool}"
        raise Refused("gpu_kind", request.gpu_kind, f"GPU kinds{where} are {known}", "Use one of them or leave it out.")
    return right


def _fit(request: SliceRequest, pool: NodePool, size: PoolSize) -> PoolFit | None:
    if request.gpus < 1:
        shares = shares_of(request.gpus, pool.sharing_factor)
        return PoolFit(pool.name, (), shares) if shares is not None and size.gpus >= 1 else None
    gpus = int(request.gpus)
    if gpus > size.gpus or size.node_gpus < 1:
        return None
    whole, rest = divmod(gpus, size.node_gpus)
    return PoolFit(pool.name, (size.node_gpus,) * whole + ((rest,) if rest else ()))


def _too_large(request: SliceRequest, pools: tuple[NodePool, ...], sizes: dict[str, PoolSize]) -> Refused:
    most = max((sizes[pool.name].gpus for pool in pools), default=0)
    return Refused(
        "gpus",
        request.gpus,
        f"the largest eligible pool can have {counted(most, 'GPU')}",
        "Ask for fewer GPUs or raise the pool's GPU limit.",
    )


def _indivisible(request: SliceRequest, pools: tuple[NodePool, ...]) -> Refused:
    factors = sorted({pool.sharing_factor for pool in pools})
    usable = [math.ceil(request.gpus * factor) / factor for factor in factors if factor > 1]
    cut = ", ".join(f"1/{factor}" if factor > 1 else "whole GPUs only" for factor in factors)
    remedy = f"Ask for {min(usable):g} of a GPU." if usable else "Ask for 1 whole GPU or cut the pool's GPUs."
    return Refused("gpus", request.gpus, f"eligible pools share by {cut}, which it does not divide into", remedy)
