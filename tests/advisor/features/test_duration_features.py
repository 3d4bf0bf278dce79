"""What a row says in worlds small enough to work out by hand."""

import math
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from advisor.domain.jobs import Outcome
from advisor.features.duration import DURATION_SCHEMA, DurationFeatures
from tests.advisor.features.worlds import LATER, after
from tests.builders import NOON, a_job

MINUTE = timedelta(minutes=1)


def asked(features, job, now=LATER):
    return dict(zip(DURATION_SCHEMA.names, features.row(job, now).tolist(), strict=True))


def test_of_an_unknown_owner_counts_are_zero_and_the_rest_is_unknown():
    row = asked(after(a_job("other", user="bob")), a_job("new", submit=LATER))
    assert (row["o_count"], row["og_running"], row["o_submitted_1d"]) == (0.0, 0.0, 0.0)
    unknown = ("og_last", "o_median_5", "og_km_q50", "o_since_end", "og_gap", "og_last_outcome", "o_oldest_running")
    assert all(math.isnan(row[name]) for name in unknown)
    assert row["all_median_5"] == row["gpus_median_20"] == pytest.approx(math.log(600.0))


def test_an_owner_is_known_at_another_gpu_count_too():
    row = asked(after(a_job("small", gpus=1)), a_job("large", gpus=10_000, submit=LATER))
    assert row["o_last"] == pytest.approx(math.log(600.0))
    assert math.isnan(row["og_last"])
    assert math.isnan(row["gpus_median_20"])
    assert row["gpus"] == 10_000


def ends(features, job):
    """How many ends are known of the same owner and GPU count, of the owner, and of that work."""
    row = asked(features, job)
    return [round(math.expm1(row[f"{key}_count"])) for key in ("og", "o", "ogn")]


def test_user_and_namespace_of_one_name_are_two_owners_and_the_user_goes_first():
    features = after(a_job("by-user", user="vision", namespace="shared"))
    assert ends(features, a_job("x", user="vision")) == [1, 1, 0]
    assert ends(features, a_job("x", user=None, namespace="vision")) == [0, 0, 0]
    assert ends(features, a_job("x", user=None, namespace="shared")) == [0, 0, 0]


def test_jobs_that_name_nobody_are_one_group():
    features = after(a_job("nobody", user=None))
    assert ends(features, a_job("x", user=None)) == [1, 1, 0]
    assert ends(features, a_job("x", user=None, gpus=4)) == [0, 1, 0]
    assert ends(features, a_job("x", user="ada", gpus=4)) == [0, 0, 0]


def test_work_is_known_by_its_name_without_its_numbers_and_by_its_image_where_it_has_none():
    called = replace(a_job("first"), name="train-17", image="torch:2")
    features = after(called, replace(a_job("second"), image="torch:2"))
    assert ends(features, replace(a_job("x"), name="train-18", image="jax:1")) == [2, 2, 1]
    assert ends(features, replace(a_job("x"), image="torch:3")) == [2, 2, 1]
    assert ends(features, replace(a_job("x"), name="4711")) == [2, 2, 0]
    assert ends(features, replace(a_job("x", gpus=4), name="train-18")) == [0, 2, 0]
    assert ends(features, replace(a_job("x", user="bob"), name="train-18")) == [0, 0, 0]


def test_a_job_without_a_name_is_one_whose_name_has_not_been_seen():
    features = after(replace(a_job("named"), name="train-17"))
    rows = [features.row(job, LATER) for job in (a_job("x"), replace(a_job("x"), name="never-seen"))]
    assert np.array_equal(*rows, equal_nan=True)


