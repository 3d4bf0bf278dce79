"""What goes wrong between a world and its reader. What it does to the truth follows from the scrapes that are left.

An outage and a restart leave gaps: what vanished in one has no known end (:mod:`.observer`). A pair of servers and a
change of labels change nothing that is true. Skewed clocks move moments by their seconds.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

import numpy as np

from advisor.telemetry.prometheus.samples import Series
from tests.telemetry_world.exposition import KSM_JOB, Telemetry

__all__ = ["ClockSkew", "KubeStateRestart", "Outage", "ha_pair", "relabelled_halfway"]

_BY_KUBELET = ("kube_pod_start_time", "kube_pod_container_state_started", "kube_pod_completion_time")


@dataclass(frozen=True, slots=True)
class Outage:
    """Prometheus itself is away: no sample of anything from ``begin`` on and before ``end``."""

    begin: float
    end: float

    def changed(self, series: Series) -> Iterable[Series]:
        """``series`` without the samples of that time."""
        yield _without(series, self.begin, self.end)


@dataclass(frozen=True, slots=True)
class KubeStateRestart:
    """kube-state-metrics cannot be scraped for ``seconds``: ``up`` says 0, and nothing else is there of it."""

    at: float
    seconds: float = 180.0

    def changed(self, series: Series) -> Iterable[Series]:
        """``series`` with the hole."""
        if series.labels["job"] != KSM_JOB:
            yield series
        elif series.labels["__name__"] == "up":
            down = (series.times >= self.at) & (series.times < self.at + self.seconds)
            yield series._replace(values=np.where(down, 0.0, series.values))
        else:
            yield _without(series, self.at, self.at + self.seconds)


@dataclass(frozen=True, slots=True)
class ClockSkew:
    """The kubelets' clocks are ``kubelet_seconds`` ahead of the API server's, the scraper's ``scraper_seconds``."""

    kubelet_seconds: float = 3.0
    scraper_seconds: float = 0.0

    def changed(self, series: Series) -> Iterable[Series]:
        """``series`` by those clocks."""
        ahead = self.kubelet_seconds if series.labels["__name__"] in _BY_KUBELET else 0.0
        yield series._replace(times=series.times + self.scraper_seconds, values=series.values + ahead)


def ha_pair(telemetry: Telemetry, label: str = "prometheus_replica") -> Telemetry:
    """The same targets scraped by two servers at moments of their own, whose series differ in ``label``."""
    return replace(telemetry, replicas=("a", "b"), replica_label=label)


def relabelled_halfway(telemetry: Telemetry) -> Telemetry:
    """From the middle of the world on the host's label is written small and the exporters' labels are left alone."""
    middle = (telemetry.world.start + telemetry.world.end) / 2
    other = replace(telemetry.dialect, host_label="hostname", honor_labels=True)
    return replace(telemetry, then=(middle, other))


def _without(series: Series, begin: float, end: float) -> Series:
    first, last = np.searchsorted(series.times, [begin, end])
    if first == last:
        return series
    kept = np.r_[0:first, last : len(series.times)]
    return series._replace(times=series.times[kept], values=series.values[kept])
