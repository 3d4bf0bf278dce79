"""Kubernetes objects as the API server sends them (JSON), turned into domain values.

Each reader keeps only what advice needs, so that a page of objects can be dropped as soon as it is
read. An object that cannot be understood is counted and named in the snapshot's notes; it never stops
the rest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from advisor.cluster.documents import moment_in, part
from advisor.cluster.fields import BUDGETS, CONSOLIDATE_AFTER, CONSOLIDATION_POLICY, GPU_LIMIT, REPLICAS, WEIGHT
from advisor.cluster.objects import Json
from advisor.cluster.quantities import parse_gpus
from advisor.domain.asks import ContainerAsk, effective_ask
from advisor.domain.nodepools import (
    GPU_RESOURCE,
    Budget,
    NodePool,
    Taint,
    WarmBuffer,
    Workload,
)
from advisor.domain.units import parse_duration
from advisor.errors import Refused

__all__ = [
    "CHUNK_ANNOTATION",
    "NODEPOOL_LABEL",
    "OWNED_LABEL",
    "POOL_LABEL",
    "SLICE_LENGTH_ANNOTATION",
    "SeenClaim",
    "SeenNode",
    "SeenPod",
    "SeenPool",
    "read_buffer",
    "read_claim",
    "read_node",
    "read_pod",
    "read_pool",
    "read_slice_setting",
]

NODEPOOL_LABEL = "karpenter.sh/nodepool"
"""Set by Karpenter on everything of a NodePool."""
POOL_LABEL = "slice-advisor.io/pool"
"""On our own objects: the NodePool they belong to."""
OWNED_LABEL = "slice-advisor.io/owned"
"""On NodePools and pods that are this program's own."""
SLICE_LENGTH_ANNOTATION = "slice-advisor.io/slice-length"
"""The slice length of a pool as a duration: on our own ConfigMap, or by hand on a NodePool's own metadata."""
CHUNK_ANNOTATION = "slice-advisor.io/chunk-gpus"
"""On our CapacityBuffer: the GPUs of one chunk, as its PodTemplate asks for them."""

_SHARING_STRATEGIES = ("time-slicing", "mps")
_FIELD_PATHS = {
    ("f:spec", "f:disruption", "f:consolidateAfter"): CONSOLIDATE_AFTER,
    ("f:spec", "f:disruption", "f:consolidationPolicy"): CONSOLIDATION_POLICY,
    ("f:spec", "f:disruption", "f:budgets"): BUDGETS,
    ("f:spec", "f:limits", f"f:{GPU_RESOURCE}"): GPU_LIMIT,
    ("f:spec", "f:weight"): WEIGHT,
    ("f:spec", "f:replicas"): REPLICAS,
}


@dataclass(frozen=True, slots=True)
class SeenPool:
    """A NodePool as far as its own object tells.

    ``sizes`` are the GPUs per node that it names, ``for_gpus`` whether anything hints at GPUs.
    """

    pool: NodePool
    sizes: frozenset[int]
    for_gpus: bool


@dataclass(frozen=True, slots=True)
class SeenNode:
    """A node as far as its own object tells; ``pool`` None where Karpenter does not manage it.

    ``gpus`` is 0 where there are none, or none yet.
    """

    name: str
    pool: str | None
    gpus: int
    shares: int
    created: datetime
    ready: bool
    cordoned: bool
    gpu_kind: str | None


@dataclass(frozen=True, slots=True)
class SeenClaim:
    """A NodeClaim: the node it will be, and that node's name once it has registered."""

    node: SeenNode
    node_name: str | None


@dataclass(frozen=True, slots=True)
class SeenPod:
    """A pod that holds or wants GPU shares; ``asked`` counts them as the pod does."""

    workload: Workload
    asked: int


def read_pool(document: Json) -> SeenPool:
    """A NodePool object.

    Raises:
        Refused: a name is missing, or the slice length annotation is no duration.
    """
    metadata, spec = part(document, "metadata"), part(document, "spec")
    disruption, template = part(spec, "disruption"), part(part(spec, "template"), "spec")
    limits = {name: str(value) for name, value in part(spec, "limits").items()}
    taints = tuple(
        Taint(str(t.get("key", "")), str(t.get("effect", "")), t.get("value")) for t in template.get("taints") or ()
    )
    wanted = _requirements(part(part(spec, "template"), "metadata"), template)
    pool = NodePool(
        name=str(metadata.get("name", "")),
        consolidate_after=disruption.get("consolidateAfter"),
        consolidation_policy=disruption.get("consolidationPolicy"),
        budgets=_budgets(disruption.get("budgets")),
        limits=limits,
        weight=spec.get("weight"),
        replicas=spec.get("replicas"),
        gpu_kind=_single(wanted, ("/instance-gpu-name", "nvidia.com/gpu.product", "/gke-accelerator")),
        slice_minutes=_slice_minutes(metadata),
        owned=part(metadata, "labels").get(OWNED_LABEL) == "true",
        resource_version=str(metadata.get("resourceVersion", "")),
        taints=taints,
        field_managers=_managers(metadata.get("managedFields") or ()),
    )
    hints = [key for key, values in wanted.items() if values is not None and ("gpu" in key or "accelerator" in key)]
    for_gpus = bool(hints) or GPU_RESOURCE in limits or any("gpu" in taint.key for taint in taints)
    return SeenPool(pool, _sizes(wanted), for_gpus)


