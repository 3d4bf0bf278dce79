"""One snapshot out of what was read object by object: GPU pools, their nodes, and the work on them.

GPUs are physical from here on: what a pod asks of a shared node is divided by the node's shares.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from advisor.cluster.projection import SeenClaim, SeenNode, SeenPod, SeenPool
from advisor.domain.nodepools import ClusterSnapshot, Node, NodePool, WarmBuffer, Workload

__all__ = ["Seen", "assemble"]

_DEFAULT_NODE_GPUS = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """Everything read in one go; ``buffers`` and ``slice_minutes`` are what our own objects hold per pool."""

    pools: Sequence[SeenPool]
    nodes: Sequence[SeenNode] = ()
    claims: Sequence[SeenClaim] = ()
    pods: Sequence[SeenPod] = ()
    buffers: Mapping[str, WarmBuffer]
    slice_minutes: Mapping[str, float]
    notes: tuple[str, ...] = ()


def assemble(time: datetime, seen: Seen) -> ClusterSnapshot:
    """The snapshot at ``time``: pools without any hint of GPUs are left out, and nodes coming up are in."""
    nodes = [node for node in _with_claims(seen.nodes, seen.claims) if node.gpus > 0]
    notes = list(seen.notes)
    pools: dict[str, NodePool] = {}
    for found in seen.pools:
        its_nodes = [node for node in nodes if node.pool == found.pool.name]
        if found.for_gpus or its_nodes:
            pool, known = _completed(found, its_nodes, seen)
            pools[pool.name] = pool
            if not known:
                notes.append(f"NodePool {pool.name} does not say how many GPUs its nodes have: 8 assumed")
    placed = {node.name: node for node in nodes if node.pool in pools}
    workloads, elsewhere = _workloads(seen.pods, placed, pools)
    if elsewhere:
        notes.append(f"{elsewhere} GPU pods run on nodes outside Karpenter's GPU pools and are left out")
    return ClusterSnapshot(
        time=time,
        pools=tuple(pools.values()),
        nodes=tuple(_node(node) for node in placed.values()),
        workloads=workloads,
        notes=tuple(notes),
    )


def _with_claims(nodes: Sequence[SeenNode], claims: Iterable[SeenClaim]) -> list[SeenNode]:
    """The nodes, those whose device plugin is late with the GPUs of their claim, and the claims without a node."""
    found = {node.name: node for node in nodes}
    for claim in claims:
        registered = found.get(claim.node_name or "")
        if registered is None:
            found[claim.node.name] = claim.node
        elif registered.gpus == 0:
            found[registered.name] = replace(registered, gpus=claim.node.gpus)
    return list(found.values())


def _completed(found: SeenPool, nodes: Sequence[SeenNode], seen: Seen) -> tuple[NodePool, bool]:
    """The pool with what only its nodes and our own objects tell, and whether its node sizes are known."""
    name = found.pool.name
    sizes = found.sizes | {node.gpus for node in nodes}
    kinds = {node.gpu_kind for node in nodes if node.gpu_kind}
    pool = replace(
        found.pool,
        node_gpus=tuple(sorted(sizes or {_DEFAULT_NODE_GPUS})),
        gpu_kind=found.pool.gpu_kind or (kinds.pop() if len(kinds) == 1 else None),
        sharing_factor=max((node.shares for node in nodes), default=1),
        warm=seen.buffers.get(name),
        slice_minutes=seen.slice_minutes.get(name, found.pool.slice_minutes),
    )
    return pool, bool(sizes)


def _node(seen: SeenNode) -> Node:
    return Node(
        name=seen.name,
        pool=seen.pool or "",
        gpus=seen.gpus,
        created=seen.created,
        ready=seen.ready,
        gpu_kind=seen.gpu_kind,
        cordoned=seen.cordoned,
    )


def _workloads(
    pods: Iterable[SeenPod], nodes: Mapping[str, SeenNode], pools: Mapping[str, NodePool]
) -> tuple[tuple[Workload, ...], int]:
    """The work in physical GPUs, and how many pods run elsewhere."""
    found: list[Workload] = []
    elsewhere = 0
    for pod in pods:
        workload = pod.workload
        if workload.node is None:
            wanted = None if workload.pool is None else pools.get(workload.pool)
            found.append(replace(workload, gpus=pod.asked / (1 if wanted is None else wanted.sharing_factor)))
        elif workload.node in nodes:
            node = nodes[workload.node]
            found.append(replace(workload, gpus=pod.asked / node.shares, pool=node.pool))
        else:
            elsewhere += 1
    return tuple(found), elsewhere
