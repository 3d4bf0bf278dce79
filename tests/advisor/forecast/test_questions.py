"""The window of latest questions: what it holds, what came of it, and how it is handed on."""

import json
import math

import numpy as np
import pytest

from advisor.forecast.grid import LogGrid
from advisor.forecast.questions import Question, QuestionWindow, cross_losses

GRID = LogGrid()
DAY = 86400.0


def logistic(median_seconds, scale=0.8):
    cdf = 1.0 / (1.0 + np.exp(-(GRID.log_edges - math.log(median_seconds)) / scale))
    return (cdf - cdf[0]) / (cdf[-1] - cdf[0])


PARTS = np.array([logistic(600.0, 0.5), logistic(1000.0), logistic(5000.0)], dtype=np.float32)
MIXED = PARTS.mean(axis=0)


def a_question(name, submit=0.0, depth=3):
    return Question(("test", name), submit, depth, MIXED, PARTS)


def a_window(size=4000, days=14.0, questions=()):
    return QuestionWindow(GRID, size, days, questions)


def told(durations, *, gap=60.0, window=None, first=0):
    """Jobs of those durations, each over before the next one comes."""
    window = window or a_window()
    for number, seconds in enumerate(durations, first):
        window.asked(a_question(f"job-{number}", number * gap, depth=number))
        window.started(("test", f"job-{number}"), number * gap)
        window.ended(("test", f"job-{number}"), float(seconds), censored=False)
    return window


def same(one, other):
    return all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


def test_a_question_is_answered_by_the_duration_of_its_job():
    outcomes = told([700.0]).outcomes(1e9)
    assert outcomes.u == pytest.approx(GRID.at(MIXED[np.newaxis].astype(float), np.log([700.0])))
    assert np.array_equal(outcomes.losses, cross_losses(GRID, PARTS[np.newaxis], np.log([700.0]), np.array([False])))
    assert (outcomes.censored.tolist(), outcomes.depth.tolist()) == ([False], [0])


def test_a_job_that_runs_says_that_it_lasts_at_least_as_long_as_its_age():
    window = a_window()
    window.asked(a_question("runs"))
    window.started(("test", "runs"), 100.0)
    for age in (0.5, 60.0, 9e4):
        outcomes = window.outcomes(100.0 + age)
        logs = np.log([max(age, 1.0)])
        assert outcomes.u == pytest.approx(GRID.at(MIXED[np.newaxis].astype(float), logs))
        assert np.array_equal(outcomes.losses, cross_losses(GRID, PARTS[np.newaxis], logs, np.array([True])))
        assert outcomes.censored.tolist() == [True]
    assert not window.outcomes(100.0).u.size


def test_a_job_lost_sight_of_stays_at_the_age_it_was_last_seen_at():
    window = a_window()
    window.asked(a_question("lost"))
    window.started(("test", "lost"), 0.0)
    window.ended(("test", "lost"), 300.0, censored=True)
    outcomes = window.outcomes(1e6)
    assert outcomes.u == pytest.approx(GRID.at(MIXED[np.newaxis].astype(float), np.log([300.0])))
    assert outcomes.censored.tolist() == [True]
    assert np.array_equal(outcomes.losses, cross_losses(GRID, PARTS[np.newaxis], np.log([300.0]), np.array([True])))


@pytest.mark.parametrize("seconds", [math.nan, 0.0, -5.0])
def test_a_job_that_waits_and_one_that_never_ran_say_nothing(seconds):
    window = a_window()
    window.asked(a_question("waits"))
    window.asked(a_question("never-ran"))
    window.started(("test", "never-ran"), 0.0)
    window.ended(("test", "never-ran"), seconds, censored=False)
    window.ended(("test", "unheard-of"), 60.0, censored=False)
    assert [len(column) for column in window.outcomes(1e6)] == [0, 0, 0, 0]


def test_answers_are_let_go_when_the_job_is_gone():
    window = told([60.0])
    window.asked(a_question("runs", 100.0))
    gone, runs = window.questions
    assert (gone.mixed, gone.parts) == (None, None)
    assert runs.parts is not None


def test_the_window_forgets_by_number_and_by_age():
    by_number = told(np.full(500, 60.0), window=a_window(size=200))
    assert [q.job[1] for q in by_number.questions] == [f"job-{n}" for n in range(300, 500)]
    by_age = told(np.full(500, 60.0), window=a_window(days=1.0), gap=DAY / 100)
    assert len(by_age.questions) == 101
    assert by_age.last_submit == 499 * DAY / 100
    assert by_age.asked_in_all == 500
    assert a_window().last_submit is None


