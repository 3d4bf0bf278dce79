"""A cluster's objects as jobs, read by lists and watches that a script answers."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from advisor.cluster.objects import NotServed, ObjectKind, Page, WatchEvent, WatchType
from advisor.cluster.reflector import Pace
from advisor.domain.jobs import Outcome
from advisor.domain.start_latency import StartPart
from advisor.errors import Refused, Transient
from advisor.history.store import HistoryStore
from advisor.telemetry.collector import collect
from advisor.telemetry.kubernetes.source import KubernetesSource
from tests.builders import NOON
from tests.kube_objects import (
    a_condition,
    a_container,
    at,
    claim_object,
    job_object,
    metadata,
    node_object,
    owned_by,
    pod_object,
    queued_object,
    stamp,
)

CORE = ("pods", "nodes", "jobs")


class OwnClock(threading.local):
    """A clock of each thread's own, that begins at noon."""

    def __init__(self) -> None:
        self.time = NOON

    def now(self) -> datetime:
        return self.time

    def advance(self, seconds: float) -> None:
        self.time += timedelta(seconds=seconds)


class Cluster:
    """Lists by plural, or an error; ``tell`` queues watch events, each at so many seconds after noon.

    Watches set the clock of their own thread alone: those of different kinds go on at the same time.
    """

    name = "prod"

    def __init__(self, **lists: Any) -> None:
        self.lists: dict[str, Any] = {**{plural: [] for plural in CORE}, **lists}
        self.events: dict[str, list[tuple[float, WatchEvent]]] = {}
        self.clock = OwnClock()
        self.asked: list[str] = []
        self.broken = False
        self.unwatchable: set[str] = set()

    def tell(self, plural: str, seconds: float, kind: str, document: dict[str, Any]) -> None:
        version = str(1000 + int(seconds))
        document = {**document, "metadata": {**document["metadata"], "resourceVersion": version}}
        self.events.setdefault(plural, []).append((seconds, WatchEvent(WatchType(kind), document)))

    def list(self, kind: ObjectKind, limit: int, token: str | None) -> Page:
        del limit, token
        self.asked.append(kind.plural)
        if self.broken:
            raise Transient("cut off")
        found = self.lists.get(kind.plural)
        if isinstance(found, Exception):
            raise found
        if found is None:
            raise NotServed(kind.plural)
        return Page(found, "1000")

    def watch(self, kind: ObjectKind, version: str, timeout_seconds: float) -> Iterator[WatchEvent]:
        del version
        if self.broken:
            raise Transient("cut off")
        if kind.plural in self.unwatchable:
            raise DENIED
        for seconds, event in self.events.pop(kind.plural, []):
            self.clock.time = at(seconds)
            yield event
        self.clock.advance(timeout_seconds)

    def source(self, **more: Any) -> KubernetesSource:
        return KubernetesSource(self, Pace(self.clock, self._pause, lambda: 0.0), ("user",), **more)

    def _pause(self, seconds: float) -> None:
        self.clock.advance(seconds)


def jobs_at(cluster: Cluster, seconds: float) -> dict[str, Any]:
    batch = cluster.source().read(None, at(seconds))
    return {job.name: job for job in batch.jobs}


DENIED = Refused("x", "403 Forbidden", "the API server lets us read none of them", "Add a rule.")


def test_pods_of_a_job_are_one_job_with_all_that_is_known():
    pods = [
        pod_object(f"train-{n}", created=5, scheduled=60, started=90 + n, finished=700, meta={
            "ownerReferences": owned_by("Job", "train"), "labels": {"user": "ada"}})
        for n in range(2)
    ]  # fmt: skip
    work = job_object("train", spec={"parallelism": 2, "completions": 2, "activeDeadlineSeconds": 9000})
    node = node_object(replicas="4", strategy="time-slicing", product="A100-SXM4-80GB-SHARED")
    cluster = Cluster(pods=pods, jobs=[work], nodes=[node])

    job = jobs_at(cluster, 2000)["train"]

    assert (job.id, job.created_by, job.namespace) == ("uid-train", "Job/train", "ml")
    assert (job.submit, job.scheduled, job.start, job.end) == (at(0), at(60), at(90), at(700))
    assert (job.gpus, job.gpu_kind, job.pool, job.user) == (0.5, "A100-SXM4-80GB", "gpu", "ada")
    assert (job.outcome, job.time_limit_seconds, job.image) == (Outcome.COMPLETED, 9000, "train:1")