def test_namespace_and_kind_tell_what_others_did_there():
    features = after(
        replace(a_job("there", user="bob", namespace="lab", seconds=60.0), gpu_kind="H100"),
        a_job("elsewhere", user="eve", namespace="shop", seconds=3600.0),
    )
    row = asked(features, replace(a_job("x", namespace="lab"), gpu_kind="H100", priority=5, time_limit_seconds=600.0))
    assert row["namespace_median_20"] == row["kind_q90_20"] == pytest.approx(math.log(60.0))
    assert (row["priority"], row["time_limit"]) == (5.0, pytest.approx(math.log(600.0)))
    alone = asked(features, a_job("x", user=None, namespace="lab"))
    gaps = ("namespace_median_20", "kind_median_20", "priority", "time_limit")
    assert all(math.isnan(alone[name]) for name in gaps)


def test_what_its_node_told_of_a_job_is_not_read_when_it_is_asked_about():
    """Leak audit of the request: whoever asks while it waits, and whoever fits once all is known, see the same."""
    learnt = {"gpu_kind": "H100", "nodes": 2, "cpus": 16.0, "image": "torch:2"}
    fields = {"user": "bob", "start": LATER, **learnt, "told_by_node": tuple(sorted(learnt))}
    features = after(a_job("past", gpu_kind="H100", told_by_node=("gpu_kind",), seconds=60.0), until=LATER)
    whole = a_job("new", submit=NOON, **fields)
    waiting = whole.as_of(NOON)

    assert waiting is not None
    assert (waiting.gpu_kind, waiting.nodes, waiting.cpus, waiting.image) == (None, None, None, None)
    np.testing.assert_array_equal(features.row(whole, LATER), features.row(waiting, LATER))
    np.testing.assert_array_equal(features.latest(whole, LATER), features.latest(waiting, LATER))
    row = asked(features, whole)
    assert all(math.isnan(row[name]) for name in ("kind_median_20", "nodes", "cpus"))


def test_on_which_kind_of_gpu_others_ran_is_known_once_they_have_ended():
    features = after(replace(a_job("there", seconds=60.0), gpu_kind="H100", told_by_node=("gpu_kind",)))
    row = asked(features, replace(a_job("x"), gpu_kind="H100"))
    assert row["kind_median_20"] == pytest.approx(math.log(60.0))


def test_a_duration_counts_from_the_start_and_a_waiting_job_does_not_run():
    waited = a_job("waited", start=NOON + 30 * MINUTE, seconds=60.0)
    waits = a_job("waits", start=None, seconds=None)
    row = asked(after(waited, waits), a_job("new", submit=LATER))
    assert row["og_last"] == pytest.approx(math.log(60.0))
    assert row["og_running"] == 0.0
    assert row["og_submitted_1h"] == pytest.approx(math.log1p(2))
    assert row["og_longest"] == pytest.approx(math.log(60.0))


def test_running_siblings_are_seen_at_their_age():
    ages = [timedelta(minutes=m) for m in (50, 20, 5)]
    jobs = [a_job(f"job-{age}", submit=LATER - age, seconds=None) for age in ages]
    row = asked(after(*jobs), a_job("new", submit=LATER))
    found = [math.exp(row[f"og_{which}_running"]) for which in ("oldest", "median", "youngest")]
    assert found == pytest.approx([3000.0, 1200.0, 300.0])
    assert math.exp(row["og_longest"]) == pytest.approx(3000.0)
    assert math.isnan(row["og_km_q25"])


def test_a_job_lost_sight_of_is_censored_where_it_was_last_seen():
    lost = a_job("lost", seconds=None, outcome=Outcome.CENSORED, last_seen=NOON + 10 * MINUTE)
    row = asked(after(lost, a_job("short", seconds=60.0)), a_job("new", submit=LATER))
    assert (row["og_running"], row["og_count"]) == (0.0, pytest.approx(math.log1p(1)))
    assert math.exp(row["og_longest"]) == pytest.approx(600.0)
    assert row["og_km_q50"] == pytest.approx(math.log(60.0))
    assert math.isnan(row["og_km_q75"])


