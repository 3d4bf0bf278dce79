"""The jobs running now, to be asked who of them shares a leaf with a job, at which age."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from advisor.domain.jobs import JobIdentity
from advisor.forecast.grid import LogGrid

__all__ = ["RunningJobs", "Sharing"]

Floats = NDArray[np.float64]
LeafIndices = NDArray[np.int32]

_MANY = 5000
"""From so many on they are looked up by leaf: below, one comparison of them all is faster."""
_FEW = _MANY // 2
"""Below so many the leaves are let go; the gap keeps a number that sways from building them over and over."""
_SMALL = 800
"""Up to so many in a leaf are named one by one, which is faster than adding them up by age first."""


class Sharing(NamedTuple):
    """Who shares a leaf with one job: the trees, the cells of their ages, their weights; some added up already."""

    trees: NDArray[np.intp]
    cells: NDArray[np.intp]
    weights: Floats


class RunningJobs:
    """Jobs running now, as rows that one comparison can search: leaves, start and weight of each."""

    def __init__(self, trees: int, grid: LogGrid) -> None:
        self._place: dict[JobIdentity, int] = {}
        self._jobs: list[JobIdentity] = []
        self._leaves = np.zeros((64, trees), dtype=np.int32)
        self._trees = trees
        self._grid = grid
        # From where on an age lies in the last cell, the one before it, and so on down to the second.
        self._ages = np.exp(grid.step * np.arange(grid.cells - 1, 0, -1))
        self._start = np.zeros(64)
        self._weight = np.zeros(64)
        self._by_leaf: list[dict[int, _Leaf]] = []

    def __len__(self) -> int:
        """How many run."""
        return len(self._jobs)

    def add(self, job: JobIdentity, leaves: LeafIndices, start: float, weight: float) -> None:
        """A job began to run at ``start`` (Unix seconds); one that runs already is passed over."""
        if job in self._place:
            return
        place = len(self._jobs)
        if place == self._start.size:
            self._leaves = np.concatenate([self._leaves, np.zeros_like(self._leaves)])
            self._start = np.concatenate([self._start, np.zeros_like(self._start)])
            self._weight = np.concatenate([self._weight, np.zeros_like(self._weight)])
        self._place[job] = place
        self._jobs.append(job)
        self._leaves[place] = leaves
        self._start[place] = start
        self._weight[place] = weight
        if self._by_leaf:
            for of_tree, leaf in zip(self._by_leaf, leaves.tolist(), strict=True):
                if leaf not in of_tree:
                    of_tree[leaf] = _Leaf(np.zeros(0), np.zeros(0))
                of_tree[leaf].add(start, weight)
        elif len(self._jobs) > _MANY:
            self._by_leaf = self._leaves_of_all()

    def remove(self, job: JobIdentity) -> None:
        """It runs no more; the gap is closed with the last row, so that rows stay together."""
        place = self._place.pop(job, None)
        if place is None:
            return
        for of_tree, leaf in zip(self._by_leaf, self._leaves[place].tolist(), strict=False):
            of_tree[leaf].remove(float(self._start[place]), float(self._weight[place]))
        last_job = self._jobs.pop()
        if last_job != job:
            last = len(self._jobs)
            self._jobs[place] = last_job
            self._place[last_job] = place
            for column in (self._leaves, self._start, self._weight):
                column[place] = column[last]
        if len(self._jobs) < _FEW:
            self._by_leaf = []

    def in_leaves(self, leaves: LeafIndices, now: float) -> Sharing:
        """Who shares a leaf with one job's ``leaves`` at ``now`` (Unix seconds)."""
        # How many run decides, and not how many once did: who was told the same answers the same.
        return self._looked_up(leaves, now) if len(self._jobs) > _MANY else self._compared(leaves, now)

    def _compared(self, leaves: LeafIndices, now: float) -> Sharing:
        count = len(self._jobs)
        # Faster on one axis than on two.
        who, trees = np.divmod(np.flatnonzero(self._leaves[:count] == leaves), self._trees)
        ages = np.log(np.maximum(now - self._start[who], 1.0))
        return Sharing(trees, self._grid.cells_of(ages), self._weight[who])

    def _looked_up(self, leaves: LeafIndices, now: float) -> Sharing:
        """Leaves that hold many are added up by age first; of the others every job is named."""
        held = [
            (tree, leaf)
            for tree, (of_tree, number) in enumerate(zip(self._by_leaf, leaves.tolist(), strict=True))
            if (leaf := of_tree.get(number)) is not None and leaf.size
        ]
        small = [(tree, leaf) for tree, leaf in held if leaf.size <= _SMALL]
        bounds = now - self._ages
        found = [(tree, *leaf.by_cell(now, bounds)) for tree, leaf in held if leaf.size > _SMALL]
        starts = _joined([leaf.starts[: leaf.size] for _, leaf in small])
        cells = [self._grid.cells_of(np.log(np.maximum(now - starts, 1.0))), *(each[1] for each in found)]
        weights = [*(leaf.weights[: leaf.size] for _, leaf in small), *(each[2] for each in found)]
        trees = [tree for tree, _ in small] + [each[0] for each in found]
        sizes = [leaf.size for _, leaf in small] + [len(each[1]) for each in found]
        return Sharing(np.repeat(np.array(trees, dtype=np.intp), sizes), np.concatenate(cells), _joined(weights))

    def _leaves_of_all(self) -> list[dict[int, _Leaf]]:
        count = len(self._jobs)
        starts, weights = self._start[:count], self._weight[:count]
        found = []
        for tree in range(self._trees):
            own = self._leaves[:count, tree]
            order = np.lexsort((weights, starts, own))
            names, first = np.unique(own[order], return_index=True)
            parts = np.split(order, first[1:])
            found.append(
                {leaf: _Leaf(starts[part], weights[part]) for leaf, part in zip(names.tolist(), parts, strict=True)}
            )
        return found