def read_node(document: Json) -> SeenNode:
    """A Node object; ready only once its GPUs can be allocated, which is later than its Ready condition.

    Raises:
        Refused: no creation time, or GPU counts that are no quantities.
    """
    metadata, spec, status = part(document, "metadata"), part(document, "spec"), part(document, "status")
    labels = part(metadata, "labels")
    capacity, allocatable = part(status, "capacity"), part(status, "allocatable")
    shares = _shares(labels)
    advertised = parse_gpus(capacity.get(GPU_RESOURCE, 0), "node.status.capacity")
    usable = parse_gpus(allocatable.get(GPU_RESOURCE, 0), "node.status.allocatable")
    named = _first_whole(labels, ("karpenter.k8s.aws/instance-gpu-count", "nvidia.com/gpu.count"))
    taints = {str(taint.get("key", "")) for taint in spec.get("taints") or ()}
    condition = any(c.get("type") == "Ready" and c.get("status") == "True" for c in status.get("conditions") or ())
    leaving = bool(spec.get("unschedulable")) or "deletionTimestamp" in metadata or "karpenter.sh/disrupted" in taints
    return SeenNode(
        name=str(metadata.get("name", "")),
        pool=labels.get(NODEPOOL_LABEL),
        gpus=named or advertised // shares,
        shares=shares,
        created=moment_in(metadata.get("creationTimestamp"), "node.metadata.creationTimestamp"),
        ready=condition and usable > 0 and "karpenter.sh/unregistered" not in taints,
        cordoned=leaving,
        gpu_kind=labels.get("karpenter.k8s.aws/instance-gpu-name") or labels.get("nvidia.com/gpu.product"),
    )


def read_claim(document: Json) -> SeenClaim | None:
    """A NodeClaim, None while it is being deleted.

    Raises:
        Refused: no creation time, or GPU counts that are no quantities.
    """
    metadata, spec, status = part(document, "metadata"), part(document, "spec"), part(document, "status")
    if "deletionTimestamp" in metadata:
        return None
    labels = part(metadata, "labels")
    # What it was launched as, once known; until then what its pods ask for.
    asked = part(part(spec, "resources"), "requests").get(GPU_RESOURCE, 0)
    node = SeenNode(
        name=str(metadata.get("name", "")),
        pool=labels.get(NODEPOOL_LABEL),
        gpus=parse_gpus(part(status, "capacity").get(GPU_RESOURCE, asked), "nodeclaim.gpus"),
        shares=1,
        created=moment_in(metadata.get("creationTimestamp"), "nodeclaim.metadata.creationTimestamp"),
        ready=False,
        cordoned=False,
        gpu_kind=labels.get("karpenter.k8s.aws/instance-gpu-name"),
    )
    return SeenClaim(node, status.get("nodeName"))


def read_pod(document: Json) -> SeenPod | None:
    """A pod that asks for GPUs and has not ended; None for every other pod.

    Raises:
        Refused: a fractional or unreadable GPU request, or no creation time.
    """
    metadata, spec, status = part(document, "metadata"), part(document, "spec"), part(document, "status")
    if status.get("phase") in ("Succeeded", "Failed"):
        return None
    asked = _asked_gpus(spec)
    if asked == 0:
        return None
    namespace, name, labels = metadata.get("namespace", ""), metadata.get("name", ""), part(metadata, "labels")
    node = spec.get("nodeName") or None
    submit = moment_in(metadata.get("creationTimestamp"), "pod.metadata.creationTimestamp")
    started = status.get("startTime") if node else None
    owners = metadata.get("ownerReferences") or ()
    return SeenPod(
        Workload(
            id=f"{namespace}/{name}",
            gpus=float(asked),
            submit=submit,
            node=node,
            start=submit if node and not started else (moment_in(started, "pod.status.startTime") if started else None),
            pool=part(spec, "nodeSelector").get(NODEPOOL_LABEL),
            namespace=namespace or None,
            name=str(owners[0].get("name", name)) if owners else str(name),
            placeholder=labels.get(OWNED_LABEL) == "true",
        ),
        asked,
    )


