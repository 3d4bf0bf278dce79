"""What telemetry tells of GPUs: it sharpens where it tells something, and is as if it were not where it does not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from advisor.domain.jobs import Job
from advisor.features.duration import DURATION_SCHEMA, USAGE_SCHEMA
from advisor.features.replay import EventKind, events_of
from advisor.forecast.duration import DurationModel, DurationPredictor
from tests.builders import NOON, a_history, a_job, a_usage
from training.backtest import BacktestSettings, evaluate_durations
from training.duration import DurationSettings, fit_durations
from training.duration_table import duration_table

SMALL = DurationSettings(trees=5, leaves=63, least_jobs=50)


def a_world_told_by_memory(count: int = 2000, *, seed: int = 3, owners: int = 6) -> list[Job]:
    """Each job loads what the next of its owner works on: its memory tells how long that takes, its time nothing."""
    rng = np.random.default_rng(seed)
    size = rng.random(owners)
    jobs, moment = [], NOON
    for number in range(count):
        moment += timedelta(seconds=round(float(rng.exponential(900.0))))
        owner = int(rng.integers(owners))
        seconds = round(float(30.0 * np.exp(4.0 * size[owner] + rng.normal(0.0, 0.2))), 3) + 1.0
        size[owner] = rng.random()
        usage = a_usage(memory_peak_bytes=float(1e9 * np.exp(3.0 * size[owner])), compute_mean=None)
        jobs.append(a_job(f"job-{number}", submit=moment, seconds=seconds, user=f"user-{owner}", usage=usage))
    return jobs


def without_usage(jobs: Sequence[Job]) -> list[Job]:
    return [replace(job, usage=None) for job in jobs]


@pytest.fixture(scope="module")
def world() -> list[Job]:
    return a_world_told_by_memory()


@pytest.fixture(scope="module")
def model(world: list[Job]) -> DurationModel:
    fitted = fit_durations(world, world[1000].submit, SMALL)
    assert fitted is not None
    return fitted


def test_a_model_that_is_told_of_memory_beats_one_that_is_not(world):
    settings = BacktestSettings(fit=SMALL)
    told, untold = (evaluate_durations(jobs, settings).scores["model"] for jobs in (world, without_usage(world)))
    assert told.crps_log < 0.8 * untold.crps_log


def test_of_usage_only_the_columns_that_tell_something_are_fitted_on(model):
    usage = set(model.columns) - set(DURATION_SCHEMA.names)
    # Nothing was told of compute, and no job has a name.
    assert usage == {"og_last_memory", "og_median_5_memory", "o_last_memory", "o_median_5_memory"}
    assert model.columns[: len(DURATION_SCHEMA)] == DURATION_SCHEMA.names


@pytest.mark.parametrize("usage", [None, a_usage(compute_mean=0.5, memory_peak_bytes=1e9)])
def test_usage_that_tells_no_jobs_apart_changes_not_one_bit(usage):
    history = a_history(400, seed=5)
    told = [replace(job, usage=usage) for job in history]
    now = history[300].submit
    assert fit_durations(told, now, SMALL) == fit_durations(history, now, SMALL)


def test_usage_told_after_the_fit_changes_not_one_bit():
    history = a_history(400, seed=5)
    now = history[300].submit
    rng = np.random.default_rng(1)
    told = [
        job if job.end <= now else replace(job, usage=a_usage(memory_peak_bytes=float(rng.random() * 1e9)))
        for job in history
    ]
    assert fit_durations(told, now, SMALL) == fit_durations(history, now, SMALL)


def test_a_model_of_usage_comes_back_from_its_folder(model, tmp_path):
    model.save(tmp_path)
    assert DurationModel.load(tmp_path) == model


def test_a_model_answers_a_history_that_tells_more_or_less_than_its_own(world, model):
    rows = duration_table(world, world[-1].submit).rows
    bare = duration_table(without_usage(world), world[-1].submit).rows
    assert (rows.shape[1], bare.shape[1]) == (len(USAGE_SCHEMA), len(DURATION_SCHEMA))
    assert np.array_equal(rows[:, : bare.shape[1]], bare, equal_nan=True)

    own = model.own(rows)
    assert np.array_equal(own, rows[:, [USAGE_SCHEMA.names.index(name) for name in model.columns]], equal_nan=True)
    assert np.array_equal(model.own(own), own, equal_nan=True)
    lacking = model.own(bare)
    assert np.array_equal(lacking[:, : bare.shape[1]], bare, equal_nan=True)
    assert np.isnan(lacking[:, bare.shape[1] :]).all()

    knows_nothing = fit_durations(without_usage(world), world[1000].submit, SMALL)
    assert knows_nothing is not None
    assert np.array_equal(knows_nothing.own(rows), bare, equal_nan=True)


def test_a_predictor_answers_from_usage_and_says_so(world, model):
    now = world[1500].submit
    known = [job for job in world[:1500] if job.submit < now]
    told, untold = DurationPredictor(model), DurationPredictor(model)
    told.replay(known, now)
    untold.replay(without_usage(known), now)
    asked = a_job("new", user=world[1499].user, submit=now, seconds=None)

    [answer], [other] = told.forecast([asked], now), untold.forecast([asked], now)
    [why] = told.explain([asked], now)

    assert (answer.served, other.served) == ("model", "model")
    assert not np.array_equal(answer.distribution.cdf, other.distribution.cdf)
    memory = [effect for effect in why.effects if effect.name.endswith("memory")]
    assert memory
    assert memory[0].unit == "bytes"
    assert memory[0].value is not None
    assert 1e9 < memory[0].value < 21e9


def test_single_events_lead_where_a_replay_does(world, model):
    now = world[1200].submit
    replayed, told = DurationPredictor(model), DurationPredictor(model)
    replayed.replay(world[:1200], now)
    for event in events_of(world[:1200], now):
        {EventKind.SUBMITTED: told.submitted, EventKind.ENDED: told.ended}[event.kind](event.job)
    asked = a_job("new", user="user-1", submit=now, seconds=None)
    (one,), (other,) = replayed.forecast([asked], now), told.forecast([asked], now)
    assert np.array_equal(one.distribution.cdf, other.distribution.cdf)
