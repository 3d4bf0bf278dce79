"""What must hold for every duration distribution, whatever model made it."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.integrate import quad

from advisor.domain.forecasts import DurationDistribution
from advisor.errors import Defect, Refused
from tests.builders import lognormal_durations

LEVELS = st.floats(0.001, 0.999)


@st.composite
def distributions(draw: st.DrawFn) -> DurationDistribution:
    steps = draw(st.lists(st.floats(0.05, 2.0), min_size=1, max_size=12))
    masses = draw(st.lists(st.floats(0.0, 1.0), min_size=len(steps), max_size=len(steps)))
    assume(sum(masses) > 0.01)
    edges = draw(st.floats(0.0, 6.0)) + np.concatenate([[0.0], np.cumsum(steps)])
    cdf = np.concatenate([[0.0], np.cumsum(masses) / sum(masses)])
    cdf[-1] = 1.0
    return DurationDistribution(edges, np.minimum(cdf, 1.0))


@given(distributions(), LEVELS, LEVELS)
def test_quantiles_are_ordered_positive_and_invert_the_cdf(law: DurationDistribution, a: float, b: float) -> None:
    low, high = sorted((a, b))

    assert 0 < law.quantile(low) <= law.quantile(high)
    assert law.probability_by(law.quantile(low)) == pytest.approx(low, abs=1e-9)


@given(distributions())
def test_the_mean_is_the_integral_of_the_survival(law: DurationDistribution) -> None:
    ends = np.exp(law.log_edges)
    pieces = [quad(law.survival, a, b)[0] for a, b in itertools.pairwise(ends)]

    assert law.mean == pytest.approx(ends[0] + sum(pieces), rel=1e-6)
    assert law.mean_within(float(ends[-1]) * 2) == pytest.approx(law.mean, rel=1e-9)


@given(distributions(), st.floats(0.01, 1e5), st.floats(0.01, 1e5))
def test_the_limited_mean_grows_with_its_limit_and_never_exceeds_it(
    law: DurationDistribution, a: float, b: float
) -> None:
    low, high = sorted((a, b))

    assert law.mean_within(low) <= law.mean_within(high) + 1e-9 * high
    assert law.mean_within(low) <= low * (1 + 1e-12)


@given(distributions())
def test_no_other_window_of_factor_two_is_heavier_than_the_typical_one(law: DurationDistribution) -> None:
    def mass(centre: float) -> float:
        return law.probability_by(2 * centre) - law.probability_by(centre / 2)

    others = np.exp(np.linspace(law.log_edges[0], law.log_edges[-1], 200))

    assert mass(law.typical) >= max(mass(float(c)) for c in others) - 1e-9


@given(distributions(), st.floats(0.0, 1e7))
def test_remaining_time_is_always_a_distribution_and_never_nothing(law: DurationDistribution, age: float) -> None:
    remaining = law.given_age(age)

    assert remaining.quantile(0.5) > 0
    assert remaining.quantile(0.9) >= remaining.quantile(0.5)


def test_remaining_time_matches_what_survivors_really_had_left() -> None:
    """Oracle: a million draws, those that outlived the age."""
    law = DurationDistribution(np.array([0.0, 5.0, 10.0]), np.array([0.0, 0.5, 1.0]))
    draws = np.exp(np.random.default_rng(7).uniform(0.0, 10.0, 1_000_000))

    for age in (0.3, 100.0, 5000.0):
        left = draws[draws > age] - age
        remaining = law.given_age(age)
        for level in (0.1, 0.5, 0.9):
            assert remaining.quantile(level) == pytest.approx(np.quantile(left, level), rel=0.03)


def test_an_expired_prediction_expects_as_long_again() -> None:
    law = DurationDistribution.point(600.0)

    assert law.given_age(3600.0).median > 600.0


@pytest.mark.parametrize("level", [0.0, 1.0, -1.0, float("nan")])
def test_a_level_outside_the_open_unit_interval_is_refused(level: float) -> None:
    with pytest.raises(Refused, match="level"):
        DurationDistribution.point(60.0).quantile(level)


@pytest.mark.parametrize("age", [-1.0, float("nan"), float("inf")])
def test_an_impossible_age_is_refused(age: float) -> None:
    with pytest.raises(Refused, match="age_seconds"):
        DurationDistribution.point(60.0).given_age(age)


@pytest.mark.parametrize(
    "edges,cdf",
    [
        ([0.0], [1.0]),
        ([0.0, 0.0], [0.0, 1.0]),
        ([0.0, 1.0], [0.0, 0.9]),
        ([0.0, 1.0], [0.1, 1.0]),
        ([0.0, 1.0, 2.0], [0.0, 0.6, 0.5]),
        ([0.0, float("nan")], [0.0, 1.0]),
        ([0.0, 1.0, 2.0], [0.0, 1.0]),
    ],
)
def test_a_broken_distribution_is_a_defect(edges: list[float], cdf: list[float]) -> None:
    with pytest.raises(Defect):
        DurationDistribution(np.array(edges), np.array(cdf))


def test_a_mixture_weighs_its_parts() -> None:
    parts = (DurationDistribution.point(60.0), DurationDistribution.point(6000.0))

    both = DurationDistribution.mixture(parts, np.array([3.0, 1.0]))

    assert both.probability_by(600.0) == pytest.approx(0.75)
    assert both.mean == pytest.approx(0.75 * parts[0].mean + 0.25 * parts[1].mean)


def test_the_unforeseen_does_not_rule_the_mean_of_what_remains():
    """One per cent spread to half a year would be hours, for a job of minutes that has run for a second."""
    edges = np.linspace(0.0, 16.7, 140)
    cdf = 1.0 / (1.0 + np.exp(-(edges - math.log(900.0)) / 0.4))
    law = DurationDistribution(edges, (cdf - cdf[0]) / (cdf[-1] - cdf[0]))
    assert law.given_age(1.0).mean < 1.3 * law.mean


@given(st.floats(10.0, 1e6), st.floats(0.2, 2.5), st.floats(1.0, 1e8), st.floats(30.0, 1e5))
def test_ends_of_many_ages_are_those_of_the_remaining_law(median, sigma, age, within):
    law = lognormal_durations(median, sigma)

    (found,) = law.ends_within(np.array([age]), within)

    assert found == pytest.approx(1.0 - law.given_age(age).survival(within), abs=0.02)
