"""How many slice lengths a pool has."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from advisor.planning.durations import PoolDurations
from advisor.planning.slice_classes import best_grouping
from advisor.planning.slice_objective import cost_table
from advisor.planning.slice_terms import GRID_MINUTES, SliceTerms
from tests.builders import exponential_durations, lognormal_durations

TERMS = SliceTerms(switch_minutes=5.0, switch_share=0.7, reclaim_share=0.5, slices=5000, pooling_beta=0.0)


def grouped(durations: PoolDurations, terms: SliceTerms):
    ordered = durations.by_median()
    return best_grouping(ordered, cost_table(ordered, GRID_MINUTES, terms), terms)


def lengths(grouping) -> list[float]:
    return [GRID_MINUTES[choice.index] for choice in grouping.choices]


TWO_KINDS = PoolDurations(
    tuple(lognormal_durations(median * 60.0, 0.5) for median in (5.0, 6.0, 7.0, 280.0, 300.0, 320.0)), (1.0,) * 6
)


def test_tasks_of_two_kinds_get_two_lengths():
    found = grouped(TWO_KINDS, replace(TERMS, max_classes=2))
    assert [(group.first, group.last) for group in found.groups] == [(0, 3), (3, 6)]
    assert lengths(found)[0] < lengths(found)[1]


def test_one_distribution_for_all_makes_one_class():
    assert len(grouped(PoolDurations.one(exponential_durations(1200.0)), TERMS).groups) == 1


def test_equal_medians_are_never_cut_apart():
    same = lognormal_durations(600.0, 0.5)
    assert len(grouped(PoolDurations((same,) * 8, (1.0,) * 8), TERMS).groups) == 1


def test_a_class_that_saves_less_than_the_split_costs_is_not_made():
    apart = grouped(TWO_KINDS, replace(TERMS, slices=8, pooling_beta=3.0))
    assert len(apart.groups) == 1
    saved, split = next((saved, split) for count, _, saved, split in apart.rejected if count == 2)
    assert saved < split


def test_a_handful_of_tasks_is_not_a_class():
    rare = PoolDurations((lognormal_durations(60.0, 0.3), lognormal_durations(6000.0, 0.3)), (1.0, 99.0))
    assert len(grouped(rare, TERMS).groups) == 1
    assert len(grouped(rare, replace(TERMS, least_class_share=0.0)).groups) == 2


def test_urgent_work_yields_to_stability():
    """Urgent work wants short slices, which the pool cannot bear at this load."""
    hurried = replace(TERMS, switch_share=1.0, urgent_per_minute=200.0, load=0.75, slices=16, reclaim_share=0.9)
    relaxed = grouped(TWO_KINDS, replace(hurried, load=0.3))
    tight = grouped(TWO_KINDS, hurried)
    assert all(choice.stable for choice in tight.choices)
    assert any(choice.moved for choice in tight.choices)
    assert sum(lengths(tight)) > sum(lengths(relaxed))


def test_many_parts_are_thinned_and_stay_as_good():
    medians = np.exp(np.random.default_rng(5).normal(7.0, 1.5, 400))
    durations = PoolDurations(tuple(lognormal_durations(m, 0.7) for m in medians), (1.0,) * 400)
    thinned = grouped(durations, replace(TERMS, max_classes=2))
    sample = PoolDurations(durations.by_median().parts[4::8], (1.0,) * 50)
    assert thinned.cost == pytest.approx(grouped(sample, replace(TERMS, max_classes=2)).cost, rel=0.1)


@pytest.mark.traces
def test_openb_pods_under_a_day_give_the_known_classes(traces):
    """Waste per useful minute .278, .182 and .160 for one, two and three classes (10 and 45 cut at 30 min)."""
    pods = pd.read_csv(traces / "alibaba-openb-2023" / "openb_pod_list_default.csv")
    seconds = (pods["deletion_time"] - pods["scheduled_time"])[pods["num_gpu"] > 0].dropna()
    seconds = seconds[(seconds > 0) & (seconds < 86_400)]
    durations = PoolDurations.observed(np.quantile(seconds, (np.arange(300) + 0.5) / 300))
    found = [grouped(durations, replace(TERMS, max_classes=k, least_class_share=0.0)) for k in (1, 2, 3)]
    assert [round(one.cost, 3) for one in found] == pytest.approx([0.278, 0.182, 0.160], abs=0.002)
    assert lengths(found[0]) == [20.0]
    assert lengths(found[1]) == [10.0, 45.0]
