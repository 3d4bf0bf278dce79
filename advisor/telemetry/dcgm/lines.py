"""The labels of one series: which device, which pod, which node, which generation of the exporter.

Prometheus renames the exporter's ``pod`` to ``exported_pod`` unless it was told ``honorLabels``; then ``pod`` is the
exporter's own. So ``exported_*`` wins, and a plain ``pod`` counts only where it is not the exporter: its name or its
container says so, or another series of the same scrape target has an ``exported_pod``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from advisor.telemetry.dcgm.names import QUANTITIES, Quantity
from advisor.telemetry.dcgm.scales import Generation, Pool
from advisor.telemetry.prometheus.samples import Series

__all__ = ["Device", "Line", "Pod", "Target", "line_of", "renaming_targets"]

Target = tuple[str, str]
"""A scrape target: the ``job`` and ``instance`` labels."""

_EXPORTER = "dcgm-exporter"
_EXPORTER_CONTAINERS = frozenset({"exporter", "dcgm-exporter", "nvidia-dcgm-exporter"})
# The pods there hold a GPU in the name of others, whom the exporter does not know.
_RESERVING_NAMESPACES = frozenset({"kai-resource-reservation", "kai-scale-adjust"})
_OF_THE_CARD = frozenset({Quantity.POWER, Quantity.ENERGY, Quantity.XID})
_NEW_DRIVER_LABEL = "DCGM_FI_SYSTEM_DRIVER_VERSION"
_OLD_DRIVER_LABEL = "DCGM_FI_DRIVER_VERSION"


class Device(NamedTuple):
    """A whole GPU, or one MIG instance of it. ``gpu`` and ``device`` labels are no identity: they move at a reboot."""

    uuid: str
    instance: str | None = None


class Pod(NamedTuple):
    """A pod as the exporter names it; ``uid`` where it was told to."""

    namespace: str
    name: str
    uid: str | None = None


class Line(NamedTuple):
    """What the labels of one series say. ``node`` carries its rank, the more trusted the higher."""

    quantity: Quantity
    pool: Pool
    device: Device
    node: tuple[int, str]
    model: str
    pod: Pod | None
    container: str


def renaming_targets(series: Iterable[Series]) -> frozenset[Target]:
    """Targets whose own ``pod`` label is the exporter's, since they have series with an ``exported_pod``."""
    return frozenset(_target(one.labels) for one in series if "exported_pod" in one.labels)


def line_of(labels: Mapping[str, str], renaming: frozenset[Target], nodes: Mapping[str, str]) -> Line | None:
    """What ``labels`` say, or nothing where they name no device. The metric must be one of ``QUANTITIES``.

    ``nodes`` are node names by exporter pod or by address, for exporters that do not say theirs.
    """
    get = labels.get
    uuid = get("UUID") or get("uuid") or get("gpu_uuid")
    if not uuid:
        return None
    name = labels["__name__"]
    if _NEW_DRIVER_LABEL in labels:
        generation = Generation.NEW
    else:
        generation = Generation.OLD if _OLD_DRIVER_LABEL in labels else Generation.UNSAID
    quantity = QUANTITIES[name]
    instance, (pod, container) = get("GPU_I_ID") or None, _pod(labels, renaming)
    if instance is not None and quantity in _OF_THE_CARD:
        # Every instance shows the whole card's: one value of the card, and nobody's own.
        instance, pod, container = None, None, ""
    return Line(
        quantity,
        Pool(name, generation),
        Device(uuid, instance),
        _node(labels, nodes),
        get("modelName") or get("model_name") or get("model") or "",
        pod,
        container,
    )


def _pod(labels: Mapping[str, str], renaming: frozenset[Target]) -> tuple[Pod | None, str]:
    get = labels.get
    name = get("exported_pod") or get("exported_pod_name")
    if name:
        space = get("exported_namespace") or get("exported_pod_namespace") or get("pod_namespace") or ""
        container = get("exported_container") or get("exported_container_name") or get("container_name") or ""
    elif name := get("pod_name"):
        space, container = get("pod_namespace") or "", get("container_name") or ""
    else:
        name = get("pod")
        if not name or _is_exporter(name, labels, renaming):
            return None, ""
        space, container = get("namespace") or "", get("container") or ""
    if space in _RESERVING_NAMESPACES:
        return None, ""
    return Pod(space, name, get("exported_pod_uid") or get("pod_uid") or None), container


def _is_exporter(name: str, labels: Mapping[str, str], renaming: frozenset[Target]) -> bool:
    if _EXPORTER in name or labels.get("container") in _EXPORTER_CONTAINERS:
        return True
    return bool(renaming) and _target(labels) in renaming


def _target(labels: Mapping[str, str]) -> Target:
    return labels.get("job", ""), labels.get("instance", "")


def _node(labels: Mapping[str, str], nodes: Mapping[str, str]) -> tuple[int, str]:
    """The best name there is: a host's, else what a relabelling added, else what ``nodes`` know, else the address."""
    get = labels.get
    host = get("hostname") or get("Hostname") or ""
    if host and host not in nodes and _EXPORTER not in host and host != get("pod"):
        return 4, host
    if named := get("node") or get("kubernetes_node") or get("node_name"):
        return 3, named
    instance = get("instance") or ""
    address = instance.rpartition(":")[0] or instance
    for known in (host, get("pod") or "", address, instance):
        if known in nodes:
            return 2, nodes[known]
    return (1, address) if address else (0, host)
