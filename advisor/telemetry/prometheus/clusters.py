"""How many clusters a metrics server tells of: read as one, what is called alike in two of them would be mixed up."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from advisor.telemetry.prometheus.client import PrometheusClient
from advisor.telemetry.prometheus.samples import Series
from advisor.telemetry.prometheus.selectors import Matcher, Selector

__all__ = ["Clusters", "clusters_seen"]

_MOST_NAMED = 10
_PODS = Selector("kube_pod_created")
_OLDEST = "kube_namespace_created"
_EVERY_CLUSTER_HAS = "kube-system"
_COSTS = "their demand adds up, and nodes and Jobs that are called alike are taken for one"
_BY_NAME = "Read one by its name (--cluster, or prometheus.cluster), each into a history of its own (storage.home)."
_BY_LABEL = "Give each cluster's Prometheus an external label, and name that in prometheus.cluster_label."


class Clusters(NamedTuple):
    """What was found: the ``names`` by ``label``, and how many (``number``) share what is read, None if not told."""

    label: str
    names: tuple[str, ...]
    number: int | None

    @property
    def mixed(self) -> bool:
        """Whether several would be read as one."""
        return self.number is not None and self.number > 1

    @property
    def costs(self) -> str:
        """What that costs, nothing where there is one."""
        return _COSTS if self.mixed else ""

    @property
    def remedy(self) -> str:
        """How it is mended."""
        return "" if not self.mixed else _BY_NAME if len(self.names) > 1 else _BY_LABEL

    def __str__(self) -> str:
        """As people are told."""
        if len(self.names) > 1:
            more = " and others" if len(self.names) > _MOST_NAMED else ""
            return f"{len(self.names)} by the label {self.label}: {', '.join(self.names[:_MOST_NAMED])}{more}"
        if self.mixed:
            called = f"all called {self.names[0]}" if self.names else "which have no such label"
            return f"{self.number}, and by the label {self.label} {called}"
        if self.number is None:
            return f"not told: neither the label {self.label} nor {_OLDEST} is there"
        return "one" + "".join(f", {name}" for name in self.names)


def clusters_seen(client: PrometheusClient, start: datetime, now: datetime) -> Clusters:
    """The clusters of which pods were told between ``start`` and ``now``; with a cluster asked for, of those so called.

    Where no label tells them apart, the system's namespace does, which each cluster has made at a moment of its own.

    Raises:
        Refused, Transient: as the client says.
    """
    label = client.options.cluster_label
    names = tuple(name for name in client.label_values(label, [_PODS], start, now) if name)
    if client.options.cluster is not None:
        # Some servers tell of values that were not asked for.
        names = tuple(name for name in names if name == client.options.cluster)
    made = len({float(each.values[-1]) for each in _systems(client, now)})
    known = max(len(names), made)
    return Clusters(label, names, known or None)


def _systems(client: PrometheusClient, now: datetime) -> list[Series]:
    """When the system's namespace was made, by each cluster and each copy of kube-state-metrics."""
    renamed = client.instant(Selector(_OLDEST, (Matcher("exported_namespace", "=", _EVERY_CLUSTER_HAS),)), now)
    if renamed:
        # The label ``namespace`` is then that of kube-state-metrics itself.
        return renamed
    own = Selector(_OLDEST, (Matcher("namespace", "=", _EVERY_CLUSTER_HAS), Matcher("exported_namespace", "=", "")))
    return client.instant(own, now)
