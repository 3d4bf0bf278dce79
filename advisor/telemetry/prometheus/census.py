"""How many GPUs each node has, counted by what dcgm-exporter shows, for nodes whose labels do not say how they share."""

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
_SHARING = (
    NODE_LABELS.index("label_nvidia_com_gpu_replicas"),
    NODE_LABELS.index("label_nvidia_com_gpu_sharing_strategy"),
)
_SHOWN_BY = (Quantity.UTILISATION, Quantity.ENGINE_ACTIVE, Quantity.MEMORY_USED)


def gpus_by_node(queries: Queries, facts: KubeFacts, start: datetime, now: datetime) -> dict[str, int]:
    """The most GPUs (by UUID) seen on a node within any hour, by name; nothing is asked where labels tell.

    Raises:
        Refused, Transient: as the client says.
    """
    if all(_says_how_it_shares(node.ever("kube_node_labels")) for node in facts.nodes.values()):
        return {}
    window = Window.over(start, now, HOUR)
    by = ",".join(_HOSTS)
    found: dict[str, int] = {}
    names = [name for wanted in _SHOWN_BY for name, quantity in QUANTITIES.items() if quantity is wanted]
    for name in names:
        each = f"max_over_time({queries.text(Selector(name))}[{HOUR}s])"
        query = f"count by ({by}) (count by ({by},UUID) ({each}))"
        for (answer,) in queries.ranges([query], window):
            for series in answer:
                host = next((series.labels[label] for label in _HOSTS if series.labels.get(label)), "")
                found[host] = max(found.get(host, 0), int(series.values.max()))
        if found:
            break
    return found


def _says_how_it_shares(labels: list[tuple[str, ...]]) -> bool:
    return any(told[place] for told in labels for place in _SHARING)
