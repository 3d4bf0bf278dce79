"""How many GPUs each node has by what dcgm-exporter shows, for nodes whose labels do not say how they share."""

from __future__ import annotations

from datetime import datetime

from advisor.telemetry.dcgm.names import QUANTITIES, Quantity
from advisor.telemetry.prometheus.kube_facts import KubeFacts
from advisor.telemetry.prometheus.kube_history import Queries
from advisor.telemetry.prometheus.kube_queries import HOUR, NODE_LABELS
from advisor.telemetry.prometheus.ranges import Window
from advisor.telemetry.prometheus.selectors import Selector

__all__ = ["gpus_by_node"]

_HOSTS = ("hostname", "Hostname", "node")
_TELLING = ("label_nvidia_com_gpu_replicas", "label_nvidia_com_gpu_sharing_strategy")
_SHOWN_BY = (Quantity.UTILISATION, Quantity.ENGINE_ACTIVE, Quantity.MEMORY_USED)


def gpus_by_node(queries: Queries, facts: KubeFacts, start: datetime, now: datetime) -> dict[str, int]:
    """How many GPUs (by UUID) were ever seen on a node, by its name; nothing is asked where labels tell.

    Some exporters hide GPUs that idle, so that at any one time they may show too few.

    Raises:
        Refused, Transient: as the client says.
    """
    if all(_says_how_it_shares(node.ever("kube_node_labels")) for node in facts.nodes.values()):
        return {}
    window = Window.over(start, now, HOUR)
    by = ",".join(_HOSTS)
    found: dict[str, set[str]] = {}
    names = [name for wanted in _SHOWN_BY for name, quantity in QUANTITIES.items() if quantity is wanted]
    for name in names:
        query = f"count by ({by},UUID) (last_over_time({queries.text(Selector(name))}[{HOUR}s]))"
        for (answer,) in queries.ranges([query], window):
            for series in answer:
                host = next((series.labels[label] for label in _HOSTS if series.labels.get(label)), "")
                found.setdefault(host, set()).add(series.labels.get("UUID", ""))
        if found:
            break
    return {host: len(devices) for host, devices in found.items()}


def _says_how_it_shares(labels: list[tuple[str, ...]]) -> bool:
    return any(told[NODE_LABELS.index(label)] for told in labels for label in _TELLING)
