"""Fitting: what is used, what is not, and what comes out of odd histories."""

from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from advisor.errors import Refused
from advisor.features.duration import DURATION_SCHEMA
from advisor.forecast.calibration import CalibrationSettings
from tests.builders import NOON, a_history, a_job
from training.calibrate import warm_up_begins
from training.duration import DurationSettings, fit_durations
from training.duration_table import duration_table
from training.forests import fit_forests

SMALL = DurationSettings(trees=3, leaves=31, least_jobs=50)


@pytest.fixture(scope="module")
def history():
    return a_history(400, seed=5)


@pytest.fixture(scope="module")
def model(history):
    return fit_durations(history, history[300].submit, SMALL)


def test_the_same_history_and_seed_give_the_same_model(history, model):
    assert fit_durations(history, history[300].submit, SMALL) == model
    assert fit_durations(history, history[300].submit, replace(SMALL, seed=2)) != model


def test_nothing_after_the_fit_is_used(history, model):
    now = history[300].submit
    deleted = [job.as_of(now) for job in history if job.submit <= now]
    assert fit_durations(deleted, now, SMALL) == model


def test_running_jobs_shape_the_trees_and_short_lived_ones_do_not(history):
    now = history[300].submit
    table = duration_table(history, now)
    seconds, ended, ran = table.known_at(now.timestamp())
    running = ran & ~ended
    assert (running & (seconds > 600)).any()
    with_running = fit_forests(table, now.timestamp(), SMALL)
    without = fit_forests(table, now.timestamp(), replace(SMALL, running_from_seconds=1e9))
    assert with_running.jobs - without.jobs == (running & (seconds > 600)).sum()
    assert with_running.forests != without.forests


def test_only_the_newest_jobs_are_fitted_on_and_the_prior_is_of_all(history):
    now = history[-1].submit
    model = fit_durations(history, now, replace(SMALL, newest_jobs=100))
    assert model.jobs == 100
    ended = [job.duration_seconds for job in history if job.gone_at <= now]
    assert model.prior.median == pytest.approx(np.median(ended), rel=0.15)


@pytest.mark.parametrize("count", [0, 1, 10])
def test_too_few_ends_fit_nothing(count):
    assert fit_durations([a_job(f"job-{n}") for n in range(count)], NOON + timedelta(days=1), SMALL) is None


def test_jobs_that_never_ran_or_ended_at_once_are_not_fitted_on():
    at_once = [a_job(f"zero-{n}", seconds=0.0) for n in range(100)]
    assert fit_durations(at_once, NOON + timedelta(days=1), SMALL) is None


def test_settings_that_cannot_be_fitted_are_refused(history):
    with pytest.raises(Refused, match="settings"):
        fit_durations(history, history[300].submit, replace(SMALL, bagging=7.0))


def test_columns_that_always_had_a_value_are_remembered_with_their_usual_values(history, model):
    table = duration_table(history, history[300].submit)
    gaps = np.isnan(table.rows[:300]).any(axis=0)
    assert set(DURATION_SCHEMA.names) - set(model.never_missing) >= {"cpus", "og_last"}
    assert not gaps[[DURATION_SCHEMA.names.index(name) for name in model.never_missing]].any()
    assert model.usual == {"hour": pytest.approx(17.0, abs=3), "gpus": 1.0, "nodes": 1.0}


def test_the_calibration_window_is_of_jobs_its_model_had_not_seen(history, model):
    begin = warm_up_begins(
        duration_table(history, history[300].submit).submit, model.fitted_at.timestamp(), SMALL.calibration
    )
    assert len(model.questions) > 100
    assert min(question.submit for question in model.questions) >= begin
    assert max(question.submit for question in model.questions) < model.fitted_at.timestamp()


def test_the_warm_up_leaves_half_to_fit_on_and_no_question_older_than_the_window():
    settings = CalibrationSettings(window=1500, days=14.0)
    hours = np.arange(4000.0) * 3600
    assert warm_up_begins(hours, 4000 * 3600.0, settings) == (4000 - 14 * 24) * 3600.0
    assert warm_up_begins(hours[:100], 1e9, settings) == 1e9 - 14 * 86400
    assert warm_up_begins(hours[:100] / 3600, 100.0, settings) == 50.0
    assert warm_up_begins(hours / 3600, 4000.0, settings) == 2500.0
    assert warm_up_begins(hours, 0.0, settings) == 0.0


def test_progress_is_told_to_its_end(history):
    told = []
    fit_durations(history, history[-1].submit, SMALL, lambda what, done, of: told.append((what, done, of)))
    assert told[-1] == ("features", 400, 400)
