"""The plain rule: a quantile of the rises of the last day."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from advisor.features.recent_rises import recent_rises


def test_the_largest_rise_of_the_day_is_the_highest_quantile():
    demand = np.concatenate([np.zeros(100), np.full(100, 6.0), np.zeros(50)])
    ready = recent_rises(demand, 1, 0, np.array([0.5, 1.0]))
    assert ready[120].tolist() == [0.0, 6.0]
    assert ready[50].tolist() == [0.0, 0.0]


def test_a_rise_counts_only_when_its_ten_minutes_are_over():
    demand = np.concatenate([np.zeros(50), np.full(50, 4.0)])
    ready = recent_rises(demand, 1, 0, np.array([1.0]))[:, 0]
    assert ready[48] == 0.0
    assert ready[60] == 4.0


def test_a_rise_is_forgotten_after_a_day():
    demand = np.concatenate([np.zeros(30), np.full(3000, 4.0)])
    ready = recent_rises(demand, 1, 0, np.array([1.0]))[:, 0]
    assert ready[1440] == 4.0
    assert ready[1500] == 0.0


def test_moments_that_nobody_saw_tell_nothing():
    demand = np.concatenate([np.zeros(20), np.full(20, np.nan), np.full(20, 9.0)])
    assert recent_rises(demand, 1, 59, np.array([1.0])).tolist() == [[0.0]]
    assert recent_rises(np.full(20, np.nan), 1, 0, np.array([1.0])).max() == 0.0


@given(
    st.lists(st.integers(0, 30), min_size=30, max_size=200),
    st.sampled_from([1, 2, 5]),
    st.sampled_from([0.5, 0.9, 1.0]),
)
def test_it_is_the_quantile_read_off_its_definition(demand, step, level):
    span, every, window = round(10 / step), max(1, round(2 / step)), round(1440 / step)
    ready = recent_rises(np.array(demand, dtype=np.float64), step, 0, np.array([level]))[:, 0]
    for now in range(0, len(demand), every):
        begun = [s for s in range(now - span, max(-1, now - span - window), -every) if s >= 0]
        rises = sorted(max(demand[s : s + span + 1]) - demand[s] for s in begun)
        expected = rises[math.ceil(level * len(rises) - 1e-9) - 1] if rises else 0.0
        assert ready[now] == expected
