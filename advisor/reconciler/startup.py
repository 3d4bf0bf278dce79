"""Nodes that were asked for and are still coming: capacity on its way is capacity, for a while.

A GPU node is Ready minutes before its device plugin lets GPUs be allocated. Whoever only counts what
can be allocated asks for another node at every look until then.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from advisor.domain.nodepools import Node
from advisor.domain.units import counted, shown_duration
from advisor.errors import Refused

__all__ = ["STARTUP_TIMEOUT_SECONDS", "MissingCapacity", "missing_capacity"]

STARTUP_TIMEOUT_SECONDS = 900.0
"""Karpenter gives a node 15 minutes to register before it throws it away."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingCapacity:
    """Nodes to ask for beyond what is there and what is coming; ``overdue`` names those that should have come."""

    nodes: int
    ready_gpus: int
    coming_gpus: int
    overdue: tuple[str, ...]
    reasons: tuple[str, ...]


def missing_capacity(
    demand_gpus: float,
    nodes: Iterable[Node],
    now: datetime,
    node_gpus: int,
    startup_timeout_seconds: float = STARTUP_TIMEOUT_SECONDS,
) -> MissingCapacity:
    """How many nodes of ``node_gpus`` GPUs a demand (running + pending, physical GPUs) still lacks.

    A node that is not ready counts with its expected GPUs until ``startup_timeout_seconds`` after its
    creation; from then on it is flagged and counts no more. Cordoned nodes take no new work, yet the
    work they hold is part of the demand, so they count.

    Raises:
        Refused: a node size below 1.
    """
    if node_gpus < 1:
        raise Refused("node_gpus", node_gpus, "a GPU node has at least one GPU", "Give the GPUs of a node.")
    patience = timedelta(seconds=startup_timeout_seconds)
    ready = coming = 0
    overdue: list[str] = []
    for node in nodes:
        if node.ready:
            ready += node.gpus
        elif now - node.created <= patience:
            coming += node.gpus
        else:
            overdue.append(node.name)
    lacking = max(0, math.ceil((demand_gpus - ready - coming) / node_gpus - 1e-9))
    reasons = [
        f"{demand_gpus:g} GPUs wanted, {ready} ready, {coming} coming: {counted(lacking, 'more node')} of {node_gpus}"
    ]
    if overdue:
        waited = shown_duration(startup_timeout_seconds)
        reasons.append(f"not ready after {waited}, so not counted on any more: {', '.join(overdue)}")
    return MissingCapacity(
        nodes=lacking, ready_gpus=ready, coming_gpus=coming, overdue=tuple(overdue), reasons=tuple(reasons)
    )
