"""Replay one policy of warm capacity on the jobs of a trace: whole nodes, best fit, first come first served with skips.

A job takes GPUs of one node, the fullest that fits; one of more GPUs than a node has takes whole empty nodes
and the rest of it a place like any other. A queued job that does not fit is passed by those that do. Nodes are
launched as soon as the queue needs them, and by the policy once a minute.
"""

from __future__ import annotations

import heapq
import math
from collections import deque
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from training.warm_replay import WarmWorld
from training.warm_schedule import WarmSchedule

__all__ = ["JobRun", "JobWindow", "replay_jobs"]

Floats = NDArray[np.float64]

_DUST = 1e-6


@dataclass(frozen=True, kw_only=True, eq=False)
class JobWindow:
    """Jobs submitted within ``minutes`` in order of submission, in minutes from its beginning and whole GPUs.

    ``running_gpus`` had started before and run for ``running_rest`` minutes more; they are placed first and not scored.
    """

    submit: Floats
    duration: Floats
    gpus: NDArray[np.int64]
    running_rest: Floats
    running_gpus: NDArray[np.int64]
    minutes: float

    def jittered(self, seed: int, most_minutes: float = 1.0) -> JobWindow:
        """The same jobs, each submitted up to ``most_minutes`` later: another draw of how they fall into nodes."""
        later = self.submit + np.random.default_rng(seed).uniform(0.0, most_minutes, self.submit.size)
        order = np.argsort(later, kind="stable")
        return JobWindow(
            submit=later[order],
            duration=self.duration[order],
            gpus=self.gpus[order],
            running_rest=self.running_rest,
            running_gpus=self.running_gpus,
            minutes=self.minutes,
        )


@dataclass(frozen=True, kw_only=True, eq=False)
class JobRun:
    """What came of one schedule: node-minutes paid, of them booting, starts, GPU-minutes used, each job's wait."""

    paid: float
    boots: float
    starts: int
    used: float
    waits: Floats
    most_used_gpus: float


@dataclass(slots=True)
class _Fleet:
    """Nodes by what is free on them. Empty ones are alike: only since when each stands idle is known."""

    size: int
    free: dict[int, int] = field(default_factory=dict)
    by_free: list[dict[int, None]] = field(default_factory=list)
    idle: deque[float] = field(default_factory=deque)
    free_gpus: int = 0
    named: int = 0

    def __post_init__(self) -> None:
        self.by_free = [{} for _ in range(self.size)]

    def place(self, gpus: int) -> list[tuple[int, int]] | None:
        """The nodes, and GPUs on each, that a job gets; None if it does not fit."""
        whole, rest = divmod(gpus, self.size)
        fitting = next((f for f in range(rest, self.size) if rest and self.by_free[f]), None)
        if len(self.idle) < whole + (1 if rest and fitting is None else 0):
            return None
        taken = [(self._opened(self.size), self.size) for _ in range(whole)]
        if rest and fitting is not None:
            node = next(reversed(self.by_free[fitting]))
            self._resize(node, fitting - rest)
            taken.append((node, rest))
        elif rest:
            taken.append((self._opened(rest), rest))
        return taken

    def vacate(self, taken: list[tuple[int, int]], now: float) -> None:
        """Give back what a job had."""
        for node, gpus in taken:
            left = self.free[node] + gpus
            self._resize(node, left)
            if left == self.size:
                del self.free[node]
                self.free_gpus -= self.size
                self.idle.append(now)

    @property
    def nodes(self) -> int:
        """Nodes in use or idle."""
        return len(self.free) + len(self.idle)

    def _opened(self, gpus: int) -> int:
        """An idle node, the one that fell idle last, with ``gpus`` of it taken."""
        self.idle.pop()
        self.named += 1
        self.free[self.named] = self.size
        self.free_gpus += self.size
        self._resize(self.named, self.size - gpus)
        return self.named

    def _resize(self, node: int, free: int) -> None:
        before = self.free[node]
        if 0 < before < self.size:
            del self.by_free[before][node]
        if 0 < free < self.size:
            self.by_free[free][node] = None
        self.free[node] = free
        self.free_gpus += free - before


