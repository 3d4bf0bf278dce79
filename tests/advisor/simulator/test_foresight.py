"""What policies know: medians of what remains, chances of having ended, by row and age."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.domain.forecasts import DurationDistribution
from advisor.simulator.foresight import Ages, Distributions, Truth
from tests.builders import lognormal_durations

LAWS = [lognormal_durations(600.0), lognormal_durations(7200.0, 2.0), DurationDistribution.point(3600.0)]
FORESIGHT = Distributions(LAWS)
BOTH = [FORESIGHT, Truth([600.0, 7200.0, 3600.0]), Ages()]


@pytest.mark.parametrize("place", range(3))
def test_the_median_at_submission_is_that_of_the_distribution_but_for_the_unforeseen(place):
    assert FORESIGHT.remaining(place, 0.0) == pytest.approx(LAWS[place].median, rel=0.07)


@pytest.mark.parametrize("age", [60.0, 600.0, 3600.0])
def test_what_remains_is_conditioned_on_the_age(age):
    expected = LAWS[1].given_age(age).median
    assert FORESIGHT.remaining(1, age) == pytest.approx(expected, rel=0.1)


def test_an_expired_prediction_never_says_that_nothing_is_left():
    assert FORESIGHT.remaining(2, 7200.0) > 3600.0


def test_beyond_all_that_is_known_what_remains_is_the_age():
    age = float(np.exp(16.2))
    assert FORESIGHT.remaining(0, age) == age
    assert FORESIGHT.ended_by(np.array([0]), np.array([age]), np.array([age]))[0, 0] == pytest.approx(0.5)


def test_the_clairvoyant_knows_the_end():
    truth = BOTH[1]
    assert truth.remaining(1, 7000.0) == 200.0
    assert truth.ended_by(np.array([1]), np.array([7000.0]), np.array([199.0, 200.0])).tolist() == [[0.0, 1.0]]


def test_without_a_prediction_only_age_helps():
    assert Ages().remaining(0, 500.0) == pytest.approx(500.0)
    assert Ages().remaining(0, 500.0, 0.75) == pytest.approx(1500.0)


@given(
    st.lists(st.tuples(st.integers(0, 2), st.floats(0, 1e7)), min_size=1, max_size=8), st.sampled_from([0.25, 0.5, 0.9])
)
def test_many_are_answered_as_one_by_one_and_chances_grow_with_time(asked, level):
    places = np.array([place for place, _ in asked])
    ages = np.array([age for _, age in asked])
    moments = np.array([0.0, 60.0, 3600.0, 1e6])
    for foresight in BOTH:
        together = foresight.remaining_of(places, ages, level)
        alone = [foresight.remaining(place, age, level) for place, age in asked]
        assert together.tolist() == pytest.approx(alone, rel=1e-6)
        assert (together > 0).all()
        chances = foresight.ended_by(places, ages, moments)
        assert (np.diff(chances, axis=1) >= -1e-12).all()
        assert ((chances >= 0) & (chances <= 1)).all()
