"""Small allocations against every schedule there is, and placement against plain integration."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from advisor.domain.forecasts import DurationDistribution
from advisor.domain.slices import Decision
from advisor.planning.allocation_terms import AllocationTerms
from advisor.planning.allocator import allocate
from advisor.planning.fleet import CELL_MIDDLES, CELL_WIDTHS, Outlook, build_fleet
from advisor.planning.placement import extension_minutes
from tests.builders import (
    NOON,
    a_cluster,
    a_node,
    a_node_pool,
    a_slice_request,
    a_workload,
    lognormal_durations,
)

FIXED = AllocationTerms(elastic=False, batch_z=100.0)


def total_completion(order: tuple[float, ...], gpus: int) -> float:
    """Sum of completion times when tasks start in this order, each on the GPU that is free first."""
    free, total = [0.0] * gpus, 0.0
    for minutes in order:
        first = free.index(min(free))
        free[first] += minutes
        total += free[first]
    return total


@pytest.mark.parametrize("seed", range(12))
def test_predicted_completion_times_sum_to_the_least_possible(seed):
    """One-GPU tasks that all came together: shortest first is optimal, and the promised times must show it."""
    random = np.random.default_rng(seed)
    minutes = [float(m) for m in random.uniform(20.0, 300.0, 6)]
    cluster = a_cluster(nodes=(a_node(gpus=2),))
    requests = [a_slice_request(f"task-{i}", minutes=m) for i, m in enumerate(minutes)]
    made = allocate(cluster, requests, {}, FIXED, NOON)
    total = 0.0
    for one, length in zip(made, minutes, strict=True):
        start = NOON if one.decision is Decision.PLACED else one.deferred_until
        total += (start - NOON).total_seconds() / 60.0 + length
    best = min(total_completion(order, 2) for order in itertools.permutations(minutes))
    assert total == pytest.approx(best, rel=1e-6)


def test_the_extension_of_a_nodes_life_by_drawing_ends():
    """The mean of how much later the newcomer ends than everything else on the node."""
    random = np.random.default_rng(1)
    remaining = {"a": lognormal_durations(1800.0, 0.8), "b": lognormal_durations(3600.0, 0.5)}
    newcomer = lognormal_durations(4000.0, 0.6)
    pool = a_node_pool()
    workloads = {"node-1": [a_workload("a"), a_workload("b")]}
    fleet = build_fleet(pool, [a_node()], workloads, 0, Outlook(NOON, FIXED, remaining))

    def draw(tasks: DurationDistribution) -> np.ndarray:
        return np.exp(np.interp(random.uniform(size=200_000), tasks.cdf, tasks.log_edges))

    later = draw(newcomer) - np.maximum(draw(remaining["a"]), draw(remaining["b"]))
    found = extension_minutes(fleet, np.array([0]), newcomer.survival_at(CELL_MIDDLES))[0]
    assert found == pytest.approx(np.maximum(later, 0.0).mean() / 60.0, rel=0.1)
    assert CELL_WIDTHS.sum() == pytest.approx(7 * 86_400.0)
