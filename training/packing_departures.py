"""Pods that come and go, on nodes that come and go with them or on a fixed set of nodes.

Two replays of one stream of pods: an autoscaled pool of one node kind, where what counts are node-hours above
the least that could be paid, and a fixed mixed cluster, where what counts are GPUs on nodes left wholly empty.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from advisor.domain.packing import MILLI, HostShape, PodShape
from advisor.domain.units import SECONDS_PER_HOUR
from advisor.planning.packing import Packer, Placed
from advisor.planning.packing_costs import PlacementCost
from advisor.planning.packing_life import NodeLives

__all__ = ["Autoscaling", "Departures", "Pod", "Policy", "Replayed", "replay_departures"]

Floats = NDArray[np.float64]

_CANDIDATES = 64
_EXTENSION_WEIGHT = 3.0
_USUAL_GPUS = 8.0
_CLOSE_SECONDS = 1e-6
_RUNNING, _BOOTING, _OFF = 0, 1, 2


class Pod(NamedTuple):
    """One pod: when it comes, for how long it runs and for how long it is predicted to run, in seconds."""

    submit: float
    shape: PodShape
    duration: float
    predicted: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Autoscaling:
    """Nodes are started when a pod fits nowhere, and removed after being empty for so long; seconds."""

    boot_seconds: float = 180.0
    empty_seconds: float = 300.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """A static cost, and with ``sd`` (of the natural log of predicted durations) the expected extension beside it.

    ``guarded`` keeps nodes that few shapes need for those.
    """

    cost: PlacementCost
    sd: float | None = None
    guarded: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Departures:
    """What is replayed: pods by submission, the nodes there are (or may be), and the measured window in seconds."""

    pods: Sequence[Pod]
    hosts: Sequence[HostShape]
    autoscaling: Autoscaling | None
    measured: tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """Over the measured window: node-hours up, the least that would do, GPUs on empty nodes, starts and waits."""

    node_hours: float
    bound_node_hours: float
    gpus_on_empty_nodes: float
    boots: int
    mean_wait_seconds: float
    delayed_share: float
    unplaced: int


class _Event(NamedTuple):
    time: float
    rank: int
    sequence: int
    row: int
    task: int


_ENDS, _READY, _EXPIRES = 0, 1, 2


class _World:
    """The nodes and the queue while pods are replayed."""

    def __init__(self, run: Departures, policy: Policy, penalties: dict[PodShape, Floats]) -> None:
        self._run, self._policy, self._penalties = run, policy, penalties
        self._packer = Packer(run.hosts, policy.cost)
        self._lives = NodeLives(len(run.hosts), policy.sd or 0.0)
        self._scaling = run.autoscaling or Autoscaling()
        start = _RUNNING if run.autoscaling is None else _OFF
        self._state = np.full(len(run.hosts), start, dtype=np.int64)
        self._ready_at = np.zeros(len(run.hosts))
        self._empty_since = np.zeros(len(run.hosts))
        self._gpus = np.array([host.gpus for host in run.hosts], dtype=float)
        self._events: list[_Event] = []
        self._sequence = 0
        self._placed: dict[int, Placed] = {}
        self._queue: deque[int] = deque()
        self._last = 0.0
        self._up = self._bound = self._empty = 0.0
        self._in_use = np.zeros(2)
        self._boots = 0
        self._waits: list[float] = []

    def replay(self) -> Replayed:
        """Every pod, and what it came to."""
        for number, pod in enumerate(self._run.pods):
            if pod.submit > self._run.measured[1]:
                break
            self._until(pod.submit)
            if not self._start(number):
                self._queue.append(number)
        self._until(self._run.measured[1])
        self._account(self._run.measured[1])
        hours = (self._run.measured[1] - self._run.measured[0]) / SECONDS_PER_HOUR
        waits = np.array(self._waits or [0.0])
        return Replayed(
            node_hours=self._up / SECONDS_PER_HOUR,
            bound_node_hours=self._bound / SECONDS_PER_HOUR,
            gpus_on_empty_nodes=self._empty / SECONDS_PER_HOUR / hours,
            boots=self._boots,
            mean_wait_seconds=float(waits.mean()),
            delayed_share=float((waits > 0).mean()),
            unplaced=len(self._queue),
        )

    def _until(self, time: float) -> None:
        while self._events and self._events[0].time <= time:
            event = heapq.heappop(self._events)
            self._account(event.time)
            if event.rank == _ENDS:
                self._end(event)
            elif event.rank == _READY:
                self._state[event.row] = _RUNNING
            else:
                self._expire(event)
        self._account(time)

    def _end(self, event: _Event) -> None:
        placed = self._placed.pop(event.task)
        self._packer.remove(placed)
        self._lives.remove(placed.row, event.task)
        self._in_use -= (placed.shape.total_gpu_milli, placed.shape.cpu_milli)
        if self._lives.is_empty(placed.row):
            self._empty_since[placed.row] = event.time
            if self._run.autoscaling is not None:
                self._push(event.time + self._scaling.empty_seconds, _EXPIRES, placed.row)
        for _ in range(len(self._queue)):
            number = self._queue.popleft()
            if not self._start(number):
                self._queue.append(number)

    def _expire(self, event: _Event) -> None:
        waited = event.time - self._empty_since[event.row]
        if self._lives.is_empty(event.row) and waited >= self._scaling.empty_seconds - _CLOSE_SECONDS:
            self._state[event.row] = _OFF

    def _start(self, number: int) -> bool:
        """Place a pod on a running node, else on a booting one, else on a new one."""
        pod, now = self._run.pods[number], self._last
        costs = self._packer.costs(pod.shape)
        fits = np.isfinite(costs)
        for state in (_RUNNING, _BOOTING):
            rows = np.flatnonzero(fits & (self._state == state))
            if rows.size:
                self._put(number, self._best(pod, rows, costs[rows], now))
                return True
        rows = np.flatnonzero(fits & (self._state == _OFF))
        if not rows.size:
            return False
        row = int(rows[0])
        self._launch(row, now)
        self._put(number, row)
        return True

    def _best(self, pod: Pod, rows: NDArray[np.int64], costs: Floats, now: float) -> int:
        penalty = self._penalties.get(pod.shape)
        if self._policy.guarded and penalty is not None:
            costs = costs + penalty[rows]
        if self._policy.sd is None:
            return int(rows[np.argmin(costs)])
        if rows.size > _CANDIDATES:
            kept = np.sort(np.argpartition(costs, _CANDIDATES)[:_CANDIDATES])
            rows, costs = rows[kept], costs[kept]
        hours = self._lives.extension_hours(rows, now, pod.predicted)
        total = costs + _EXTENSION_WEIGHT * self._gpus[rows] / _USUAL_GPUS * hours
        return int(rows[np.argmin(total)])

    def _launch(self, row: int, now: float) -> None:
        self._state[row] = _BOOTING
        self._ready_at[row] = now + self._scaling.boot_seconds
        self._empty_since[row] = np.inf
        self._push(self._ready_at[row], _READY, row)
        self._boots += now >= self._run.measured[0]

    def _put(self, number: int, row: int) -> None:
        pod, now = self._run.pods[number], self._last
        starts = max(now, self._ready_at[row])
        self._placed[number] = self._packer.put(pod.shape, row)
        self._lives.add(row, number, starts, pod.predicted)
        self._in_use += (pod.shape.total_gpu_milli, pod.shape.cpu_milli)
        self._push(starts + pod.duration, _ENDS, row, number)
        if pod.submit >= self._run.measured[0]:
            self._waits.append(starts - pod.submit)

    def _push(self, time: float, rank: int, row: int, task: int = -1) -> None:
        self._sequence += 1
        heapq.heappush(self._events, _Event(time, rank, self._sequence, row, task))

    def _account(self, time: float) -> None:
        """Everything has stood as it stands since the last moment accounted for."""
        begin, end = max(self._last, self._run.measured[0]), min(time, self._run.measured[1])
        if end > begin:
            span = end - begin
            self._up += span * int((self._state != _OFF).sum())
            largest = self._run.hosts[0]
            need = self._in_use / (max(largest.gpus, 1) * MILLI, largest.cpu_milli)
            self._bound += span * float(np.ceil(need.max() - 1e-9))
            self._empty += span * float(self._gpus[self._lives.empty & (self._state == _RUNNING)].sum())
        self._last = max(self._last, time)


def replay_departures(run: Departures, policy: Policy, penalties: dict[PodShape, Floats] | None = None) -> Replayed:
    """Replay ``run`` under ``policy``; ``penalties`` give shapes a cost per node where the policy is guarded."""
    return _World(run, policy, penalties or {}).replay()
