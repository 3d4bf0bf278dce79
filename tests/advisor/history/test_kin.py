"""Work that two sources tell of is one job; jobs that merely share an id are two."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.domain.ingest import JobBatch
from advisor.domain.jobs import Job, Outcome
from advisor.errors import Refused
from advisor.history.store import AppendResult, HistoryStore
from tests.builders import NOON, a_history, a_job, a_usage
from tests.older_stores import taken_back

MINUTE = timedelta(minutes=1)
LATER = NOON + timedelta(days=1)
METRICS, CLUSTER = "prometheus", "kubernetes/prod"
GANG = "ml/Job/train-7/20260302T120000Z"
"""What a metrics server calls the job that the API server calls by the uid of its object."""


@pytest.fixture
def store() -> Iterator[HistoryStore]:
    with HistoryStore.open("sqlite://") as opened:
        yield opened


def append(store: HistoryStore, source: str, *told: tuple[Job, str], whole: bool = False, at=LATER) -> AppendResult:
    """Jobs, each with the uids of its pods as words."""
    pods = {job.id: tuple(uids.split()) for job, uids in told if uids}
    jobs = tuple(job for job, _ in told)
    return store.append(JobBatch(source=source, jobs=jobs, pods=pods, whole=whole, watermark=at), at)


def identities(store: HistoryStore, at: datetime = LATER) -> list[tuple[str, str]]:
    return [job.identity for job in store.jobs(at)]


def test_one_id_of_two_schedulers_is_two_jobs(store):
    append(store, "slurm-a", (a_job("1234", user="ada"), ""))
    append(store, "slurm-b", (a_job("1234", user="eve"), ""))
    assert [(job.identity, job.user) for job in store.jobs(LATER)] == [
        (("slurm-a", "1234"), "ada"),
        (("slurm-b", "1234"), "eve"),
    ]


def test_work_with_a_pod_in_common_is_one_job_whatever_each_source_calls_it(store):
    append(store, METRICS, (a_job(GANG, seconds=None), "p1 p2"), (a_job("p3", seconds=None), "p3"))

    result = append(store, CLUSTER, (a_job("uid-7", seconds=None), "p2 p4"), (a_job("p3", seconds=None), "p3"))

    assert identities(store) == [(METRICS, GANG), (METRICS, "p3")]
    assert (result.added, result.changed, result.unchanged) == (0, 0, 2)
    assert result.notes == ("jobs kept under prometheus, which told of them first: 2",)
    assert result.notes[0] in store.status().notes


def test_what_the_first_did_not_know_yet_the_other_adds_and_the_first_may_go_on_telling(store):
    first = a_job(GANG, start=None, seconds=None, user=None)
    append(store, METRICS, (first, "p1"))
    ended = a_job("uid-7", scheduled=NOON, seconds=600.0, user="ada", restarts=2, usage=None)

    result = append(store, CLUSTER, (ended, "p1"))
    known = store.jobs(LATER)

    assert (result.added, result.changed) == (0, 1)
    assert known == [replace(first, scheduled=NOON, start=NOON, end=ended.end, outcome=ended.outcome, restarts=2)]
    assert append(store, METRICS, (first, "p1")).unchanged == 1
    assert append(store, CLUSTER, (ended, "p1")).unchanged == 1
    assert store.jobs(LATER) == known


def test_who_knows_no_more_changes_nothing_and_nobody_is_told_of_a_change(store):
    append(store, METRICS, (a_job(GANG, seconds=600.0), "p1"))
    append(store, CLUSTER)
    seen = store.revision()

    for told in (a_job("uid-7", seconds=603.0, user="eve"), a_job("uid-7", seconds=None)):
        assert append(store, CLUSTER, (told, "p1")).unchanged == 1

    assert store.changed_since(seen).jobs == ()
    assert store.jobs(LATER) == [a_job(GANG, seconds=600.0)]


def test_a_change_of_a_job_kept_elsewhere_is_told_of(store):
    append(store, METRICS, (a_job(GANG, seconds=None), "p1"))
    seen = store.revision()
    append(store, CLUSTER, (a_job("uid-7"), "p1"))
    assert [job.identity for job in store.changed_since(seen).jobs] == [(METRICS, GANG)]


def test_what_was_measured_is_added_to_an_end_that_is_known(store):
    append(store, CLUSTER, (a_job("uid-7"), "p1"))
    append(store, METRICS, (a_job(GANG, seconds=605.0, usage=a_usage()), "p1"))
    assert store.jobs(LATER) == [a_job("uid-7", usage=a_usage())]
    assert append(store, CLUSTER, (a_job("uid-7"), "p1")).unchanged == 1


def test_clocks_that_differ_by_seconds_contradict_nothing(store):
    """A start seen after the end of which the other tells, a node given before the submission."""
    second = timedelta(seconds=1)
    append(store, METRICS, (a_job("p1", start=NOON + 2 * second, seconds=None), "p1"))
    append(store, METRICS, (a_job("p2", start=None, seconds=None), "p2"))
    short = a_job("p1", seconds=1.0)
    early = a_job("p2", submit=NOON - 5 * second, scheduled=NOON - 4 * second, start=NOON - 3 * second, seconds=60.0)

    append(store, CLUSTER, (short, "p1"), (early, "p2"))

    one, two = store.jobs(LATER)
    assert (one.start, one.end) == (NOON + 2 * second, NOON + 2 * second)
    assert (two.submit, two.scheduled, two.start, two.end) == (NOON, None, NOON, early.end)


def test_a_pod_that_was_stored_before_pods_were_is_known_by_its_own_uid(store):
    append(store, METRICS, (a_job("p1", seconds=None), ""))
    append(store, CLUSTER, (a_job("p1"), "p1"))
    assert store.jobs(LATER) == [a_job("p1")]
    assert identities(store) == [(METRICS, "p1")]


def test_what_a_third_source_tells_is_kept_where_the_first_did(store):
    append(store, METRICS, (a_job(GANG, seconds=None), "p1"))
    append(store, CLUSTER, (a_job("uid-7", seconds=None), "p1 p2"))
    append(store, "kubernetes/other-name", (a_job("uid-7"), "p2"))
    assert identities(store) == [(METRICS, GANG)]
    assert store.jobs(LATER) == [a_job(GANG)]


def test_a_job_that_was_stored_twice_already_stays_with_each(store):
    """As earlier versions of the program left it: each source goes on telling of its own."""
    append(store, METRICS, (a_job(GANG, seconds=None), "p1"))
    append(store, CLUSTER, (a_job("uid-7", seconds=None), ""))
    append(store, CLUSTER, (a_job("uid-7"), "p1"))
    assert [(job.identity, job.outcome) for job in store.jobs(LATER)] == [
        ((METRICS, GANG), None),
        ((CLUSTER, "uid-7"), Outcome.COMPLETED),
    ]


def test_who_knows_everything_that_is_there_censors_what_it_had_told_of_wherever_it_is_kept(store):
    append(store, METRICS, (a_job("p1", seconds=None), "p1"), (a_job("p2", seconds=None), "p2"))
    append(store, CLUSTER, (a_job("p1", seconds=None), "p1"), whole=True, at=NOON + MINUTE)

    gone = append(store, CLUSTER, whole=True, at=NOON + 5 * MINUTE)

    assert gone.changed == 1
    lost = replace(a_job("p1", seconds=None), outcome=Outcome.CENSORED, last_seen=NOON + MINUTE)
    assert store.jobs(LATER) == [lost, a_job("p2", seconds=None)]
    append(store, METRICS, (a_job("p1", seconds=None), "p1"))
    assert store.jobs(LATER)[0].outcome is None


@pytest.mark.parametrize("uids", ["p1", ""], ids=["known", "of a version before"])
def test_one_cluster_of_a_server_that_was_read_whole_is_refused(store, uids):
    append(store, "prometheus", (a_job(GANG, seconds=None), uids))
    with pytest.raises(Refused) as refused:
        append(store, "prometheus/eu", (a_job("new"), "p9"), (a_job(GANG), "p1"))
    assert (refused.value.field, refused.value.value) == ("source", "prometheus/eu")
    assert GANG in refused.value.limit
    assert "under prometheus," in refused.value.limit
    assert "storage.home" in refused.value.remedy
    assert store.jobs(LATER) == [a_job(GANG, seconds=None)]


@pytest.mark.parametrize("uids", ["p1", ""], ids=["known", "of a version before"])
def test_a_server_read_whole_is_refused_where_one_cluster_of_it_was_read(store, uids):
    append(store, "prometheus/eu", (a_job(GANG), uids))
    with pytest.raises(Refused, match="Name the cluster as before: eu"):
        append(store, "prometheus", (a_job(GANG), "p1"))


def test_whole_and_part_of_different_servers_share_a_history(store):
    """One schedule in two clusters makes objects that are called alike; their pods tell them apart."""
    append(store, "prometheus", (a_job(GANG), "p1"))
    append(store, "prometheus/eu", (a_job(GANG), "p2"))
    append(store, "prometheus/us", (a_job(GANG), "p3"))
    assert identities(store) == [("prometheus", GANG), ("prometheus/eu", GANG), ("prometheus/us", GANG)]


WORK = a_history(12, seed=4)
OVER = max(job.end for job in WORK if job.end is not None)
TURNS = st.lists(st.tuples(st.sampled_from([METRICS, CLUSTER]), st.floats(0.0, 1.0)), min_size=1, max_size=8)


@given(TURNS)
def test_two_who_tell_of_one_cluster_in_any_turns_leave_each_piece_of_work_once_and_never_less_known(turns):
    best: dict[str, int] = {}
    with HistoryStore.open("sqlite://") as store:
        for source, share in turns:
            at = NOON + (OVER - NOON) * share
            there = [job for each in WORK if (job := each.as_of(at)) is not None]
            append(store, source, *((replace(job, id=f"{source}:{job.id}"), f"pod-{job.id}") for job in there), at=at)
            for job in there:
                best[job.id] = max(best.get(job.id, 0), _progress(job))
        stored = [(job.id.split(":")[1], _progress(job)) for job in store.jobs(OVER)]
    assert sorted(stored) == sorted(best.items())


def _progress(job: Job) -> int:
    return 2 if job.end is not None else int(job.start is not None)


def test_pods_are_forgotten_by_a_version_that_knows_none_and_a_pod_is_still_known_by_its_uid(tmp_path):
    url = f"sqlite:///{tmp_path}/history.db"
    with HistoryStore.open(url) as store:
        append(store, METRICS, (a_job("p1", seconds=None), "p1"), (a_job(GANG), "p2"))
    taken_back(url, "0004")
    with HistoryStore.open(url) as store:
        append(store, CLUSTER, (a_job("p1"), "p1"))
        assert identities(store) == [(METRICS, GANG), (METRICS, "p1")]
        assert append(store, METRICS, (a_job(GANG), "p2")).unchanged == 1
        append(store, CLUSTER, (a_job("uid-7"), "p2"))
        assert identities(store) == [(METRICS, GANG), (METRICS, "p1")]
