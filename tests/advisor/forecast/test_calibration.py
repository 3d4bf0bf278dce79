"""Calibration on outcomes whose error is known: a pure function of what came of the latest answers."""

import numpy as np
import pytest

from advisor.forecast.calibration import Bend, CalibrationSettings
from advisor.forecast.grid import LogGrid
from advisor.forecast.questions import Outcomes

GRID = LogGrid()
EXACT = CalibrationSettings(bound=0.5, doubt=0.0)
LEVELS = np.linspace(0.0, 1.0, 201)


def logistic(median_seconds, scale):
    """An answer: logistic in ln seconds around a median."""
    cdf = 1.0 / (1.0 + np.exp(-(GRID.log_edges - np.log(median_seconds)) / scale))
    return (cdf - cdf[0]) / (cdf[-1] - cdf[0])


def came_true(answer, seconds, censored=False):
    """Every question answered the same, and how long each job ran, or was seen to run."""
    seconds = np.asarray(seconds, dtype=float)
    u = GRID.at(np.tile(answer, (seconds.size, 1)), np.log(seconds))
    lost = np.broadcast_to(np.asarray(censored), u.shape).copy()
    return Outcomes(u, lost, np.zeros((u.size, 3, 3)), np.zeros(u.size, dtype=np.intp))


def draws(median_seconds, scale, count, seed=1):
    return median_seconds * np.exp(np.random.default_rng(seed).logistic(0.0, scale, size=count))


def at(cdf, seconds):
    return float(GRID.at(cdf[np.newaxis], np.array([np.log(seconds)]))[0])


@pytest.mark.parametrize("level", [0.5, 0.8, 0.9, 0.95])
def test_answers_that_were_too_narrow_and_too_low_are_bent_to_the_truth(level):
    truth = 1000.0 * np.exp(0.8 * np.log(level / (1 - level)))
    said = logistic(600.0, 0.5)
    bent = Bend.drawn(EXACT, came_true(said, draws(1000.0, 0.8, 1500))).of(said)
    assert abs(at(said, truth) - level) > 0.03
    assert at(bent, truth) == pytest.approx(level, abs=0.03)


@pytest.mark.parametrize("count", [150, 1500, 4000])
def test_what_chance_shows_of_honest_answers_bends_nothing(count):
    said = logistic(1000.0, 0.5)
    for seed in range(20):
        bend = Bend.drawn(CalibrationSettings(), came_true(said, draws(1000.0, 0.5, count, seed)))
        assert np.array_equal(bend.of(said), said)


def test_jobs_that_come_in_groups_of_one_fate_are_not_taken_for_so_many_witnesses():
    """A burst of ten equal jobs says what one of them says."""
    said = logistic(1000.0, 0.8)
    added = {1.0: [], 10.0: []}
    for seed in range(40):
        outcomes = came_true(said, np.repeat(draws(1000.0, 0.8, 150, seed), 10))
        for alike, sizes in added.items():
            sizes.append(np.abs(Bend.drawn(CalibrationSettings(alike=alike), outcomes).added).mean())
    assert np.mean(added[10.0]) < 0.005
    assert np.mean(added[10.0]) < 0.4 * np.mean(added[1.0])


def test_only_what_exceeds_chance_is_corrected():
    said = logistic(600.0, 0.5)
    outcomes = came_true(said, draws(1000.0, 0.8, 1500))
    whole = Bend.drawn(EXACT, outcomes).added
    settings = CalibrationSettings(bound=0.5, doubt=2.0, alike=5.0)
    chance = 2.0 * np.sqrt(LEVELS * (1.0 - LEVELS) * 5.0 / 1500)
    found = Bend.drawn(settings, outcomes).added
    beyond = np.abs(whole) > chance
    assert (beyond.any(), beyond.all()) == (True, False)
    assert found[beyond] == pytest.approx((whole - np.sign(whole) * chance)[beyond])
    assert not found[~beyond].any()


def test_too_few_questions_bend_nothing():
    said = logistic(600.0, 0.5)
    settings = CalibrationSettings()
    few, enough = (came_true(said, draws(1e4, 0.3, count)) for count in (settings.least - 1, settings.least))
    assert Bend.drawn(settings, few).of(said) is said
    assert not np.array_equal(Bend.drawn(settings, enough).of(said), said)
    assert Bend().of(said) is said


@pytest.mark.parametrize("truth", [1e6, 2.0])
def test_gross_errors_are_corrected_up_to_the_bound_and_answers_stay_distributions(truth):
    said = logistic(600.0, 0.5)
    bent = Bend.drawn(CalibrationSettings(bound=0.04), came_true(said, draws(truth, 0.1, 1500))).of(said)
    assert np.abs(bent - said).max() == pytest.approx(0.04)
    assert (np.diff(bent) >= 0).all()
    assert (bent[0], bent[-1]) == (0.0, 1.0)


def test_long_jobs_that_still_run_are_not_forgotten():
    """Every second job runs for ever; judged by those that ended alone, the answers would look far too long."""
    said = logistic(1000.0, 0.8)
    ages = np.arange(1.0, 1501.0)
    ended = np.arange(1500) % 2 == 0
    bent = Bend.drawn(EXACT, came_true(said, np.where(ended, 500.0, ages), ~ended)).of(said)
    # Of 1,250 known to have reached 500 s, 750 ended there.
    assert at(bent, 510.0) == pytest.approx(0.6, abs=0.05)
    assert at(bent, 800.0) < 0.75


def test_jobs_seen_for_any_time_only_do_not_make_honest_answers_look_short():
    """Half of all are lost sight of before their end: what is left are short ones, and that is allowed for."""
    said = logistic(1000.0, 0.8)
    seconds, seen = draws(1000.0, 0.8, 4000, 7), draws(1000.0, 0.8, 4000, 8)
    outcomes = came_true(said, np.minimum(seconds, seen), seconds > seen)
    bent = Bend.drawn(EXACT, outcomes).of(said)
    judged = said < 0.9
    assert np.abs(bent - said)[judged].max() < 0.05


def test_where_no_job_has_ended_nothing_is_bent():
    said = logistic(1000.0, 0.8)
    bend = Bend.drawn(EXACT, came_true(said, np.arange(1.0, 1501.0), censored=True))
    assert bend.of(said) == pytest.approx(said, abs=1e-12)


def test_the_order_of_questions_bends_nothing():
    said = logistic(600.0, 0.5)
    seconds, lost = draws(1000.0, 0.8, 800), np.random.default_rng(3).random(800) < 0.3
    order = np.random.default_rng(4).permutation(800)
    first = Bend.drawn(EXACT, came_true(said, seconds, lost)).added
    other = Bend.drawn(EXACT, came_true(said, seconds[order], lost[order])).added
    assert np.array_equal(first, other)
