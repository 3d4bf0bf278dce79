"""The live predictor: what it answers from, what stands in, and that its state is a function of history alone."""

import math
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from advisor.domain.jobs import Outcome
from advisor.features.duration import DURATION_SCHEMA
from advisor.features.replay import EventKind, events_of
from advisor.forecast.baselines import PRIOR, MedianOfFive
from advisor.forecast.duration import DurationPredictor
from tests.advisor.forecast.conftest import SMALL
from tests.builders import NOON, a_history, a_job
from training.duration import fit_durations

FAR = timedelta(days=400)


@pytest.fixture
def end(history):
    return history[-1].submit


@pytest.fixture
def live(model, history, end):
    predictor = DurationPredictor(model)
    predictor.replay(history, end)
    return predictor


def questions(history, now):
    """Open jobs, known owners, an unknown one, shapes never seen."""
    running = [job for job in history if job.gone_at > now][-5:]
    new = [a_job(f"new-{i}", user=f"user-{i}", submit=now, seconds=None) for i in range(6)]
    odd = [a_job("cold", user="nobody-yet"), a_job("huge", user="user-1", gpus=10_000), a_job("bare", user="user-2")]
    return [*running, *new, *odd]


def test_the_model_answers_known_owners_and_says_from_which_history(live, model, end):
    asked = [a_job("x", user="user-1", nodes=1), a_job("y", user="user-1", nodes=1, gpus=10_000)]
    answer, other = live.forecast(asked, end)
    assert (answer.served, answer.model_version, answer.reasons) == ("model", model.version, ())
    assert (answer.key, other.key) == ("user+gpus", "user")
    assert other.key_count > answer.key_count > 10
    assert live.version == model.version


def test_habits_are_found(live, history, end):
    """Each owner repeats one duration within a factor of about two: so does the answer."""
    for user in {job.user for job in history}:
        seconds = [job.duration_seconds for job in history if job.user == user]
        (answer,) = live.forecast([a_job("x", user=user)], end)
        assert answer.distribution.median == pytest.approx(np.median(seconds), rel=0.5)


def test_state_rebuilt_from_history_equals_that_of_one_never_stopped(model, history, end):
    """However events are told (all at once, in parts, one by one), every later answer is the same to the bit."""
    at_once, in_parts, one_by_one = (DurationPredictor(model) for _ in range(3))
    at_once.replay(history, end)
    for cut in (100, 599, 600, 601, 750, 751):
        in_parts.replay(history[: cut + 1], history[cut].submit)
    in_parts.replay(history, end)
    verbs = {
        EventKind.SUBMITTED: one_by_one.submitted,
        EventKind.STARTED: one_by_one.started,
        EventKind.ENDED: one_by_one.ended,
    }
    for event in events_of(history, end):
        verbs[event.kind](event.job)
    for later in (timedelta(0), timedelta(minutes=3), timedelta(days=1)):
        expected = at_once.forecast(questions(history, end), end + later)
        assert in_parts.forecast(questions(history, end), end + later) == expected
        assert one_by_one.forecast(questions(history, end), end + later) == expected


def test_a_model_loaded_from_disk_rebuilds_the_same_state(model, live, history, end, tmp_path):
    model.save(tmp_path)
    rebuilt = DurationPredictor(type(model).load(tmp_path))
    rebuilt.replay(history, end)
    assert rebuilt.forecast(questions(history, end), end) == live.forecast(questions(history, end), end)


def test_telling_again_what_is_known_changes_nothing(live, history, end):
    before = live.forecast(questions(history, end), end)
    live.replay(history, end)
    live.replay(history[-50:], end)
    for job in history[-20:]:
        live.submitted(job)
    assert live.forecast(questions(history, end), end) == before


def test_asking_changes_nothing_and_no_answer_depends_on_its_company(live, history, end):
    asked = questions(history, end)
    together = live.forecast(asked, end)
    assert live.forecast(asked[::-1], end)[::-1] == together
    assert [live.forecast([job], end)[0] for job in asked] == together


