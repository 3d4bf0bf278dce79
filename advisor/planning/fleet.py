"""GPU shares over time: the working state of one allocation, built from a snapshot and thrown away after it.

Times are seconds from now; 0 or less is free now, infinite is not known. One row is one node.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from advisor.domain.forecasts import DurationDistribution
from advisor.domain.gpus import GpuShare
from advisor.domain.nodepools import Node, NodePool, Workload
from advisor.domain.units import SECONDS_PER_DAY
from advisor.planning.allocation_terms import AllocationTerms

__all__ = ["CELL_MIDDLES", "CELL_WIDTHS", "Fleet", "Need", "Outlook", "build_fleet"]

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]

_CELLS = 14
_EDGES = np.concatenate([[0.0], 7 * SECONDS_PER_DAY / 2.0 ** np.arange(_CELLS - 1, -1, -1)])
CELL_MIDDLES: Floats = (_EDGES[1:] + _EDGES[:-1]) / 2.0
"""Moments (seconds from now) at which survival is read: 14 doubling cells up to a week."""
CELL_WIDTHS: Floats = np.diff(_EDGES)

_YOUNGEST_SECONDS = 60.0
_OVERDUE_SECONDS = 60.0
_START_TIMEOUT_SECONDS = 900.0


@dataclass(frozen=True, slots=True)
class Need:
    """What one node must give: whole ``gpus``, or ``shares`` of a single GPU."""

    gpus: int = 0
    shares: int = 0


@dataclass(frozen=True, slots=True)
class Outlook:
    """What a fleet is built with: the moment, the terms, and how long the running workloads still need."""

    now: datetime
    terms: AllocationTerms
    remaining: Mapping[str, DurationDistribution]


class Fleet:
    """The shares of one pool over time. Rows are ordered oldest node first, so the first of equals is the oldest.

    ``free_at`` [row, gpu, share] is when each share becomes free. ``ended`` [row, cell] is the chance that
    everything on a node has ended by then. ``coming`` marks nodes that are booting or were asked for here.
    """

    def __init__(self, pool: NodePool, nodes: list[Node], headroom_gpus: int) -> None:
        self.pool = pool
        self.replicas = pool.sharing_factor
        self.headroom_gpus = headroom_gpus
        self.names = [node.name for node in nodes]
        self._row_by_name = {name: row for row, name in enumerate(self.names)}
        self.kinds = np.array([node.gpu_kind or pool.gpu_kind or "" for node in nodes], dtype=object)
        self.created = [node.created.timestamp() for node in nodes]
        most = max([node.gpus for node in nodes] + [pool.largest_node_gpus])
        self.sizes = np.array([node.gpus for node in nodes], dtype=np.int64)
        self.free_at = np.full((len(nodes), most, self.replicas), np.inf)
        for row, node in enumerate(nodes):
            self.free_at[row, : node.gpus] = 0.0
        self.ended = np.ones((len(nodes), _CELLS))
        self.coming = np.zeros(len(nodes), dtype=bool)
        self._gpu_free = np.empty((len(nodes), most))
        self._share_free = np.empty((len(nodes), self.replicas + 1))
        self.idle = np.empty(len(nodes), dtype=np.int64)
        for row in range(len(nodes)):
            self._refresh(row)

    def earliest(self, need: Need, kind: str | None = None) -> Floats:
        """When each node can first give ``need`` at once, in seconds from now; infinite where never or unknown."""
        if need.gpus > self._gpu_free.shape[1]:
            return np.full(len(self.names), np.inf)
        times: Floats = self._gpu_free[:, need.gpus - 1] if need.gpus else self._share_free[:, need.shares]
        if kind is None:
            return times
        return np.where(self.kinds == kind, times, np.inf)

    def take(self, row: int, need: Need, start: float, until: float) -> tuple[GpuShare, ...]:
        """Occupy ``need`` on a node from ``start`` to ``until`` and say which shares: lowest GPU first, tightest first.

        For a share the GPU with the fewest shares left is taken, so that whole GPUs stay whole.
        """
        free = self.free_at[row] <= start
        if need.gpus:
            gpus = np.flatnonzero(free.all(axis=1))[: need.gpus]
            picked = [(int(gpu), share) for gpu in gpus for share in range(self.replicas)]
        else:
            counts = free.sum(axis=1)
            gpu = int(np.argmin(np.where(counts >= need.shares, counts, self.replicas + 1)))
            picked = [(gpu, int(share)) for share in np.flatnonzero(free[gpu])[: need.shares]]
        chosen, parts = zip(*picked, strict=True)
        self.free_at[row, list(chosen), list(parts)] = until
        self._refresh(row)
        return tuple(GpuShare(self.names[row], gpu, share, self.replicas) for gpu, share in picked)

    def occupy(self, row: int, workload: Workload, outlook: Outlook) -> None:
        """Put a running workload on its node: on whole GPUs if there are, else on any idle shares there are.

        Which GPUs it really holds is not seen, and readings may be stale; what counts is that none of
        its shares is taken for idle.
        """
        known = outlook.remaining.get(workload.id)
        until = np.inf if known is None else known.quantile(outlook.terms.duration_level)
        whole, rest = divmod(max(1, round(workload.gpus * self.replicas)), self.replicas)
        free = int((self._gpu_free[row] <= 0.0).sum())
        scattered = max(0, whole - free) * self.replicas
        if min(whole, free):
            self.take(row, Need(gpus=min(whole, free)), 0.0, until)
        if rest and self._share_free[row, rest] <= 0.0:
            self.take(row, Need(shares=rest), 0.0, until)
        else:
            scattered += rest
        if scattered:
            gpus, shares = np.nonzero(self.free_at[row] <= 0.0)
            self.free_at[row, gpus[:scattered], shares[:scattered]] = until
            self._refresh(row)
        self.ended[row] *= _ended(workload, known, outlook.now)

    def hold(self, row: int, shares: Sequence[GpuShare], until: float) -> None:
        """Move on the time at which shares that are already held become free; never back."""
        for share in shares:
            self.free_at[row, share.gpu, share.share] = max(until, self.free_at[row, share.gpu, share.share])
        self._refresh(row)

    def row_of(self, node: str) -> int:
        """The row of a node by its name."""
        return self._row_by_name[node]

    def kind_of(self, node: str) -> str:
        """The GPU kind of a node, empty where nobody states it."""
        return str(self.kinds[self.row_of(node)])

    def start_later(self, row: int, seconds: float) -> None:
        """Nothing on this node before ``seconds`` from now: it boots."""
        self.free_at[row] = np.maximum(self.free_at[row], seconds)
        self.coming[row] = True
        self._refresh(row)

    def launch(self, gpus: int, ready_seconds: float, name: str, created: float) -> int:
        """Add the row of a node that is to be started, and take it off the headroom."""
        free = np.full((1, self.free_at.shape[1], self.replicas), np.inf)
        free[0, :gpus] = ready_seconds
        self.free_at = np.concatenate([self.free_at, free])
        self.ended = np.concatenate([self.ended, np.ones((1, _CELLS))])
        self.sizes = np.append(self.sizes, gpus)
        self.coming = np.append(self.coming, True)
        self.idle = np.append(self.idle, 0)
        self._gpu_free = np.concatenate([self._gpu_free, np.empty((1, self._gpu_free.shape[1]))])
        self._share_free = np.concatenate([self._share_free, np.empty((1, self.replicas + 1))])
        self.names.append(name)
        self.kinds = np.append(self.kinds, self.pool.gpu_kind or "")
        self.created.append(created)
        self.headroom_gpus -= gpus
        row = len(self.names) - 1
        self._row_by_name[name] = row
        self._refresh(row)
        return row

    def _refresh(self, row: int) -> None:
        shares = self.free_at[row]
        self._gpu_free[row] = np.sort(shares.max(axis=1))
        self._share_free[row, 0] = 0.0
        self._share_free[row, 1:] = np.sort(shares, axis=1).min(axis=0)
        self.idle[row] = int((shares <= 0.0).sum())


def build_fleet(
    pool: NodePool, nodes: list[Node], workloads: Mapping[str, list[Workload]], headroom_gpus: int, outlook: Outlook
) -> Fleet:
    """The fleet of one pool as it stands: running work on its nodes, placeholders as free, booting nodes as coming."""
    usable = sorted((node for node in nodes if not node.cordoned), key=lambda node: (node.created, node.name))
    fleet = Fleet(pool, usable, headroom_gpus)
    for row, node in enumerate(usable):
        running = [w for w in workloads.get(node.name, []) if not w.placeholder]
        for workload in sorted(running, key=lambda w: (-w.gpus, w.start or w.submit, w.id)):
            fleet.occupy(row, workload, outlook)
        if not node.ready:
            fleet.start_later(row, _until_ready(node, outlook))
    return fleet


def _until_ready(node: Node, outlook: Outlook) -> float:
    """Seconds until a booting node is expected; an overdue one any moment, past the start-up timeout unknown."""
    age, latency = (outlook.now - node.created).total_seconds(), outlook.terms.start_latency_of(node.pool)
    if age > max(_START_TIMEOUT_SECONDS, latency):
        return float(np.inf)
    return max(latency - age, _OVERDUE_SECONDS)


def _ended(workload: Workload, remaining: DurationDistribution | None, now: datetime) -> Floats:
    """The chance that a running workload has ended by each cell's middle.

    Without a prediction its age alone tells: even odds of lasting as long again (Lindy's rule).
    """
    if remaining is not None:
        return 1.0 - remaining.survival_at(CELL_MIDDLES)
    age = (now - (workload.start or workload.submit)).total_seconds()
    return CELL_MIDDLES / (CELL_MIDDLES + max(age, _YOUNGEST_SECONDS))