def read_buffer(document: Json) -> tuple[str, WarmBuffer]:
    """The pool and the chunks of one of our CapacityBuffers.

    Raises:
        Refused: it lacks the label or the annotation that we write.
    """
    metadata = part(document, "metadata")
    pool = part(metadata, "labels").get(POOL_LABEL)
    chunk = part(metadata, "annotations").get(CHUNK_ANNOTATION)
    if pool is None:
        raise Refused("CapacityBuffer", metadata.get("name"), f"it lacks the label {POOL_LABEL}", "Restore it.")
    return str(pool), WarmBuffer(
        parse_gpus(part(document, "spec").get("replicas", 0), "CapacityBuffer.spec.replicas"),
        parse_gpus(chunk, f"CapacityBuffer {CHUNK_ANNOTATION}"),
    )


def read_slice_setting(document: Json) -> tuple[str, float]:
    """The pool and the slice length in minutes of one of our ConfigMaps.

    Raises:
        Refused: it lacks the label or the annotation that we write.
    """
    metadata = part(document, "metadata")
    pool, minutes = part(metadata, "labels").get(POOL_LABEL), _slice_minutes(metadata)
    if pool is None or minutes is None:
        raise Refused(
            "ConfigMap", metadata.get("name"), f"it lacks {POOL_LABEL} or {SLICE_LENGTH_ANNOTATION}", "Restore both."
        )
    return str(pool), minutes


def _asked_gpus(spec: Json) -> int:
    """GPU shares a pod asks for."""
    init = (
        ContainerAsk(_container_gpus(each), init=True, sidecar=each.get("restartPolicy") == "Always")
        for each in spec.get("initContainers") or ()
    )
    plain = (ContainerAsk(_container_gpus(each)) for each in spec.get("containers") or ())
    return int(effective_ask((*init, *plain)))


def _container_gpus(container: Json) -> int:
    resources = part(container, "resources")
    # Extended resources cannot be overcommitted: limits and requests are equal where both stand.
    found = part(resources, "limits").get(GPU_RESOURCE, part(resources, "requests").get(GPU_RESOURCE, 0))
    return parse_gpus(found, "pod.spec.containers.resources")


def _requirements(metadata: Json, template: Json) -> dict[str, tuple[str, ...] | None]:
    """Label key to the values allowed; empty where any value is, None where the label must be absent."""
    wanted: dict[str, tuple[str, ...] | None] = {key: (str(value),) for key, value in part(metadata, "labels").items()}
    for requirement in template.get("requirements") or ():
        key, operator = str(requirement.get("key", "")), requirement.get("operator")
        if operator == "In":
            wanted[key] = tuple(str(value) for value in requirement.get("values") or ())
        else:
            wanted[key] = None if operator == "DoesNotExist" else ()
    return wanted


def _sizes(wanted: Mapping[str, tuple[str, ...] | None]) -> frozenset[int]:
    counts = [
        value
        for key, values in wanted.items()
        if key.endswith(("/instance-gpu-count", "nvidia.com/gpu.count"))
        for value in values or ()
    ]
    return frozenset(int(count) for count in counts if count.isdecimal() and int(count) > 0)


def _single(wanted: Mapping[str, tuple[str, ...] | None], suffixes: tuple[str, ...]) -> str | None:
    values = {value for key, allowed in wanted.items() if key.endswith(suffixes) for value in allowed or ()}
    return values.pop() if len(values) == 1 else None


def _shares(labels: Json) -> int:
    if labels.get("nvidia.com/gpu.sharing-strategy") not in _SHARING_STRATEGIES:
        return 1
    return _first_whole(labels, ("nvidia.com/gpu.replicas",)) or 1


def _first_whole(labels: Json, keys: tuple[str, ...]) -> int | None:
    for key in keys:
        text = str(labels.get(key, ""))
        if text.isdecimal() and int(text) > 0:
            return int(text)
    return None


def _budgets(entries: Sequence[Json] | None) -> tuple[Budget, ...] | None:
    if entries is None:
        return None
    return tuple(
        Budget(
            str(entry.get("nodes", "10%")),
            tuple(entry["reasons"]) if entry.get("reasons") else None,
            entry.get("schedule"),
            entry.get("duration"),
        )
        for entry in entries
    )


def _slice_minutes(metadata: Json) -> float | None:
    text = part(metadata, "annotations").get(SLICE_LENGTH_ANNOTATION)
    return None if text is None else parse_duration(str(text), SLICE_LENGTH_ANNOTATION) / 60.0


def _managers(entries: Sequence[Json]) -> dict[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    for entry in entries:
        for path, field in _FIELD_PATHS.items():
            claimed: Any = entry.get("fieldsV1")
            for step in path:
                claimed = claimed.get(step) if isinstance(claimed, Mapping) else None
            manager = str(entry.get("manager", "?"))
            if claimed is not None and manager not in found.setdefault(field, []):
                found[field].append(manager)
    return {field: tuple(sorted(managers)) for field, managers in found.items() if managers}
