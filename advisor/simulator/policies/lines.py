"""Waiting jobs, by what they ask for and in the order of a key; and how many nodes they need."""

from __future__ import annotations

import heapq
from bisect import bisect_left, insort
from collections.abc import Iterator

from advisor.simulator.cluster import SimulatedCluster
from advisor.simulator.tasks import Task

__all__ = ["WaitingLines", "missing_nodes"]


class WaitingLines:
    """One line a size, each in the order of its keys (of equal keys, of places), smaller first."""

    def __init__(self) -> None:
        self._lines: dict[float, list[tuple[float, int, Task]]] = {}
        self._keys: dict[Task, float] = {}

    def __len__(self) -> int:
        return len(self._keys)

    def __contains__(self, task: Task) -> bool:
        return task in self._keys

    def add(self, task: Task, key: float) -> None:
        """Let ``task`` wait."""
        self._keys[task] = key
        insort(self._lines.setdefault(task.gpus, []), (key, task.place, task))

    def remove(self, task: Task) -> None:
        """``task`` waits no longer."""
        line = self._lines[task.gpus]
        del line[bisect_left(line, (self._keys.pop(task), task.place))]
        if not line:
            del self._lines[task.gpus]

    def key(self, task: Task) -> float:
        """The key under which ``task`` waits."""
        return self._keys[task]

    def sizes(self) -> list[float]:
        """The sizes that wait, smallest first."""
        return sorted(self._lines)

    def count(self, gpus: float) -> int:
        """How many of a size wait."""
        return len(self._lines.get(gpus, ()))

    def of_size(self, gpus: float) -> Iterator[Task]:
        """Those of a size, in order; nothing may be added or removed meanwhile."""
        return (task for _, _, task in self._lines.get(gpus, ()))

    def demand(self) -> float:
        """GPUs waited for."""
        return sum(size * len(line) for size, line in self._lines.items())

    def largest(self) -> float:
        """The largest size that waits; 0 if nobody does."""
        return max(self._lines, default=0.0)

    def first(self, sizes: set[float] | None = None) -> Task | None:
        """The first in order, of these sizes only where they are given; None if there is none."""
        heads = [line[0] for size, line in self._lines.items() if sizes is None or size in sizes]
        return min(heads)[2] if heads else None

    def in_order(self) -> Iterator[Task]:
        """All of them in order; nothing may be added or removed meanwhile."""
        return (task for _, _, task in heapq.merge(*self._lines.values()))


def missing_nodes(lines: WaitingLines, cluster: SimulatedCluster, *, alone: bool = False) -> int:
    """Nodes to launch for everything that waits, beyond idle and booting ones: first fit, largest first.

    Whoever waits fits on no ready node as it is, except that work of several nodes waits for enough of them; so
    only idle and booting nodes count. ``alone`` gives every job nodes of its own.
    """
    if not lines:
        return 0
    size = cluster.terms.node_gpus
    idle, booting = len(cluster.idle_nodes()), len(cluster.booting)
    fresh = idle + booting
    wanted = 0
    rooms: list[float] = []
    for gpus in reversed(lines.sizes()):
        count = lines.count(gpus)
        if alone or gpus >= size:
            wanted += count * cluster.terms.nodes_for(gpus)
            continue
        for _ in range(count):
            # The tightest room that holds it.
            at = bisect_left(rooms, gpus)
            if at < len(rooms):
                rest = rooms.pop(at) - gpus
            else:
                wanted += 1
                rest = size - gpus
            if rest > 0:
                insort(rooms, rest)
    return max(0, wanted - fresh)
