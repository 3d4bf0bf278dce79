"""How much each part is believed: the score of a mixture, the best weights, and whose experience counts."""

import math
from itertools import product

import numpy as np
import pytest

from advisor.domain.forecasts import DurationDistribution
from advisor.forecast.blend import BlendSettings, Weights, best_mixture
from advisor.forecast.grid import LogGrid
from advisor.forecast.questions import Outcomes, cross_losses
from training.metrics import crps_log

FINE = LogGrid(step=0.02, cells=700, tail=1.0)
SETTINGS = BlendSettings(prior=(0.6, 0.3, 0.1), prior_unseen=(0.1, 0.2, 0.7), prior_questions=100.0, own_questions=50.0)


def logistic(grid, centre, scale):
    cdf = 1.0 / (1.0 + np.exp(-(grid.log_edges - centre) / scale))
    return (cdf - cdf[0]) / (cdf[-1] - cdf[0])


def some_losses(rng, parts=3):
    """A positive semi-definite matrix, as every mean of cross losses is."""
    root = rng.normal(size=(parts, parts + 1))
    return root @ root.T


def outcomes(losses, depth):
    count = len(depth)
    return Outcomes(np.zeros(count), np.zeros(count, dtype=bool), np.asarray(losses), np.asarray(depth, dtype=np.intp))


@pytest.mark.parametrize("weights", [(1.0, 0.0, 0.0), (0.2, 0.5, 0.3), (0.0, 0.6, 0.4)])
def test_the_score_of_a_mixture_is_quadratic_in_its_weights(weights):
    parts = np.array([logistic(FINE, 6.0, 0.5), logistic(FINE, 7.0, 1.0), logistic(FINE, 4.0, 0.3)])
    law = DurationDistribution(FINE.log_edges, np.array(weights) @ parts)
    logs = np.linspace(0.5, 13.5, 27)
    many = np.repeat(parts[np.newaxis].astype(np.float32), logs.size, axis=0)
    found = cross_losses(FINE, many, logs, np.zeros(logs.size, dtype=bool))
    for y, losses in zip(logs, found, strict=True):
        assert np.array(weights) @ losses @ np.array(weights) == pytest.approx(crps_log(law, math.exp(y)), abs=1e-3)
        assert np.array_equal(losses, losses.T)


def test_truth_scores_best_over_many_draws():
    """Proper: whoever says what is true loses least, whichever way others lie."""
    truth, rivals = logistic(FINE, 6.0, 0.7), [(5.7, 0.7), (6.3, 0.7), (6.0, 0.5), (6.0, 1.0)]
    parts = np.array([truth, *(logistic(FINE, *rival) for rival in rivals)], dtype=np.float32)
    logs = np.random.default_rng(1).logistic(6.0, 0.7, size=4000).clip(0.0)
    assert best_of(parts, logs, np.zeros(4000, dtype=bool)) == 0


@pytest.mark.parametrize("lowest,highest", [(7.0, 12.0), (6.5, 9.0)])
def test_truth_scores_best_where_the_last_of_the_long_still_run(lowest, highest):
    """Some in a hundred, and one in nine."""
    rng = np.random.default_rng(2)
    truth, rivals = logistic(FINE, 6.0, 0.7), [(5.7, 0.7), (6.3, 0.7), (6.0, 0.5), (6.0, 1.0)]
    parts = np.array([truth, *(logistic(FINE, *rival) for rival in rivals)], dtype=np.float32)
    logs, ages = rng.logistic(6.0, 0.7, size=4000).clip(0.0), rng.uniform(lowest, highest, size=4000)
    running = logs > ages
    assert running.mean() > 0.01
    assert best_of(parts, np.minimum(logs, ages), running) == 0


@pytest.mark.parametrize("censored_at", [4.0, 6.0])
def test_of_jobs_that_all_still_run_no_tail_is_judged(censored_at):
    """Up to the age reached whoever gave less probability to an end by then did better; beyond it all are equal."""
    parts = np.array([logistic(FINE, centre, 0.7) for centre in (5.5, 6.0, 6.5)], dtype=np.float32)
    losses = cross_losses(FINE, parts[np.newaxis], np.array([censored_at]), np.array([True]))[0]
    assert (np.diff(np.diag(losses)) < 0).all()
    same_until = parts[[1, 1, 1]]
    same_until[1, FINE.log_edges > censored_at + FINE.step] = 1.0
    losses = cross_losses(FINE, same_until[np.newaxis], np.array([censored_at]), np.array([True]))[0]
    assert np.ptp(losses) == 0.0


