"""What is kept of a node and of the NodeClaim that asked for it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from advisor.cluster.documents import moment_in, part, parts, text
from advisor.cluster.objects import Json
from advisor.cluster.projection import NODEPOOL_LABEL
from advisor.cluster.quantities import parse_gpus
from advisor.domain.asks import GpuNode, is_gpu_resource, sanitised
from advisor.telemetry.kubernetes.pods import gpu_node_of

__all__ = ["ClaimObject", "NodeObject", "read_claim_object", "read_node_object"]


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeObject:
    """A node: how its GPUs are shared, and since when they can be had.

    ``allocatable_at`` is the moment at which GPUs were seen to become allocatable, None where nobody watched.
    """

    name: str
    created: datetime
    pool: str | None
    gpus: GpuNode
    allocatable: bool
    allocatable_at: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimObject:
    """A NodeClaim and when each of its conditions came true."""

    name: str
    pool: str
    created: datetime
    node: str | None
    launched: datetime | None = None
    registered: datetime | None = None
    initialised: datetime | None = None


def read_node_object(document: Json, before: NodeObject | None, at: datetime | None) -> NodeObject:
    """A node; see :class:`advisor.cluster.reflector.Projection`.

    Raises:
        Refused: a moment or an amount of GPUs cannot be read.
    """
    metadata, allocatable = part(document, "metadata"), part(part(document, "status"), "allocatable")
    labels = part(metadata, "labels")
    has = any(parse_gpus(n, "allocatable") for name, n in allocatable.items() if is_gpu_resource(sanitised(name)))
    came = at if before is not None and not before.allocatable and has else None
    return NodeObject(
        name=str(metadata.get("name", "")),
        created=moment_in(metadata.get("creationTimestamp"), "created"),
        pool=text(labels, NODEPOOL_LABEL),
        gpus=gpu_node_of(labels),
        # A plugin that restarts takes the GPUs away for seconds; that they had come stays known.
        allocatable=has or (before is not None and before.allocatable),
        allocatable_at=came if before is None or before.allocatable_at is None else before.allocatable_at,
    )


def read_claim_object(document: Json, before: ClaimObject | None, at: datetime | None) -> ClaimObject | None:
    """A NodeClaim; see :class:`advisor.cluster.reflector.Projection`.

    Raises:
        Refused: a moment cannot be read.
    """
    del before, at
    metadata, status = part(document, "metadata"), part(document, "status")
    turned = {
        str(each.get("type")): moment_in(each.get("lastTransitionTime"), "time")
        for each in parts(status, "conditions")
        if each.get("status") == "True"
    }
    return ClaimObject(
        name=str(metadata.get("name", "")),
        pool=text(part(metadata, "labels"), NODEPOOL_LABEL) or "",
        created=moment_in(metadata.get("creationTimestamp"), "created"),
        node=text(status, "nodeName"),
        launched=turned.get("Launched"),
        registered=turned.get("Registered"),
        initialised=turned.get("Initialized"),
    )
