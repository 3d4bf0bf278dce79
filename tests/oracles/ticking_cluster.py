"""A second simulator, slow and obvious: it looks at everything once a second, and keeps lists.

It knows whole GPUs, gangs, batch windows, starts, keep-alives, limits and static nodes, and the two policies that
take jobs in the order of their submission. Everything happens at whole seconds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import ceil


@dataclass
class TickingNode:
    """A node and, of each of its GPUs, the number of the job that has it."""

    ready: int
    asked: int
    static: bool = False
    gpus: list[int | None] = field(default_factory=list)
    empty_for: int = 0
    gone: int | None = None


@dataclass
class TickingWorld:
    """Jobs are (submit, GPUs, seconds), in order of submission."""

    jobs: list[tuple[int, int, int]]
    size: int
    start: int
    keep_alive: int
    limit: int | None
    static: int = 0
    alone: bool = False
    now: int = 0
    nodes: list[TickingNode] = field(default_factory=list)
    ends: dict[int, int] = field(default_factory=dict)
    finished: dict[int, int] = field(default_factory=dict)
    paid: int = 0
    launched: int = 0
    window: tuple[int, int, int] | None = None

    def run(self) -> None:
        """Second after second until every job has ended and every node has gone."""
        self.nodes = [TickingNode(0, 0, True, [None] * self.size) for _ in range(self.static)]
        while len(self.finished) < len(self.jobs) or any(not n.static and n.gone is None for n in self.nodes):
            # A job of no length ends in the second in which it starts, and others may follow it.
            while self._second():
                pass
            for node in self._there():
                self.paid += self.size
                node.empty_for = node.empty_for + 1 if self._is_empty(node) else 0
            self.now += 1

    def _second(self) -> bool:
        changed = False
        for job, end in list(self.ends.items()):
            if end == self.now:
                del self.ends[job]
                self.finished[job] = self.now
                for node in self.nodes:
                    node.gpus = [None if held == job else held for held in node.gpus]
                changed = True
        for job in self._waiting():
            changed |= self._place(job)
        for node in self.nodes:
            if self._may_go(node):
                node.gone = self.now
                changed = True
        return self._launch() or changed

    def _there(self) -> list[TickingNode]:
        return [node for node in self.nodes if node.gone is None]

    def _is_empty(self, node: TickingNode) -> bool:
        return node.ready <= self.now and all(held is None for held in node.gpus)

    def _waiting(self) -> list[int]:
        return [
            job
            for job, (submit, _, _) in enumerate(self.jobs)
            if submit <= self.now and job not in self.finished and job not in self.ends
        ]

    def _place(self, job: int) -> bool:
        _, gpus, seconds = self.jobs[job]
        ready = [node for node in self._there() if node.ready <= self.now]
        if self.alone or gpus > self.size:
            chosen = [node for node in ready if self._is_empty(node)][: ceil(gpus / self.size)]
            if len(chosen) < ceil(gpus / self.size):
                return False
            for node in chosen:
                node.gpus = [job] * self.size
                node.empty_for = 0
        else:
            fitting = [node for node in ready if node.gpus.count(None) >= gpus]
            if not fitting:
                return False
            node = min(fitting, key=lambda one: one.gpus.count(None))
            node.empty_for = 0
            for _ in range(gpus):
                node.gpus[node.gpus.index(None)] = job
        self.ends[job] = self.now + seconds
        return True

    def _may_go(self, node: TickingNode) -> bool:
        if node.static or node.gone is not None or not self._is_empty(node) or node.empty_for < self.keep_alive:
            return False
        needed = [job for job in self._waiting() if self.alone or self.jobs[job][1] >= self.size]
        return not needed

    def _missing(self) -> int:
        """Nodes of their own for what needs whole ones, first fit for the rest, largest first."""
        waiting = sorted((self.jobs[job][1] for job in self._waiting()), reverse=True)
        whole = [gpus for gpus in waiting if self.alone or gpus >= self.size]
        rooms: list[int] = []
        for gpus in waiting[len(whole) :]:
            fitting = [room for room in rooms if room >= gpus]
            if fitting:
                rooms.remove(min(fitting))
                rooms.append(min(fitting) - gpus)
            else:
                rooms.append(self.size - gpus)
        fresh = sum(node.ready > self.now or self._is_empty(node) for node in self._there())
        return max(0, sum(ceil(gpus / self.size) for gpus in whole) + len(rooms) - fresh)

    def _launch(self) -> bool:
        launched = False
        if self.window is not None:
            opened, asked, _ = self.window
            if self.now == min(opened + 10, asked + 1):
                self.window = None
                headroom = len(self.jobs) * 99 if self.limit is None else self.limit - len(self._there())
                for _ in range(min(self._missing(), max(0, headroom))):
                    self.nodes.append(TickingNode(self.now + self.start, self.now, False, [None] * self.size))
                    self.launched += 1
                    launched = True
        if self.limit is not None and len(self._there()) >= self.limit:
            return launched
        missing = self._missing()
        if self.window is not None:
            opened, asked, wanted = self.window
            self.window = (opened, self.now if missing > wanted else asked, missing)
        elif missing:
            self.window = (self.now, self.now, missing)
        return launched
