"""The law of a change against a list of all its atoms with their probabilities, and rises against plain loops."""

import numpy as np
import pytest

from advisor.forecast.demand_baselines import sorted_quantiles
from advisor.forecast.demand_law import ChangeClasses, corrected_levels
from advisor.forecast.demand_rise import rises_within
from tests.builders import a_demand_series

LEVELS = np.array([0.01, 0.1, 0.25, 0.5, 0.8, 0.9, 0.95, 0.99])


@pytest.fixture
def classes():
    rng = np.random.default_rng(5)
    changes = rng.choice(
        [-2.0, -1.0, -0.125, 0.0, 0.125, 1.0, 3.0, 12.0], p=[0.05, 0.1, 0.05, 0.5, 0.1, 0.1, 0.05, 0.05], size=4000
    )
    return ChangeClasses.from_changes(changes)


@pytest.fixture
def probabilities(classes):
    return np.random.default_rng(6).dirichlet(np.full(len(classes), 0.5), size=50)


def test_quantiles_are_the_first_atom_that_reaches_the_level(classes, probabilities):
    found = classes.law(probabilities).quantiles(LEVELS)

    for row, weights in enumerate(probabilities):
        atoms = [(atom, w / 10) for atoms, w in zip(classes.atoms, weights, strict=True) for atom in atoms]
        for column, level in enumerate(LEVELS):
            total = 0.0
            reached = []
            for atom, weight in sorted(atoms):
                total += weight
                if total >= level - 1e-9:
                    reached.append(atom)
            assert found[row, column] == reached[0]


def test_transforms_are_the_weights_below_and_up_to_the_outcome(classes, probabilities):
    outcomes = np.random.default_rng(7).choice(np.append(classes.atoms.ravel(), [-50.0, 0.6, 99.0]), size=50)

    lower, upper = classes.law(probabilities).transforms(outcomes)

    for row, (outcome, weights) in enumerate(zip(outcomes, probabilities, strict=True)):
        atoms = [(atom, w / 10) for atoms, w in zip(classes.atoms, weights, strict=True) for atom in atoms]
        assert lower[row] == pytest.approx(sum(w for atom, w in atoms if atom < outcome), abs=1e-9)
        assert upper[row] == pytest.approx(sum(w for atom, w in atoms if atom <= outcome), abs=1e-9)


def test_corrected_levels_go_halfway_to_what_repeated_draws_reach():
    """Smearing by many draws from each bracket gives what the closed form gives."""
    rng = np.random.default_rng(8)
    lower = rng.random(400) ** 2 * 0.8
    upper = lower + rng.random(400) * 0.2
    draws = (lower[:, None] + (upper - lower)[:, None] * rng.random((400, 500))).ravel()

    found = corrected_levels(LEVELS, lower, upper)

    tail = np.minimum(LEVELS, 1 - LEVELS)
    halfway = (LEVELS + np.quantile(draws, LEVELS)) / 2
    thickest = np.minimum(3 * tail, 0.5)
    bounded = np.where(LEVELS < 0.5, np.minimum(halfway, thickest), np.maximum(halfway, 1 - thickest))
    np.testing.assert_allclose(found, np.where(LEVELS == 0.5, 0.5, bounded), atol=0.01)


def test_rises_are_the_largest_need_ahead_less_the_need_now():
    rng = np.random.default_rng(9)
    running = rng.integers(0, 40, 300).astype(float)
    running[rng.random(300) < 0.05] = np.nan
    series = a_demand_series(running)
    need = [np.ceil(x / 8) for x in running]

    for minutes in (5, 15, 60, 240):
        steps = minutes // 5
        found = rises_within(series, np.arange(300), minutes)
        for at in range(300):
            ahead = need[at : at + steps + 1]
            whole = at + steps < 300 and not np.isnan(ahead).any()
            expected = max(0.0, max(ahead[1:]) - ahead[0]) if whole else np.nan
            np.testing.assert_equal(found[at], expected)


def test_sorted_quantiles_are_numpys_of_what_is_known():
    rng = np.random.default_rng(10)
    values = rng.normal(size=(40, 24))
    values[rng.random(values.shape) < 0.3] = np.nan
    values[3] = np.nan

    found = sorted_quantiles(values, LEVELS)

    for row, one in enumerate(values):
        known = one[~np.isnan(one)]
        expected = np.quantile(known, LEVELS, method="inverted_cdf") if known.size else np.full(len(LEVELS), np.nan)
        np.testing.assert_array_equal(found[row], expected)
