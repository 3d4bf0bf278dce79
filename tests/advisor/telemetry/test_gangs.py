"""Jobs from pods, whatever source told of the pods."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.domain.jobs import Job, Outcome
from advisor.telemetry.gangs import jobs_of
from advisor.telemetry.pods import CreatorRecord, PodRecord
from advisor.telemetry.tally import RejectionTally
from tests.builders import NOON


def at(seconds: float):
    return NOON + timedelta(seconds=seconds)


def a_creator(name: str = "train", **more: Any) -> CreatorRecord:
    return CreatorRecord(**{"kind": "Job", "namespace": "ml", "name": name, "created": NOON, **more})


def a_pod(name: str, created: float, start: float | None = None, end: float | None = None, **more: Any) -> PodRecord:
    moments: dict[str, Any] = {"created": at(created)}
    if start is not None:
        moments |= {"scheduled": at(start), "started": at(start)}
    if end is not None:
        moments |= {"ended": at(end), "outcome": Outcome.COMPLETED}
    return PodRecord(**{"uid": f"uid-{name}", "namespace": "ml", "name": name, "gpus": 1.0, **moments, **more})


def the_job(*pods: PodRecord, creators: tuple[CreatorRecord, ...] = ()) -> Job:
    tally = RejectionTally()
    (job,) = jobs_of(pods, creators, tally)
    assert tally.total == 0
    return job


def test_a_pod_of_its_own_is_a_job():
    job = the_job(a_pod("notebook", 0, 60, 660, restarts=2, node="n1"))
    assert (job.id, job.name, job.namespace, job.created_by) == ("uid-notebook", "notebook", "ml", None)
    assert (job.wait_seconds, job.duration_seconds, job.gpus, job.restarts) == (60, 600, 1, 2)


def test_pods_that_were_there_together_are_a_gang():
    work = a_creator()
    pods = [a_pod(f"train-{n}", n, 100 + n, 700 + n, creator=work, gpus=4.0, node=f"n{n}") for n in range(3)]
    job = the_job(*pods)
    assert (job.gpus, job.nodes, job.created_by) == (12, 3, "Job/train")
    assert (job.start, job.end, job.paused_seconds) == (at(100), at(702), 0)


def test_cpus_are_those_held_at_one_time_and_not_those_of_every_attempt():
    work = a_creator()
    pods = [a_pod(f"a{n}", 0, 10, 110, creator=work, cpus=8.0) for n in range(2)]
    again = [a_pod(f"b{n}", 120, 150, 350, creator=work, cpus=8.0) for n in range(2)]
    assert the_job(*pods, *again).cpus == 16
    template = a_creator(gpus_per_pod=1.0, cpus_per_pod=8.0, parallelism=2)
    assert the_job(creators=(template,)).cpus == 16


@pytest.mark.parametrize(
    "asked, told",
    [
        ({"told_by_node": ("gpu_kind", "image")}, ("gpu_kind", "image", "nodes")),
        ({"told_by_node": ("image",)}, ("image", "nodes")),
        ({"node": None, "told_by_node": ("gpu_kind", "image")}, ("gpu_kind", "image")),
    ],
)
def test_what_only_the_node_of_a_pod_told_is_marked(asked, told):
    job = the_job(a_pod("a", 0, 60, **{"node": "n1", "gpu_kind": "H100", "image": "torch:2", **asked}))
    assert (job.gpu_kind, job.image, job.told_by_node) == ("H100", "torch:2", told)


def test_what_any_of_its_pods_asked_for_goes_before_what_a_node_told():
    work = a_creator()
    node = a_pod("a", 0, 60, creator=work, gpu_kind="NVIDIA-H100", told_by_node=("gpu_kind",))
    job = the_job(node, a_pod("b", 1, 60, creator=work, gpu_kind="h100"))
    assert (job.gpu_kind, job.told_by_node) == ("h100", ())


def test_a_retry_is_a_further_run_of_the_same_job():
    work = a_creator()
    first = a_pod("a", 0, 10, 110, creator=work, outcome=Outcome.FAILED)
    job = the_job(first, a_pod("b", 120, 150, 350, creator=work))
    assert (job.outcome, job.gpus, job.restarts) == (Outcome.COMPLETED, 1, 1)
    assert (job.duration_seconds, job.paused_seconds, job.wait_seconds) == (300, 40, 50)


def test_tasks_of_an_object_with_more_completions_than_parallelism_are_jobs_of_their_own():
    work = a_creator(parallelism=2, completions=4)
    jobs = jobs_of([a_pod(f"t{n}", n, n + 1, n + 50, creator=work) for n in range(4)], (), RejectionTally())
    assert [job.id for job in jobs] == [f"uid-t{n}" for n in range(4)]


def test_an_object_made_anew_under_its_old_name_is_another_job():
    old, new = a_creator(), a_creator(created=at(1000))
    jobs = jobs_of([a_pod("a", 0, 5, 50, creator=old), a_pod("b", 1000, 1005, 1050, creator=new)], (), RejectionTally())
    assert [job.submit for job in jobs] == [NOON, at(1000)]


def test_a_failed_job_has_an_end_though_no_completion_time_is_told():
    """A09: failed at the time of its condition; one without conditions runs on."""
    failed = a_creator("a", started=at(1000), ended=at(4600), outcome=Outcome.FAILED, gpus_per_pod=2.0)
    running = a_creator("b", started=at(1000), last_seen=at(8000), gpus_per_pod=1.0)
    a, b = jobs_of([], [failed, running], RejectionTally())
    assert (a.outcome, a.duration_seconds, a.gpus) == (Outcome.FAILED, 3600, 2)
    assert (b.outcome, b.elapsed_seconds(at(8000))) == (None, 7000)


def test_an_evicted_job_that_came_back_ran_as_long_as_both_its_runs():
    """A14: created suspended, admitted at 600, evicted at 4,200, resumed at 7,800, done at 9,600."""
    work = a_creator(ended=at(9600), outcome=Outcome.COMPLETED, evictions=1)
    evicted = a_pod("a", 600, 600, 4200, creator=work, outcome=Outcome.CENSORED, last_seen=at(4200), ended=None)
    job = the_job(evicted, a_pod("b", 7800, 7800, 9600, creator=work))
    assert (job.duration_seconds, job.wait_seconds, job.evictions, job.restarts) == (5400, 4200, 1, 0)


def test_of_an_evicted_job_only_the_last_run_may_be_known():
    """A14, where the object's own status is all there is: at least the last run, marked as not known to the end."""
    work = a_creator(started=at(7800), ended=at(9600), outcome=Outcome.COMPLETED, partial=True, gpus_per_pod=1.0)
    job = the_job(creators=(work,))
    assert (job.outcome, job.run_seconds, job.duration_seconds) == (Outcome.CENSORED, 1800, None)


