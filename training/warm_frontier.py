"""Policies at equal cost: the least wait that each has at a cost, between its neighbouring settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from advisor.domain.warm_reports import KEEP_ALIVE, WarmAtCost, WarmPoint

__all__ = ["at_equal_cost", "compared_costs", "wait_at"]

Floats = NDArray[np.float64]

USUAL_COSTS = (1.05, 1.10)
_DEARER = (1.02, 1.05, 1.10)


def compared_costs(keep_alive: Sequence[WarmPoint]) -> tuple[float, ...]:
    """1.05 and 1.10, and where keep-alive alone costs more than that, its least cost and a little above it.

    On few nodes the idle rest of each costs more than any policy: there the usual costs are out of reach.
    """
    least = min((point.cost for point in keep_alive), default=0.0)
    above = [round(least * factor, 3) for factor in _DEARER] if least > USUAL_COSTS[0] else []
    return tuple(sorted({*USUAL_COSTS, *above}))


def wait_at(points: Sequence[WarmPoint], cost: float, measure: str = "mean_wait_minutes") -> float | None:
    """``measure`` at ``cost`` on the lower edge of a curve; None below its least cost, or where it is not known.

    A dearer setting that waits longer than a cheaper one is passed over: nobody would choose it. Above its dearest
    setting a policy waits as it does there: nobody has to spend more.
    """
    edge: list[WarmPoint] = []
    for point in sorted(points, key=lambda point: (point.cost, point.mean_wait_minutes)):
        if not edge or point.mean_wait_minutes < edge[-1].mean_wait_minutes:
            edge.append(point)
    found = [getattr(point, measure) for point in edge]
    if not edge or cost < edge[0].cost or None in found:
        return None
    return float(np.interp(cost, [point.cost for point in edge], found))


def at_equal_cost(curves: Mapping[str, Sequence[WarmPoint]]) -> dict[str, dict[str, WarmAtCost]]:
    """Every policy's wait at the compared costs, and its change against keep-alive's at the same cost."""
    theirs = curves[KEEP_ALIVE]
    return {
        _named(cost): {name: _compared(points, theirs, cost) for name, points in curves.items()}
        for cost in compared_costs(theirs)
    }


def _compared(ours: Sequence[WarmPoint], theirs: Sequence[WarmPoint], cost: float) -> WarmAtCost:
    return WarmAtCost(
        mean_wait_minutes=wait_at(ours, cost),
        relative_to_keep_alive=_change(ours, theirs, cost, "mean_wait_minutes"),
        node_starts=wait_at(ours, cost, "node_starts"),
        jobs_relative_to_keep_alive=_change(ours, theirs, cost, "wait_per_job_minutes"),
    )


def _change(ours: Sequence[WarmPoint], theirs: Sequence[WarmPoint], cost: float, measure: str) -> float | None:
    wait, other = wait_at(ours, cost, measure), wait_at(theirs, cost, measure)
    return None if wait is None or not other else wait / other - 1.0


def _named(cost: float) -> str:
    return f"{cost:.2f}" if round(cost, 2) == cost else f"{cost:.3f}"