def test_failed_jobs_end_and_jobs_without_conditions_run():
    """A09: A started at 1,000 and failed at 4,600 without completion time; B started at 1,000 and says no more."""
    a = job_object("a", status={"startTime": stamp(1000), "conditions": [a_condition("Failed", 4600)], "failed": 1})
    b = job_object("b", status={"startTime": stamp(1000), "active": 1})
    jobs = jobs_at(Cluster(jobs=[a, b]), 8000)
    assert (jobs["a"].outcome, jobs["a"].duration_seconds) == (Outcome.FAILED, 3600)
    assert (jobs["b"].outcome, jobs["b"].end, jobs["b"].elapsed_seconds(at(8000))) == (None, None, 7000)


def eviction(**status: Any) -> dict[str, Any]:
    conditions = [a_condition("Evicted", 7800, "False"), a_condition("Admitted", 7800)]
    return queued_object("train", conditions, **status)


def job_pod(name: str, created: float, **more: Any) -> dict[str, Any]:
    meta = {"ownerReferences": owned_by("Job", "train"), **more.pop("meta", {})}
    return pod_object(name, created=created, scheduled=created, meta=meta, **more)


DONE = job_object(
    "train",
    status={
        "startTime": stamp(7800),
        "completionTime": stamp(9600),
        "conditions": [a_condition("Suspended", 7800, "False"), a_condition("Complete", 9600)],
    },
)


def test_an_evicted_job_whose_runs_were_seen_is_told_whole():
    """A14: created suspended, admitted at 600, evicted at 4,200, resumed at 7,800, done at 9,600."""
    suspended = {"suspend": True}
    cluster = Cluster(jobs=[job_object("train", spec=suspended)], workloads=[])
    source = cluster.source()
    source.read(None, at(0))
    going = {"deletionTimestamp": stamp(4230), "deletionGracePeriodSeconds": 30}
    cluster.tell("pods", 600, "ADDED", job_pod("one", 600, started=600))
    cluster.tell("pods", 4200, "DELETED", job_pod("one", 600, started=600, meta=going))
    source.follow(5000)
    (waiting,) = source.read(None, at(7000)).jobs
    assert (waiting.outcome, waiting.run_seconds) == (Outcome.CENSORED, 3600)

    cluster.tell("pods", 9600, "ADDED", job_pod("two", 7800, started=7800, finished=9600))
    cluster.tell("workloads", 9600, "ADDED", eviction(schedulingStats={"evictions": [{"count": 1}]}))
    cluster.tell("jobs", 9600, "MODIFIED", DONE)
    (job,) = source.read(None, at(10_000)).jobs

    assert (job.outcome, job.duration_seconds, job.wait_seconds) == (Outcome.COMPLETED, 5400, 4200)
    assert (job.evictions, job.restarts) == (1, 0)


@pytest.mark.parametrize("pods", [[], [job_pod("two", 7800, started=7800, finished=9600)]])
def test_of_an_evicted_job_only_the_last_status_may_be_left(pods):
    """A14: at least 1,800 s, marked as not known to the end."""
    job = jobs_at(Cluster(jobs=[DONE], pods=pods, workloads=[eviction()]), 10_000)["train"]
    assert (job.outcome, job.run_seconds, job.duration_seconds, job.evictions) == (Outcome.CENSORED, 1800, None, 1)


def test_a_job_created_suspended_and_never_evicted_is_no_partial_one():
    admitted = queued_object("train", [a_condition("Admitted", 7800)])
    job = jobs_at(Cluster(jobs=[DONE], workloads=[admitted]), 10_000)["train"]
    assert (job.outcome, job.duration_seconds, job.evictions) == (Outcome.COMPLETED, 1800, 0)


def test_owners_are_followed_to_the_outermost_object_of_batch_work():
    child = job_object("set-workers", meta={"ownerReferences": owned_by("JobSet", "set")})
    pods = [
        pod_object(
            f"p{n}", created=5, scheduled=6, started=10, meta={"ownerReferences": owned_by("Job", "set-workers")}
        )
        for n in range(2)
    ]
    jobset = {"metadata": metadata("set", 1), "spec": {}, "status": {}}
    (job,) = jobs_at(Cluster(pods=pods, jobs=[child], jobsets=[jobset]), 100).values()
    assert (job.created_by, job.id, job.gpus, job.submit) == ("JobSet/set", "uid-set", 2, at(1))


