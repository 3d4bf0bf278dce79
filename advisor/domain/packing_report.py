"""Measured quality of packing: what each policy allocates, and what it costs where pods and nodes come and go."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from advisor.domain.reports import RunProtocol

__all__ = ["DepartureScores", "PackingReport", "PackingScores"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DepartureScores:
    """One policy where pods come and go, in the mean over the seeds.

    ``node_hours_over_bound_percent``, ``boots`` and ``mean_wait_seconds`` are of an autoscaled pool of one node
    kind: node-hours above what free repacking would need. ``gpus_on_empty_nodes`` is of the fixed nodes given.
    """

    node_hours_over_bound_percent: float
    node_hours: float
    gpus_on_empty_nodes: float
    boots: float
    mean_wait_seconds: float
    delayed_percent: float

    def to_json(self) -> dict[str, float]:
        """As part of one entry of ``policies``."""
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True, kw_only=True)
class PackingScores:
    """One policy on arrivals without departures: per cent of all GPUs, one value a seed and their mean.

    ``fragmented_percent`` is what is free but of no use to what usually comes.
    """

    allocated_percent: tuple[float, ...]
    fragmented_percent: float
    departures: DepartureScores | None = None

    @property
    def mean_allocated_percent(self) -> float:
        """Over the seeds."""
        return sum(self.allocated_percent) / len(self.allocated_percent)

    def to_json(self) -> dict[str, Any]:
        """As one entry of ``policies``."""
        document: dict[str, Any] = {
            "allocated_percent": list(self.allocated_percent),
            "mean_allocated_percent": self.mean_allocated_percent,
            "fragmented_percent": self.fragmented_percent,
        }
        return document | ({} if self.departures is None else self.departures.to_json())


@dataclass(frozen=True, slots=True, kw_only=True)
class PackingReport:
    """Every policy on the same pods in the same order."""

    protocol: RunProtocol
    policies: dict[str, PackingScores]

    def to_json(self) -> dict[str, Any]:
        """The document of ``gsa evaluate packing``."""
        return {
            "protocol": self.protocol.to_json(),
            "policies": {name: scores.to_json() for name, scores in self.policies.items()},
        }
