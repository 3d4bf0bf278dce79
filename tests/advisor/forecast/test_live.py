"""The live half of a model: its whole state is a function of what happened, however it was told of it."""

from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

import advisor.forecast.duration as duration_module
from advisor.features.latest import LATEST
from advisor.features.replay import EventKind, events_of
from advisor.forecast.blend import Weights
from advisor.forecast.duration import DurationPredictor
from advisor.forecast.live import Inquiry, LiveModel, Placement, place, refusal
from tests.builders import a_job


@pytest.fixture
def end(history):
    return history[-1].submit


def state_of(predictor):
    """Everything an answer is made of beside the histories: weights, bend, and the window of questions."""
    live = predictor._live
    added = None if live._bend.added is None else live._bend.added.tolist()
    return live._weights.by_class.tolist(), added, [question.to_json() for question in live.questions]


def asked(history, now):
    running = [job for job in history if job.gone_at > now][-5:]
    return [*running, *(a_job(f"new-{i}", user=f"user-{i}", nodes=1) for i in range(8))]


def replayed(model, history, *moments):
    predictor = DurationPredictor(model)
    for moment in moments:
        predictor.replay([job for job in history if job.submit <= moment], moment)
    return predictor


def told_one_by_one(model, history, end):
    predictor = DurationPredictor(model)
    verbs = {
        EventKind.SUBMITTED: predictor.submitted,
        EventKind.STARTED: predictor.started,
        EventKind.ENDED: predictor.ended,
    }
    for event in events_of(history, end):
        verbs[event.kind](event.job)
    return predictor


def test_weights_calibration_and_questions_are_the_same_however_history_was_told(model, history, end, monkeypatch):
    """At once, twice over, in pieces, one by one, and in chunks that part a job's submission from its end."""
    never_stopped = told_one_by_one(model, history, end)
    expected, answers = state_of(never_stopped), never_stopped.forecast(asked(history, end), end)
    assert expected[0] != Weights.prior(model.blend).by_class.tolist()
    pieces = [history[cut].submit for cut in (100, 599, 600, 601, 640, 750, 751)]
    others = [replayed(model, history, end), replayed(model, history, end, end), replayed(model, history, *pieces, end)]
    for chunk in (7, 100, 1000):
        monkeypatch.setattr(duration_module, "_CHUNK", chunk)
        others.append(replayed(model, history, end))
    for other in others:
        assert state_of(other) == expected
        assert other.forecast(asked(history, end), end) == answers


def test_a_restart_in_the_middle_ends_in_the_same_state(model, history, end, tmp_path):
    """Stopped, loaded from disk, told of all history, and carried on by single events."""
    expected = state_of(replayed(model, history, end))
    model.save(tmp_path)
    restarted = replayed(type(model).load(tmp_path), history, history[700].submit)
    for event in events_of(history, end):
        if (event.at, event.turn) > (history[700].submit.timestamp(), 2):
            verb = (restarted.submitted, restarted.started, restarted.ended)[event.kind]
            verb(event.job)
    assert state_of(restarted) == expected


def test_how_open_jobs_will_end_changes_no_weight_and_no_question(model, history):
    """The ends of all that runs or waits at a moment are made up anew: the state at that moment is the same."""
    now, rng = history[800].submit, np.random.default_rng(3)
    changed = [
        job
        if job.gone_at <= now
        else replace(job, end=max(now, job.start) + timedelta(seconds=1 + float(rng.exponential(9e3))))
        for job in history
    ]
    assert sum(a != b for a, b in zip(history, changed, strict=True)) > 100
    states = [state_of(replayed(model, jobs, now)) for jobs in (history, changed)]
    assert states[0] == states[1]


def test_only_jobs_the_model_has_not_seen_are_questions(model, history, end):
    live = replayed(model, history, end)._live
    fitted = model.fitted_at.timestamp()
    before = {question.job for question in model.questions}
    new = {question.job for question in live.questions} - before
    assert new == {job.identity for job in history if job.submit.timestamp() >= fitted and job.submit <= end}


def test_the_window_a_model_comes_with_moves_its_first_answers(model, history, end):
    bare = replace(model, questions=())
    assert np.array_equal(LiveModel(bare)._weights.by_class, Weights.prior(model.blend).by_class)
    assert not np.array_equal(LiveModel(model)._weights.by_class, Weights.prior(model.blend).by_class)
    now = history[600].submit
    answers = [replayed(one, history, now).forecast([a_job("x", user="user-1")], now)[0] for one in (bare, model)]
    assert answers[0].distribution != answers[1].distribution


