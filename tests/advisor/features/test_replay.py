"""The order of events, which decides what a submission can know."""

from datetime import timedelta

from advisor.domain.jobs import Outcome
from advisor.features.replay import EventKind, events_of
from tests.builders import NOON, a_job

MINUTE = timedelta(minutes=1)


def order(jobs, until=None):
    return [(event.job.id, event.kind.name) for event in events_of(jobs, until)]


def test_an_end_comes_before_a_submission_of_the_same_instant():
    first = a_job("first", submit=NOON, seconds=60.0)
    second = a_job("second", submit=NOON + MINUTE, seconds=60.0)
    expected = [("first", "SUBMITTED"), ("first", "ENDED"), ("second", "SUBMITTED"), ("second", "ENDED")]
    assert order([second, first]) == expected


def test_bulk_submissions_keep_the_order_they_are_given_in():
    jobs = [a_job(name, seconds=None) for name in ("b", "a", "c")]
    assert order(jobs) == [("b", "SUBMITTED"), ("a", "SUBMITTED"), ("c", "SUBMITTED")]


def test_a_job_that_waited_starts_and_one_that_ended_at_once_is_submitted_first():
    waited = a_job("waited", start=NOON + MINUTE, seconds=60.0)
    at_once = a_job("at-once", seconds=0.0)
    expected = [("waited", "SUBMITTED"), ("at-once", "SUBMITTED"), ("at-once", "ENDED")]
    assert order([waited, at_once]) == [*expected, ("waited", "STARTED"), ("waited", "ENDED")]


def test_a_job_cancelled_while_waiting_and_one_lost_sight_of_are_gone():
    cancelled = a_job("cancelled", start=None, seconds=None, end=NOON + MINUTE, outcome=Outcome.CANCELLED)
    lost = a_job("lost", seconds=None, outcome=Outcome.CENSORED, last_seen=NOON + 2 * MINUTE)
    ends = [(event.job.id, event.moment) for event in events_of([lost, cancelled]) if event.kind is EventKind.ENDED]
    assert ends == [("cancelled", NOON + MINUTE), ("lost", NOON + 2 * MINUTE)]


def test_nothing_after_the_asking_time_is_seen():
    jobs = [a_job("now", seconds=60.0), a_job("later", submit=NOON + 2 * MINUTE)]
    assert order(jobs, until=NOON + MINUTE) == [("now", "SUBMITTED"), ("now", "ENDED")]
    assert order(jobs, until=NOON) == [("now", "SUBMITTED")]
