"""Pods and their ends as kube-state-metrics told of them, hour by hour."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import numpy as np
import pytest

from advisor.domain.jobs import Outcome
from advisor.telemetry.pods import PodRecord
from advisor.telemetry.prometheus.kube_facts import KubeFacts
from advisor.telemetry.prometheus.kube_queries import (
    HOUR,
    JOB_READINGS,
    NODE_READINGS,
    POD_READINGS,
    Reading,
    label_reading,
)
from advisor.telemetry.prometheus.kube_records import KubeRecords, Watch
from advisor.telemetry.prometheus.samples import Series
from advisor.telemetry.tally import RejectionTally

READINGS = {each.metric: each for each in reversed((*POD_READINGS, *NODE_READINGS, *JOB_READINGS))}
LABELS = ("label_user", "label_slice_advisor_io_owned")
POD = {"uid": "u1", "namespace": "ml", "pod": "train-0"}
GPU = {"resource": "nvidia_com_gpu", "container": "main"}


class Told:
    """What a server answered, collected line by line."""

    def __init__(self, scrapes: Any = None) -> None:
        self.tally = RejectionTally()
        self.facts = KubeFacts(self.tally)
        self.last: dict[str, float] = {}
        self.nodes: dict[str, float] = {}
        self.scrapes = np.arange(0.0, 8 * HOUR, 60.0) if scrapes is None else scrapes

    def say(self, metric: str, value: float | list[float], *, at: float | list[float] = HOUR, **labels: str) -> Told:
        return self._hear(label_reading(LABELS) if metric == "kube_pod_labels" else READINGS[metric], value, at, labels)

    def say_least(self, metric: str, value: float, *, at: float = HOUR, **labels: str) -> Told:
        """The least of an hour of what is asked for both ways."""
        (reading,) = (each for each in JOB_READINGS if each.metric == metric and each.least)
        return self._hear(reading, value, at, labels)

    def _hear(
        self, reading: Reading, value: float | list[float], at: float | list[float], labels: dict[str, str]
    ) -> Told:
        who = {} if reading.of != "pod" or "uid" in labels else POD
        times, values = np.atleast_1d(np.asarray(at, float)), np.atleast_1d(np.asarray(value, float))
        self.facts.add(reading, [Series({**who, **labels}, times, values)])
        return self

    def a_pod(self, *, created: float = 100, started: float | None = 160, **phases: float) -> Told:
        self.say("kube_pod_container_resource_requests", 1, **GPU)
        self.say("kube_pod_created", created)
        if started is not None:
            self.say("kube_pod_status_scheduled_time", created + 30)
            self.say("kube_pod_container_state_started", started, container="main")
        for phase, at in phases.items():
            self.say("kube_pod_status_phase", 1, at=at, phase=phase)
        return self

    def records(self, **more: Any) -> list[PodRecord]:
        made = KubeRecords(
            facts=self.facts,
            watch=Watch.of(self.scrapes),
            last_seen=self.last,
            last_of_nodes=self.nodes,
            labels=LABELS,
            user_labels=LABELS[:1],
            **more,
        )
        return list(made.pods(self.tally))

    def pod(self, **more: Any) -> PodRecord:
        (pod,) = self.records(**more)
        return pod


def at(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def test_a_pod_that_ended_has_its_own_moments():
    told = Told().a_pod(Running=HOUR, Succeeded=2 * HOUR).say("kube_pod_completion_time", 4000)
    pod = told.pod()
    assert (pod.created, pod.scheduled, pod.started, pod.ended) == (at(100), at(130), at(160), at(4000))
    assert (pod.outcome, pod.gpus, pod.namespace, pod.name) == (Outcome.COMPLETED, 1, "ml", "train-0")


def test_a_completion_time_is_no_end_while_another_container_runs():
    told = Told().a_pod(Running=8 * HOUR).say("kube_pod_completion_time", 4000)
    told.last["u1"] = 8 * HOUR - 60
    assert (told.pod().outcome, told.pod().ended) == (None, None)


def test_a_failed_pod_without_a_completion_time_ended_when_it_was_last_seen_to_run():
    """A09, where Prometheus is all there is."""
    told = Told().a_pod(Running=HOUR, Failed=2 * HOUR)
    told.last["u1"] = 4560.0
    assert (told.pod().outcome, told.pod().ended) == (Outcome.FAILED, at(4560))


def test_a_pod_that_vanished_while_it_was_watched_was_cancelled_then():
    told = Told().a_pod(Running=2 * HOUR)
    told.last["u1"] = 5000.0
    assert (told.pod().outcome, told.pod().ended) == (Outcome.CANCELLED, at(5000))


@pytest.mark.parametrize("reason, outcome", [("Completed", Outcome.COMPLETED), ("OOMKilled", Outcome.FAILED)])
def test_of_a_vanished_pod_the_reason_may_be_told(reason, outcome):
    told = Told().a_pod(Running=2 * HOUR)
    told.say("kube_pod_container_status_terminated_reason", 1, container="main", reason=reason)
    told.last["u1"] = 5000.0
    assert told.pod().outcome is outcome


def test_a_helper_that_ended_first_does_not_say_how_the_pod_ended():
    """The container with the GPUs ran on until somebody took the pod away."""
    told = Told().a_pod(Running=2 * HOUR)
    told.say("kube_pod_container_status_terminated_reason", 1, container="fetch", reason="Completed")
    told.last["u1"] = 5000.0
    assert (told.pod().outcome, told.pod().reason) == (Outcome.CANCELLED, None)


def test_the_container_with_the_gpus_says_how_the_pod_ended_whatever_its_helper_did():
    told = Told().a_pod(Running=2 * HOUR)
    told.say("kube_pod_container_status_terminated_reason", 1, container="fetch", reason="Completed")
    told.say("kube_pod_container_status_terminated_reason", 1, container="main", reason="Error")
    told.last["u1"] = 5000.0
    assert (told.pod().outcome, told.pod().reason) == (Outcome.FAILED, "Error")


def test_a_pod_that_vanished_while_nobody_looked_may_have_lived_on():
    told = Told(scrapes=np.concatenate([np.arange(0.0, 5001, 60), np.arange(9000.0, 8 * HOUR, 60)])).a_pod(Running=HOUR)
    told.last["u1"] = 4980.0
    assert (told.pod().outcome, told.pod().last_seen) == (Outcome.CENSORED, at(4980))


def test_moments_of_looks_that_are_no_number_are_no_looks():
    watch = Watch.of(np.array([60.0, np.nan, 0.0, np.inf, 120.0, 60.0]))
    assert (watch.scrapes.tolist(), watch.interval) == ([0.0, 60.0, 120.0], 60.0)


def test_a_pod_that_went_with_its_node_was_taken_by_the_system():
    told = Told().a_pod(Running=HOUR).say("kube_pod_info", 1, node="n1")
    told.last["u1"], told.nodes["n1"] = 5000.0, 5030.0
    assert (told.pod().outcome, told.pod().last_seen) == (Outcome.CENSORED, at(5000))
    told.nodes["n1"] = 5300.0
    assert told.pod().outcome is Outcome.CANCELLED


@pytest.mark.parametrize("seen", [5000.0, 8 * HOUR - 60])
def test_of_a_pod_whose_node_was_lost_nothing_is_known_from_then_on(seen):
    """Its object may stay for as long as nobody takes the node away."""
    told = Told().a_pod(Running=HOUR).say("kube_pod_status_reason", 1, reason="NodeLost")
    told.last["u1"] = seen
    pod = told.pod(first_lost={"u1": 4500.0})
    assert (pod.outcome, pod.ended, pod.last_seen, pod.reason) == (Outcome.CENSORED, None, at(4440), "NodeLost")
    assert told.pod(first_lost={"u1": 60.0}).last_seen == at(100)


@pytest.mark.parametrize("metric", ["kube_pod_status_reason", "kube_pod_status_disruption_reason"])
def test_an_evicted_pod_is_censored(metric):
    reason = "Evicted" if metric.endswith("status_reason") else "PreemptionByScheduler"
    told = Told().a_pod(Running=HOUR, Failed=2 * HOUR).say(metric, 1, reason=reason)
    told.say("kube_pod_completion_time", 4000)
    assert (told.pod().outcome, told.pod().last_seen) == (Outcome.CENSORED, at(4000))
    assert told.pod().reason == reason


def test_reasons_that_are_told_as_zero_are_none():
    told = Told().a_pod(Running=HOUR, Failed=2 * HOUR).say("kube_pod_status_reason", 0, reason="Evicted")
    told.say("kube_pod_completion_time", 4000)
    assert told.pod().outcome is Outcome.FAILED


def test_a_pod_that_is_still_there_has_no_end():
    told = Told().a_pod(Running=8 * HOUR)
    told.last["u1"] = 8 * HOUR - 60.0
    assert (told.pod().outcome, told.pod().gone) == (None, None)


def test_names_are_those_of_the_pod_and_not_of_the_exporter():
    told = Told()
    told.say(
        "kube_pod_created", 5, uid="u1", namespace="monitoring", pod="ksm-0", exported_namespace="ml", exported_pod="a"
    )
    assert (told.pod().namespace, told.pod().name) == ("ml", "a")


def test_series_without_a_uid_are_counted():
    told = Told().say("kube_pod_created", 5, uid="", namespace="ml", pod="a")
    assert told.records() == []
    assert [each.reason for each in told.tally.rejections()] == ["series_without_uid"]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, -1.0, 1e18])
@pytest.mark.parametrize(
    "metric",
    [
        "kube_pod_status_scheduled_time",
        "kube_pod_container_state_started",
        "kube_pod_completion_time",
        "kube_pod_container_status_restarts_total",
        "kube_job_created",
        "kube_job_status_completion_time",
        "kube_job_spec_parallelism",
    ],
)
def test_a_value_that_nothing_has_is_counted_and_stops_no_reading(metric, value):
    told = Told().a_pod(Running=HOUR, Succeeded=2 * HOUR)
    told.say("kube_pod_completion_time", 4000).say("kube_pod_owner", 1, owner_kind="Job", owner_name="train")
    told.say("kube_job_created", 50, namespace="ml", job_name="train")
    sound = told.pod()

    who = {"namespace": "ml", "job_name": "train"} if metric.startswith("kube_job") else {}
    told.say(metric, value, at=3 * HOUR, **who)

    assert told.pod() == sound
    assert [(each.reason, each.count) for each in told.tally.rejections()] == [("value_out_of_range", 1)]


def test_a_restart_moves_the_start_of_a_container_and_not_of_the_pod():
    told = Told().a_pod(Running=HOUR).say("kube_pod_container_state_started", 3000, at=2 * HOUR, container="main")
    told.say("kube_pod_container_status_restarts_total", 2, container="main").last["u1"] = 8 * HOUR - 60
    assert (told.pod().started, told.pod().restarts) == (at(160), 2)


def test_nodes_say_pool_kind_and_shares():
    told = Told().a_pod(Running=HOUR).say("kube_pod_info", 1, node="n1")
    told.say(
        "kube_node_labels",
        1,
        node="n1",
        label_karpenter_sh_nodepool="a100",
        label_nvidia_com_gpu_product="NVIDIA-A100-SXM4-40GB-SHARED",
        label_nvidia_com_gpu_replicas="4",
        label_nvidia_com_gpu_sharing_strategy="time-slicing",
    )
    pod = told.pod()
    assert (pod.pool, pod.gpu_kind, pod.gpus, pod.node) == ("a100", "NVIDIA-A100-SXM4-40GB", 0.25, "n1")


def test_where_no_label_says_so_shares_are_what_is_allocatable_over_what_is_there():
    told = Told().a_pod(Running=HOUR).say("kube_pod_info", 1, node="n1")
    told.say("kube_node_status_allocatable", 32, node="n1", resource="nvidia_com_gpu")
    assert told.pod(gpus_of_node={"n1": 8}).gpus == 0.25
    assert told.pod().gpus == 1


def test_init_containers_and_sidecars_count():
    told = Told().a_pod(Running=HOUR)
    for container, gpus in (("fetch", 2), ("proxy", 1)):
        told.say("kube_pod_init_container_resource_requests", gpus, container=container, resource="nvidia_com_gpu")
    told.say("kube_pod_init_container_info", 1, container="proxy", restart_policy="Always")
    assert told.pod().gpus == 3


def test_users_and_placeholders_are_told_by_labels():
    told = Told().a_pod(Running=HOUR).say("kube_pod_labels", 1, label_user="ada", label_slice_advisor_io_owned="true")
    assert (told.pod().user, told.pod().placeholder) == ("ada", True)


def test_jobs_of_one_name_are_told_apart_by_their_creation():
    told = Told()
    for uid, created in (("u1", 100.0), ("u2", 9000.0)):
        who = {"uid": uid, "namespace": "ml", "pod": f"train-{uid}"}
        told.say("kube_pod_created", created, **who)
        told.say("kube_pod_owner", 1, owner_kind="Job", owner_name="train", **who)
    job = {"namespace": "ml", "job_name": "train"}
    told.say("kube_job_created", [95, 95, 8990, 8990], at=[HOUR, 2 * HOUR, 3 * HOUR, 4 * HOUR], **job)
    told.say("kube_job_status_completion_time", [5000, 9900], at=[2 * HOUR, 4 * HOUR], **job)
    first, second = (pod.creator for pod in told.records())
    assert first is not None
    assert second is not None
    assert (first.created, first.ended) == (at(95), at(5000))
    assert (second.created, second.ended) == (at(8990), at(9900))


@pytest.mark.parametrize("metric", ["kube_job_status_completion_time", "kube_job_failed"])
def test_a_job_made_anew_within_an_hour_has_not_ended_as_the_one_before_it_did(metric):
    told = Told()
    for uid, created in (("u1", 100.0), ("u2", 3000.0)):
        told.say("kube_pod_created", created, uid=uid, namespace="ml", pod=f"train-{uid}")
        told.say("kube_pod_owner", 1, owner_kind="Job", owner_name="train", uid=uid, namespace="ml")
    job = {"namespace": "ml", "job_name": "train"}
    told.say("kube_job_created", 2999, **job).say_least("kube_job_created", 99, **job)
    told.say(metric, 1 if metric == "kube_job_failed" else 2500, condition="true", **job)
    told.say("kube_job_status_start_time", 2999, **job)

    first, second = (pod.creator for pod in told.records())

    assert first is not None
    assert second is not None
    assert (first.created, second.created) == (at(99), at(2999))
    assert (second.started, second.ended, second.outcome) == (at(2999), None, None)


def test_jobs_of_a_job_set_are_one_piece_of_work():
    told = Told()
    for uid in ("u1", "u2"):
        who = {"uid": uid, "namespace": "ml", "pod": f"set-{uid}"}
        told.say("kube_pod_created", 100, **who).say(
            "kube_pod_owner", 1, owner_kind="Job", owner_name=f"set-{uid}", **who
        )
        job = {"namespace": "ml", "job_name": f"set-{uid}"}
        told.say("kube_job_created", 99, **job).say("kube_job_owner", 1, owner_kind="JobSet", owner_name="set", **job)
    first, second = (pod.creator for pod in told.records())
    assert first == second
    assert first is not None
    assert (first.kind, first.name, first.created) == ("JobSet", "set", at(99))


def test_the_pods_of_a_deployment_are_work_of_their_own():
    told = Told().a_pod(Running=HOUR).say("kube_pod_owner", 1, owner_kind="ReplicaSet", owner_name="srv-1")
    assert told.pod().creator is None
