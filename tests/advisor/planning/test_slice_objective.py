"""The objective against worked examples; times in minutes."""

from __future__ import annotations

import math

import numpy as np
import pytest

from advisor.domain.slices import SliceLength
from advisor.errors import Refused
from advisor.planning.durations import PoolDurations, mean_and_deviation, surviving_boundaries
from advisor.planning.slice_objective import (
    cost_table,
    costs,
    exponential_optimum,
    flatness,
    lowest_stable_minutes,
    max_utilisation,
    rule_of_thumb,
    square_root_law,
    unused_tail,
)
from advisor.planning.slice_terms import GRID_MINUTES, SliceTerms
from tests.builders import exponential_durations, lognormal_durations

WORST = SliceTerms(switch_minutes=5.0)
"""Every boundary switches, nothing is reclaimed, no urgent work."""

MEAN_20 = exponential_durations(1200.0)


def a_lognormal(median_minutes: float, mean_minutes: float):
    return lognormal_durations(median_minutes * 60.0, math.sqrt(2.0 * math.log(mean_minutes / median_minutes)))


def test_an_hour_is_four_slices_of_fifteen_minutes_and_two_of_thirty():
    assert SliceLength(15).slices_for(3600.0) == 4
    assert SliceLength(30).slices_for(3600.0) == 2


def test_the_exact_optimum_of_an_exponential_with_mean_20_and_a_switch_of_5():
    optimum = exponential_optimum(20.0, 5.0)
    assert optimum.minutes == pytest.approx(12.65, abs=0.01)
    assert optimum.cost == pytest.approx(0.633, abs=0.001)


@pytest.mark.parametrize("minutes, cost", [(10.0, 0.656), (12.65, 0.633), (15.0, 0.645), (20.0, 0.727)])
def test_the_objective_of_an_exponential(minutes, cost):
    assert costs(MEAN_20, (minutes,), WORST)[0] == pytest.approx(cost, abs=0.001)


def test_the_grid_choice_for_that_exponential_is_fifteen_minutes():
    assert min(zip(costs(MEAN_20, GRID_MINUTES, WORST), GRID_MINUTES, strict=True))[1] == 15.0


def test_the_square_root_law_for_it():
    assert square_root_law(20.0, WORST).minutes == pytest.approx(14.1, abs=0.05)
    assert square_root_law(20.0, WORST).cost == pytest.approx(0.71, abs=0.005)


@pytest.mark.parametrize(
    "switch_minutes, cost",
    [(5.0, 0.17), (1.0, 0.08)],
)
def test_reclaiming_tails_and_rare_switches_matter_more_than_the_length(switch_minutes, cost):
    terms = SliceTerms(switch_minutes=switch_minutes, switch_share=0.3, reclaim_share=0.8)
    assert square_root_law(20.0, terms).cost == pytest.approx(cost, abs=0.005)


def test_the_law_has_no_finite_optimum_where_nothing_is_lost_to_long_slices():
    assert math.isinf(square_root_law(20.0, SliceTerms(switch_minutes=5.0, reclaim_share=1.0)).minutes)
    assert square_root_law(20.0, SliceTerms(switch_minutes=0.0)).minutes == 0.0


@pytest.mark.parametrize("median, best", [(14.0, 13.4), (10.0, 12.2), (5.0, 11.2)])
def test_a_heavier_tail_of_the_same_mean_shortens_the_best_length(median, best):
    lengths = np.linspace(8.0, 20.0, 601)
    found = lengths[int(np.argmin(costs(a_lognormal(median, 20.0), tuple(lengths), WORST)))]
    assert found == pytest.approx(best, abs=0.15)


def test_a_fifteen_minute_slice_wastes_42_percent_in_tails_if_nothing_is_reclaimed():
    assert unused_tail(MEAN_20, np.array([15.0]))[0] / 20.0 == pytest.approx(0.42, abs=0.005)


def test_urgent_work_makes_long_slices_dear():
    terms = SliceTerms(
        switch_minutes=5.0, slices=4, load=0.8, urgent_per_minute=0.1, urgent_price_ratio=10.0, busy_probability=0.5
    )
    assert terms.urgency == pytest.approx(10.0 * 0.1 * 0.5 / (5 * 4 * 0.8))
    without, beside = costs(MEAN_20, (60.0,), WORST), costs(MEAN_20, (60.0,), terms)
    assert beside[0] - without[0] == pytest.approx(terms.urgency * 60.0)
    assert square_root_law(20.0, terms).minutes == pytest.approx(math.sqrt(200.0 / (1.0 + 40.0 * terms.urgency)))


def test_aligned_boundaries_lose_the_head_start_of_many_slices():
    apart = SliceTerms(switch_minutes=1.0, slices=8, load=1.0, urgent_per_minute=0.1)
    together = SliceTerms(switch_minutes=1.0, slices=8, load=1.0, urgent_per_minute=0.1, aligned=True)
    assert together.urgency / apart.urgency == pytest.approx(9.0 / 2.0)


def test_gangs_have_as_many_boundaries_as_fit_the_pool():
    assert SliceTerms(switch_minutes=1.0, slices=32, gang_shares=8).places == 4


