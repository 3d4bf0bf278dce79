"""Replay policies of warm capacity on a demand series: every setting at once, step by step, billed by the second.

Demand is met from ready nodes of ``node_gpus``, perfectly packed. At each sample booted nodes become ready,
idle ones that nobody keeps go, and what is missing is ordered; it is ready one start latency later and
paid from its order on. Of several idle nodes the one that fell idle last is used first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from training.warm_schedule import WarmSchedule, levels

__all__ = ["WarmRun", "WarmWorld", "held", "replay_series", "waits_of"]

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

_DUST = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmWorld:
    """What nodes are like: GPUs of each, minutes from order to ready, and whether those are billed.

    ``start_cost_minutes`` are node-minutes that a start wastes besides its boot.
    """

    node_gpus: int = 8
    latency_minutes: float = 5.0
    boot_billed: bool = True
    start_cost_minutes: float = 0.0

    @property
    def boot_minutes(self) -> float:
        """Node-minutes that a start costs before the node is of use: its boot, where billed, and what it wastes."""
        return self.latency_minutes * self.boot_billed + self.start_cost_minutes


@dataclass(frozen=True, kw_only=True, eq=False)
class WarmRun:
    """What came of every setting: arrays with one entry each, minutes of nodes or of GPUs.

    ``paid`` are node-minutes, of them ``boots`` before a node was of use; ``used`` GPU-minutes of the ``owned``
    ones, ready and booting; ``unmet_minutes`` GPU-minutes waited. ``wanted`` are node-minutes that
    demand would have filled, ``demanded`` its GPU-minutes, ``risen`` GPUs newly asked for, ``waits`` the minutes that
    each of these waited.
    """

    paid: Floats
    boots: Floats
    starts: Indices
    used: Floats
    owned: Floats
    unmet_minutes: Floats
    wanted: float
    demanded: float
    risen: float
    waits: tuple[Floats, ...]
    node_gpus: int


@dataclass(slots=True)
class _Fleet:
    """Nodes of every setting. ``last_busy[r]`` is the last sample at which no more than r nodes stood idle."""

    ready: Indices
    booting: Indices
    arriving: Indices
    last_busy: Indices

    @classmethod
    def of(cls, settings: int, ready: int, lag: int, most: int) -> _Fleet:
        """``ready`` nodes, all in use."""
        return cls(
            np.full(settings, ready, dtype=np.int64),
            np.zeros(settings, dtype=np.int64),
            np.zeros((lag, settings), dtype=np.int64),
            np.zeros((most, settings), dtype=np.int64),
        )

    def receive(self, sample: int) -> None:
        """Nodes whose boot ends now become ready."""
        arrived = self.arriving[sample % len(self.arriving)]
        self.ready += arrived
        self.booting -= arrived
        self.arriving[sample % len(self.arriving)] = 0

    def release(self, sample: int, need: int, keep: Indices, patience: Indices) -> None:
        """Idle nodes beyond ``keep`` go, longest idle first, if they stood idle for their patience."""
        idle = np.maximum(self.ready - need, 0)
        ranks = np.arange(len(self.last_busy))[:, None]
        self.last_busy[ranks >= idle] = sample
        if not idle.any():
            return
        ripe = ((sample - self.last_busy > patience) & (ranks < idle)).sum(axis=0)
        gone = np.minimum(ripe, np.maximum(idle - keep, 0))
        if gone.any():
            self.ready -= gone
            moved = np.minimum(ranks + gone, len(self.last_busy) - 1)
            self.last_busy = np.take_along_axis(self.last_busy, moved, axis=0)

    def order(self, sample: int, target: Indices) -> Indices:
        """Nodes ordered now so that ready and booting ones reach ``target``."""
        ordered: Indices = np.maximum(target - self.ready - self.booting, 0)
        self.arriving[sample % len(self.arriving)] += ordered
        self.booting += ordered
        return ordered


def replay_series(demand: Floats, step_minutes: int, schedules: Sequence[WarmSchedule], world: WarmWorld) -> WarmRun:
    """Every schedule on ``demand`` (GPUs at each sample), which begins with just the nodes it needs.

    A gap holds the last known demand. A start latency that is no whole number of steps ends at the next sample.
    """
    gpus = held(demand)
    need = np.ceil(gpus / world.node_gpus - _DUST).astype(np.int64)
    ahead, keep = _in_nodes(schedules, gpus, need, world.node_gpus)
    patience = np.array([np.ceil(s.patience_minutes / step_minutes) for s in schedules]).astype(np.int64)
    lag = max(1, int(np.ceil(world.latency_minutes / step_minutes - _DUST)))
    most = int(need.max(initial=0) + max(ahead.max(initial=0), keep.max(initial=0))) + 2
    fleet = _Fleet.of(len(schedules), int(need[0]) if need.size else 0, lag, most)
    paid, boots, used = (np.zeros(len(schedules)) for _ in range(3))
    starts = np.zeros(len(schedules), dtype=np.int64)
    unmet = np.zeros((need.size, len(schedules)))
    for sample in range(need.size):
        fleet.receive(sample)
        fleet.release(sample, int(need[sample]), keep[sample], patience)
        starts += fleet.order(sample, need[sample] + ahead[sample])
        paid += fleet.ready
        boots += fleet.booting
        served = np.minimum(gpus[sample], fleet.ready * world.node_gpus)
        used += served
        unmet[sample] = gpus[sample] - served
    billed = boots * step_minutes * world.boot_billed + starts * world.start_cost_minutes
    return WarmRun(
        paid=paid * step_minutes + billed,
        boots=billed,
        starts=starts,
        used=used * step_minutes,
        owned=(paid + boots) * step_minutes * world.node_gpus,
        unmet_minutes=unmet.sum(axis=0) * step_minutes,
        wanted=float(need.sum() * step_minutes),
        demanded=float(gpus.sum() * step_minutes),
        risen=float(np.maximum(np.diff(gpus), 0.0).sum()),
        node_gpus=world.node_gpus,
        waits=tuple(waits_of(gpus, unmet[:, k]) * step_minutes for k in range(len(schedules))),
    )


def waits_of(gpus: Floats, unmet: Floats) -> Floats:
    """Samples that each GPU newly asked for waited, first come first served."""
    asked = np.concatenate([[0.0], np.cumsum(np.maximum(np.diff(gpus), 0.0))])[: gpus.size]
    given = np.maximum.accumulate(asked - unmet)
    # A GPU stands for the middle of its unit of the count, so that whole GPUs fall on no edge.
    number = np.arange(0.5, asked[-1] if asked.size else 0.0)
    waited: Floats = np.maximum(np.searchsorted(given, number) - np.searchsorted(asked, number), 0).astype(np.float64)
    return waited


def held(demand: Floats) -> Floats:
    """Demand with every gap filled by the last known value, 0 before the first."""
    known = ~np.isnan(demand)
    last = np.maximum.accumulate(np.where(known, np.arange(demand.size), -1))
    held: Floats = np.where(last >= 0, demand[np.maximum(last, 0)], 0.0)
    return held


def _in_nodes(
    schedules: Sequence[WarmSchedule], gpus: Floats, need: Indices, node_gpus: int
) -> tuple[Indices, Indices]:
    """Idle nodes to have ahead and to keep at each sample, (samples, settings)."""
    free = need * node_gpus - gpus
    ahead, keep = [], []
    for schedule in schedules:
        base = gpus if schedule.total else 0.0
        ahead.append(levels(schedule.ahead - base, free, node_gpus))
        keep.append(np.maximum(levels(schedule.keep - base, free, node_gpus), ahead[-1]))
    return np.stack(ahead, axis=1), np.stack(keep, axis=1)