def test_an_end_counts_in_the_next_answer(live, end):
    """A new habit of a known owner shows after a handful of ends, without a refit."""
    job = a_job("asked", user="user-3")
    (before,) = live.forecast([job], end)
    for number in range(12):
        moment = end + timedelta(minutes=number)
        new = a_job(f"habit-{number}", user="user-3", submit=moment, seconds=45.0)
        live.submitted(new)
        live.ended(new)
    (after,) = live.forecast([job], end + timedelta(minutes=13))
    assert before.distribution.probability_by(60.0) < 0.1 < after.distribution.probability_by(60.0)


def test_a_job_first_seen_when_it_ended_is_learnt_from_all_the_same(live, end):
    before = live.forecast([a_job("x", user="late")], end)[0]
    live.ended(a_job("never-told", user="late", submit=end - timedelta(minutes=5), seconds=60.0))
    after = live.forecast([a_job("x", user="late")], end)[0]
    assert (before.key_count, before.served) != (1, "model")
    assert (after.key, after.key_count) == ("user+gpus", 1)


def test_what_remains_of_a_running_job_is_its_first_answer_given_its_age(live, history, end):
    job = next(job for job in reversed(history) if job.gone_at > end and job.start <= end)
    age = (end - job.start).total_seconds() + 30.0
    whole, rest = (live.forecast([job], end, elapsed)[0] for elapsed in (None, [age]))
    assert rest.distribution == whole.distribution.given_age(age)
    assert rest.distribution.median > 0
    (long_expired,) = live.forecast([job], end, [FAR.total_seconds()])
    assert long_expired.distribution.median > 3600.0


def test_without_a_model_the_baseline_stands_in_and_says_why(history, end):
    predictor, floor = DurationPredictor(), MedianOfFive()
    predictor.replay(history, end)
    for event in events_of(history, end):
        (floor.submitted if event.kind is EventKind.SUBMITTED else floor.ended)(event.job)
    (answer,) = predictor.forecast([a_job("x", user="user-1")], end)
    assert predictor.version is None
    assert (answer.served, answer.model_version) == ("median_of_5", None)
    assert [reason.split(":")[0] for reason in answer.reasons] == ["no_model"]
    assert answer.distribution.median > 0


@pytest.mark.parametrize("with_model", [True, False])
def test_an_empty_history_is_answered_from_a_stated_prior(model, with_model):
    predictor = DurationPredictor(model if with_model else None)
    (answer,) = predictor.forecast([a_job()], NOON)
    assert answer.distribution == (model.prior if with_model else PRIOR)
    assert answer.served == "median_of_5"
    assert (answer.key, answer.key_count) == ("all", 0)
    assert any(reason.startswith("no_history") for reason in answer.reasons)


def test_an_owner_without_history_is_answered_by_the_model_from_what_others_did(live, model, end):
    """Nothing of its own is known, so the answer says from whose history it comes and lies within that."""
    asked = a_job("x", user="never-seen", gpus=2, nodes=1)
    (answer,) = live.forecast([asked], end)
    assert (answer.served, answer.model_version, answer.reasons) == ("model", model.version, ())
    assert answer.key == "gpus"
    assert answer.key_count > 10
    floor = live._live.floor.answer(asked, 0.0).distribution
    assert model.prior.quantile(0.1) < answer.distribution.median < model.prior.quantile(0.9)
    assert live._live.weights_of(asked)[2] > 0.2
    assert answer.distribution != floor


def test_history_missing_only_at_prediction_is_never_read_as_zero(history):
    """Field report A16: every job of the fit had a history, the asked one has none.

    LightGBM would read each gap as zero, that is as an owner whose jobs all took one second.
    """
    warm = fit_durations(history, history[600].submit, replace(SMALL, newest_jobs=300))
    assert {"o_last", "o_km_q50", "og_median_5"} & set(warm.never_missing)
    predictor, floor = DurationPredictor(warm), MedianOfFive(warm.prior)
    jobs = [replace(job, user="somebody") for job in history[:20]]
    predictor.replay(jobs, history[20].submit)
    for event in events_of(jobs, history[20].submit):
        (floor.submitted if event.kind is EventKind.SUBMITTED else floor.ended)(event.job)
    asked = a_job("x", user="unknown", submit=history[20].submit)
    (answer,) = predictor.forecast([asked], history[20].submit)
    assert answer.distribution == floor.answer(asked, 0.0).distribution
    assert answer.served == "median_of_5"
    assert answer.reasons[0].startswith("no_history")
    row = np.full((1, len(DURATION_SCHEMA)), np.nan)
    row[0, [DURATION_SCHEMA.names.index(name) for name in ("o_count", "og_count")]] = 1.0
    assert not warm.readable(row)[1].any()


