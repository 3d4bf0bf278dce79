"""What everything that answers "how long will this run" must keep, models and baselines alike."""

import pickle
from copy import deepcopy
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest

from advisor.domain.jobs import Outcome
from advisor.features.replay import EventKind, events_of
from advisor.forecast.baselines import DurationModelLike, MedianOfFive
from advisor.forecast.duration import DurationModel, DurationPredictor
from tests.builders import a_history, a_job
from training.duration import DurationSettings, fit_durations

HISTORY = a_history(500, seed=31)
NOW = HISTORY[-1].submit
QUESTIONS = [
    a_job("known", user="user-1", gpus=1, nodes=1),
    a_job("other-gpus", user="user-1", gpus=96),
    a_job("unseen-user", user="mallory", gpus=2),
    a_job("nobody", user=None, gpus=1),
    a_job("bare", user="user-2", calendar_known=False),
    replace(a_job("named", user="user-3"), name="train-17", image="torch:2", gpu_kind="H100", namespace="vision"),
    replace(a_job("told-all", user="user-4", nodes=3, cpus=8.0), priority=7, time_limit_seconds=3600.0),
    HISTORY[-1],
]
AGES = [0.0, 60.0, 0.0, 3600.0, 1.0, 0.0, 86400.0, 5.0]


def tell(predictor: DurationModelLike, jobs=HISTORY) -> DurationModelLike:
    verbs = {
        EventKind.SUBMITTED: predictor.submitted,
        EventKind.STARTED: predictor.started,
        EventKind.ENDED: predictor.ended,
    }
    for event in events_of(jobs, NOW):
        verbs[event.kind](event.job)
    return predictor


@pytest.fixture(scope="module")
def fitted() -> DurationModel:
    return fit_durations(HISTORY, HISTORY[300].submit, DurationSettings(trees=3, leaves=31, least_jobs=50))


@pytest.fixture(scope="module")
def saved(fitted, tmp_path_factory) -> Path:
    folder: Path = tmp_path_factory.mktemp("model")
    fitted.save(folder)
    return folder


@pytest.fixture(scope="module", params=["model", "saved model", "no model", "median of five"])
def make(request, fitted, saved):
    """A maker of fresh predictors that know nothing yet."""
    makers = {
        "model": lambda: DurationPredictor(fitted),
        "saved model": lambda: DurationPredictor(DurationModel.load(saved)),
        "no model": DurationPredictor,
        "median of five": MedianOfFive,
    }
    return makers[request.param]


@pytest.fixture(scope="module")
def told(make):
    return tell(make())


def test_two_that_were_told_the_same_answer_the_same(make, told):
    again = tell(make())
    assert again.forecast(QUESTIONS, NOW, AGES) == told.forecast(QUESTIONS, NOW, AGES)
    assert again.version == told.version


def test_neither_questions_nor_state_are_changed_by_asking(told):
    jobs, ages = deepcopy(QUESTIONS), list(AGES)
    first = told.forecast(jobs, NOW, ages)
    assert (jobs, ages) == (QUESTIONS, AGES)
    assert told.forecast(jobs, NOW, ages) == first


def test_an_answer_does_not_depend_on_batch_or_order(told):
    together = told.forecast(QUESTIONS, NOW, AGES)
    alone = [told.forecast([job], NOW, [age])[0] for job, age in zip(QUESTIONS, AGES, strict=True)]
    turned = told.forecast(QUESTIONS[::-1], NOW, AGES[::-1])[::-1]
    assert together == alone == turned
    assert told.forecast(QUESTIONS * 3, NOW, AGES * 3) == together * 3
    assert told.forecast([], NOW) == []


def test_what_was_never_seen_is_answered(make):
    """Unseen owners, GPU counts and gaps, with all history and with none."""
    for predictor in (make(), tell(make())):
        answers = predictor.forecast(QUESTIONS, NOW + timedelta(days=1))
        assert len(answers) == len(QUESTIONS)
        for answer in answers:
            quantiles = [answer.distribution.quantile(level) for level in (0.05, 0.5, 0.9, 0.95)]
            assert quantiles[0] > 0
            assert quantiles == sorted(quantiles)


def test_quantiles_are_ordered_and_positive_and_the_answer_says_who_gave_it(told):
    for answer in told.forecast(QUESTIONS, NOW, AGES):
        levels = [answer.distribution.quantile(level) for level in (0.01, 0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.999)]
        assert levels[0] > 0
        assert levels == sorted(levels)
        assert np.isfinite(levels).all()
        assert (answer.served == "model") == (answer.model_version is not None)
        assert answer.key_count >= 0


def test_it_learns_from_an_end_and_never_before(make):
    """A sibling that runs may move an answer by having run so long; how it will end moves none until it has."""
    asked = a_job("asked", user="solo", submit=NOW)
    soon = a_job("solo-1", user="solo", submit=NOW, seconds=77.0)
    late = replace(soon, end=NOW + timedelta(days=9), outcome=Outcome.FAILED)
    never = replace(soon, end=None, outcome=None)
    answers = []
    for job in (soon, late, never):
        predictor = make()
        predictor.submitted(job)
        predictor.started(job)
        answers.append([predictor.forecast([asked], NOW + timedelta(seconds=s)) for s in (0, 1, 76)])
        assert answers[-1][0][0].key_count == 0
    assert answers[0] == answers[1] == answers[2]
    predictor = make()
    predictor.submitted(soon)
    predictor.ended(soon)
    (answer,) = predictor.forecast([asked], NOW + timedelta(seconds=77))
    assert (answer.key, answer.key_count) == ("user+gpus", 1)
    assert answer.distribution != answers[0][2][0].distribution


def test_how_jobs_that_still_run_will_end_is_not_known(make, told):
    """Told of every job's end in advance, in the job itself, it answers as if nobody knew."""
    blind = tell(make(), [job.as_of(NOW) for job in HISTORY])
    asked = [*QUESTIONS[:-1], HISTORY[-1].as_of(NOW)]
    assert blind.forecast(asked, NOW, AGES) == told.forecast(QUESTIONS, NOW, AGES)


def test_a_model_comes_back_from_text_and_json_equal(fitted, saved, monkeypatch):
    def refuse(*_args, **_kwargs):
        raise AssertionError("a model must never be unpickled")

    for name in ("load", "loads", "Unpickler"):
        monkeypatch.setattr(pickle, name, refuse)
    loaded = DurationModel.load(saved)
    assert loaded == fitted
    assert {path.suffix for path in saved.iterdir()} == {".txt", ".json", ".sha256"}
    assert all(path.read_bytes().decode("utf-8") for path in saved.iterdir())
    answers = [tell(DurationPredictor(model)).forecast(QUESTIONS, NOW, AGES) for model in (fitted, loaded)]
    assert answers[0] == answers[1]


def test_the_same_history_and_seed_fit_the_same_model(fitted):
    again = fit_durations(HISTORY, HISTORY[300].submit, DurationSettings(trees=3, leaves=31, least_jobs=50))
    assert (again, again.hazard.text) == (fitted, fitted.hazard.text)
