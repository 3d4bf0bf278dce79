"""A replay of warm capacity that keeps every node as a thing of its own: slow, and easy to see through."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from training.warm_replay import WarmWorld
from training.warm_schedule import WarmSchedule


@dataclass
class Node:
    ready_at: int
    idle_since: int | None = None


@dataclass
class Outcome:
    paid: float = 0.0
    boots: float = 0.0
    starts: int = 0
    used: float = 0.0
    unmet: float = 0.0


def in_nodes(wanted: float, free: float, size: int) -> int:
    return max(0, math.ceil((wanted - free) / size - 1e-6))


def replayed(demand: list[int], schedule: WarmSchedule, world: WarmWorld) -> Outcome:
    """Samples are a minute apart, GPUs whole; the start latency is whole minutes."""
    size, latency = world.node_gpus, int(world.latency_minutes)
    found = Outcome()
    nodes = [Node(ready_at=-1) for _ in range(math.ceil(demand[0] / size))]
    for now, gpus in enumerate(demand):
        need = math.ceil(gpus / size)
        base = gpus if schedule.total else 0
        ahead = in_nodes(float(schedule.ahead[now]) - base, need * size - gpus, size)
        keep = max(ahead, in_nodes(float(schedule.keep[now]) - base, need * size - gpus, size))
        ready = [node for node in nodes if node.ready_at <= now]
        busy = [node for node in ready if node.idle_since is None]
        idle = sorted((n for n in ready if n.idle_since is not None), key=lambda n: n.idle_since)
        while len(busy) > need:
            node = busy.pop()
            node.idle_since = now
            idle.append(node)
        while len(busy) < need and idle:
            node = idle.pop()
            node.idle_since = None
            busy.append(node)
        for node in list(idle):
            if len(idle) > keep and now - node.idle_since >= schedule.patience_minutes:
                idle.remove(node)
                nodes.remove(node)
        for _ in range(max(0, need + ahead - len(nodes))):
            nodes.append(Node(ready_at=now + latency))
            found.starts += 1
        ready = sum(node.ready_at <= now for node in nodes)
        booting = len(nodes) - ready
        served = min(gpus, ready * size)
        found.boots += booting * world.boot_billed
        found.paid += ready + booting * world.boot_billed
        found.used += served
        found.unmet += gpus - served
    found.boots += found.starts * world.start_cost_minutes
    found.paid += found.starts * world.start_cost_minutes
    return found


def schedule_of(ahead: list[int], keep: list[int], patience: int, *, total: bool) -> WarmSchedule:
    return WarmSchedule(
        ahead=np.array(ahead, dtype=np.float64),
        keep=np.array(keep, dtype=np.float64),
        patience_minutes=patience,
        total=total,
    )
