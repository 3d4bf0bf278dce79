"""What has been taken in and is gone is never taken in again, in bounded memory."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from advisor.forecast.past import PastJobs

LENGTHS = st.lists(st.tuples(st.integers(1, 50), st.integers(0, 400)), min_size=1, max_size=60)


@given(LENGTHS, st.integers(1, 8))
def test_every_past_job_is_recognised_and_none_that_comes_in_time_is_taken_for_one(gaps_and_lengths, remembered):
    past = PastJobs(remembered)
    ends: list[tuple[float, float, str]] = []
    now = 0.0
    for number, (gap, length) in enumerate(gaps_and_lengths):
        now += gap
        for _, submit, job_id in sorted(end for end in ends if end[0] <= now):
            past.add(("test", job_id), submit)
        ends, gone = [end for end in ends if end[0] > now], [end for end in ends if end[0] <= now]
        assert all(past.holds(("test", job_id), submit) for _, submit, job_id in gone)
        assert not past.holds(("test", f"job-{number}"), now)
        assert len(past) <= remembered
        ends.append((now + length, now, f"job-{number}"))


def test_those_forgotten_by_id_are_recognised_by_their_age_and_counted():
    past = PastJobs(2)
    for number in range(5):
        past.add(("test", f"job-{number}"), float(number))
    assert [past.holds(("test", f"job-{number}"), float(number)) for number in range(5)] == [True] * 5
    assert (len(past), past.passed_over) == (2, 3)
    assert not past.holds(("test", "new"), 2.5)
    assert past.holds(("test", "unknown, but older than all remembered"), 1.5)


def test_submissions_in_the_future_crowd_nobody_out():
    past = PastJobs(3)
    past.add(("test", "future"), 4e9)
    for number in range(5):
        past.add(("test", f"job-{number}"), float(number))
    assert past.holds(("test", "future"), 4e9)
    assert not past.holds(("test", "new"), 5.0)


def test_a_job_that_ran_longer_than_the_memory_reaches_needs_no_place():
    past = PastJobs(2)
    for number in range(5):
        past.add(("test", f"job-{number}"), float(number))
    past.add(("test", "long"), 0.5)
    assert past.holds(("test", "long"), 0.5)
    assert past.holds(("test", "job-4"), 4.0)
    assert len(past) == 2
