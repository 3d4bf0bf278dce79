"""Whether to slice at all, against values worked out for log-normal tasks."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import norm

from advisor.domain.forecasts import DurationDistribution
from advisor.planning.slice_quantum import quantum, reached_share
from tests.builders import exponential_durations


def a_lognormal(median_minutes: float, mean_minutes: float):
    """Cut only at six standard deviations: where the tail ends decides how old tasks are treated."""
    scores = np.linspace(-6.0, 6.0, 801)
    cdf = norm.cdf(scores)
    sigma = math.sqrt(2.0 * math.log(mean_minutes / median_minutes))
    return DurationDistribution(math.log(median_minutes * 60.0) + sigma * scores, (cdf - cdf[0]) / (cdf[-1] - cdf[0]))


def test_an_exponential_runs_to_its_end_whatever_a_switch_costs():
    found = quantum(exponential_durations(1200.0), 5.0)
    assert found.minutes is None
    assert reached_share(exponential_durations(1200.0), found.index) == 0.0


def test_a_task_of_known_length_runs_to_its_end():
    assert quantum(DurationDistribution.point(1200.0), 5.0).minutes is None


@pytest.mark.parametrize("switch_minutes, low, high", [(1.0, 44.0, 46.0), (5.0, 64.0, 66.5)])
def test_near_exponential_tasks_are_hardly_ever_stopped(switch_minutes, low, high):
    """Median 14, mean 20: 45 to 66 minutes, which fewer than one in ten reach."""
    found = quantum(a_lognormal(14.0, 20.0), switch_minutes)
    assert low < found.minutes < high
    assert found.passed_share < 0.10


@pytest.mark.parametrize("switch_minutes, minutes", [(0.5, 12.0), (2.0, 17.0), (5.0, 26.0)])
def test_a_heavier_tail_is_stopped_sooner(switch_minutes, minutes):
    assert quantum(a_lognormal(10.0, 20.0), switch_minutes).minutes == pytest.approx(minutes, rel=0.05)


@pytest.mark.parametrize("switch_minutes, minutes", [(1.0, 3.5), (5.0, 10.5)])
def test_a_very_heavy_tail_is_stopped_early(switch_minutes, minutes):
    assert quantum(a_lognormal(5.0, 20.0), switch_minutes).minutes == pytest.approx(minutes, rel=0.05)


def test_leases_grow_with_age():
    """Median 3.4, mean 110: about 1.2 minutes at the start, 7 at age 15, 13 at age 60."""
    tasks = a_lognormal(3.4, 110.0)
    leases = [quantum(tasks, 1.0, age).minutes for age in (0.0, 15.0, 60.0)]
    assert leases == pytest.approx([1.2, 7.0, 13.0], rel=0.05)


def test_the_age_at_which_a_kind_beats_itself_is_its_own_quantum():
    tasks = a_lognormal(5.0, 20.0)
    found = quantum(tasks, 1.0)
    assert reached_share(tasks, found.index) == pytest.approx(found.passed_share, abs=0.03)


def test_long_tasks_beside_short_ones_are_stopped_at_once():
    short = quantum(a_lognormal(5.0, 8.0), 5.0)
    assert reached_share(a_lognormal(100.0, 120.0), short.index) == 1.0
