"""Rolling calibration on synthetic answers whose error is known."""

import math

import numpy as np
import pytest

from advisor.forecast.calibration import CalibrationSettings, Question, RollingCalibration
from advisor.forecast.grid import LogGrid

GRID = LogGrid()
DAY = 86400.0
WIDE = CalibrationSettings(bound=0.5, shrink=0.0)


def logistic(median_seconds, scale):
    """An answer: logistic in ln seconds around a median."""
    cdf = 1.0 / (1.0 + np.exp(-(GRID.log_edges - math.log(median_seconds)) / scale))
    return (cdf - cdf[0]) / (cdf[-1] - cdf[0])


def told(settings, durations, answer, *, gap=60.0, questions=()):
    """Every question answered the same, every job ended before the next one came."""
    calibration = RollingCalibration(GRID, settings, questions)
    for number, seconds in enumerate(durations):
        calibration.asked(f"job-{number}", number * gap, answer)
        calibration.started(f"job-{number}", number * gap)
        calibration.ended(f"job-{number}", float(seconds), censored=False)
    return calibration


def draws(median_seconds, scale, count, seed=1):
    return median_seconds * np.exp(np.random.default_rng(seed).logistic(0.0, scale, size=count))


def at(cdf, seconds):
    return float(GRID.at(cdf[np.newaxis], np.array([math.log(seconds)]))[0])


@pytest.mark.parametrize("level", [0.5, 0.8, 0.9, 0.95])
def test_answers_that_were_too_narrow_and_too_low_are_bent_to_the_truth(level):
    truth = 1000.0 * math.exp(0.8 * math.log(level / (1 - level)))
    said = logistic(600.0, 0.5)
    bent = told(WIDE, draws(1000.0, 0.8, 1500), said).bent(said)
    assert abs(at(said, truth) - level) > 0.03
    assert at(bent, truth) == pytest.approx(level, abs=0.03)


def test_honest_answers_are_left_alone():
    said = logistic(1000.0, 0.8)
    bent = told(WIDE, draws(1000.0, 0.8, 1500), said).bent(said)
    assert np.abs(bent - said).max() < 0.04


def test_too_few_questions_bend_nothing():
    said = logistic(600.0, 0.5)
    settings = CalibrationSettings()
    assert np.array_equal(told(settings, draws(1e4, 0.8, settings.least - 1), said).bent(said), said)
    assert not np.array_equal(told(settings, draws(1e4, 0.8, settings.least + 50), said).bent(said), said)


@pytest.mark.parametrize("truth", [1e6, 2.0])
def test_no_bend_is_larger_than_its_bound_and_answers_stay_distributions(truth):
    said = logistic(600.0, 0.5)
    bent = told(CalibrationSettings(bound=0.04, shrink=0.0), draws(truth, 0.1, 1500), said).bent(said)
    assert np.abs(bent - said).max() == pytest.approx(0.04)
    assert (np.diff(bent) >= 0).all()
    assert (bent[0], bent[-1]) == (0.0, 1.0)


def test_long_jobs_that_still_run_are_not_forgotten():
    """Every second job runs for ever; judged by those that ended alone, the answers would look far too long."""
    said = logistic(1000.0, 0.8)
    calibration = RollingCalibration(GRID, WIDE)
    for number in range(1500):
        calibration.asked(f"job-{number}", float(number), said)
        calibration.started(f"job-{number}", float(number))
        if number % 2:
            calibration.ended(f"job-{number}", 500.0, censored=False)
    bent = calibration.bent(said)
    # Of 1,250 known to have reached 500 s, 750 ended there.
    assert at(bent, 510.0) == pytest.approx(0.6, abs=0.05)
    assert at(bent, 800.0) < 0.75


def test_a_job_that_waits_and_one_that_never_ran_say_nothing():
    said = logistic(1000.0, 0.8)
    calibration = RollingCalibration(GRID, WIDE)
    for number in range(1500):
        calibration.asked(f"job-{number}", float(number), said)
        if number % 2:
            calibration.ended(f"job-{number}", math.nan, censored=False)
    assert np.array_equal(calibration.bent(said), said)


def test_the_window_forgets_by_number_and_by_age():
    said = logistic(1000.0, 0.8)
    by_number = told(CalibrationSettings(window=200), draws(1000.0, 0.8, 500), said)
    assert [q.job_id for q in by_number.questions] == [f"job-{n}" for n in range(300, 500)]
    by_age = told(CalibrationSettings(days=1.0), draws(1000.0, 0.8, 500), said, gap=DAY / 100)
    assert len(by_age.questions) == 101


def test_a_window_handed_on_continues_as_if_it_had_never_been_handed_on():
    said = logistic(600.0, 0.5)
    durations = draws(1000.0, 0.8, 600)
    whole = told(WIDE, durations, said)
    handed = RollingCalibration(GRID, WIDE, told(WIDE, durations[:400], said).questions)
    for number in range(400, 600):
        handed.asked(f"job-{number}", number * 60.0, said)
        handed.ended(f"job-{number}", float(durations[number]), censored=False)
    assert np.array_equal(handed.bent(said), whole.bent(said))


def test_questions_handed_on_are_copies():
    said = logistic(600.0, 0.5)
    question = Question("job", 0.0, said)
    first, second = (RollingCalibration(GRID, WIDE, (question,)) for _ in range(2))
    first.ended("job", 60.0, censored=False)
    assert (question.cdf is said, second.questions[0].cdf is said) == (True, True)
    assert first.questions[0].u == pytest.approx(at(said, 60.0))
