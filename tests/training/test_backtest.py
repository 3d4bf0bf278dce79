"""The replay: honest about time, equal to the online path, and a report for any history."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from advisor.domain.jobs import Outcome
from advisor.errors import Refused
from advisor.features.replay import events_of
from advisor.forecast.blend import Weights
from advisor.forecast.calibration import CalibrationSettings
from advisor.forecast.duration import DurationPredictor
from advisor.forecast.live import LiveModel
from advisor.telemetry.traces import TraceFile, TraceFormat
from tests.builders import NOON, a_history, a_job
from training.answers import history_of, replayed
from training.backtest import BacktestSettings, evaluate_durations
from training.duration import DurationSettings, fit_durations
from training.duration_table import duration_table
from training.forests import fit_forests
from training.model_replay import ModelReplay

SMALL = DurationSettings(trees=3, leaves=63, least_jobs=50, calibration=CalibrationSettings(least=40, every=5))
SETTINGS = BacktestSettings(fit=SMALL, refit_days=0.2)


@pytest.fixture(scope="module")
def history():
    return a_history(900, seed=41)


@pytest.fixture(scope="module")
def report(history):
    return evaluate_durations(history, SETTINGS)


def test_a_file_and_the_store_it_filled_are_measured_alike_in_whatever_order_jobs_of_one_second_stand(history):
    """A store hands jobs of one second over by their ids, a file as its rows stand."""
    by_the_minute = [replace(job, submit=job.submit.replace(second=0)) for job in history[:500]]
    assert len({job.submit for job in by_the_minute}) < 400
    stored = sorted(by_the_minute, key=lambda job: (job.submit, job.id))

    assert evaluate_durations(by_the_minute, SETTINGS) == evaluate_durations(stored, SETTINGS)


def replayed_online(model, jobs, until):
    """Every job from the fit on, asked of the live predictor at its submission, one event after the other."""
    predictor, answers = DurationPredictor(model), {}
    verbs = (predictor.submitted, predictor.started, predictor.ended)
    for event in events_of(jobs, until):
        if event.kind == 0 and event.moment >= model.fitted_at:
            (answers[event.place],) = predictor.forecast([event.job], event.moment)
        verbs[event.kind](event.job)
    return answers


def assert_batch_equals_online(jobs, split, settings):
    """The whole answers: forest, hazard, baseline, their weights and the calibration."""
    history = history_of(jobs, split, settings)
    model = fit_durations(history.jobs, datetime.fromtimestamp(history.split, UTC), settings)
    online, batch = replayed_online(model, history.jobs, history.until), replayed(history, model).laws
    assert set(online) == set(batch)
    assert all(online[place].distribution == law for place, law in batch.items())
    return [answer.served for answer in online.values()]


def test_the_replay_in_batches_answers_what_the_online_path_answers(history):
    assert set(assert_batch_equals_online(history, 0.5, SMALL)) == {"model"}


def test_the_replay_in_batches_stands_aside_where_the_online_path_does(history):
    """Owners without a past where every job of the fit had one: the baseline answers, in both."""
    warm = replace(SMALL, newest_jobs=200)
    jobs = [replace(job, user=f"new-{n}") if n > 500 and n % 7 == 0 else job for n, job in enumerate(history)]
    assert set(assert_batch_equals_online(jobs, 0.5, warm)) == {"model", "median_of_5"}


@pytest.mark.traces
def test_the_replay_of_a_real_cluster_answers_what_the_online_path_answers(traces: Path):
    file = TraceFile(traces / "philly/philly_first_15000_jobs.csv", TraceFormat.PHILLY_USERS)
    jobs = list(file.read(None, datetime(2026, 1, 1, tzinfo=UTC)).jobs)[:2500]
    served = assert_batch_equals_online(jobs, 0.8, replace(SMALL, leaves=255))
    assert len(served) >= 500
    assert set(served) == {"model"}


def with_random_ends(jobs, now, rng):
    """The same up to ``now``; whatever had not ended, or not begun, by then goes on at random."""
    changed = []
    for job in jobs:
        start = job.start if job.start <= now else max(job.submit, now) + timedelta(seconds=1)
        end = max(start, now) + timedelta(seconds=float(rng.exponential(5000.0)) + 1.0)
        known = job.gone_at <= now
        changed.append(job if known else replace(job, start=start, end=end, outcome=Outcome.FAILED))
    return changed


def test_randomising_what_had_not_ended_leaves_every_earlier_answer_alone(history):
    """The leak audit: fit, hazard, weights, calibration and every answer up to a moment, to the bit."""
    now = history[800].submit
    settings = replace(SMALL, least_jobs=20)
    models, answers, ends = [], [], []
    for jobs in (history, with_random_ends(history, now, np.random.default_rng(9))):
        table = duration_table(jobs, jobs[-1].submit)
        model = fit_durations(jobs, history[700].submit, settings)
        live = LiveModel(model)
        replay = ModelReplay(jobs, table, jobs[-1].submit)
        asked = list(replay.run(live, now.timestamp()))
        models.append(model)
        answers.append([(one.answer.cdf, one.answer.chances, one.placement.hazard) for one in asked])
        ends.append((live._weights.by_class, live._bend.added, [q.to_json() for q in live.questions]))
    assert models[0] == models[1]
    assert models[0].hazard == models[1].hazard
    assert len(answers[0]) == len(answers[1]) >= 95
    for one, other in zip(*answers, strict=True):
        assert all(np.array_equal(*both) for both in zip(one, other, strict=True))
    assert np.array_equal(ends[0][0], ends[1][0])
    assert not np.array_equal(ends[0][0], Weights.prior(model.blend).by_class)
    assert np.array_equal(ends[0][1], ends[1][1])
    assert ends[0][2] == ends[1][2]


def test_randomising_what_had_not_ended_leaves_a_refit_alone(history):
    """A model fitted at that very moment, with its window of questions, has not seen how anything ends."""
    now = history[800].submit
    settings = replace(SMALL, least_jobs=20)
    changed = with_random_ends(history, now, np.random.default_rng(10))
    models = [fit_durations(jobs, now, settings) for jobs in (history, changed)]
    assert models[0] == models[1]
    # A replay of everything fits from a table in which later ends stand.
    tables = [duration_table(jobs, history[-1].submit + timedelta(days=9)) for jobs in (history, changed)]
    refits = [fit_forests(table, now.timestamp(), settings) for table in tables]
    assert refits[0] == refits[1] == replace(models[0], questions=())
    assert sum(question.parts is not None for question in models[0].questions) >= 3
    assert np.array_equal(*(LiveModel(model)._weights.by_class for model in models))


def test_the_model_beats_the_floor_where_habits_hold(report):
    model, floor = report.scores["model"], report.scores["median_of_5"]
    assert model.n == floor.n == 270
    assert report.served == "model"
    assert model.log_mae < floor.log_mae < 0.5
    assert model.coverage["0.9"] == pytest.approx(0.9, abs=0.06)
    assert (model.crossings, model.not_positive) == (0, 0)
    assert report.protocol.refits >= 3


def test_the_report_is_the_documented_shape(report):
    document = json.loads(json.dumps(report.to_json(), allow_nan=False))
    assert set(document) == {"protocol", "predictors", "outcomes", "versus", "served"}
    assert set(document["predictors"]) == {"median_of_5", "model"}
    model = document["predictors"]["model"]
    assert set(model["pinball_log"]) == {"0.5", "0.9", "0.95"}
    assert set(model["coverage"]) == {"0.5", "0.8", "0.9", "0.95"}
    assert set(model["by"]) == {"warm", "cold", "gpus", "key", "decade"}
    assert set(model["by"]["gpus"]) == {"1", "2", "8"}
    assert model["by"]["warm"]["n"] + model["by"]["cold"]["n"] == model["n"]
    assert sum(scores["n"] for scores in model["by"]["gpus"].values()) == model["n"]
    protocol = document["protocol"]
    assert protocol["rows"] == 900
    assert protocol["seed"] == 1
    assert set(protocol["versions"]) == {"lightgbm", "numpy", "python"}


def test_the_same_history_gives_the_same_report(history, report):
    assert evaluate_durations(history, SETTINGS) == report


def test_jobs_still_running_are_not_scored_and_the_report_says_so(history):
    open_ended = [
        replace(job, end=None, outcome=None) if number % 30 == 0 and number > 600 else job
        for number, job in enumerate(history)
    ]
    report = evaluate_durations(open_ended, SETTINGS)
    running = sum(job.end is None for job in open_ended[630:])
    assert report.scores["model"].n == 270 - running
    assert any(f"{running} jobs after the split" in note for note in report.protocol.assumed)


def test_registered_models_are_scored_beside_only_if_they_could_not_have_seen_the_test(history):
    early = fit_durations(history, history[500].submit, SMALL)
    late = fit_durations(history, history[800].submit, SMALL)
    report = evaluate_durations(history, SETTINGS, registered={"champion": early, "challenger": late})
    assert report.scores["champion"].n == 270
    assert "challenger" not in report.scores
    met = report.versus["challenger"]
    assert (met.since, met.model.n, met.rival.n) == (late.fitted_at, 99, 99)
    assert met.model.log_mae != met.rival.log_mae
    assert any("the challenger was fitted at" in note and "not scored" in note for note in report.protocol.assumed)


def test_bulk_submissions_stay_on_one_side_of_the_split():
    jobs = [a_job(f"job-{n}", submit=NOON + timedelta(hours=n // 10), seconds=60.0 + n) for n in range(100)]
    report = evaluate_durations(jobs, replace(SETTINGS, split=0.75))
    assert report.scores["model"].n == 30
    assert report.protocol.split_time == NOON + timedelta(hours=7)


@pytest.mark.parametrize("count", [2, 3, 30])
def test_a_short_history_is_served_by_the_floor(count):
    report = evaluate_durations(a_history(count), SETTINGS)
    assert report.served == "median_of_5"
    assert report.scores["model"] == report.scores["median_of_5"]
    assert any("too few jobs" in note for note in report.protocol.assumed)
    json.dumps(report.to_json(), allow_nan=False)


def test_equal_jobs_are_predicted_exactly_enough():
    jobs = [a_job(f"job-{n}", submit=NOON + timedelta(minutes=n), seconds=300.0) for n in range(300)]
    scores = evaluate_durations(jobs, SETTINGS).scores
    assert scores["model"].within_25_percent == scores["median_of_5"].within_25_percent == 1.0


@pytest.mark.parametrize("broken", [{"split": 0.0}, {"split": 1.0}, {"refit_days": 0.0}])
def test_protocols_without_a_test_are_refused(broken):
    with pytest.raises(Refused):
        BacktestSettings(**broken)


@pytest.mark.parametrize("count", [0, 1])
def test_histories_without_a_question_are_refused(count):
    with pytest.raises(Refused, match="at least 2 jobs"):
        evaluate_durations(a_history(count), SETTINGS)
