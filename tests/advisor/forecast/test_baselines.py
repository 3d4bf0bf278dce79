"""The median of the last five: which history answers, how wide, and what stands in for none."""

import math
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from advisor.domain.jobs import Outcome
from advisor.errors import Refused
from advisor.forecast.baselines import PRIOR, MedianOfFive
from tests.builders import NOON, a_history, a_job


def told(*durations, user="ada", gpus=1.0, floor=None):
    floor = floor or MedianOfFive()
    for number, seconds in enumerate(durations):
        job = a_job(f"{user}-{gpus}-{number}", seconds=seconds, user=user, gpus=gpus)
        floor.submitted(job)
        floor.ended(job)
    return floor


def test_the_median_of_every_answer_is_the_median_of_the_last_five():
    floor = told(9999.0, 10.0, 40.0, 20.0, 50.0, 30.0)
    (answer,) = floor.forecast([a_job()], NOON)
    assert answer.distribution.median == pytest.approx(30.0)
    assert (answer.served, answer.key, answer.key_count, answer.reasons) == ("median_of_5", "user+gpus", 6, ())
    assert told(10.0, 40.0).forecast([a_job()], NOON)[0].distribution.median == pytest.approx(25.0)


@pytest.mark.parametrize(
    "asked,key,seconds",
    [
        ({"user": "ada", "gpus": 1.0}, "user+gpus", 100.0),
        ({"user": "ada", "gpus": 4.0}, "user", 100.0),
        ({"user": "bob", "gpus": 1.0}, "gpus", 100.0),
        ({"user": "bob", "gpus": 8.0}, "gpus", 900.0),
        ({"user": "bob", "gpus": 10_000.0}, "all", 900.0),
        ({"user": None, "namespace": "lab", "gpus": 64.0}, "all", 900.0),
    ],
)
def test_the_most_specific_history_answers_and_says_so(asked, key, seconds):
    floor = told(100.0, 100.0)
    told(900.0, 900.0, 900.0, user="eve", gpus=8.0, floor=floor)
    (answer,) = floor.forecast([a_job(**asked)], NOON)
    assert (answer.key, answer.distribution.median) == (key, pytest.approx(seconds))
    assert bool(answer.reasons) == (key != "user+gpus")
    assert floor.evidence(a_job(**asked)) == (answer.key, answer.key_count)


def test_without_any_end_a_stated_prior_answers():
    (answer,) = MedianOfFive().forecast([a_job()], NOON)
    assert answer.distribution == PRIOR
    assert PRIOR.median == pytest.approx(1200.0)
    assert PRIOR.quantile(0.1) == pytest.approx(120.0, rel=0.2)
    assert PRIOR.quantile(0.9) == pytest.approx(4 * 3600.0, rel=0.2)
    assert (answer.key, answer.key_count) == ("all", 0)
    assert answer.reasons[0].startswith("no_history")


def test_the_width_follows_how_far_off_it_has_been():
    rng = np.random.default_rng(1)
    tight = told(*(600.0 * np.exp(rng.normal(0.0, 0.1, 400)))).answer(a_job(), 0.0).distribution
    loose = told(*(600.0 * np.exp(rng.normal(0.0, 2.0, 400)))).answer(a_job(), 0.0).distribution
    spread = [math.log(law.quantile(0.9) / law.quantile(0.1)) for law in (tight, loose)]
    # The median of five is itself off, so the width is a little above that of the jobs.
    assert spread == pytest.approx([2.56 * 0.1 * 1.14, 2.56 * 2.0 * 1.14], rel=0.2)


def test_repeats_of_one_duration_leave_a_narrow_answer_that_is_still_a_distribution():
    law = told(*[300.0] * 50).answer(a_job(), 0.0).distribution
    assert law.median == pytest.approx(300.0)
    assert law.quantile(0.001) < 300.0 < law.quantile(0.999)


def test_only_known_durations_above_zero_count():
    floor = told(100.0)
    lost = a_job("lost", seconds=None, outcome=Outcome.CENSORED, last_seen=NOON + timedelta(hours=9))
    never = a_job("never", start=None, seconds=None, end=NOON, outcome=Outcome.CANCELLED)
    for job in (lost, never, a_job("at-once", seconds=0.0)):
        floor.submitted(job)
        floor.ended(job)
    assert floor.evidence(a_job()) == ("user+gpus", 1)


def test_a_job_ends_once():
    floor = told(100.0)
    floor.ended(a_job("ada-1.0-0", seconds=100.0))
    assert floor.evidence(a_job()) == ("user+gpus", 1)


def test_half_the_jobs_end_below_the_median_and_ninety_percent_below_the_ninth_decile():
    """On habits that hold, the floor keeps its promises over many jobs."""
    floor, hits = MedianOfFive(), []
    for job in a_history(3000, seed=8):
        law = floor.answer(job, 0.0).distribution
        hits.append([job.duration_seconds <= law.quantile(level) for level in (0.5, 0.9)])
        floor.submitted(job)
        floor.ended(job)
    assert np.mean(hits[500:], axis=0) == pytest.approx([0.5, 0.9], abs=0.03)


@pytest.mark.parametrize("elapsed", [[1.0], [-1.0, 0.0], [math.nan, 0.0], [math.inf, 0.0]])
def test_ages_that_do_not_fit_are_refused(elapsed):
    jobs = [a_job("a"), a_job("b")]
    with pytest.raises(Refused, match="elapsed"):
        told(100.0).forecast(jobs, NOON, elapsed)


def test_a_running_job_is_answered_what_remains():
    floor = told(*[600.0] * 20)
    whole, rest = floor.forecast([a_job("a"), replace(a_job("b"), gpus=1.0)], NOON, [0.0, 300.0])
    assert whole.distribution.median == pytest.approx(600.0)
    assert rest.distribution.median == pytest.approx(300.0, rel=0.05)


def test_a_single_miss_does_not_move_half_of_the_mass_to_where_it_missed():
    """Half of all durations below a second because one once was: nobody would have promised that."""
    floor = told(*[600.0] * 3, 0.02, 600.0)
    law = floor.answer(a_job("next"), 0.0).distribution
    assert law.probability_by(1.0) < 0.05
    assert 60.0 < law.typical < 6000.0
