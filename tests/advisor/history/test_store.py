"""The store's verbs, on the real engine in memory."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest

from advisor.domain.ingest import JobBatch, Rejection
from advisor.domain.jobs import Job, Outcome
from advisor.errors import Refused
from advisor.history.store import AppendResult, HistoryStore
from tests.builders import NOON, a_job, a_usage

MINUTE = timedelta(minutes=1)
LATER = NOON + timedelta(days=1)


@pytest.fixture
def store() -> Iterator[HistoryStore]:
    with HistoryStore.open("sqlite://") as opened:
        yield opened


def a_batch(*jobs: Job, source: str = "test", **more) -> JobBatch:
    return JobBatch(source=source, jobs=jobs, **more)


def test_appending_twice_changes_nothing(store):
    batch = a_batch(
        a_job("a"),
        a_job("b", seconds=None),
        watermark=NOON,
        notes=("one", "two"),
        rejections=(Rejection(reason="bad_time", count=3, example="row 7"),),
    )
    assert store.append(batch, LATER) == AppendResult(added=2, changed=0, unchanged=0)
    before = store.status()

    assert store.append(batch, LATER + MINUTE) == AppendResult(added=0, changed=0, unchanged=2)

    assert store.status() == before
    assert store.jobs(LATER) == [a_job("a"), a_job("b", seconds=None)]


def test_a_running_job_that_ended_is_updated(store):
    store.append(a_batch(a_job("a", seconds=None)), LATER)
    assert store.append(a_batch(a_job("a")), LATER) == AppendResult(added=0, changed=1, unchanged=0)
    assert store.jobs(LATER) == [a_job("a")]


@pytest.mark.parametrize(
    "stale",
    [a_job("a", seconds=None), a_job("a", seconds=None, start=None)],
    ids=["running", "waiting"],
)
def test_a_known_end_is_never_unlearned(store, stale):
    store.append(a_batch(a_job("a")), LATER)
    assert store.append(a_batch(stale), LATER) == AppendResult(added=0, changed=0, unchanged=1)
    assert store.jobs(LATER) == [a_job("a")]


def test_what_was_measured_of_an_ended_job_is_never_unlearned(store):
    store.append(a_batch(a_job("a", usage=a_usage())), LATER)

    assert store.append(a_batch(a_job("a")), LATER) == AppendResult(added=0, changed=0, unchanged=1)
    store.append(a_batch(a_job("a", outcome=Outcome.FAILED)), LATER)

    assert store.jobs(LATER) == [a_job("a", outcome=Outcome.FAILED, usage=a_usage())]
    store.append(a_batch(a_job("a", usage=a_usage(compute_mean=0.1))), LATER)
    assert store.jobs(LATER) == [a_job("a", usage=a_usage(compute_mean=0.1))]


def test_what_was_measured_while_it_ran_is_not_taken_for_the_whole_run(store):
    store.append(a_batch(a_job("a", seconds=None, usage=a_usage())), LATER)
    store.append(a_batch(a_job("a")), LATER)
    assert store.jobs(LATER) == [a_job("a")]


def test_a_lost_job_that_is_found_to_have_ended_is_updated(store):
    lost = a_job("a", seconds=None, outcome=Outcome.CENSORED, last_seen=NOON + MINUTE)
    store.append(a_batch(lost), LATER)
    store.append(a_batch(a_job("a")), LATER)
    assert store.jobs(LATER) == [a_job("a")]


def test_one_batch_may_hold_the_same_job_twice(store):
    batch = a_batch(a_job("a"), a_job("a", seconds=None), a_job("b", seconds=None), a_job("b"))
    assert store.append(batch, LATER) == AppendResult(added=2, changed=0, unchanged=0)
    assert store.jobs(LATER) == [a_job("a"), a_job("b")]


def test_a_job_whose_id_belongs_to_another_is_left_out_and_counted(store):
    store.append(a_batch(a_job("17")), LATER)

    result = store.append(a_batch(a_job("17", submit=NOON + MINUTE), a_job("18")), LATER)

    assert (result.added, result.changed, result.unchanged) == (1, 0, 0)
    assert [(each.reason, each.count) for each in result.rejections] == [("id_of_another_job", 1)]
    assert "'17'" in result.rejections[0].example
    assert store.jobs(LATER) == [a_job("17"), a_job("18")]
    assert store.status().rejections == result.rejections


def test_two_sources_may_use_the_same_id(store):
    store.append(a_batch(a_job("1"), source="one"), LATER)
    store.append(a_batch(a_job("1", submit=NOON + MINUTE), source="other"), LATER)
    assert store.jobs(LATER) == [a_job("1"), a_job("1", submit=NOON + MINUTE)]


@pytest.mark.parametrize("first", [True, False])
def test_generated_and_real_jobs_are_never_mixed(store, first):
    store.append(a_batch(a_job("a"), synthetic=first), LATER)
    with pytest.raises(Refused, match="must not be mixed"):
        store.append(a_batch(a_job("b"), source="other", synthetic=not first), LATER)
    assert store.is_synthetic() is first
    assert store.status().synthetic is first


def test_jobs_come_by_submission_then_id(store):
    late, early = a_job("a", submit=NOON + MINUTE), a_job("z")
    store.append(a_batch(late, early, a_job("B"), a_job("é")), LATER)
    assert [job.id for job in store.jobs(LATER)] == ["B", "z", "é", "a"]


def test_jobs_since_keeps_whatever_was_still_there(store):
    since = NOON + timedelta(hours=1)
    gone = a_job("gone", seconds=60.0)
    kept = (
        a_job("ran", seconds=7200.0),
        a_job("new", submit=since + MINUTE),
        a_job("runs", seconds=None),
        a_job("waits", seconds=None, start=None),
        a_job("left", seconds=3600.0),
        a_job("lost", seconds=None, outcome=Outcome.CENSORED, last_seen=since),
    )
    lost_before = a_job("lost before", seconds=None, outcome=Outcome.CENSORED, last_seen=NOON + MINUTE)
    store.append(a_batch(gone, lost_before, *kept), LATER)
    assert {job.id for job in store.jobs(LATER, since=since)} == {job.id for job in kept}


def test_consecutive_windows_hold_every_end_once_in_order_of_completion(store):
    ends = {"first": 60.0, "second": 120.0, "third": 180.0}
    store.append(a_batch(*(a_job(name, seconds=seconds) for name, seconds in reversed(ends.items()))), LATER)
    middle = NOON + 2 * MINUTE

    before = store.finished_between(NOON, middle)
    after = store.finished_between(middle, LATER)

    assert [job.id for job in before] == ["first", "second"]
    assert [job.id for job in after] == ["third"]


def test_running_at_knows_only_what_was_known_then(store):
    time = NOON + 5 * MINUTE
    jobs = (
        a_job("ran"),
        a_job("ended", seconds=300.0),
        a_job("later", submit=time + MINUTE),
        a_job("waited", start=time + MINUTE),
        a_job("runs", seconds=None),
        a_job("lost", seconds=None, outcome=Outcome.CENSORED, last_seen=time),
        a_job("seen", seconds=None, outcome=Outcome.CENSORED, last_seen=time + MINUTE),
        a_job("gave up", start=None, seconds=None, end=time + MINUTE, outcome=Outcome.CANCELLED),
    )
    store.append(a_batch(*jobs), LATER)

    running = store.running_at(time)

    assert [job.id for job in running] == ["ran", "runs", "seen"]
    assert all(job.end is None and job.outcome is None and job.last_seen is None for job in running)


def test_last_event_looks_at_every_kind_of_event_up_to_the_time_asked(store):
    assert store.last_event() is None
    lost = a_job("b", seconds=None, outcome=Outcome.CENSORED, last_seen=NOON + 30 * MINUTE)
    store.append(a_batch(a_job("a", start=NOON + MINUTE), lost), LATER)
    assert store.last_event() == NOON + 30 * MINUTE
    assert store.last_event(NOON + 12 * MINUTE) == NOON + 11 * MINUTE
    assert store.last_event(NOON + 2 * MINUTE) == NOON + MINUTE
    assert store.last_event(NOON - MINUTE) is None


def test_last_submit_is_the_newest_submission_whatever_ran_on(store):
    assert store.last_submit() is None
    store.append(a_batch(a_job("a", seconds=9000.0), a_job("b", submit=NOON + MINUTE, seconds=5.0)), LATER)
    assert store.last_submit() == NOON + MINUTE


def test_the_watermark_of_a_source_only_rises(store):
    assert store.watermark("test") is None
    store.append(a_batch(watermark=NOON), LATER)
    store.append(a_batch(watermark=NOON - MINUTE), LATER)
    store.append(a_batch(source="other", watermark=LATER), LATER)
    assert store.watermark("test") == NOON


def test_reading_a_grown_file_does_not_count_its_rejections_twice(store):
    same = {"reason": "bad_time", "example": "row 3: submit 'x'"}
    store.append(a_batch(rejections=(Rejection(count=2, **same),)), LATER)
    store.append(a_batch(rejections=(Rejection(count=5, **same),)), LATER)
    store.append(a_batch(rejections=(Rejection(count=2, **same),)), LATER)
    store.append(a_batch(rejections=(Rejection(reason="bad_time", count=1, example="row 9: submit 'y'"),)), LATER)
    assert store.status().rejections == (Rejection(count=6, **same),)


def test_status_says_what_is_there_and_what_was_dropped(store):
    jobs = (
        a_job("a"),
        a_job("b", outcome=Outcome.FAILED, seconds=900.0),
        a_job("c", seconds=None),
        a_job("d", seconds=None, start=None, submit=NOON - MINUTE),
    )
    dropped = Rejection(reason="no_gpus", count=4, example="row 2")
    store.append(a_batch(*jobs, watermark=LATER, notes=("assumed",), rejections=(dropped,)), LATER)
    store.append(a_batch(a_job("x"), source="other", notes=("assumed",)), LATER + MINUTE)

    status = store.status()

    assert (status.jobs, status.outcomes) == (5, {"completed": 2, "failed": 1, "running": 1, "waiting": 1})
    assert (status.first_submit, status.last_event) == (NOON - MINUTE, NOON + 15 * MINUTE)
    assert (status.notes, status.rejections, status.synthetic) == (("assumed",), (dropped,), False)
    other, mine = status.sources
    assert (other.source, other.jobs, other.last_ingest) == ("other", 1, LATER + MINUTE)
    assert (mine.source, mine.watermark, mine.outcomes["waiting"]) == ("test", LATER, 1)


def test_an_empty_store_answers_with_nothing(store):
    status = store.status()
    assert (status.jobs, status.sources, status.first_submit, status.last_event) == (0, (), None, None)
    assert store.jobs(LATER) == []
    assert store.running_at(LATER) == []
    assert not store.is_synthetic()


def test_progress_is_told_of_every_row(store):
    told = []
    store.append(a_batch(*(a_job(str(n)) for n in range(4500))), LATER, lambda *step: told.append(step))
    assert told == [(2000, 4500), (4000, 4500), (4500, 4500)]


def test_what_the_database_cannot_hold_is_refused(store):
    with pytest.raises(Refused, match="UTF-8"):
        store.append(a_batch(a_job("a", user="\ud800")), LATER)
    with pytest.raises(Refused, match="64-bit"):
        store.append(a_batch(a_job("b", priority=2**70)), LATER)
    assert store.jobs(LATER) == []


def test_an_open_job_that_a_whole_batch_does_not_hold_was_lost_sight_of_when_its_source_was_last_read(store):
    running, waiting = a_job("running", seconds=None), a_job("waiting", seconds=None, start=None)
    read = NOON + timedelta(hours=1)
    store.append(a_batch(running, waiting, a_job("ended"), a_job("stays", seconds=None), watermark=read), read)
    store.append(a_batch(a_job("elsewhere", seconds=None), source="other", watermark=LATER), LATER)
    seen = store.revision()
    whole = a_batch(a_job("stays", seconds=None), watermark=LATER, whole=True)

    assert store.append(whole, LATER) == AppendResult(added=0, changed=2, unchanged=1)
    assert store.append(whole, LATER) == AppendResult(added=0, changed=0, unchanged=1)

    lost = {job.id: job for job in store.jobs(LATER) if job.outcome is Outcome.CENSORED}
    assert {name: job.last_seen for name, job in lost.items()} == {"running": read, "waiting": read}
    assert {job.id for job in store.changed_since(seen).jobs} == {"running", "waiting"}
    assert [job.id for job in store.running_at(LATER)] == ["elsewhere", "stays"]


def test_a_job_that_was_lost_sight_of_and_is_told_of_again_is_open_again(store):
    job = a_job("a", seconds=None)
    store.append(a_batch(job, watermark=NOON), LATER)
    store.append(a_batch(watermark=NOON + MINUTE, whole=True), LATER)
    store.append(a_batch(job, watermark=NOON + 2 * MINUTE, whole=True), LATER)

    assert store.jobs(LATER) == [job]


def test_an_older_reading_told_late_does_not_unlearn_how_long_a_job_was_seen(store):
    later, earlier = (a_job("1", seconds=None, outcome=Outcome.CENSORED, last_seen=NOON + n * MINUTE) for n in (30, 10))
    store.append(a_batch(later), LATER)
    assert store.append(a_batch(earlier), LATER).unchanged == 1
    assert store.jobs(LATER) == [later]