def test_an_owner_that_cannot_be_read_is_known_by_its_name():
    owner = owned_by("PyTorchJob", "bert")
    pods = [pod_object(f"p{n}", created=5 + n, started=10, meta={"ownerReferences": owner}) for n in range(2)]
    cluster = Cluster(pods=pods, pytorchjobs=DENIED)
    batch = cluster.source().read(None, at(100))
    (job,) = batch.jobs
    assert (job.created_by, job.submit, job.gpus) == ("PyTorchJob/bert", at(5), 2)
    assert any("pytorchjobs" in note and "Add a rule" in note for note in batch.notes)


@pytest.mark.parametrize("kind, state", [("pytorchjobs", "conditions"), ("rayjobs", "jobStatus")])
def test_other_kinds_end_by_their_own_words(kind, state):
    name = {"pytorchjobs": "PyTorchJob", "rayjobs": "RayJob"}[kind]
    ended = (
        {"conditions": [a_condition("Failed", 500)]}
        if state == "conditions"
        else {"jobStatus": "FAILED", "endTime": stamp(500)}
    )
    document = {"metadata": metadata("w", 0), "spec": {"runPolicy": {"activeDeadlineSeconds": 60}}, "status": ended}
    pod = pod_object("p", created=5, started=10, meta={"ownerReferences": owned_by(name, "w")})
    (job,) = jobs_at(Cluster(pods=[pod], **{kind: [document]}), 1000).values()
    assert (job.outcome, job.end, job.time_limit_seconds) == (Outcome.FAILED, at(500), 60)


def test_what_cannot_be_read_is_counted_with_an_example_and_stops_nothing():
    """A22: half a GPU is refused, named, and the rest is read."""
    pods = [pod_object("half", spec={"containers": [a_container("500m")]}), pod_object("whole", started=10)]
    batch = Cluster(pods=pods).source().read(None, at(100))
    assert [job.name for job in batch.jobs] == ["whole"]
    (rejection,) = batch.rejections
    assert (rejection.reason, rejection.count) == ("unreadable_gpus", 1)
    assert "ml/half" in rejection.example
    assert "500m" in rejection.example


def test_without_pods_there_is_nothing_and_the_rule_is_named():
    with pytest.raises(Refused, match="Add a rule"):
        Cluster(pods=DENIED).source().read(None, NOON)
    with pytest.raises(Refused, match="no Kubernetes API server"):
        Cluster(pods=NotServed("pods")).source().read(None, NOON)


def test_kinds_that_are_missing_or_denied_are_notes_that_say_what_they_cost():
    batch = Cluster(pods=[pod_object(started=1)], nodes=DENIED).source().read(None, at(10))
    notes = " ".join(batch.notes)
    assert "nodes could not be read, so pools, GPU kinds" in notes
    assert "serves no nodeclaims and no workloads: start latency is not known" in notes
    assert "not installed here: jaxjobs, jobsets" in notes


def test_an_optional_kind_that_cannot_be_asked_now_is_for_later():
    with pytest.raises(Transient):
        Cluster(workloads=Transient("503")).source().read(None, NOON)


def test_pods_on_nodes_that_are_gone_are_said_to_be_guesses():
    batch = Cluster(pods=[pod_object(scheduled=1, started=2)]).source().read(None, at(10))
    assert any(note.startswith("pods on nodes that are gone: 1") for note in batch.notes)


def test_what_happens_after_the_moment_of_reading_is_for_a_later_read():
    pods = [
        pod_object("ended", created=0, scheduled=5, started=10, finished=40),
        pod_object("started", created=0, scheduled=5, started=50),
        pod_object("created", created=30),
    ]
    batch = Cluster(pods=pods).source().read(None, at(20))
    jobs = {job.name: (job.scheduled, job.start, job.end, job.outcome) for job in batch.jobs}
    assert jobs == {"ended": (at(5), at(10), None, None), "started": (at(5), None, None, None)}
    assert [(each.reason, each.count) for each in batch.rejections] == [("future_time", 1)]
    assert batch.watermark == at(20)