class _Replay:
    """The state of one run; time only moves through :meth:`_pass`."""

    def __init__(self, window: JobWindow, schedule: WarmSchedule, world: WarmWorld) -> None:
        self._jobs = window
        self._schedule = schedule
        self._world = world
        self._fleet = _Fleet(world.node_gpus)
        self._boots: deque[float] = deque()
        self._ends: list[tuple[float, int, int, list[tuple[int, int]]]] = []
        self._queue: list[int] = []
        self._needed = self._waiting_gpus = 0
        self._now = 0.0
        self._used_gpus = 0
        # Plain numbers: single items of arrays are slow to read, and there is one of each a minute.
        self._ahead, self._keep = schedule.ahead.tolist(), schedule.keep.tolist()
        self._places = 0
        self._waits = np.full(window.submit.size, np.nan)
        self._paid = self._boot_minutes = self._used = 0.0
        self._starts = 0
        self._most = 0

    def run(self) -> JobRun:
        """From the jobs that run at the beginning to the end of the window."""
        self._settle()
        jobs, submit = self._jobs, self._jobs.submit.tolist()
        arrived = 0
        for minute in range(int(np.ceil(jobs.minutes))):
            self._control(minute)
            until = min(float(minute + 1), jobs.minutes)
            while True:
                came = submit[arrived] if arrived < len(submit) else np.inf
                ended = self._ends[0][0] if self._ends else np.inf
                ready = self._boots[0] if self._boots else np.inf
                first = min(came, ended, ready)
                if first >= until:
                    break
                self._pass(first)
                if ready == first:
                    self._boots.popleft()
                    self._fleet.idle.append(first)
                    self._drain()
                elif ended == first:
                    self._end()
                    self._drain()
                else:
                    self._ask(arrived)
                    arrived += 1
            self._pass(until)
        left = np.isnan(self._waits)
        waits = np.where(left, jobs.minutes - jobs.submit, self._waits)
        return JobRun(
            paid=self._paid,
            boots=self._boot_minutes,
            starts=self._starts,
            used=self._used,
            waits=waits,
            most_used_gpus=self._most,
        )

    def _settle(self) -> None:
        """Place what runs already, the largest first, on just the nodes it needs."""
        order = np.argsort(-self._jobs.running_gpus, kind="stable")
        for rest, gpus in zip(self._jobs.running_rest[order], self._jobs.running_gpus[order], strict=True):
            taken = self._fleet.place(int(gpus))
            while taken is None:
                self._fleet.idle.append(0.0)
                taken = self._fleet.place(int(gpus))
            self._start(float(rest), int(gpus), taken)

    def _pass(self, until: float) -> None:
        """Bill the time up to a moment."""
        span = until - self._now
        self._paid += span * self._fleet.nodes
        self._boot_minutes += span * len(self._boots)
        self._used += span * self._used_gpus
        self._now = until

    def _start(self, duration: float, gpus: int, taken: list[tuple[int, int]]) -> None:
        self._places += 1
        heapq.heappush(self._ends, (self._now + duration, self._places, gpus, taken))
        self._used_gpus += gpus
        self._most = max(self._most, self._used_gpus)

    def _end(self) -> None:
        _, _, gpus, taken = heapq.heappop(self._ends)
        self._used_gpus -= gpus
        self._fleet.vacate(taken, self._now)

    def _ask(self, job: int) -> None:
        """A job comes: it starts, or waits while what it lacks is launched."""
        if not self._try(job):
            self._queue.append(job)
            self._weigh_queue()
            self._launch(0)

    def _try(self, job: int) -> bool:
        gpus = int(self._jobs.gpus[job])
        taken = self._fleet.place(gpus)
        if taken is None:
            return False
        self._waits[job] = self._now - self._jobs.submit[job]
        self._start(float(self._jobs.duration[job]), gpus, taken)
        return True

    def _drain(self) -> None:
        """Start what fits of the queue, in its order."""
        if self._queue:
            self._queue = [job for job in self._queue if not self._try(job)]
            self._weigh_queue()

    def _weigh_queue(self) -> None:
        """The GPUs that wait, and the empty nodes that hold them, the largest jobs first."""
        size = self._world.node_gpus
        nodes, left = 0, [0] * (size + 1)
        waiting = sorted((int(self._jobs.gpus[job]) for job in self._queue), reverse=True)
        for gpus in waiting:
            whole, rest = divmod(gpus, size)
            nodes += whole
            if not rest:
                continue
            room = next((f for f in range(rest, size) if left[f]), size)
            if room == size:
                nodes += 1
            else:
                left[room] -= 1
            left[room - rest] += 1
        self._needed, self._waiting_gpus = nodes, sum(waiting)

    def _launch(self, ahead: int) -> None:
        """Order what the queue needs, and ``ahead`` idle nodes beyond."""
        missing = self._needed + ahead - len(self._fleet.idle) - len(self._boots)
        for _ in range(missing):
            self._boots.append(self._now + self._world.latency_minutes)
        self._starts += max(missing, 0)

    def _control(self, minute: int) -> None:
        """What the policy does at the beginning of a minute."""
        schedule, fleet = self._schedule, self._fleet
        ahead = self._in_nodes(self._ahead[minute])
        keep = max(ahead, self._in_nodes(self._keep[minute])) + self._needed
        ripe = self._now - schedule.patience_minutes + _DUST
        while len(fleet.idle) > keep and fleet.idle[0] <= ripe:
            fleet.idle.popleft()
        self._launch(ahead)

    def _in_nodes(self, wanted: float) -> int:
        used = self._used_gpus + self._waiting_gpus if self._schedule.total else 0
        return max(0, math.ceil((wanted - used - self._fleet.free_gpus) / self._world.node_gpus - _DUST))


def replay_jobs(window: JobWindow, schedule: WarmSchedule, world: WarmWorld) -> JobRun:
    """``schedule``, with one entry a minute of the window, on its jobs."""
    return _Replay(window, schedule, world).run()