def test_a_suspended_job_holds_nothing_and_has_not_ended():
    work = a_creator(suspended=True)
    evicted = a_pod("a", 600, 600, creator=work, outcome=Outcome.CENSORED, last_seen=at(4200))
    job = the_job(evicted)
    assert (job.outcome, job.run_seconds) == (Outcome.CENSORED, 3600)


@pytest.mark.parametrize(
    "reason", ["Evicted", "PreemptionByScheduler", "EvictionByEvictionAPI", "DeletionByTaintManager"]
)
def test_every_word_for_being_taken_away_is_an_eviction(reason):
    work = a_creator()
    first = a_pod("a", 0, 10, reason=reason, outcome=Outcome.CENSORED, last_seen=at(110), creator=work)
    job = the_job(first, a_pod("b", 120, 150, 350, creator=work))
    assert (job.evictions, job.restarts) == (1, 0)


@pytest.mark.parametrize(
    "more, reason",
    [
        ({"placeholder": True}, "placeholder"),
        ({"namespace": "kai-resource-reservation"}, "reservation_of_a_scheduler"),
        ({"reason": "UnexpectedAdmissionError"}, "turned_away_by_the_node"),
        ({"gpus": 0.0}, "asks_for_no_gpus"),
    ],
)
def test_what_is_nobodys_work_is_left_out_and_counted(more, reason):
    tally = RejectionTally()
    assert jobs_of([replace(a_pod("p", 0, 1, 2), **more)], (), tally) == ()
    assert [(each.reason, each.count) for each in tally.rejections()] == [(reason, 1)]


def test_a_job_whose_pods_never_started_was_cancelled():
    job = the_job(replace(a_pod("p", 0), ended=at(50), outcome=Outcome.FAILED))
    assert (job.outcome, job.start, job.end) == (Outcome.CANCELLED, None, at(50))


def test_moments_of_several_clocks_may_differ_by_seconds():
    job = the_job(a_pod("p", 3, 1, 100))
    assert (job.submit, job.start, job.wait_seconds) == (at(3), at(3), 0)
    job = the_job(a_pod("q", 0, 10, 8))
    assert job.duration_seconds == 0


SPANS = st.lists(st.tuples(st.integers(0, 900), st.integers(0, 90), st.integers(0, 300)), min_size=1, max_size=8)


@given(SPANS, st.randoms())
def test_a_gang_ran_whenever_one_of_its_pods_did(spans, random):
    """The oracle counts seconds one by one; the order in which pods are told does not matter."""
    work = a_creator()
    pods = [
        a_pod(str(n), created, created + wait, created + wait + ran, creator=work)
        for n, (created, wait, ran) in enumerate(spans)
    ]
    job = the_job(*pods)
    busy = {second for created, wait, ran in spans for second in range(created + wait, created + wait + ran)}
    assert job.duration_seconds == len(busy)
    held = [sum(created <= second < created + wait + ran for created, wait, ran in spans) for second in range(1300)]
    assert job.gpus == max(1, *held)
    random.shuffle(pods)
    assert the_job(*pods) == job
