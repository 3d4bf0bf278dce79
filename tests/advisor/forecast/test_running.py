"""Who runs in the same leaves, few or many of them, against adding them up one by one."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.forecast.grid import LogGrid
from advisor.forecast.leaves import LeafHistograms
from advisor.forecast.running import RunningJobs

GRID = LogGrid(step=0.25, cells=60)
TREES, LEAVES = 4, 5
NOW = 1e9
MANY = 6000
"""Beyond what is compared one by one."""


def a_crowd(count, *, seed=1):
    """Jobs as (identity, leaves, start, weight); many starts are the same, some lie ahead."""
    rng = np.random.default_rng(seed)
    # Some leaves are crowded, some hold a few.
    leaves = rng.choice(LEAVES, size=(count, TREES), p=[0.4, 0.01, 0.4, 0.02, 0.17]).astype(np.int32)
    starts = (
        NOW - np.round(np.exp(rng.uniform(-1.0, 14.0, size=count))) + rng.choice([0.0, 5.0], size=count, p=[0.9, 0.1])
    )
    weights = rng.choice([1.0, 0.5, 1e-9], size=count)
    names = [("test", str(number)) for number in range(count)]
    return list(zip(names, leaves, starts.tolist(), weights.tolist(), strict=True))


def running(crowd):
    jobs = RunningJobs(TREES, GRID)
    for one in crowd:
        jobs.add(*one)
    return jobs


def table(jobs, leaves, now=NOW):
    """Weight by tree and cell."""
    found = np.zeros((TREES, GRID.cells))
    sharing = jobs.in_leaves(leaves, now)
    np.add.at(found, (sharing.trees, sharing.cells), sharing.weights)
    return found


def oracle(crowd, leaves, now=NOW):
    found = np.zeros((TREES, GRID.cells))
    for _, own, start, weight in crowd:
        for tree in range(TREES):
            if own[tree] == leaves[tree]:
                found[tree, GRID.cell_of(math.log(max(now - start, 1.0)))] += weight
    return found


ASKED = np.array([0, 1, 2, 3], dtype=np.int32)


@pytest.mark.parametrize("count", [0, 1, 100, MANY])
@pytest.mark.parametrize("later", [0.0, 3.0, 1e6, 1e9])
def test_however_many_run_they_are_added_up_by_tree_and_age(count, later):
    crowd = a_crowd(count)
    assert table(running(crowd), ASKED, NOW + later) == pytest.approx(oracle(crowd, ASKED, NOW + later), rel=1e-9)


@settings(max_examples=10)
@given(st.integers(0, 10_000))
def test_whoever_has_come_and_gone_is_not_added_up(seed):
    rng = np.random.default_rng(seed)
    crowd = a_crowd(MANY + 1000, seed=seed)
    jobs = running(crowd[: MANY + 500])
    gone = set(rng.choice(MANY + 500, size=300, replace=False).tolist())
    for number in gone:
        jobs.remove(crowd[number][0])
        jobs.remove(crowd[number][0])
    for one in crowd[MANY + 500 :]:
        jobs.add(*one)
        jobs.add(*one)
    left = [one for number, one in enumerate(crowd) if number not in gone]
    assert len(jobs) == len(left)
    assert table(jobs, ASKED) == pytest.approx(oracle(left, ASKED), rel=1e-9)


def test_the_answer_depends_on_who_runs_and_not_on_how_it_came_to_that():
    """A state rebuilt from the history equals that of one never stopped, to the bit."""
    crowd = a_crowd(MANY + 3000)
    left = crowd[:MANY]
    never_stopped = running(crowd)
    for one in crowd[MANY:]:
        never_stopped.remove(one[0])
    assert np.array_equal(table(never_stopped, ASKED), table(running(left), ASKED))
    assert np.array_equal(table(running(left[::-1]), ASKED), table(running(left), ASKED))


def test_a_number_that_sways_is_followed_up_and_down():
    crowd = a_crowd(MANY)
    jobs = running(crowd)
    for one in crowd[2000:]:
        jobs.remove(one[0])
    assert table(jobs, ASKED) == pytest.approx(oracle(crowd[:2000], ASKED), rel=1e-9)
    for one in crowd[2000:]:
        jobs.add(*one)
    assert table(jobs, ASKED) == pytest.approx(oracle(crowd, ASKED), rel=1e-9)


def test_a_leaf_in_which_nobody_runs_any_more_holds_nothing():
    crowd = a_crowd(MANY)
    elsewhere = np.full(TREES, LEAVES, dtype=np.int32)
    jobs = running([*crowd, (("test", "alone"), elsewhere, NOW - 60.0, 1.0)])
    assert table(jobs, elsewhere).sum() == TREES
    jobs.remove(("test", "alone"))
    assert not table(jobs, elsewhere).any()
    assert not table(running(crowd), elsewhere).any()


def test_asked_alone_or_in_company_the_leaves_of_many_say_the_same():
    histograms = LeafHistograms((2, 2), LEAVES + 1, GRID)
    for job, leaves, start, weight in a_crowd(MANY):
        histograms.started(job, leaves, start, weight)
    asked = np.array([one[1] for one in a_crowd(20, seed=2)])
    together = histograms.counts(asked, NOW)
    for place, leaves in enumerate(asked):
        alone = histograms.counts(leaves[np.newaxis], NOW)
        assert np.array_equal(alone.alive[0], together.alive[place])
        assert np.array_equal(alone.ended[0], together.ended[place])