def test_no_duration_is_learnt_from_a_job_that_ended_at_once_or_never_ran():
    at_once = a_job("at-once", seconds=0.0)
    cancelled = a_job("cancelled", start=None, seconds=None, end=NOON + MINUTE, outcome=Outcome.CANCELLED)
    row = asked(after(at_once, cancelled), a_job("new", submit=LATER))
    assert row["og_count"] == 0.0
    assert math.isnan(row["og_last"])
    assert row["og_ended_1h"] == pytest.approx(math.log1p(2))
    assert row["og_last_outcome"] == 2.0


def test_outcomes_of_the_last_five_are_shares():
    ends = [Outcome.FAILED, Outcome.COMPLETED, Outcome.COMPLETED, Outcome.CANCELLED, Outcome.FAILED, Outcome.FAILED]
    jobs = [a_job(f"job-{i}", submit=NOON + i * MINUTE, seconds=30.0, outcome=end) for i, end in enumerate(ends)]
    row = asked(after(*jobs), a_job("new", submit=LATER))
    assert (row["og_passed"], row["og_failed"], row["og_last_outcome"]) == (0.4, 0.4, 1.0)


def test_a_burst_is_counted_and_broken_by_a_pause():
    moments = [0, 5, 5, 14, 60]
    jobs = [a_job(f"job-{i}", submit=NOON + timedelta(seconds=s), seconds=20.0) for i, s in enumerate(moments)]
    in_burst = asked(after(*jobs[:4], until=NOON + timedelta(seconds=20)), jobs[0], NOON + timedelta(seconds=20))
    assert in_burst["og_burst_position"] == pytest.approx(math.log1p(4))
    assert in_burst["og_burst_ended"] == 0.25
    broken = asked(after(*jobs[:4]), jobs[0], NOON + timedelta(seconds=60))
    assert broken["og_burst_position"] == 0.0
    assert broken["og_gap"] == pytest.approx(math.log1p(46))
    assert broken["og_second_gap"] == pytest.approx(math.log1p(9))


def test_the_hour_is_known_only_where_the_calendar_is():
    features = DurationFeatures()
    assert asked(features, a_job(), NOON + 30 * MINUTE)["hour"] == 12.5
    assert math.isnan(asked(features, a_job(calendar_known=False))["hour"])


def test_what_became_of_the_asked_job_itself_is_never_read():
    features = after(a_job("before"))
    running = a_job("asked", submit=LATER, seconds=None)
    ended = replace(running, end=LATER + MINUTE, outcome=Outcome.FAILED)
    waiting = replace(running, start=None)
    rows = [features.row(job, LATER) for job in (running, ended, waiting)]
    assert all(np.array_equal(row, rows[0], equal_nan=True) for row in rows)


def test_asking_changes_nothing_and_telling_twice_changes_nothing():
    job = a_job("job", seconds=None)
    features = after(job)
    before = features.row(job, LATER)
    features.row(a_job("other", user="eve", gpus=64), LATER)
    features.submitted(job)
    features.started(job)
    assert np.array_equal(features.row(job, LATER), before, equal_nan=True)
    done = replace(job, end=NOON + MINUTE, outcome=Outcome.COMPLETED)
    features.ended(done, done.end)
    once = features.row(job, LATER)
    features.ended(done, done.end)
    assert np.array_equal(features.row(job, LATER), once, equal_nan=True)
    assert ends(features, job) == [1, 1, 0]


def test_a_submission_told_late_does_not_become_the_latest():
    features = after(a_job("b", submit=NOON + 30 * MINUTE, seconds=None))
    features.submitted(a_job("a", submit=NOON, seconds=None))
    row = asked(features, a_job("new", submit=LATER))
    assert row["og_gap"] == pytest.approx(math.log1p(1800.0))
    assert row["og_oldest_running"] == pytest.approx(math.log(3600.0))


def test_an_empty_history_is_known_to_be_empty():
    features = DurationFeatures()
    assert ends(features, a_job()) == [0, 0, 0]
    assert math.isnan(asked(features, a_job())["all_median_100"])
    assert not features.is_open(a_job("job-1").identity)
