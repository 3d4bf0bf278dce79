"""What everything that answers "how long will this run" must keep, models and baselines alike."""

from copy import deepcopy
from datetime import timedelta
from pathlib import Path

import pytest

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
    HISTORY[-1],
]
AGES = [0.0, 60.0, 0.0, 3600.0, 1.0, 5.0]


def tell(predictor: DurationModelLike) -> DurationModelLike:
    verbs = {
        EventKind.SUBMITTED: predictor.submitted,
        EventKind.STARTED: predictor.started,
        EventKind.ENDED: predictor.ended,
    }
    for event in events_of(HISTORY, NOW):
        verbs[event.kind](event.job)
    return predictor


@pytest.fixture(scope="module")
def fitted() -> DurationModel:
    return fit_durations(HISTORY, HISTORY[300].submit, DurationSettings(trees=3, leaves=31, least_jobs=50))


@pytest.fixture(scope="module", params=["model", "no model", "median of five"])
def make(request, fitted, tmp_path_factory):
    """A maker of fresh predictors that know nothing yet; the model takes the way over the disk."""
    folder: Path = tmp_path_factory.mktemp("model")
    fitted.save(folder)
    makers = {
        "model": lambda: DurationPredictor(DurationModel.load(folder)),
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


def test_it_learns_from_an_end_and_never_before(make):
    predictor = make()
    asked = a_job("asked", user="solo", submit=NOW)
    job = a_job("solo-1", user="solo", submit=NOW, seconds=77.0)
    unknown = predictor.forecast([asked], NOW)
    predictor.submitted(job)
    predictor.started(job)
    assert predictor.forecast([asked], NOW)[0].distribution == unknown[0].distribution
    predictor.ended(job)
    (answer,) = predictor.forecast([asked], NOW + timedelta(seconds=77))
    assert (answer.key, answer.key_count) == ("user+gpus", 1)
