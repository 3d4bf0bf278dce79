"""When a request that does not fit now will: on a node that is coming, on one to be started, or on a release."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from advisor.domain.gpus import GpuShare
from advisor.domain.units import shown_duration
from advisor.planning.fleet import Fleet, Need
from advisor.planning.grants import Task

__all__ = ["Gap", "Promise", "promise", "reserve"]

Floats = NDArray[np.float64]

# No Kubernetes node has a name that begins with a space, so none can be taken for one that stands.
_TO_BE_STARTED = " to be started for "


@dataclass(frozen=True, slots=True)
class Promise:
    """Where and when a request is expected to start: seconds from now, infinite where that is not known.

    ``rows`` are its nodes, for the first of its ``parts``; ``launch`` are the GPUs of the nodes that have
    to be started for the other parts.
    """

    fleet: Fleet
    parts: tuple[Need, ...]
    seconds: float
    rows: tuple[int, ...]
    launch: tuple[int, ...]
    reason: str


@dataclass(slots=True)
class Gap:
    """Shares that are idle now but promised from ``seconds`` on to a gang that waits for the rest of its GPUs.

    ``idle`` shrinks as work that is expected to end before fills them.
    """

    fleet: Fleet
    gang: str
    seconds: float
    idle: dict[str, list[GpuShare]]

    def fill(self, need: Need, task: Task) -> tuple[GpuShare, ...] | None:
        """Shares for a task that is expected to leave in time; None otherwise.

        A window shorter than the minimum slice is never granted: it stays with the gang.
        """
        if task.seconds > self.seconds or self.seconds < task.terms.minimum_slice_minutes * 60.0:
            return None
        kind = task.request.gpu_kind
        for node, shares in sorted(self.idle.items()):
            if kind is not None and self.fleet.kind_of(node) != kind:
                continue
            taken = _fitting(shares, need, self.fleet.replicas)
            if taken is not None:
                self.idle[node] = [share for share in shares if share not in taken]
                return taken
        return None


def _fitting(shares: Sequence[GpuShare], need: Need, replicas: int) -> tuple[GpuShare, ...] | None:
    """Whole GPUs, lowest first, or the tightest GPU with enough shares."""
    by_gpu: dict[int, list[GpuShare]] = {}
    for share in sorted(shares):
        by_gpu.setdefault(share.gpu, []).append(share)
    if need.gpus:
        whole = [held for held in by_gpu.values() if len(held) == replicas]
        return None if len(whole) < need.gpus else tuple(share for held in whole[: need.gpus] for share in held)
    rooms = [held for held in by_gpu.values() if len(held) >= need.shares]
    return tuple(min(rooms, key=len)[: need.shares]) if rooms else None


def promise(fleet: Fleet, parts: tuple[Need, ...], kind: str | None, latency: float, *, wait: bool) -> Promise:
    """The expected start of a request in one pool.

    What is idle or already coming is used first, and nodes are started for the rest if the limit leaves
    room for all of their GPUs, unless a release is expected sooner and ``wait`` says to wait for it;
    else it is the earliest time at which enough running work is expected to have ended.
    """
    released, without = _pick(fleet, parts, kind)
    release = math.inf if without else max(found.seconds for found in released)
    found, missing = _pick(fleet, parts, kind, ready_within=latency)
    sizes = _launchable(fleet, missing)
    if missing and (not sizes or (wait and release <= latency)):
        return _on_release(fleet, released, release)
    rows = tuple(one.row for one in found)
    ordered = (*(one.need for one in found), *missing)
    if not missing:
        seconds = max(one.seconds for one in found)
        return Promise(fleet, ordered, seconds, rows, (), "a node that is already coming will hold it")
    text = f"nothing free or coming holds it: start {len(sizes)} node{'s' if len(sizes) > 1 else ''}"
    if release < latency:
        text += f" (a release is expected in {shown_duration(max(release, 0.0))}, but is not certain)"
    return Promise(fleet, ordered, latency, rows, sizes, text)


def _on_release(fleet: Fleet, released: Sequence[_Found], release: float) -> Promise:
    if math.isinf(release):
        return Promise(fleet, (), release, (), (), "nothing tells when the tasks that hold the GPUs will end")
    reason = "enough GPUs are expected to be free then (even odds)"
    return Promise(fleet, tuple(one.need for one in released), release, tuple(one.row for one in released), (), reason)


def reserve(promised: Promise, task: Task, now: datetime) -> dict[str, list[GpuShare]]:
    """Hold what was promised for as long as the task is expected to run, starting nodes as promised.

    Returns the shares that are idle until then, by node.
    """
    fleet = promised.fleet
    rows = promised.rows + tuple(
        fleet.launch(size, promised.seconds, f"{_TO_BE_STARTED}{task.request.id}-{i}", now.timestamp())
        for i, size in enumerate(promised.launch)
    )
    idle: dict[str, list[GpuShare]] = {}
    for row, need in zip(rows, promised.parts, strict=True):
        before = fleet.free_at[row].copy()
        taken = fleet.take(row, need, promised.seconds, promised.seconds + task.seconds)
        waiting = [share for share in taken if before[share.gpu, share.share] <= 0.0]
        if waiting:
            idle[fleet.names[row]] = waiting
    return idle


@dataclass(frozen=True, slots=True)
class _Found:
    """A node for one part, and when the part is free on it."""

    row: int
    need: Need
    seconds: float


def _pick(
    fleet: Fleet, parts: Sequence[Need], kind: str | None, ready_within: float | None = None
) -> tuple[list[_Found], list[Need]]:
    """The node on which each part is free earliest, all different; and the parts for which there is none.

    With ``ready_within`` only what is idle now counts, and what boots by then: no release of running work.
    """
    chosen: list[_Found] = []
    missing: list[Need] = []
    for need in sorted(set(parts), key=lambda part: (-part.gpus, -part.shares)):
        wanted = parts.count(need)
        times = fleet.earliest(need, kind).copy()
        times[[one.row for one in chosen]] = np.inf
        if ready_within is not None:
            times[(times > ready_within) | ((times > 0.0) & ~fleet.coming)] = np.inf
        rows = np.argsort(times, kind="stable")[:wanted] if wanted > 1 else _first(times)
        rows = rows[np.isfinite(times[rows])]
        chosen.extend(_Found(int(row), need, float(times[row])) for row in rows)
        missing.extend([need] * (wanted - rows.size))
    return chosen, missing


def _first(times: Floats) -> NDArray[np.int64]:
    return np.array([np.argmin(times)]) if times.size else np.empty(0, dtype=np.int64)


def _launchable(fleet: Fleet, parts: Sequence[Need]) -> tuple[int, ...]:
    """GPUs of the nodes to start, the smallest type for each part; empty where the limit has no room for them."""
    sizes = []
    for need in parts:
        size = next((gpus for gpus in fleet.pool.node_gpus if gpus >= max(1, need.gpus)), None)
        if size is None:
            return ()
        sizes.append(size)
    return tuple(sizes) if sum(sizes) <= fleet.headroom_gpus else ()
