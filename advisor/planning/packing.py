"""Places pods one by one where that costs least, and remembers the costs of what has not changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from advisor.domain.packing import HostShape, PodShape
from advisor.planning.packing_costs import PlacementCost
from advisor.planning.packing_state import PackingState

__all__ = ["Packer", "Placed"]


@dataclass(frozen=True, slots=True, eq=False)
class Placed:
    """A pod on the node at ``row``; ``taken`` (GPUs,) is what it holds of each GPU, in thousandths."""

    shape: PodShape
    row: int
    taken: NDArray[np.int64]


class _Costs:
    """What one shape costs on every node, as of the versions the nodes had; infinite where it does not fit."""

    __slots__ = ("first", "node", "version")

    def __init__(self, nodes: int) -> None:
        self.node = np.full(nodes, np.inf)
        self.first = np.full(nodes, -1, dtype=np.int64)
        self.version = np.full(nodes, -1, dtype=np.int64)


class Packer:
    """A set of nodes filled by one cost. Deterministic: of equal costs the first node in the given order."""

    def __init__(self, hosts: Sequence[HostShape], cost: PlacementCost) -> None:
        self.state = PackingState(hosts)
        self._cost = cost
        self._version = np.zeros(len(hosts), dtype=np.int64)
        self._known: dict[PodShape, _Costs] = {}

    def costs(self, shape: PodShape) -> NDArray[np.float64]:
        """What ``shape`` costs on each node in its best place there, (nodes,); infinite where it does not fit."""
        return self._costs(shape).node

    def place(self, shape: PodShape) -> Placed | None:
        """Put a pod where it costs least; None where it fits nowhere."""
        costs = self._costs(shape)
        row = int(np.argmin(costs.node)) if costs.node.size else 0
        if not costs.node.size or not np.isfinite(costs.node[row]):
            return None
        return self.put(shape, row)

    def put(self, shape: PodShape, row: int) -> Placed:
        """Put a pod on the node at ``row``, where it must fit, on the GPUs that cost least there."""
        taken = self.state.take(shape, row, int(self._costs(shape).first[row]))
        self._version[row] += 1
        return Placed(shape, row, taken)

    def remove(self, placed: Placed) -> None:
        """Give back what a pod held."""
        self.state.give_back(placed.shape, placed.row, placed.taken)
        self._version[placed.row] += 1

    def _costs(self, shape: PodShape) -> _Costs:
        known = self._known.get(shape)
        if known is None:
            known = self._known[shape] = _Costs(len(self.state))
        stale = np.flatnonzero(known.version != self._version)
        if stale.size:
            options = self.state.options(shape, stale)
            costs = np.where(options.fits, self._cost(options), np.inf)
            best = np.argmin(costs, axis=1)
            at = np.arange(stale.size)
            known.node[stale] = costs[at, best]
            known.first[stale] = options.first[at, best]
            known.version[stale] = self._version[stale]
        return known