@pytest.mark.parametrize(
    "switch_minutes, table",
    [
        (5.0, {5: 0.50, 10: 0.67, 15: 0.75, 30: 0.86, 60: 0.92}),
        (1.0, {5: 0.83, 10: 0.91, 15: 0.94, 30: 0.97, 60: 0.98}),
    ],
)
def test_the_most_a_gpu_can_do(switch_minutes, table):
    for minutes, useful in table.items():
        assert max_utilisation(minutes, switch_minutes) == pytest.approx(useful, abs=0.005)


def test_the_shortest_stable_length_is_where_that_line_is_met():
    shortest = lowest_stable_minutes(load=0.75, switching_minutes=5.0, reserve=0.0)
    assert shortest == pytest.approx(15.0)
    assert max_utilisation(shortest, 5.0) == pytest.approx(0.75)
    assert math.isinf(lowest_stable_minutes(load=0.96, switching_minutes=5.0, reserve=0.05))


def test_a_pool_bears_the_overhead_that_its_load_and_reserve_leave():
    """Half loaded with a tenth in reserve: useful time may grow to 0.9 of the GPUs, by 80 %."""
    assert SliceTerms(switch_minutes=1.0, load=0.5, stability_reserve=0.1).overhead_cap == pytest.approx(0.8)
    assert math.isinf(SliceTerms(switch_minutes=1.0).overhead_cap)


@pytest.mark.parametrize("factor, most", [(0.8, 1.04), (1.2, 1.04), (1.4, 1.065), (0.6, 1.17)])
def test_the_optimum_is_flat_and_erring_long_is_cheaper(factor, most):
    terms = SliceTerms(switch_minutes=0.05)
    law = square_root_law(200.0, terms)
    at, best = costs(exponential_durations(12000.0), (factor * law.minutes, law.minutes), terms)
    assert at / best == pytest.approx(flatness(factor), rel=0.01)
    assert at / best < most


def test_the_rule_of_thumb_meets_the_law_near_3_7_switch_costs_and_nowhere_else():
    meeting = (2.0 + math.sqrt(3.0)) * 5.0
    assert rule_of_thumb(meeting, 5.0) == pytest.approx(square_root_law(meeting, WORST).minutes)
    assert rule_of_thumb(120.0, 5.0) == 115.0
    assert square_root_law(120.0, WORST).minutes == pytest.approx(35.0, abs=0.5)
    assert rule_of_thumb(4.0, 5.0) == 0.0


def test_a_grace_buffer_spares_the_boundaries_of_those_about_to_end():
    kind = SliceTerms(switch_minutes=5.0, grace_minutes=5.0)
    assert costs(MEAN_20, (15.0,), kind)[0] < costs(MEAN_20, (15.0,), WORST)[0]
    assert surviving_boundaries(MEAN_20, np.array([15.0]), 5.0)[0] == pytest.approx(
        sum(math.exp(-(15 * n + 5) / 20) for n in range(1, 60)), rel=1e-4
    )


def test_observed_durations_on_a_boundary_need_no_slice_more():
    assert surviving_boundaries(PoolDurations.observed([3600.0]).parts[0], np.array([15.0, 30.0])) == pytest.approx(
        [3.0, 1.0]
    )


def test_losses_add_up_over_the_parts_of_a_pool():
    mix = PoolDurations((MEAN_20, a_lognormal(5.0, 60.0)), (3.0, 1.0))
    table = cost_table(mix, (10.0, 30.0), WORST)
    apart = [np.array(costs(part, (10.0, 30.0), WORST)) * part.mean for part in mix.parts]
    together = (3.0 * apart[0] + apart[1]) / (3.0 * mix.parts[0].mean + mix.parts[1].mean)
    assert table.cost == pytest.approx(together)


def test_mean_and_deviation_of_a_log_normal():
    mean, deviation = mean_and_deviation(lognormal_durations(600.0, 0.5))
    assert mean == pytest.approx(600.0 * math.exp(0.125), rel=0.01)
    assert deviation == pytest.approx(mean * math.sqrt(math.expm1(0.25)), rel=0.02)


@pytest.mark.parametrize("value", [0.0, -15.0, float("nan")])
def test_a_length_that_is_none_is_refused(value):
    with pytest.raises(Refused, match="slice length"):
        costs(MEAN_20, (value,), WORST)


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan"), float("inf")])
def test_an_observed_duration_that_is_none_is_refused(value):
    with pytest.raises(Refused, match="duration"):
        PoolDurations.observed([60.0, value])


@pytest.mark.parametrize(
    "field, value",
    [
        ("switch_minutes", -1.0),
        ("switch_minutes", float("nan")),
        ("switch_share", 1.5),
        ("reclaim_share", -0.1),
        ("load", 1.2),
        ("load", float("nan")),
        ("urgent_per_minute", -1.0),
        ("minimum_minutes", 0.0),
        ("slices", 0),
        ("max_classes", 4),
    ],
)
def test_terms_that_make_no_sense_are_refused_by_name(field, value):
    with pytest.raises(Refused, match=field):
        SliceTerms(**{"switch_minutes": 1.0, field: value})


def test_weights_belong_to_parts():
    with pytest.raises(Refused, match="weights"):
        PoolDurations((MEAN_20,), ())
    with pytest.raises(Refused, match="weight"):
        PoolDurations((MEAN_20,), (0.0,))
    with pytest.raises(Refused, match="ended_jobs"):
        PoolDurations.one(MEAN_20, -1)
