"""Capacity for the highest need of late: the usual heuristic of autoscalers without a forecast."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping
from types import MappingProxyType

from advisor.simulator.cluster import SimulatedCluster
from advisor.simulator.nodes import SimulatedNode
from advisor.simulator.policies.fifo import Karpenter

__all__ = ["TrailingMaximum"]

_TICK = "need"
_EVERY_SECONDS = 120.0


class TrailingMaximum(Karpenter):
    """As Karpenter, and never fewer nodes than the highest need of the last ``window_seconds`` fills."""

    ticks: Mapping[str, float] = MappingProxyType({_TICK: _EVERY_SECONDS})

    def __init__(self, window_seconds: float = 3600.0) -> None:
        super().__init__()
        self._needs: deque[float] = deque(maxlen=max(1, round(window_seconds / _EVERY_SECONDS)))

    def tick(self, cluster: SimulatedCluster, name: str) -> None:
        """Record the need: GPUs running and waited for."""
        del name
        self._needs.append(cluster.running_gpus + self.lines.demand())

    def nodes_wanted(self, cluster: SimulatedCluster) -> int:
        """Enough for all that wait, and for the highest need of late."""
        return max(super().nodes_wanted(cluster), self._target(cluster) - self._there(cluster))

    def may_go(self, cluster: SimulatedCluster, node: SimulatedNode) -> bool:
        """Only what lies above the target."""
        return super().may_go(cluster, node) and self._there(cluster) > self._target(cluster)

    def _target(self, cluster: SimulatedCluster) -> int:
        return math.ceil(max(self._needs, default=0.0) / cluster.terms.node_gpus)

    def _there(self, cluster: SimulatedCluster) -> int:
        return len(cluster.ready) + len(cluster.booting)
