"""Leaves learn at once: from ends, from jobs still running, and from jobs lost sight of."""

import math

import numpy as np
import pytest

from advisor.domain.forecasts import DurationDistribution
from advisor.domain.jobs import Outcome
from advisor.forecast.grid import LogGrid
from advisor.forecast.leaves import LeafHistograms

GRID = LogGrid()
HERE = np.array([3, 1], dtype=np.int32)
ELSEWHERE = np.array([4, 0], dtype=np.int32)
NOW = 1e9


def histograms():
    return LeafHistograms((1, 1), 8, GRID)


def cdf(leaves, where, now):
    (found,) = leaves.cdfs(leaves.counts(where[np.newaxis], now))
    return found


def median(found):
    return DurationDistribution(GRID.log_edges, found).median


def test_empty_leaves_answer_nothing():
    leaves = histograms()
    leaves.add(ELSEWHERE, math.log(60.0), 1.0)
    assert np.isnan(cdf(leaves, HERE, NOW)).all()


def test_an_end_is_known_in_the_next_answer_and_only_where_it_fell():
    leaves = histograms()
    leaves.add(ELSEWHERE, math.log(9999.0), 1.0)
    leaves.add(HERE, math.log(60.0), 1.0)
    assert median(cdf(leaves, HERE, NOW)) == pytest.approx(60.0, rel=0.07)
    leaves.add(HERE, math.log(3600.0), 9.0)
    assert median(cdf(leaves, HERE, NOW)) == pytest.approx(3600.0, rel=0.07)


def test_running_jobs_hold_the_answer_up_as_they_age_and_let_it_go_when_they_stop():
    leaves = histograms()
    leaves.add(HERE, math.log(60.0), 1.0)
    for number in range(3):
        leaves.started(("test", f"run-{number}"), HERE, NOW, 1.0)
    young, old = cdf(leaves, HERE, NOW + 1.0), cdf(leaves, HERE, NOW + 7200.0)
    assert median(young) < 70.0
    assert median(old) > 7200.0
    for number in range(3):
        leaves.stopped(("test", f"run-{number}"))
    assert median(cdf(leaves, HERE, NOW + 7200.0)) < 70.0


def test_a_job_lost_sight_of_lasted_at_least_as_long():
    leaves = histograms()
    leaves.add(HERE, math.log(60.0), 1.0)
    leaves.add_lost(HERE, math.log(5000.0), 1.0)
    found = DurationDistribution(GRID.log_edges, cdf(leaves, HERE, NOW))
    assert found.probability_by(1000.0) == pytest.approx(0.5)
    assert 5000.0 < found.quantile(0.9) < 5000.0 * math.e * 1.2


def test_starting_or_stopping_twice_counts_once_and_rows_survive_any_order_of_stops():
    rng = np.random.default_rng(2)
    leaves, fresh, running = histograms(), histograms(), {}
    for seconds in np.geomspace(60.0, 9e4, 12):
        leaves.add(HERE, math.log(seconds), 20.0)
        fresh.add(HERE, math.log(seconds), 20.0)
    for number in range(500):
        name = f"run-{number}"
        running[name] = float(rng.uniform(1.0, 1e5))
        leaves.started(("test", name), HERE, NOW - running[name], 1.0)
        leaves.started(("test", name), HERE, NOW, 1.0)
        if rng.random() < 0.5:
            gone = str(rng.choice(list(running)))
            leaves.stopped(("test", gone))
            leaves.stopped(("test", gone))
            del running[gone]
    for name, age in running.items():
        fresh.started(("test", name), HERE, NOW - age, 1.0)
    assert cdf(leaves, HERE, NOW) == pytest.approx(cdf(fresh, HERE, NOW))


def test_only_the_ratio_of_weights_matters():
    light, heavy = histograms(), histograms()
    for seconds, weight in ((60.0, 1.0), (600.0, 2.0), (6000.0, 0.5)):
        light.add(HERE, math.log(seconds), weight * 1e-12)
        heavy.add(HERE, math.log(seconds), weight * 1e12)
    assert cdf(light, HERE, NOW) == pytest.approx(cdf(heavy, HERE, NOW))


def test_jobs_asked_together_are_answered_as_alone():
    rng = np.random.default_rng(6)
    leaves = LeafHistograms((4, 3), 8, GRID)
    for number in range(200):
        where = rng.integers(0, 8, size=7).astype(np.int32)
        if number % 3:
            leaves.add(where, float(rng.normal(6.0, 2.0)), float(rng.random()))
        else:
            leaves.started(("test", str(number)), where, NOW - float(rng.exponential(3000.0)), 1.0)
    asked = rng.integers(0, 8, size=(40, 7)).astype(np.int32)
    together = leaves.cdfs(leaves.counts(asked, NOW))
    assert all(np.array_equal(cdf(leaves, one, NOW), found) for one, found in zip(asked, together, strict=True))


def test_leaves_whose_numbers_are_none_are_not_taken_for_empty_ones():
    leaves = histograms()
    leaves.add(HERE, math.log(60.0), 1.0)
    leaves._mass[:] = np.nan
    counts = leaves.counts(HERE[np.newaxis], NOW)
    (found,) = leaves.cdfs(counts)
    assert np.isnan(found).any()
    assert not np.isnan(found[-1])
    assert leaves.chances(counts, np.array([0.0]), 1.0)


def test_where_every_job_failed_the_chances_are_still_chances():
    """Causes are kept in single precision: thirty thousand weights must not add up to more than all."""
    leaves = histograms()
    for number in range(3000):
        leaves.add(HERE, math.log(100.0), 1.1 ** (number % 7), Outcome.FAILED)
    (chances,) = leaves.chances(leaves.counts(HERE[np.newaxis], NOW), np.zeros(1), 1.0)
    assert 0.99 < chances.failed <= 1.0
    assert chances.completed + chances.failed + chances.cancelled == pytest.approx(1.0)