def _joined(parts: list[Floats]) -> Floats:
    return np.concatenate(parts) if parts else np.zeros(0)


class _Leaf:
    """Starts and weights of the ``size`` jobs running in one leaf, in order of start, then weight."""

    __slots__ = ("_at", "_known", "size", "starts", "weights")

    def __init__(self, starts: Floats, weights: Floats) -> None:
        self.starts, self.weights = starts, weights
        self.size = starts.size
        self._at = math.nan
        self._known: tuple[NDArray[np.intp], Floats] | None = None

    def add(self, start: float, weight: float) -> None:
        size = self.size
        if size == self.starts.size:
            room = np.zeros(max(size, 4))
            self.starts, self.weights = np.concatenate([self.starts, room]), np.concatenate([self.weights, room])
        place = self._place(start, weight) if size and self.starts[size - 1] >= start else size
        for column, value in ((self.starts, start), (self.weights, weight)):
            if place < size:
                column[place + 1 : size + 1] = column[place:size]
            column[place] = value
        self.size, self._at = size + 1, math.nan

    def remove(self, start: float, weight: float) -> None:
        place, size = self._place(start, weight), self.size
        for column in (self.starts, self.weights):
            column[place : size - 1] = column[place + 1 : size]
        self.size, self._at = size - 1, math.nan

    def _place(self, start: float, weight: float) -> int:
        """Where one of that start and weight stands, or would."""
        starts = self.starts[: self.size]
        first = int(starts.searchsorted(start))
        if first + 1 >= self.size or starts[first + 1] != start:
            return first + (first < self.size and starts[first] == start and self.weights[first] < weight)
        last = int(starts.searchsorted(start, side="right"))
        return first + int(self.weights[first:last].searchsorted(weight))

    def by_cell(self, now: float, bounds: Floats) -> tuple[NDArray[np.intp], Floats]:
        """Cells of the ages at ``now``, from the oldest, and the weight in each that holds any.

        ``bounds`` are the starts, ascending, up to which ages lie in the last cell, the one before it, and so on.
        """
        if self._known is None or self._at != now:
            edges = np.zeros(len(bounds) + 2, dtype=np.intp)
            edges[1:-1] = self.starts[: self.size].searchsorted(bounds, side="right")
            edges[-1] = self.size
            held = np.flatnonzero(edges[1:] > edges[:-1])
            sums = np.add.reduceat(self.weights[: self.size], edges[held])
            self._at, self._known = now, (len(bounds) - held, sums)
        return self._known