def test_a_pod_deleted_under_watch_was_cancelled_and_is_told_as_long_as_it_may_matter():
    cluster = Cluster(pods=[pod_object("note", started=10)])
    source = cluster.source()
    source.read(None, at(20))
    cluster.tell("pods", 100, "DELETED", pod_object("note", started=10))
    source.follow(200)
    (job,) = source.read(at(20), at(300)).jobs
    assert (job.outcome, job.end) == (Outcome.CANCELLED, at(100))
    assert source.read(at(20), at(300)).jobs == (job,)
    assert source.read(at(2 * 86_400), at(2 * 86_400)).jobs == ()


def test_a_job_deleted_before_it_had_ended_does_not_run_for_ever():
    work = job_object("a", status={"startTime": stamp(10), "active": 1})
    cluster = Cluster(jobs=[work])
    source = cluster.source()
    assert [job.name for job in source.read(None, at(20)).jobs] == ["a"]
    cluster.tell("jobs", 100, "DELETED", work)
    source.follow(200)
    assert source.read(None, at(300)).jobs == ()


def test_what_comes_and_goes_between_two_reads_of_one_that_follows_is_not_lost():
    cluster = Cluster()
    source = cluster.source()
    source.follow(60)
    source.read(None, at(70))
    listed = len(cluster.asked)
    cluster.tell("pods", 80, "ADDED", pod_object("short", created=75, started=80))
    cluster.tell("pods", 90, "DELETED", pod_object("short", created=75, started=80))
    (job,) = source.read(at(70), at(100)).jobs
    assert (job.outcome, job.end) == (Outcome.CANCELLED, at(90))
    assert "pods" not in cluster.asked[listed:]


def test_without_following_every_read_lists_anew():
    cluster = Cluster(pods=[pod_object("a", started=1)])
    source = cluster.source()
    source.read(None, at(10))
    cluster.lists["pods"] = [pod_object("b", started=2)]
    jobs = {job.name: job.outcome for job in source.read(None, at(20)).jobs}
    assert jobs == {"a": Outcome.CENSORED, "b": None}


def test_one_that_follows_says_when_it_is_cut_off():
    cluster = Cluster()
    source = cluster.source()
    source.follow(60)
    cluster.broken = True
    with pytest.raises(Transient):
        source.read(None, at(70))


def test_a_kind_that_may_be_listed_and_not_watched_is_listed_at_every_read():
    cluster = Cluster(jobs=[job_object("a", status={"startTime": stamp(1)})])
    cluster.unwatchable = {"jobs"}
    source = cluster.source()
    source.follow(10)
    batch = source.read(None, at(20))
    assert [job.name for job in batch.jobs] == ["a"]
    assert not any("jobs could not be read" in note for note in batch.notes)


def test_pods_that_may_be_listed_and_not_watched_are_listed_at_every_read():
    cluster = Cluster(pods=[pod_object("first", started=1)])
    cluster.unwatchable = {"pods"}
    source = cluster.source()
    with pytest.raises(Refused, match="Add a rule"):
        source.follow(10.0)

    cluster.lists["pods"].append(pod_object("second", created=20, started=21))
    cluster.clock.advance(60.0)

    assert [job.name for job in source.read(None, at(90)).jobs] == ["first", "second"]


def test_the_first_run_of_work_that_goes_on_is_never_forgotten():
    work = job_object("train")
    cluster = Cluster(jobs=[work], pods=[job_pod("one", 10, started=10)])
    source = cluster.source()
    source.read(None, at(20))
    cluster.tell("pods", 100, "DELETED", job_pod("one", 10, started=10))
    source.follow(200)
    late = 3 * 86_400
    cluster.tell("pods", late, "ADDED", job_pod("two", late, started=late))
    (job,) = source.read(at(late), at(late + 60)).jobs
    assert (job.start, job.paused_seconds) == (at(10), late - 100)


