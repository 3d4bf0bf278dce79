"""Our own policy: order by what remains, place by expected extension, keep warm, move, and lease under a quota."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from advisor.domain.units import SECONDS_PER_DAY
from advisor.errors import Refused
from advisor.simulator.cluster import SimulatedCluster
from advisor.simulator.foresight import Foresight
from advisor.simulator.nodes import SimulatedNode
from advisor.simulator.policies.backfilling import Backfilling
from advisor.simulator.policies.leases import Leases
from advisor.simulator.policies.lines import missing_nodes
from advisor.simulator.policies.moving import Moving
from advisor.simulator.policies.placing import Placing
from advisor.simulator.policies.warmth import WARM_EVERY_SECONDS, Warmth
from advisor.simulator.tasks import Task

__all__ = ["Recipe", "RecipeTerms"]

_URGENT = -1e6
_WARM, _MOVE, _COMMON = "warm", "move", "common boundary"


@dataclass(frozen=True, slots=True, kw_only=True)
class RecipeTerms:
    """What the policy does, and how eagerly.

    ``warm_level`` is the quantile of the rises kept ready, 0 for none; ``moves`` and ``leases`` say whether running
    work is moved and, while the quota is reached, stopped at the end of its lease of ``lease_seconds``; ``reserves``
    whether, while it is reached, nodes are held for the first job of several GPUs that does not fit.
    ``patience_days`` of waiting make up for a remaining time e times longer.
    """

    warm_level: float = 0.95
    moves: bool = True
    leases: bool = False
    reserves: bool = False
    lease_seconds: float = 900.0
    patience_days: float = 3.0

    def __post_init__(self) -> None:
        """Check the numbers.

        Raises:
            Refused: a level outside [0, 1), or a lease or patience that is not above 0.
        """
        if not 0.0 <= self.warm_level < 1.0:
            raise Refused("warm_level", self.warm_level, "a level lies in [0, 1)", "Use 0.95, or 0 for none.")
        for name in ("lease_seconds", "patience_days"):
            if not getattr(self, name) > 0:
                raise Refused(name, getattr(self, name), "it must be above 0", "Use the default.")


class Recipe(Backfilling):
    """The whole recipe; its parts are switched by :class:`RecipeTerms`.

    The key of a job is ln V + submission / patience, V being the median of what remains and, of a job that has been
    stopped, the switch. While nodes boot, idle ones are held for waiting work of several nodes.
    """

    large_only = True

    def __init__(self, foresight: Foresight, terms: RecipeTerms | None = None) -> None:
        super().__init__(foresight)
        self.terms = chosen = terms or RecipeTerms()
        self.reserves = chosen.reserves
        self._placing = Placing(foresight)
        self._moving = Moving(self._placing)
        self._leases = Leases(foresight, self.lines, self._key_of, self.submitted)
        self._warmth = Warmth(chosen.warm_level) if chosen.warm_level > 0 else None
        self.lease_seconds = chosen.lease_seconds if chosen.leases else None
        wanted = {_WARM: (WARM_EVERY_SECONDS, chosen.warm_level > 0), _MOVE: (300.0, chosen.moves)}
        wanted[_COMMON] = (chosen.lease_seconds, chosen.leases)
        self.ticks: Mapping[str, float] = {name: every for name, (every, due) in wanted.items() if due}

    def key(self, cluster: SimulatedCluster, task: Task) -> float:
        """Urgent first, then short ones, then those that have waited long."""
        restore = cluster.terms.switch_seconds if task.run else 0.0
        return self._key_of(task, self.foresight.remaining(task.place, task.done) + restore)

    def _key_of(self, task: Task, remaining: float) -> float:
        key = math.log(remaining) + task.job.submit / (self.terms.patience_days * SECONDS_PER_DAY)
        return key + _URGENT if task.job.urgent else key

    def pick(
        self, cluster: SimulatedCluster, task: Task, nodes: Sequence[SimulatedNode] | None
    ) -> tuple[SimulatedNode, ...] | None:
        """By expected extension, sparing idle nodes that wait for their partners to boot."""
        size = cluster.terms.node_gpus
        if task.gpus <= size < self.lines.largest() and cluster.booting:
            held = cluster.terms.nodes_for(self.lines.largest())
            idle = {node.number for node in cluster.idle_nodes()[:held]}
            there = cluster.with_room(task.gpus) if nodes is None else nodes
            nodes = [node for node in there if node.number not in idle]
        return self._placing.choose(cluster, task, nodes)

    def boundary(self, cluster: SimulatedCluster, task: Task) -> None:
        """Renew the lease, unless somebody else is better served."""
        self._leases.own_boundary(cluster, task)

    def tick(self, cluster: SimulatedCluster, name: str) -> None:
        """Record the need, end leases together, or empty nodes while nobody waits."""
        if name == _WARM and self._warmth is not None:
            self._warmth.record(cluster.running_gpus + self.lines.demand())
        elif name == _COMMON:
            self._leases.common_boundary(cluster)
        elif name == _MOVE and not self.lines:
            self._moving.round(cluster)

    def nodes_wanted(self, cluster: SimulatedCluster) -> int:
        """Enough for all that wait, and for the warm target beyond."""
        missing = missing_nodes(self.lines, cluster)
        if self._warmth is None or not self._warmth.target:
            return missing
        short = self._warmth.target - self._spare(cluster) - missing * cluster.terms.node_gpus
        return missing + max(0, math.ceil(short / cluster.terms.node_gpus))

    def may_go(self, cluster: SimulatedCluster, node: SimulatedNode) -> bool:
        """As always, unless it holds part of the warm target."""
        if not super().may_go(cluster, node):
            return False
        return self._warmth is None or self._spare(cluster) - node.size >= self._warmth.target

    def _spare(self, cluster: SimulatedCluster) -> float:
        """GPUs free and booting, less those waited for."""
        return cluster.free_gpus + len(cluster.booting) * cluster.terms.node_gpus - self.lines.demand()
