"""The latest submissions around a job: how they are laid out, and that they are as of the moment of asking."""

import math
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from advisor.domain.jobs import Outcome
from advisor.features.duration import DurationFeatures
from advisor.features.key_history import Run
from advisor.features.latest import LATEST, LATEST_OF_ALL, LATEST_OF_KEY, ended_and_logs, latest_of
from tests.advisor.features.worlds import LATER, after
from tests.builders import NOON, a_history, a_job
from training.duration_table import duration_table

NAMED, SAME, OWNER = (slice(part * LATEST_OF_KEY, (part + 1) * LATEST_OF_KEY) for part in range(3))
ALL = slice(3 * LATEST_OF_KEY, LATEST)


def shown(row):
    """What a row says in words, without the places where it says nothing."""
    return [("ended" if x >= 0 else "alive", round(math.exp(x if x >= 0 else -1 - x))) for x in row if not np.isnan(x)]


def test_the_newest_come_first_in_four_parts():
    jobs = [
        replace(a_job("named", submit=NOON - timedelta(seconds=1), seconds=5.0), name="train-17"),
        a_job("same", submit=NOON, seconds=10.0),
        a_job("larger", submit=NOON + timedelta(seconds=1), gpus=8, seconds=20.0),
        a_job("other", submit=NOON + timedelta(seconds=2), user="bob", seconds=30.0),
        a_job("runs", submit=LATER - timedelta(seconds=40), seconds=None),
    ]
    row = after(*jobs).latest(replace(a_job("x", submit=LATER), name="train-18"), LATER)
    assert row.shape == (LATEST,) == (3 * LATEST_OF_KEY + LATEST_OF_ALL,)
    assert row.dtype == np.float32
    assert shown(row[NAMED]) == [("ended", 5)]
    assert shown(row[SAME]) == [("alive", 40), ("ended", 10), ("ended", 5)]
    assert shown(row[OWNER]) == [("alive", 40), ("ended", 20), ("ended", 10), ("ended", 5)]
    assert shown(row[ALL]) == [("alive", 40), ("ended", 30), ("ended", 20), ("ended", 10), ("ended", 5)]
    assert np.isnan(row).sum() == LATEST - 13
    nameless = after(*jobs).latest(a_job("x", submit=LATER), LATER)
    assert np.isnan(nameless[NAMED]).all()
    assert np.array_equal(nameless[SAME.start :], row[SAME.start :], equal_nan=True)


def test_what_each_submission_may_have_come_to():
    lost = a_job("lost", seconds=None, outcome=Outcome.CENSORED, last_seen=NOON + timedelta(seconds=50))
    never_ran = a_job("never-ran", start=None, seconds=None, end=NOON, outcome=Outcome.CANCELLED)
    jobs = [
        a_job("ended", seconds=60.0),
        a_job("short", seconds=0.2),
        a_job("at-once", seconds=0.0),
        lost,
        never_ran,
        a_job("waits", start=None, seconds=None),
        a_job("begins", start=LATER, seconds=None),
    ]
    row = after(*jobs).latest(a_job("x", submit=LATER), LATER)[SAME]
    begins, waits, absent, seen, at_once, short, ended = row[:7].tolist()
    assert begins == -1.0
    assert math.isnan(waits)
    assert math.isnan(absent)
    assert seen == pytest.approx(-1.0 - math.log(50.0))
    assert math.isnan(at_once)
    assert short == 0.0
    assert ended == pytest.approx(math.log(60.0))
    assert np.isnan(row[7:]).all()


def test_only_so_many_are_shown_of_each():
    jobs = [a_job(f"job-{n}", submit=NOON + timedelta(seconds=n), seconds=float(n + 1)) for n in range(130)]
    row = after(*jobs).latest(a_job("x", submit=LATER), LATER)
    assert shown(row[SAME]) == shown(row[OWNER]) == [("ended", n + 1) for n in range(129, 109, -1)]
    assert shown(row[ALL]) == [("ended", n + 1) for n in range(129, 29, -1)]


def test_of_an_unknown_owner_only_all_is_shown():
    row = after(a_job("other")).latest(a_job("x", user="bob", submit=LATER), LATER)
    assert np.isnan(row[: ALL.start]).all()
    assert shown(row[ALL]) == [("ended", 600)]
    assert np.isnan(DurationFeatures().latest(a_job(), NOON)).all()


def test_a_running_job_is_shown_at_its_age_whatever_becomes_of_it():
    runs = a_job("runs", submit=NOON, seconds=None)
    rows = [
        after(replace(runs, end=NOON + timedelta(seconds=s), outcome=Outcome.FAILED)).latest(a_job("x"), LATER)
        for s in (3601, 90_000)
    ]
    rows.append(after(runs).latest(a_job("x"), LATER))
    assert all(np.array_equal(row, rows[0], equal_nan=True) for row in rows)
    assert shown(rows[0][SAME]) == [("alive", 3600)]


def test_asking_changes_nothing_and_does_not_look_at_the_job_itself():
    features = after(a_job("before"))
    asked = a_job("asked", submit=LATER, seconds=77.0)
    rows = [features.latest(job, LATER) for job in (asked, replace(asked, end=None, outcome=None), asked)]
    assert all(np.array_equal(row, rows[0], equal_nan=True) for row in rows)


def test_rows_of_a_table_are_what_the_latest_submissions_had_shown_by_then():
    """By the definition: every earlier submission, as of the moment of asking, newest first."""
    jobs = a_history(300, seed=8, owners=3)
    latest = duration_table(jobs, jobs[-1].submit).latest
    for place in np.random.default_rng(8).choice(300, 40, replace=False):
        asked, now = jobs[place], jobs[place].submit
        mine = [job for job in jobs[:place] if job.user == asked.user]
        parts = ([job for job in mine if job.gpus == asked.gpus], mine, jobs[:place])
        for part, count, before in zip((SAME, OWNER, ALL), (20, 20, 100), parts, strict=True):
            expected = [as_of(job, now) for job in before[::-1][:count]]
            found = latest[place, part]
            assert found[: len(expected)] == pytest.approx(expected, abs=1e-5, nan_ok=True)
            assert np.isnan(found[len(expected) :]).all()


def as_of(job, now):
    if job.end is not None and job.end <= now:
        return max(math.log((job.end - job.start).total_seconds()), 0.0)
    if job.start is None or job.start > now:
        return math.nan
    return -1.0 - math.log(max((now - job.start).total_seconds(), 1.0))


def test_what_is_read_is_what_was_shown():
    runs = [Run(0.0) for _ in range(4)]
    runs[0].start, runs[0].gone, runs[0].log_seconds = 0.0, True, 5.0
    runs[1].start = 0.0
    runs[2].start, runs[2].gone, runs[2].censored, runs[2].log_seconds = 0.0, True, True, 3.0
    row = np.array([latest_of(runs, 6, math.exp(2.0))], dtype=np.float32)
    ended, alive, logs = ended_and_logs(row)
    assert ended.tolist() == [[False, False, False, True, False, False]]
    assert alive.tolist() == [[False, True, True, False, False, False]]
    assert logs == pytest.approx(np.array([[0.0, 3.0, 2.0, 5.0, 0.0, 0.0]]), abs=1e-6)