def best_of(parts, logs, censored):
    """Which part has the least mean loss."""
    total = np.zeros(len(parts))
    for k, part in enumerate(parts):
        alone = np.repeat(part[np.newaxis, np.newaxis], logs.size, axis=0)
        total[k] = cross_losses(FINE, alone, logs, censored)[:, 0, 0].mean()
    return int(np.argmin(total))


@pytest.mark.parametrize("seed", range(12))
def test_the_best_mixture_is_where_brute_force_finds_it(seed):
    rng = np.random.default_rng(seed)
    losses, prior, doubt = some_losses(rng), rng.dirichlet(np.ones(3)), float(rng.choice([0.0, 0.05, 0.5, 1.0]))
    ridge = doubt * np.trace(losses) / 3

    def cost(w):
        return np.einsum("...i,ij,...j->...", w, losses, w) + ridge * ((w - prior) ** 2).sum(axis=-1)

    steps = np.linspace(0.0, 1.0, 201)
    grid = np.array([(a, b, max(1.0 - a - b, 0.0)) for a, b in product(steps, steps) if a + b <= 1.0 + 1e-9])
    found = best_mixture(losses, prior, doubt)
    best = grid[np.argmin(cost(grid))]
    assert cost(found) <= cost(best) + 1e-12
    assert np.abs(found - best).max() < 0.006 * 5
    assert (found >= 0).all()
    assert found.sum() == pytest.approx(1.0)


def test_one_part_that_is_better_in_everything_takes_all_where_there_is_no_doubt():
    losses = np.diag([0.1, 1.0, 1.0]) + 0.1 * (1 - np.eye(3))
    assert best_mixture(losses, np.full(3, 1 / 3), 0.0) == pytest.approx([1.0, 0.0, 0.0])


def test_much_doubt_keeps_the_prior_and_no_losses_too():
    prior = np.array([0.2, 0.3, 0.5])
    assert best_mixture(some_losses(np.random.default_rng(3)), prior, 1e9) == pytest.approx(prior, abs=1e-6)
    assert best_mixture(np.zeros((3, 3)), prior, 0.5) is prior


def test_equal_parts_keep_the_prior():
    prior = np.array([0.2, 0.3, 0.5])
    assert best_mixture(np.ones((3, 3)), prior, 0.1) == pytest.approx(prior)
    assert best_mixture(np.ones((3, 3)), prior, 0.0) == pytest.approx(prior)


def test_with_no_questions_the_prior_is_served():
    drawn = Weights.drawn(SETTINGS, outcomes(np.empty((0, 0, 0)), []))
    assert np.array_equal(drawn.by_class, Weights.prior(SETTINGS).by_class)
    assert [drawn.of(depth).tolist() for depth in (-1, 0)] == [list(SETTINGS.prior_unseen)] * 2
    assert [drawn.of(depth).tolist() for depth in (1, 7, 100, 10**6)] == [list(SETTINGS.prior)] * 4


def test_classes_begin_at_their_depths():
    by_class = np.arange(6.0)[:, np.newaxis] * np.ones(3)
    weights = Weights(BlendSettings(), by_class)
    depths = [-1, 0, 1, 4, 5, 19, 20, 99, 100, 5000]
    assert [int(weights.of(depth)[0]) for depth in depths] == [0, 1, 2, 2, 3, 3, 4, 4, 5, 5]


def test_a_class_is_judged_by_its_own_questions_and_by_all_where_it_has_few():
    """Deep histories are best foretold by the first part, shallow ones by the third."""
    first, third = (np.diag(np.where(np.arange(3) == best, 0.01, 1.0)) for best in (0, 2))
    many = outcomes([*[first] * 3000, *[third] * 3000], [200] * 3000 + [0] * 3000)
    drawn = Weights.drawn(SETTINGS, many)
    assert drawn.of(200).argmax() == 0
    assert drawn.of(0).argmax() == 2
    few = outcomes([*[first] * 3000, *[third] * 3], [200] * 3000 + [0] * 3)
    assert Weights.drawn(SETTINGS, few).of(0).argmax() == 0
    assert Weights.drawn(SETTINGS, few).of(2) == pytest.approx(Weights.drawn(SETTINGS, few).of(200), abs=0.1)


def test_more_questions_move_the_weights_farther_from_the_prior():
    better = np.diag([1.0, 1.0, 0.01])
    farther = [
        Weights.drawn(SETTINGS, outcomes([better] * count, [7] * count)).of(7)[2] for count in (1, 10, 100, 1000)
    ]
    assert farther == sorted(farther)
    assert farther[0] - SETTINGS.prior[2] < 0.3
    assert farther[-1] > 0.8