def test_an_end_after_the_question_was_forgotten_changes_nothing():
    window = a_window(size=2)
    for number in range(3):
        window.asked(a_question(f"job-{number}", float(number)))
        window.started(("test", f"job-{number}"), float(number))
    before = window.outcomes(50.0)
    assert [job for _, job in window._open] == ["job-1", "job-2"]
    window.ended(("test", "job-0"), 1e6, censored=False)
    assert same(window.outcomes(50.0), before)


def test_a_window_handed_on_continues_as_if_it_had_never_been_handed_on():
    durations = np.random.default_rng(1).exponential(1000.0, size=600) + 1.0
    whole = told(durations)
    handed = told(durations[400:], window=a_window(questions=told(durations[:400]).questions), first=400)
    assert same(handed.outcomes(1e6), whole.outcomes(1e6))
    assert handed.asked_in_all == whole.asked_in_all


def test_jobs_open_when_the_window_is_handed_on_still_come_to_their_end():
    first = a_window()
    first.asked(a_question("runs", 5.0))
    second = a_window(questions=first.questions)
    second.started(("test", "runs"), 10.0)
    second.ended(("test", "runs"), 80.0, censored=False)
    (question,) = second.questions
    assert question.losses is not None
    assert (question.start, question.censored) == (10.0, False)


def test_questions_handed_on_are_copies():
    question = a_question("job")
    first, second = a_window(questions=(question,)), a_window(questions=(question,))
    first.started(("test", "job"), 1.0)
    first.ended(("test", "job"), 60.0, censored=False)
    assert question.parts is PARTS
    assert second.questions[0].parts is PARTS
    assert math.isnan(second.questions[0].start)
    assert second.questions[0].losses is None


def test_questions_come_back_from_text_to_the_bit():
    """Open ones, ended ones, lost ones and void ones; what a running job says later is the same."""
    rng = np.random.default_rng(5)
    window = a_window()
    for number in range(40):
        parts = np.sort(rng.random((3, GRID.log_edges.size)), axis=1).astype(np.float32)
        window.asked(Question(("test", f"job-{number}"), rng.random() * 1e9, number - 1, parts.mean(axis=0), parts))
        if number % 4:
            window.started(("test", f"job-{number}"), rng.random() * 1e9)
        if number % 4 > 1:
            window.ended(("test", f"job-{number}"), rng.exponential(1e4), censored=number % 8 > 5)
    window.ended(("test", "job-0"), math.nan, censored=False)
    text = json.dumps([question.to_json() for question in window.questions], allow_nan=False)
    back = a_window(questions=[Question.from_json(document) for document in json.loads(text)])
    assert json.dumps([question.to_json() for question in back.questions]) == text
    for now in (1e9, 2e9):
        assert window.outcomes(now).u.size == 30
        assert same(back.outcomes(now), window.outcomes(now))


@pytest.mark.parametrize("broken", [{"mixed": "not base64!"}, {"depth": None}, {"parts": "AAAA"}, {"losses": "x"}])
def test_what_is_no_question_is_not_taken_for_one(broken):
    document = {**a_question("job").to_json(), **broken}
    with pytest.raises((KeyError, TypeError, ValueError)):
        Question.from_json(document)
    del document["job"]
    with pytest.raises(KeyError):
        Question.from_json({})


def test_losses_are_of_the_age_a_job_is_known_to_have_reached_and_no_more():
    """Whatever the answer says beyond the age of a running job costs nothing, and what it says before does."""
    parts = PARTS[np.newaxis].copy()
    other = parts.copy()
    beyond = GRID.log_edges > math.log(400.0) + GRID.step
    other[:, :, beyond] = 1.0
    logs, yes, no = np.log([400.0]), np.array([True]), np.array([False])
    assert np.array_equal(cross_losses(GRID, parts, logs, yes), cross_losses(GRID, other, logs, yes))
    assert (cross_losses(GRID, parts, logs, no) != cross_losses(GRID, other, logs, no)).any()
    other = np.minimum(parts + np.float32(0.01), 1.0)
    assert (cross_losses(GRID, other, logs, yes) > cross_losses(GRID, parts, logs, yes)).all()
