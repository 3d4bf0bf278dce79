"""Which lengths are allowed, with the values of the latency and stability rules."""

from __future__ import annotations

import numpy as np
import pytest

from advisor.errors import Refused
from advisor.planning.slice_bounds import bounds_of, candidates, choose, longest_for_latency
from advisor.planning.slice_terms import GRID_MINUTES, LatencyTarget, SliceTerms


@pytest.mark.parametrize("places, minutes", [(1, 5.3), (4, 9.5), (8, 16.0), (16, 29.0), (32, 56.0)])
def test_the_longest_slice_that_lets_urgent_work_wait_five_minutes(places, minutes):
    assert longest_for_latency(LatencyTarget(5.0, 0.05), 0.0, places) == pytest.approx(minutes, rel=0.02)


def test_the_latency_rule_keeps_its_promise_in_simulation():
    length = longest_for_latency(LatencyTarget(5.0, 0.05), 0.0, 8)
    firsts = np.random.default_rng(7).uniform(0.0, length, (20_000, 8)).min(axis=1)
    assert (firsts > 5.0).mean() == pytest.approx(0.05, abs=0.006)


def test_checkpointing_eats_into_the_promise():
    assert longest_for_latency(LatencyTarget(5.0), 2.0, 1) == pytest.approx(3.0 / 0.95)


@pytest.mark.parametrize(
    "more, lowest, rule",
    [
        ({}, 5.0, "minimum"),
        ({"start_latency_minutes": 8.0}, 8.0, "start latency"),
        ({"start_latency_minutes": 8.0, "checkpoint_interval_minutes": 30.0}, 30.0, "checkpoint interval"),
    ],
)
def test_the_strictest_floor_is_named(more, lowest, rule):
    bounds = bounds_of(SliceTerms(switch_minutes=1.0, **more))
    assert (bounds.lowest, bounds.lowest_rule) == (lowest, rule)


def test_aligned_boundaries_count_as_one():
    target = LatencyTarget(5.0)
    apart = bounds_of(SliceTerms(switch_minutes=1.0, slices=8, latency=target))
    together = bounds_of(SliceTerms(switch_minutes=1.0, slices=8, latency=target, aligned=True))
    assert apart.highest == pytest.approx(16.0, abs=0.1)
    assert together.highest == pytest.approx(5.26, abs=0.01)


def test_the_grid_within_the_bounds_is_chosen_from():
    terms = SliceTerms(switch_minutes=1.0, slices=8, latency=LatencyTarget(5.0), start_latency_minutes=8.0)
    assert candidates(bounds_of(terms), GRID_MINUTES) == (10.0, 15.0)


def test_a_floor_above_the_grid_becomes_the_only_candidate():
    terms = SliceTerms(switch_minutes=1.0, checkpoint_interval_minutes=180.0)
    assert candidates(bounds_of(terms), GRID_MINUTES) == (180.0,)


def test_a_promise_that_cannot_be_kept_gives_the_floor_and_says_so():
    bounds = bounds_of(SliceTerms(switch_minutes=1.0, slices=1, latency=LatencyTarget(2.0)))
    assert bounds.conflict
    assert candidates(bounds, GRID_MINUTES) == (5.0,)


def test_a_length_the_pool_cannot_bear_is_passed_over():
    cost, overhead = np.array([0.2, 0.3, 0.4]), np.array([0.20, 0.15, 0.10])
    free = choose(cost, overhead, cap=1.0)
    tight = choose(cost, overhead, cap=0.12)
    never = choose(cost, overhead, cap=0.01)
    assert (free.index, free.moved, free.stable) == (0, False, True)
    assert (tight.index, tight.moved, tight.stable) == (2, True, True)
    assert (never.index, never.stable) == (2, False)


def test_ties_go_to_the_longer_length():
    assert choose(np.array([0.1, 0.1]), np.array([0.1, 0.1]), 1.0).index == 1


@pytest.mark.parametrize("minutes, share", [(0.0, 0.05), (5.0, 0.0), (5.0, 1.0), (float("nan"), 0.05)])
def test_a_promise_that_is_none_is_refused(minutes, share):
    with pytest.raises(Refused):
        LatencyTarget(minutes, share)
