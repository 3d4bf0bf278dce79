"""Start latency per NodePool, from NodeClaims, nodes and the pods that were first on them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta

from advisor.domain.start_latency import NodeStart, PoolStart, StartPart
from advisor.telemetry.kubernetes.nodes import ClaimObject, NodeObject
from advisor.telemetry.kubernetes.pods import PodObject

__all__ = ["node_starts"]

_WAITED_FOR_THE_NODE = timedelta(minutes=2)
"""A pod given a node later than so long after that was ready had not waited for it, and others may have come before."""


def node_starts(
    claims: Iterable[ClaimObject], nodes: Iterable[NodeObject], pods: Iterable[PodObject]
) -> tuple[PoolStart, ...]:
    """The start of every node that was launched, by pool, then NodeClaim.

    A node counts from the moment its NodeClaim was created. Of pods only the one that was first on its node counts,
    and only where it had waited for it: the image of any other may be there already.
    """
    node_by_name = {node.name: node for node in sorted(nodes, key=lambda node: node.created)}
    first = _first_pods(pods)
    found = [
        PoolStart(
            claim=claim.name,
            pool=claim.pool,
            asked=claim.created,
            start=NodeStart(_parts(claim, node_by_name.get(claim.node or ""), first.get(claim.node or ""))),
        )
        for claim in claims
        if claim.launched is not None
    ]
    return tuple(sorted(found, key=lambda each: (each.pool, each.claim, each.asked)))


def _first_pods(pods: Iterable[PodObject]) -> Mapping[str, PodObject]:
    """The pod that was given each node first, by node."""
    first: dict[str, PodObject] = {}
    placed = [(pod.scheduled, pod.uid, pod) for pod in pods if pod.scheduled is not None and pod.node is not None]
    for _, _, pod in sorted(placed, key=lambda each: each[:2]):
        first.setdefault(pod.node or "", pod)
    return first


def _parts(claim: ClaimObject, node: NodeObject | None, pod: PodObject | None) -> dict[StartPart, float]:
    """Seconds by part, until the first moment that is not known."""
    ready = claim.initialised
    if pod is None or pod.scheduled is None or ready is None or pod.scheduled - ready > _WAITED_FOR_THE_NODE:
        pod = None
    restarted = pod is not None and pod.restarts > 0
    moments: list[tuple[StartPart, datetime | None]] = [
        (StartPart.LAUNCHED, claim.launched),
        (StartPart.REGISTERED, claim.registered),
        (StartPart.INITIALISED, ready),
        (StartPart.PREPARED, None if pod is None or restarted else pod.prepared),
        (StartPart.STARTED, None if pod is None else pod.started),
    ]
    found: dict[StartPart, float] = {}
    before = claim.created
    for part, moment in moments:
        if moment is None:
            break
        # Clocks differ by seconds, and a pod may be given a node just before Karpenter has seen it ready.
        found[part] = max((moment - before).total_seconds(), 0.0)
        before = max(moment, before)
    allocatable = None if node is None else node.allocatable_at
    if allocatable is not None and claim.registered is not None:
        found[StartPart.DEVICES] = max((allocatable - claim.registered).total_seconds(), 0.0)
    return found