def test_what_the_request_leaves_out_is_filled_with_the_usual_and_said(live, end):
    asked = [a_job("x", user="user-1"), a_job("y", user="user-1", nodes=1), a_job("z", user="user-1", nodes=1)]
    bare, full, known = live.forecast([*asked[:2], replace(asked[2], calendar_known=False)], end)
    assert bare.reasons == ("unknown_nodes: taken as 1, the usual",)
    assert (bare.served, bare.distribution) == ("model", full.distribution)
    assert known.reasons[0].startswith("unknown_hour")


def test_a_request_without_a_name_is_answered_where_every_job_of_the_fit_had_one(history, end):
    """The name of the work is what one may know; its owner's history is known all the same."""
    named = [replace(job, name=f"train-{job.user}-{number}") for number, job in enumerate(history)]
    predictor = DurationPredictor(fit_durations(named, history[600].submit, SMALL))
    predictor.replay(named, end)
    plain = a_job("x", user="user-1", nodes=1)
    asked = [plain, replace(plain, id="y", name="train-user-1-9"), replace(plain, id="z", name="something-else")]
    nameless, called, new = predictor.forecast(asked, end)
    assert (nameless.served, nameless.key, nameless.reasons) == ("model", "user+gpus", ())
    assert (called.served, called.key) == ("model", "user+gpus+name")
    assert nameless.distribution == new.distribution != called.distribution


def test_an_answer_that_is_not_finite_never_leaves(live, end):
    """Field report A19: the number that goes out is a fallback with the reason beside it."""
    live._live._leaves._mass[:] = np.nan
    (answer,) = live.forecast([a_job("x", user="user-1")], end)
    assert answer.reasons[0].startswith("model_failed")
    assert answer.served == "median_of_5"
    assert np.isfinite([answer.distribution.quantile(level) for level in (0.5, 0.9, 0.95)]).all()


def test_a_running_mate_holds_the_answer_up(model, history, end):
    """Siblings that have run for long say that this one will too."""
    calm, busy = DurationPredictor(model), DurationPredictor(model)
    for predictor in (calm, busy):
        predictor.replay(history, end)
    for number in range(30):
        busy.submitted(a_job(f"long-{number}", user="user-0", submit=end, seconds=None))
    later = end + timedelta(days=2)
    asked = [a_job("x", user="user-0", submit=later)]
    ratio = busy.forecast(asked, later)[0].distribution.mean / calm.forecast(asked, later)[0].distribution.mean
    assert ratio > 2.0


def test_jobs_lost_sight_of_lasted_at_least_that_long(model, history, end):
    """Seen for nine hours and then no more is not the same as ended after nine hours."""
    answers = []
    for lost in (True, False):
        predictor = DurationPredictor(model)
        predictor.replay(history, end)
        for number in range(200):
            job = a_job(f"seen-{number}", user="user-1", submit=end + timedelta(seconds=number), seconds=None)
            gone = job.submit + timedelta(hours=9)
            known = (
                {"outcome": Outcome.CENSORED, "last_seen": gone} if lost else {"outcome": Outcome.FAILED, "end": gone}
            )
            predictor.submitted(job)
            predictor.ended(replace(job, **known))
        answers += predictor.forecast([a_job("x", user="user-1")], end + timedelta(hours=10))
    beyond = [answer.distribution.survival(10 * 3600.0) for answer in answers]
    assert beyond[0] > 3 * beyond[1] > 0


