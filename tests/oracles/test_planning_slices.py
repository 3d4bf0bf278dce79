"""Slice lengths against slow and obvious second implementations."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from advisor.planning.durations import PoolDurations, surviving_boundaries
from advisor.planning.slice_classes import best_grouping
from advisor.planning.slice_objective import cost_table, costs
from advisor.planning.slice_quantum import quantum
from advisor.planning.slice_terms import GRID_MINUTES, SliceTerms
from tests.builders import lognormal_durations


@pytest.mark.parametrize("median, sigma", [(30.0, 0.3), (900.0, 1.0), (7200.0, 1.5), (40_000.0, 1.0)])
@pytest.mark.parametrize("minutes, grace", [(5.0, 0.0), (15.0, 5.0), (7.3, 0.4)])
def test_boundaries_summed_one_by_one(median, sigma, minutes, grace):
    tasks = lognormal_durations(median, sigma)
    most = int(math.exp(tasks.log_edges[-1]) / (minutes * 60.0)) + 2
    slow = sum(tasks.survival(60.0 * (n * minutes + grace)) for n in range(1, min(most, 400_000)))
    assert surviving_boundaries(tasks, np.array([minutes]), grace)[0] == pytest.approx(slow, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("minutes", [5.0, 20.0, 60.0])
def test_the_objective_by_running_a_hundred_thousand_tasks(minutes):
    terms = SliceTerms(switch_minutes=3.0, switch_share=0.4, reclaim_share=0.25, grace_minutes=2.0)
    tasks = lognormal_durations(1200.0, 1.0)
    levels = (np.arange(100_000) + 0.5) / 100_000
    ran = np.exp(np.interp(levels, tasks.cdf, tasks.log_edges)) / 60.0
    slices = np.ceil(ran / minutes)
    met = np.maximum(0.0, np.ceil((ran - terms.grace_minutes) / minutes) - 1.0)
    lost = 0.4 * 3.0 * met + 0.75 * (slices * minutes - ran)
    assert costs(tasks, (minutes,), terms)[0] == pytest.approx(lost.sum() / ran.sum(), rel=2e-3)


def test_the_quantum_by_trying_every_second():
    tasks = lognormal_durations(300.0, 1.67)
    tried = {
        seconds: tasks.probability_by(seconds) / (2.0 + tasks.mean_within(seconds) / 60.0)
        for seconds in range(10, 7200)
    }
    best = max(tried.values())
    found = quantum(tasks, 2.0)
    assert found.index == pytest.approx(best, rel=1e-5)
    assert tried[round(found.minutes * 60.0)] == pytest.approx(best, rel=1e-4)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("classes", [1, 2, 3])
def test_classes_by_trying_every_cut(seed, classes):
    random = np.random.default_rng(seed)
    parts = [lognormal_durations(median, 0.8) for median in np.exp(random.normal(7.0, 1.5, 7))]
    durations = PoolDurations(tuple(parts), tuple(random.uniform(0.5, 2.0, 7))).by_median()
    terms = SliceTerms(
        switch_minutes=4.0, max_classes=classes, pooling_beta=0.0, least_class_share=0.0, urgent_per_minute=0.05
    )
    table = cost_table(durations, GRID_MINUTES, terms)
    tried = []
    for count in range(1, classes + 1):
        for inner in itertools.combinations(range(1, 7), count - 1):
            cuts = (0, *inner, 7)
            lost = [table.of(a, b).cost.min() * table.useful[a:b].sum() for a, b in itertools.pairwise(cuts)]
            tried.append(sum(lost) / table.useful.sum())
    assert best_grouping(durations, table, terms).cost == pytest.approx(min(tried))
