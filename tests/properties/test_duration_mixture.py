"""Whatever the parts, the weights and the past of the answers: what comes out is a distribution."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.features.duration import DURATION_SCHEMA
from advisor.features.latest import LATEST
from advisor.forecast.blend import BlendSettings, Weights, best_mixture
from advisor.forecast.calibration import Bend, CalibrationSettings
from advisor.forecast.grid import LogGrid
from advisor.forecast.hazard import HazardBins
from advisor.forecast.live import _mixed
from advisor.forecast.questions import Outcomes, cross_losses

GRID = LogGrid(step=0.5, cells=20, tail=1.0)
EDGES = GRID.log_edges.size

seeds = st.integers(0, 2**32 - 1)
probabilities = st.one_of(st.sampled_from([0.0, 1e-300, 1e-9, 0.5, 1.0 - 1e-12, 1.0]), st.floats(0.0, 1.0))


@st.composite
def cdfs(draw):
    """Any CDF on the grid: flat, of one step, of many."""
    steps = draw(st.lists(probabilities, min_size=1, max_size=EDGES - 2))
    places = draw(st.lists(st.integers(1, EDGES - 2), min_size=len(steps), max_size=len(steps)))
    cdf = np.zeros(EDGES)
    for place, value in zip(places, steps, strict=True):
        cdf[place] = value
    cdf = np.maximum.accumulate(cdf)
    cdf[-1] = 1.0
    return cdf


parts_of_three = st.tuples(cdfs(), cdfs(), cdfs()).map(np.array)


def is_cdf(cdf):
    return cdf[0] == 0.0 and cdf[-1] == 1.0 and (np.diff(cdf) >= 0).all() and ((cdf >= 0) & (cdf <= 1)).all()


def some_outcomes(parts, seed, count):
    """What came of that many answers with those parts, jobs of any length, some of them still running."""
    rng = np.random.default_rng(seed)
    logs, censored = rng.uniform(-1.0, 12.0, size=count), rng.random(count) < 0.3
    many = np.repeat(parts[np.newaxis].astype(np.float32), count, axis=0)
    u = GRID.at(many.mean(axis=1).astype(float), logs)
    return Outcomes(u, censored, cross_losses(GRID, many, logs, censored), rng.integers(-1, 200, size=count))


@given(parts_of_three, seeds, st.integers(0, 300), st.integers(-1, 10**6))
def test_an_answer_is_a_distribution_whatever_came_of_those_before(parts, seed, count, depth):
    outcomes = some_outcomes(parts, seed, count)
    weights = Weights.drawn(BlendSettings(prior_questions=20.0, own_questions=5.0), outcomes)
    assert (weights.by_class >= 0).all()
    assert weights.by_class.sum(axis=1) == pytest.approx(np.ones(6))
    bend = Bend.drawn(CalibrationSettings(least=20, bound=0.3, doubt=0.5, alike=1.0), outcomes)
    assert is_cdf(bend.of(_mixed(weights.of(depth), parts)))


@given(cdfs(), seeds, st.floats(0.0, 1.0), st.floats(0.0, 5.0), st.integers(1, 400))
def test_any_bend_of_any_cdf_is_a_cdf_within_its_bound(cdf, seed, bound, doubt, count):
    rng = np.random.default_rng(seed)
    u = np.clip(rng.normal(rng.random(), rng.random(), size=count), 0.0, 1.0)
    outcomes = Outcomes(u, rng.random(count) < 0.4, np.zeros((count, 3, 3)), np.zeros(count, dtype=np.intp))
    bent = Bend.drawn(CalibrationSettings(least=1, bound=bound, doubt=doubt), outcomes).of(cdf)
    assert is_cdf(bent)
    assert np.abs(bent - cdf).max() <= bound + 1e-12


@given(seeds, st.integers(1, 5), st.floats(0.0, 10.0), st.floats(-12.0, 12.0))
def test_the_best_weights_lie_on_the_simplex_and_nothing_near_them_is_better(seed, size, doubt, magnitude):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(size, rng.integers(1, size + 2))) * rng.choice([0.0, 1.0], size=(size, 1), p=[0.1, 0.9])
    losses, prior = root @ root.T * 10.0**magnitude, rng.dirichlet(np.ones(size))
    found = best_mixture(losses, prior, doubt)
    assert (found >= 0).all()
    assert found.sum() == pytest.approx(1.0)
    ridge = doubt * np.trace(losses) / size

    def cost(w):
        return w @ losses @ w + ridge * ((w - prior) ** 2).sum()

    others = [prior, *np.eye(size), *rng.dirichlet(np.ones(size), size=20)]
    for other in others:
        for share in (1.0, 0.01):
            near = (1 - share) * found + share * other
            assert cost(found) <= cost(near) + 1e-9 * (np.trace(losses) + ridge) + 1e-12


@given(parts_of_three, st.floats(-3.0, 14.0), st.booleans())
def test_losses_of_parts_are_those_of_no_more_than_they_say(parts, y, censored):
    """Symmetric, never negative alone, and together no more than the mean of both: a mixture never loses more."""
    losses = cross_losses(GRID, parts[np.newaxis].astype(np.float32), np.array([y]), np.array([censored]))[0]
    assert np.array_equal(losses, losses.T)
    assert (losses >= 0).all()
    assert (np.linalg.eigvalsh(losses) >= -1e-5).all()


@given(st.lists(st.floats(0.0, 1.0), min_size=5, max_size=5), seeds)
def test_the_cdf_of_any_hazards_rises_from_zero_to_one(hazards, seed):
    rng = np.random.default_rng(seed)
    latest = rng.choice([np.nan, 0.0, -1.0, 3.2, -4.7, 9.9, 30.0, -90.0], size=(1, LATEST)).astype(np.float32)
    bins = HazardBins(GRID, (0, 1, 4, 9, 17, 20))
    assert is_cdf(bins.cdfs(np.array([hazards]), latest)[0])
    rows, start = bins.rows(np.full((1, len(DURATION_SCHEMA)), np.nan), latest)
    assert np.isfinite(start).all()
    assert rows.shape[:2] == (1, 5)
