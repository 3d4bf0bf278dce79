"""Sliding windows: what they hold, and what they forget."""

import math
import random

import pytest

from advisor.features.recent import RecentTimes, RecentValues, median_of, quantile_of
from advisor.features.survival import kaplan_meier_quantiles


def test_recent_values_are_the_latest_ones_sorted():
    rng = random.Random(3)
    values = [rng.choice([1.0, 2.0, rng.random()]) for _ in range(200)]
    recent = RecentValues(20)
    for place, value in enumerate(values):
        recent.add(value)
        latest = values[max(place - 19, 0) : place + 1]
        assert (list(recent.arrived), recent.ordered) == (latest, sorted(latest))
        assert recent.latest(5) == sorted(latest[-5:])


@pytest.mark.parametrize(
    "ordered,median,upper", [([3.0], 3.0, 3.0), ([1.0, 2.0], 1.5, 1.9), ([1.0, 5.0, 11.0], 5.0, 9.8)]
)
def test_medians_and_quantiles_are_linear_between_values(ordered, median, upper):
    assert median_of(ordered) == median
    assert quantile_of(ordered, 0.9) == pytest.approx(upper)


def test_times_are_counted_in_any_window_though_told_out_of_order_and_forgotten_beyond_it():
    rng = random.Random(5)
    recent, told, now = RecentTimes(100.0), [], 0.0
    for _ in range(2000):
        now += rng.random()
        moment = now - rng.choice([0.0, 0.0, rng.random() * 30.0])
        recent.add(moment)
        told.append(moment)
        window = rng.random() * 60.0
        assert recent.since(now - window) == sum(moment >= now - window for moment in told)
    assert len(recent.times) < 500


@pytest.mark.parametrize(
    "entries,expected",
    [
        ([(1.0, False), (2.0, False), (3.0, False), (4.0, False)], [1.0, 2.0, 3.0, 4.0]),
        ([(1.0, False), (2.0, True), (3.0, False)], [1.0, 3.0, 3.0, 3.0]),
        ([(1.0, True), (2.0, True)], [math.nan] * 4),
        ([(1.0, False), (9.0, True)], [1.0, 1.0, math.nan, math.nan]),
        ([], [math.nan] * 4),
    ],
)
def test_kaplan_meier_quantiles_of_a_few_jobs_worked_by_hand(entries, expected):
    found = kaplan_meier_quantiles(entries, (0.25, 0.5, 0.75, 0.9))
    assert found == pytest.approx(expected, nan_ok=True)
