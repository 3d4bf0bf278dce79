"""The distribution in the leaves against a Kaplan-Meier estimate written out job by job."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.forecast.grid import LogGrid
from advisor.forecast.leaves import LeafHistograms

GRID = LogGrid(step=0.5, cells=30, tail=1.0)
FORESTS, LEAVES = (2, 3), 4
NOW = 1_000_000.0


def oracle_cdf(ended, lost, running, asked):
    """One forest after the other, one cell after the other, one job after the other.

    Every job is (leaves, seconds, weight). In each tree the jobs of the asked leaf share one vote.
    """
    cdfs, first = [], 0
    for trees in FORESTS:
        votes = {}
        for tree in range(first, first + trees):
            mates = [(kind, job) for kind, group in (("ended", ended), ("alive", lost + running)) for job in group]
            mates = [(kind, job) for kind, job in mates if job[0][tree] == asked[tree]]
            total = sum(job[2] for _, job in mates)
            for kind, job in mates:
                cell = min(max(int(math.log(job[1]) / GRID.step), 0), GRID.cells - 1)
                votes[kind, cell] = votes.get((kind, cell), 0.0) + job[2] / total
        first += trees
        if votes:
            cdfs.append(_one_forest(votes))
    return np.mean(cdfs, axis=0) if cdfs else None


def _one_forest(votes):
    last = max(cell for _, cell in votes)
    survival, by_edge = 1.0, [0.0]
    for cell in range(last + 1):
        at_risk = sum(mass for (_, other), mass in votes.items() if other >= cell)
        at_risk -= votes.get(("alive", cell), 0.0) / 2
        if ("ended", cell) in votes:
            survival *= max(0.0, 1 - votes["ended", cell] / at_risk)
        by_edge.append(1 - survival)
    while len(by_edge) < GRID.log_edges.size:
        beyond = (len(by_edge) - last - 1) * GRID.step
        by_edge.append(1 - survival * max(0.0, 1 - beyond / GRID.tail))
    by_edge[-1] = 1.0
    return by_edge


jobs = st.lists(
    st.tuples(
        st.tuples(*[st.integers(0, LEAVES - 1)] * sum(FORESTS)),
        st.floats(0.5, 5e6),
        st.sampled_from([1.0, 0.5, 1e-3]),
    ),
    max_size=12,
)


@given(jobs, jobs, jobs, st.tuples(*[st.integers(0, LEAVES - 1)] * sum(FORESTS)))
def test_any_mixture_of_ended_lost_and_running_jobs_agrees(ended, lost, running, asked):
    histograms = LeafHistograms(FORESTS, LEAVES, GRID)
    for leaves, seconds, weight in ended:
        histograms.add(np.array(leaves, dtype=np.int32), math.log(seconds), weight)
    for leaves, seconds, weight in lost:
        histograms.add_lost(np.array(leaves, dtype=np.int32), math.log(seconds), weight)
    # Ages in whole quarters of a second, so that "now - start" gives them back exactly.
    running = [(leaves, max(round(seconds * 4) / 4, 1.0), weight) for leaves, seconds, weight in running]
    for number, (leaves, age, weight) in enumerate(running):
        histograms.started(("test", str(number)), np.array(leaves, dtype=np.int32), NOW - age, weight)
    (found,) = histograms.cdfs(histograms.counts(np.array([asked], dtype=np.int32), NOW))
    expected = oracle_cdf(ended, lost, running, asked)
    if expected is None:
        assert np.isnan(found).all()
    else:
        assert found == pytest.approx(expected, abs=1e-9)