def test_old_history_told_again_is_not_counted_twice(model, history, end):
    """A source that sends its whole past anew, weeks after the jobs in it have ended."""
    predictor, undisturbed = DurationPredictor(model), DurationPredictor(model)
    settled = max(job.end for job in history)
    recent = [
        a_job(f"recent-{number}", user="user-1", submit=settled + timedelta(days=10 * number), seconds=60.0 * number)
        for number in range(1, 6)
    ]
    now = settled + timedelta(days=60)
    for one in (predictor, undisturbed):
        one.replay(history, settled)
        one.replay(recent, now)
    predictor.replay([*history, *recent], now)
    for job in history:
        predictor.ended(job)
    assert predictor.forecast(questions(history, end), now) == undisturbed.forecast(questions(history, end), now)
    assert predictor.passed_over == 0


def test_a_clock_gone_wrong_makes_no_job_count_twice(model, history, end):
    predictor, undisturbed = DurationPredictor(model), DurationPredictor(model)
    for one in (predictor, undisturbed):
        one.replay(history, end)
        one.ended(a_job("future", submit=end, seconds=50 * 365 * 86400.0))
    predictor.replay([job for job in history if job.end <= end], end)
    assert predictor.forecast(questions(history, end), end) == undisturbed.forecast(questions(history, end), end)


@pytest.mark.parametrize("seconds", [300.0, 1.0, 0.25, 9e6])
def test_a_history_of_equal_jobs_is_answered_with_that_duration(seconds):
    jobs = [replace(j, start=j.submit, end=j.submit + timedelta(seconds=seconds)) for j in a_history(200, seed=3)]
    now = jobs[-1].submit + timedelta(days=200)
    predictor = DurationPredictor(fit_durations(jobs, now, SMALL))
    predictor.replay(jobs, now)
    (answer,) = predictor.forecast([a_job("x", user="user-1")], now)
    assert answer.served == "model"
    # Seconds below one and beyond the grid land in its outermost cells.
    assert answer.distribution.median == pytest.approx(np.clip(seconds, 1.0, 5.9e6), rel=0.13)


@pytest.mark.parametrize("years", [-40, 2, 15, 40])
def test_a_model_may_be_decades_younger_or_older_than_what_it_is_told(model, years):
    """Relative times are kept from 1970 on, so a champion may be fitted half a century before real history."""
    predictor = DurationPredictor(model)
    then = model.fitted_at + timedelta(days=365 * years)
    for number in range(60):
        job = a_job(f"late-{number}", submit=then + timedelta(minutes=number), seconds=30.0)
        predictor.submitted(job)
        predictor.ended(replace(job, outcome=Outcome.FAILED))
    (answer,) = predictor.forecast([a_job("asked")], then + timedelta(hours=2))
    assert math.isfinite(answer.distribution.mean)
    if years > 0:
        assert answer.outcomes.failed > 0.5


def test_a_job_whose_name_comes_late_ends_in_the_histories_it_began_in(live, end):
    job = a_job("late-name", user="user-1", submit=end, seconds=600.0)
    live.submitted(replace(job, end=None, outcome=None))
    live.started(replace(job, end=None, outcome=None))
    live.ended(replace(job, user="somebody-else", name="eval-17"))
    (after,) = live.forecast([a_job("asked", user="user-1")], end + timedelta(hours=1))
    assert math.isfinite(after.distribution.mean)


def test_an_open_job_is_explained_by_what_its_answer_was_made_of(live, end):
    """Not by a row in which it is its own latest submission."""
    job = a_job("open", user="user-1", submit=end, gpus=1, seconds=600.0)
    waiting = replace(job, start=None, end=None, outcome=None)
    (before,) = live.explain([waiting], end)
    live.submitted(waiting)
    (after,) = live.explain([waiting], end)
    assert [effect.name for effect in after.effects] == [effect.name for effect in before.effects]


def test_asking_again_is_no_advice_for_a_job_that_runs(live, end):
    asked = a_job("asked", user="user-1")
    waits, runs = live.explain([asked, asked], end, [0.0, 300.0])
    assert not any("once it runs" in line for line in runs.narrower)
    assert set(runs.narrower) <= set(waits.narrower)
