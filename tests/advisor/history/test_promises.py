"""Promises are kept once each, and counted by what became of the jobs as known at the time of asking."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from advisor.domain.forecasts import DurationForecast
from advisor.domain.ingest import JobBatch
from advisor.domain.jobs import Job, Outcome
from advisor.domain.promises import Promise
from advisor.history.store import HistoryStore
from tests.builders import NOON, a_job, lognormal_durations

MINUTE = timedelta(minutes=1)
DAY = timedelta(days=1)
MIDNIGHT = NOON.replace(hour=0)


@pytest.fixture
def store() -> Iterator[HistoryStore]:
    with HistoryStore.open("sqlite://") as opened:
        yield opened


def a_promise(name: str = "job-1", *, p50: float = 60.0, p90: float = 600.0, **more) -> Promise:
    forecast = DurationForecast(
        distribution=lognormal_durations(60.0),
        served="model",
        model_version="3",
        key="user+gpus",
        key_count=12,
        reasons=("because",),
    )
    made = Promise.of("test", name, forecast, NOON, replayed=False)
    return replace(made, p50_seconds=p50, p90_seconds=p90, **more)


def append(store: HistoryStore, *jobs: Job) -> None:
    store.append(JobBatch(source="test", jobs=jobs), NOON)


def test_a_promise_comes_back_as_it_was_made(store):
    assert store.record_promises([a_promise()]) == 1
    assert store.promises([("test", "job-1"), ("test", "unknown"), ("other", "job-1")]) == {
        ("test", "job-1"): a_promise()
    }
    assert store.promised([("test", "job-1"), ("other", "job-1")]) == {("test", "job-1")}


def test_a_job_keeps_its_first_promise(store):
    store.record_promises([a_promise(), a_promise(p50=1.0)])
    assert store.record_promises([a_promise(p50=2.0), a_promise("job-2")]) == 1
    assert store.promises([("test", "job-1")]) == {("test", "job-1"): a_promise()}


def test_more_promises_than_a_statement_holds_are_kept_and_read(store):
    many = [a_promise(f"job-{number}") for number in range(1200)]
    assert store.record_promises(many) == 1200
    assert len(store.promises([("test", promise.job_id) for promise in many])) == 1200


def counted(store: HistoryStore, as_of: datetime, since: datetime | None = None):
    return [
        (one.begin, one.ended, one.overdue, one.within_p50, one.within_p90) for one in store.kept_promises(as_of, since)
    ]


def test_promises_are_counted_by_the_day_of_submission(store):
    """P50 is 60 s, P90 600 s. The second day: one within P50, one beyond P90."""
    append(
        store,
        a_job("a", seconds=60.0),
        a_job("b", seconds=61.0),
        a_job("c", seconds=600.5),
        a_job("d", submit=NOON + DAY, seconds=1.0),
        a_job("e", submit=NOON + DAY, start=NOON + DAY + MINUTE, seconds=601.0),
        a_job("unpromised"),
    )
    store.record_promises([a_promise(name) for name in "abcde"])

    assert counted(store, NOON + 2 * DAY) == [(MIDNIGHT, 3, 0, 1, 2), (MIDNIGHT + DAY, 2, 0, 1, 1)]
    assert counted(store, NOON + 2 * DAY, MIDNIGHT + DAY) == [(MIDNIGHT + DAY, 2, 0, 1, 1)]


def test_promises_made_afterwards_are_counted_apart_from_those_made_in_time(store):
    append(store, *(a_job(name, seconds=seconds) for name, seconds in (("a", 60.0), ("b", 61.0), ("c", 601.0))))
    store.record_promises([a_promise(name, replayed=name != "c") for name in "abc"])

    live, replayed = store.kept_promises(NOON + DAY)

    assert (live.begin, live.replayed, live.ended, live.within_p90) == (MIDNIGHT, False, 1, 0)
    assert (replayed.begin, replayed.replayed, replayed.ended, replayed.within_p90) == (MIDNIGHT, True, 2, 2)


def test_a_job_that_runs_beyond_its_p90_has_broken_its_promise_and_a_younger_one_is_not_counted(store):
    append(store, a_job("runs", seconds=None), a_job("ends", seconds=3600.0), a_job("waits", start=None, seconds=None))
    store.record_promises([a_promise(name) for name in ("runs", "ends", "waits")])

    assert counted(store, NOON + 5 * MINUTE) == [(MIDNIGHT, 0, 0, 0, 0)]
    assert counted(store, NOON + 11 * MINUTE) == [(MIDNIGHT, 0, 2, 0, 0)]
    assert counted(store, NOON + DAY) == [(MIDNIGHT, 1, 1, 0, 0)]


def test_a_job_lost_sight_of_counts_only_if_it_was_seen_beyond_its_p90(store):
    lost = {"seconds": None, "outcome": Outcome.CENSORED}
    append(
        store,
        a_job("young", last_seen=NOON + MINUTE, **lost),
        a_job("old", last_seen=NOON + 20 * MINUTE, **lost),
    )
    store.record_promises([a_promise("young"), a_promise("old")])
    assert counted(store, NOON + DAY) == [(MIDNIGHT, 0, 1, 0, 0)]


def test_pauses_are_no_part_of_what_was_promised(store):
    """A job that was evicted, waited for ten hours and then went on has run for as long as it ran."""
    paused = {"seconds": 36_059.0, "paused_seconds": 36_000.0}
    lost = {"seconds": None, "outcome": Outcome.CENSORED, "last_seen": NOON + timedelta(seconds=36_059)}
    append(store, a_job("evicted", **paused), a_job("lost", paused_seconds=36_000.0, **lost))
    store.record_promises([a_promise("evicted"), a_promise("lost")])
    assert counted(store, NOON + 2 * DAY) == [(MIDNIGHT, 1, 0, 1, 1)]


def test_a_job_cancelled_before_it_began_is_no_promise_kept(store):
    append(store, a_job("never", start=None, seconds=None, end=NOON + MINUTE, outcome=Outcome.CANCELLED))
    store.record_promises([a_promise("never")])
    assert counted(store, NOON + DAY) == []
