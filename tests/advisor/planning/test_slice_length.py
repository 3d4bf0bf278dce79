"""The slice plan of a pool."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from advisor.domain.forecasts import DurationDistribution
from advisor.errors import Refused
from advisor.planning.durations import PoolDurations
from advisor.planning.slice_length import recommend_slices
from advisor.planning.slice_terms import GRID_MINUTES, LatencyTarget, SliceTerms
from tests.builders import exponential_durations, lognormal_durations

TERMS = SliceTerms(switch_minutes=5.0)
MEAN_20 = PoolDurations.one(exponential_durations(1200.0))
HEAVY = PoolDurations.one(lognormal_durations(300.0, 1.67))
"""Median 5, mean 20 minutes."""
MIXED = PoolDurations(
    tuple(lognormal_durations(60.0 * m, 0.6) for m in (4, 5, 6, 8, 10, 200, 250, 300, 350, 400)), (1.0,) * 10, 5000
)


def only_class(durations, terms, current=None):
    plan = recommend_slices("a100", durations, terms, current)
    assert len(plan.classes) == 1
    return plan.classes[0]


def test_an_exponential_is_best_cut_at_15_and_better_not_cut_at_all():
    found = only_class(MEAN_20, TERMS)
    assert found.if_sliced_minutes == 15.0
    assert found.minutes is None
    assert found.rule_of_thumb_minutes == pytest.approx(15.0, abs=0.01)
    assert found.closed_form_minutes == pytest.approx(14.1, abs=0.05)
    assert found.cost == pytest.approx(0.645, abs=0.001)
    assert any("do not slice" in reason for reason in found.reasons)


def test_urgent_work_has_even_an_exponential_sliced():
    found = only_class(MEAN_20, replace(TERMS, latency=LatencyTarget(5.0), slices=8))
    assert found.minutes == 15.0
    assert found.binding_constraint is None


def test_tasks_with_a_heavy_tail_are_sliced():
    found = only_class(HEAVY, TERMS)
    assert found.minutes == found.if_sliced_minutes == 10.0
    assert found.quantum_minutes == pytest.approx(10.5, rel=0.1)


def test_tasks_of_one_length_run_to_their_end():
    found = only_class(PoolDurations.observed([3600.0] * 50), TERMS)
    assert found.minutes is None
    assert found.if_sliced_minutes == 60.0
    assert found.cost == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize(
    "more, minutes, binding",
    [
        ({"latency": LatencyTarget(5.0), "slices": 4}, 5.0, "priority latency"),
        ({"start_latency_minutes": 12.0}, 15.0, "start latency"),
        ({"checkpoint_interval_minutes": 25.0}, 30.0, "checkpoint interval"),
        ({"minimum_minutes": 45.0}, 45.0, "minimum"),
    ],
)
def test_the_binding_constraint_is_named(more, minutes, binding):
    found = only_class(HEAVY, replace(TERMS, **more))
    assert (found.if_sliced_minutes, found.binding_constraint) == (minutes, binding)


def test_a_promise_below_the_floor_is_said_to_be_broken():
    found = only_class(HEAVY, replace(TERMS, latency=LatencyTarget(3.0), slices=1))
    assert found.minutes == 5.0
    assert any("at most 3.16 min" in reason and "but not under 5 min" in reason for reason in found.reasons)


def test_stability_outweighs_urgent_work():
    hurried = replace(TERMS, urgent_per_minute=30.0, slices=8, reclaim_share=0.9)
    assert only_class(MEAN_20, replace(hurried, load=0.3)).minutes == 5.0
    found = only_class(MEAN_20, replace(hurried, load=0.75))
    assert found.minutes == 15.0
    assert found.binding_constraint == "stability"
    assert found.cost == min(point.cost for point in found.curve if point.feasible)


def test_an_overloaded_pool_is_told_so():
    plan = recommend_slices("a100", HEAVY, replace(TERMS, load=0.99))
    assert plan.classes[0].binding_constraint == "stability"
    assert "no length keeps the pool stable" in plan.reasons[0]


def test_short_and_long_tasks_get_lengths_of_their_own():
    plan = recommend_slices("a100", MIXED, replace(TERMS, slices=500))
    assert [found.name for found in plan.classes] == ["short", "long"]
    assert 10.0 < plan.classes[0].longest_minutes < 200.0
    assert plan.class_for(7.0).if_sliced_minutes < plan.class_for(300.0).if_sliced_minutes
    assert sum(found.share_of_jobs for found in plan.classes) == pytest.approx(1.0)


def test_the_curve_shows_the_whole_grid_and_what_is_not_allowed():
    found = only_class(HEAVY, replace(TERMS, latency=LatencyTarget(5.0), slices=8), 22.0)
    assert {point.minutes for point in found.curve} == {*GRID_MINUTES, 22.0}
    assert [point.minutes for point in found.curve if point.feasible] == [5.0, 10.0, 15.0]
    assert found.cost == min(point.cost for point in found.curve if point.feasible)
    assert all(math.isfinite(point.cost) for point in found.curve)


def test_the_length_in_use_stays_if_the_best_saves_too_little():
    found = only_class(HEAVY, TERMS, 15.0)
    assert found.cost == found.current_cost
    assert found.minutes == found.current_minutes == 15.0


def test_a_length_that_stays_beside_a_cheaper_one_says_why():
    best = only_class(HEAVY, TERMS)
    kept = only_class(HEAVY, replace(TERMS, margin=0.2), 15.0)
    assert kept.minutes == 15.0
    assert kept.cost > best.cost
    (why,) = [reason for reason in kept.reasons if "stays" in reason]
    less = 100 * (1 - best.cost / kept.cost)
    assert f"10 min would lose {best.cost:.3f}, {less:.2g}% less, and a plan must save 20% to replace it" in why
    assert not any("stays" in reason for reason in best.reasons)
    assert any(reason.endswith("loses at most 5 % more") for reason in best.reasons)


def test_the_square_root_law_says_what_the_choice_costs_only_where_that_is_something():
    law = next(reason for reason in only_class(MEAN_20, TERMS).reasons if "square-root law" in reason)
    assert "more by it" not in law
    bound = only_class(MEAN_20, replace(TERMS, minimum_minutes=60.0))
    assert any("(60 min costs " in reason for reason in bound.reasons)


def test_the_length_in_use_goes_if_the_best_saves_enough():
    found = only_class(HEAVY, TERMS, 60.0)
    assert found.minutes == 10.0
    assert found.current_minutes == 60.0
    assert found.current_cost > found.cost


def test_a_length_in_use_that_is_no_longer_allowed_goes_at_once():
    assert only_class(HEAVY, replace(TERMS, start_latency_minutes=12.0), 10.0).minutes == 15.0


def test_a_plan_recomputed_on_nearly_the_same_tasks_does_not_move():
    terms = replace(TERMS, slices=500)
    first = recommend_slices("a100", MIXED, terms)
    moved = replace(MIXED, weights=(1.1,) * 5 + (1.0,) * 5)
    again = recommend_slices("a100", moved, replace(terms, switch_minutes=5.3), first)
    assert [c.minutes for c in again.classes] == [c.minutes for c in first.classes]
    assert [c.longest_minutes for c in again.classes] == [c.longest_minutes for c in first.classes]
    assert again.reasons[0].startswith("kept as it is")


def test_whether_to_slice_at_all_does_not_flap():
    """Median 14, mean 20 min: 8.8 % meet a useful boundary at s = 1, 10.6 % at s = 0.1, about the limit of 10 %."""
    border = PoolDurations.one(lognormal_durations(840.0, math.sqrt(2.0 * math.log(20.0 / 14.0))))
    dear, cheap = replace(TERMS, switch_minutes=1.0), replace(TERMS, switch_minutes=0.1)
    unsliced, sliced = recommend_slices("a100", border, dear), recommend_slices("a100", border, cheap)
    assert unsliced.classes[0].minutes is None
    assert sliced.classes[0].minutes is not None
    assert only_class(border, dear, sliced).minutes is not None
    assert only_class(border, cheap, unsliced).minutes is None


def test_when_all_long_tasks_are_gone_the_kept_plan_still_has_a_class_for_any():
    terms = replace(TERMS, slices=500, margin=1.0)
    first = recommend_slices("a100", MIXED, terms)
    only_short = PoolDurations(MIXED.parts[:5], MIXED.weights[:5], 5000)
    again = recommend_slices("a100", only_short, terms, first)
    assert again.classes[-1].longest_minutes is None
    assert again.classes[-1].current_minutes == first.classes[0].if_sliced_minutes


def test_twice_the_switch_cost_is_shown():
    found = only_class(HEAVY, TERMS)
    assert found.double_switch_minutes >= found.if_sliced_minutes
    assert found.double_switch_minutes == only_class(HEAVY, replace(TERMS, switch_minutes=10.0)).if_sliced_minutes


def test_what_nobody_measured_is_named():
    reasons = recommend_slices("a100", HEAVY, TERMS).reasons
    measured = replace(TERMS, switch_share=0.03, reclaim_share=0.5, load=0.5)
    assert any("every boundary is taken to switch" in reason for reason in reasons)
    assert not any("measured" in reason for reason in recommend_slices("a100", HEAVY, measured).reasons)


@pytest.mark.parametrize("current, minutes", [(None, 15.0), (30.0, 30.0), (33.0, 30.0)])
def test_no_history_gives_what_is_in_use_or_the_default_and_says_so(current, minutes):
    found = only_class(PoolDurations((), ()), TERMS, current)
    assert found.minutes == minutes
    assert found.confidence == "thin"
    assert "thin evidence: 0 ended jobs" in found.reasons[0]


def test_a_handful_of_jobs_is_no_evidence():
    found = only_class(PoolDurations.observed([60.0, 6000.0]), TERMS)
    assert found.minutes == 15.0
    assert "thin evidence: 2 ended jobs, at least 30 are needed" in found.reasons[0]


def test_a_default_outside_the_bounds_moves_inside():
    assert only_class(PoolDurations((), ()), replace(TERMS, start_latency_minutes=40.0)).minutes == 45.0


@pytest.mark.parametrize("ended, confidence", [(30, "moderate"), (300, "good"), (None, "moderate")])
def test_confidence_follows_the_ended_jobs(ended, confidence):
    tasks = PoolDurations.one(lognormal_durations(300.0, 1.67), ended)
    assert only_class(tasks, TERMS).confidence == confidence


def test_a_length_is_always_positive_and_finite():
    """Field report A17: whatever the distribution, the slice length that comes of it is above zero."""
    for seconds in (1.0, 60.0, 3600.0, 6e6):
        found = only_class(PoolDurations.one(DurationDistribution.point(seconds, 2.0)), TERMS)
        assert 5.0 <= found.if_sliced_minutes <= 120.0
        assert math.isfinite(found.cost)
        assert math.isfinite(found.closed_form_minutes)


@pytest.mark.parametrize("current", [0.0, -15.0, float("nan")])
def test_a_length_in_use_that_is_none_is_refused(current):
    with pytest.raises(Refused, match="current slice length"):
        recommend_slices("a100", MEAN_20, TERMS, current)