def test_start_latency_has_every_part_once_it_was_watched():
    claim = claim_object(created=0, Launched=3, Registered=40, Initialized=75)
    cluster = Cluster(nodes=[node_object(created=35, gpus="0")], nodeclaims=[claim])
    source = cluster.source()
    source.read(None, at(0))
    cluster.tell("nodes", 70, "MODIFIED", node_object(created=35))
    source.follow(80)
    ready = {"conditions": [a_condition("PodReadyToStartContainers", 78)]}
    first = pod_object("first", created=0, scheduled=76, started=200, status=ready)
    second = pod_object("second", created=0, scheduled=300, started=301)
    cluster.tell("pods", 200, "ADDED", first)
    cluster.tell("pods", 301, "ADDED", second)
    source.read(None, at(400))
    (latency,) = source.start_latencies()
    assert (latency.pool, latency.nodes) == ("gpu", 1)
    assert {part: spread.p50 for part, spread in latency.parts.items()} == {
        StartPart.LAUNCHED: 3,
        StartPart.REGISTERED: 37,
        StartPart.DEVICES: 30,
        StartPart.INITIALISED: 35,
        StartPart.PREPARED: 3,
        StartPart.STARTED: 122,
    }
    assert latency.to_gpu is not None
    assert latency.to_work is not None
    assert (latency.to_gpu.p90, latency.to_work.p90) == (75, 200)


def test_what_ended_while_no_process_watched_does_not_run_on_in_the_history():
    cluster = Cluster(pods=[pod_object("a", started=1), pod_object("b", started=1)])
    with HistoryStore.open("sqlite://") as store:
        collect(cluster.source(), store, at(10))
        cluster.lists["pods"] = [pod_object("b", started=1)]
        collect(cluster.source(), store, at(500))
        jobs = {job.name: (job.outcome, job.last_seen) for job in store.jobs(at(500))}
    assert jobs == {"a": (Outcome.CENSORED, at(10)), "b": (None, None)}


@pytest.mark.parametrize("lists", [{"pytorchjobs": DENIED}, {"pytorchjobs": [{"metadata": metadata("bert", 1)}]}])
def test_a_process_begun_anew_keeps_what_was_known_of_pods_that_have_gone_since(lists):
    """Of an object that may not be read, what has gone is all that told when it was created."""
    owner = {"ownerReferences": owned_by("PyTorchJob", "bert")}
    first = pod_object("p0", created=5, scheduled=6, started=10, finished=50, phase="Failed", meta=owner)
    second = pod_object("p1", created=60, scheduled=61, started=70, meta=owner)
    cluster = Cluster(pods=[first, second], **lists)
    with HistoryStore.open("sqlite://") as store:
        collect(cluster.source(), store, at(100))
        (early,) = store.jobs(at(100))
        cluster.lists["pods"] = [second]
        cluster.clock.time = at(500)
        collect(cluster.source(), store, at(500))
        assert store.jobs(at(500)) == [early]

        cluster.lists["pods"] = [
            pod_object("p1", created=60, scheduled=61, started=70, finished=600, phase="Succeeded", meta=owner)
        ]
        cluster.clock.time = at(700)
        done = collect(cluster.source(), store, at(700))
        (job,) = store.jobs(at(700))
    assert (job.submit, job.start, job.end) == (early.submit, at(10), at(600))
    assert (job.paused_seconds, job.restarts, done.rejections) == (20, 1, ())


@pytest.mark.parametrize("asked", [True, False])
def test_a_kind_of_gpu_in_the_selector_was_asked_for_and_any_other_is_told_by_the_node(asked):
    spec = {"nodeSelector": {"nvidia.com/gpu.product": "H100"}} if asked else {}
    nodes = [node_object("n1", product="H100")]
    waiting = jobs_at(Cluster(pods=[pod_object(spec=spec)], nodes=nodes), 10)["train"]
    running = jobs_at(Cluster(pods=[pod_object(scheduled=20, started=30, spec=spec)], nodes=nodes), 100)["train"]

    assert (waiting.gpu_kind, waiting.told_by_node) == ("H100" if asked else None, ())
    assert (running.gpu_kind, running.nodes) == ("H100", 1)
    assert running.as_asked() == replace(waiting.as_asked(), pool="gpu")


def test_its_name_is_the_clusters_or_the_one_given():
    assert Cluster().source().name == "kubernetes/prod"
    assert Cluster().source(name="eu").name == "kubernetes/eu"
    with pytest.raises(Refused, match="name"):
        Cluster().source(name=" ")