def test_an_answer_is_the_weighted_mean_of_its_three_parts_bent_by_what_came_of_the_latest(model, history, end):
    live = replayed(model, history, end)._live
    job = a_job("x", user="user-2", nodes=1)
    predictor = replayed(model, history, end)
    (placement,) = place(
        model, predictor._features.row(job, end)[np.newaxis], predictor._features.latest(job, end)[np.newaxis]
    )
    (forest,) = live._leaves.cdfs(live._leaves.counts(placement.leaves[np.newaxis], end.timestamp()))
    law = live.floor.answer(job, 0.0).distribution
    floor = np.interp(model.grid.log_edges, law.log_edges, law.cdf)
    floor[0], floor[-1] = 0.0, 1.0
    forest_share, hazard_share, floor_share = live.weights_of(job)
    mixed = forest_share * forest + hazard_share * placement.hazard + floor_share * floor
    (answer,) = live.answers([Inquiry(job, placement, 0.0)], end.timestamp())
    assert answer.cdf == pytest.approx(live._bend.of(np.minimum(mixed, 1.0)), abs=1e-6)
    assert not np.allclose(forest, placement.hazard, atol=0.01)


def test_rows_that_cannot_be_read_are_placed_nowhere_and_answered_by_nobody(model, history, end):
    live = replayed(model, history, end)._live
    row = np.full((2, len(model.columns)), 2.0)
    row[1, model.columns.index(next(name for name in model.never_missing if name.startswith("o_")))] = np.nan
    latest = np.full((2, LATEST), np.nan, dtype=np.float32)
    readable, not_readable = place(model, row, latest)
    assert not_readable[:2] == (None, None)
    assert readable.complete
    unasked = place(model, row[:1], latest[:1], np.array([False]))[0]
    assert (unasked.hazard, unasked.leaves.tolist()) == (None, readable.leaves.tolist())
    job = a_job("x")
    placements = [not_readable, unasked, Placement(None, None, ()), readable]
    answers = live.answers([Inquiry(job, one, 0.0) for one in placements], end.timestamp())
    assert answers[:3] == [None] * 3
    alone = live.answers([Inquiry(job, readable, 0.0)], end.timestamp())
    assert (answers[3] is None) == (alone[0] is None)


def test_a_model_that_may_not_answer_says_what_is_missing():
    leaves, hazard = np.zeros(3, dtype=np.int32), np.linspace(0.0, 1.0, 5, dtype=np.float32)
    cdf = np.linspace(0.0, 1.0, 5)
    assert refusal(Placement(leaves, hazard, ()), cdf) is None
    assert refusal(Placement(None, None, ("no_history: o_last",)), None) == ("no_history: o_last",)
    (unasked,), (empty,), (broken,) = (
        refusal(Placement(leaves, None, ()), None) or (),
        refusal(Placement(leaves, hazard, ()), None) or (),
        refusal(Placement(leaves, hazard, ()), cdf * np.nan) or (),
    )
    assert unasked.startswith("no_hazard: ")
    assert "ended" in unasked
    assert empty.startswith("no_history: no job that fell")
    assert broken.startswith("model_failed: ")


@pytest.mark.parametrize("seconds", [0.2, 600.0, 9e6])
def test_what_the_baseline_puts_beyond_the_grid_is_counted_at_its_outermost_edges(model, seconds):
    live = LiveModel(model)
    for number in range(5):
        live.floor.submitted(a_job(f"job-{number}", seconds=seconds))
        live.floor.ended(a_job(f"job-{number}", seconds=seconds))
    floor = live._floor_cdf(a_job("x"))
    assert (floor[0], floor[-1]) == (0.0, 1.0)
    assert (np.diff(floor) >= 0).all()
    assert np.interp(0.5, floor, model.grid.log_edges) == pytest.approx(np.clip(np.log(seconds), 0.06, 15.99), abs=0.2)


def test_more_jobs_than_are_answered_at_a_time_are_answered_as_alone(model, history, end):
    predictor = replayed(model, history, end)
    jobs = [a_job(f"x-{n}", user=f"user-{n % 6}", gpus=1.0 + n % 3, nodes=1) for n in range(520)]
    together = predictor.forecast(jobs, end)
    for place_of in (0, 249, 250, 251, 519):
        assert predictor.forecast([jobs[place_of]], end)[0] == together[place_of]
