"""What is kept of a pod, and how it is said to have ended."""

from __future__ import annotations

from typing import Any

import pytest

from advisor.cluster.reflector import Held
from advisor.domain.asks import GpuNode
from advisor.domain.jobs import Outcome
from advisor.errors import Refused
from advisor.telemetry.kubernetes.endings import ending_of
from advisor.telemetry.kubernetes.nodes import read_node_object
from advisor.telemetry.kubernetes.pods import PodObject, PodReader
from tests.kube_objects import a_condition, a_container, at, node_object, pod_object, stamp

WHOLE = GpuNode()


def read(document: dict[str, Any], before: PodObject | None = None) -> PodObject:
    pod = PodReader(("team-user", "user"))(document, before, None)
    assert pod is not None
    return pod


def held(document: dict[str, Any], **more: Any) -> Held[PodObject]:
    return Held(read(document), "1", **{"seen": at(1000), **more})


def gpus_of(resources: dict[str, Any], node: GpuNode = WHOLE, **meta: Any) -> float:
    spec = {"containers": [{"resources": {"limits": resources}}]}
    return read(pod_object(spec=spec, meta=meta)).ask.physical(node)


def test_a_pod_is_read_with_its_moments_and_labels():
    spec = {"priority": 100, "activeDeadlineSeconds": 3600, "nodeSelector": {"karpenter.sh/nodepool": "gpu"}}
    document = pod_object(created=0, scheduled=10, started=70, spec=spec, meta={"labels": {"user": "ada"}})
    pod = read(document)
    assert (pod.created, pod.scheduled, pod.started, pod.finished) == (at(0), at(10), at(70), None)
    assert (pod.node, pod.pool, pod.priority, pod.time_limit_seconds) == ("n1", "gpu", 100, 3600)
    assert (pod.user, pod.ask.image, pod.placeholder) == ("ada", "train:1", False)


def test_pods_without_gpus_are_not_kept():
    assert PodReader(())(pod_object(spec={"containers": [{"resources": {"limits": {"cpu": "1"}}}]}), None, None) is None
    assert PodReader(())(pod_object(spec={"containers": [a_container("0")]}), None, None) is None


@pytest.mark.parametrize("amount", ["500m", "0.5", "1K", "nan", "1_000", "", "-1"])
def test_gpus_that_are_no_whole_quantity_are_refused(amount):
    """A22: fractions of an extended resource and what the API server would not take."""
    with pytest.raises(Refused) as refused:
        read(pod_object(spec={"containers": [a_container(amount)]}))
    assert refused.value.field == "gpus"


@pytest.mark.parametrize("amount, cpus", [("500m", 0.5), ("1e1", 10), ("129e6", 129e6), ("2", 2)])
def test_cpus_are_quantities(amount, cpus):
    """A22: a suffix is a suffix and an exponent an exponent."""
    container = a_container() | {"resources": {"limits": {"nvidia.com/gpu": 1}, "requests": {"cpu": amount}}}
    assert read(pod_object(spec={"containers": [container]})).ask.cpus == cpus


def test_init_containers_and_sidecars_count_as_the_scheduler_counts_them():
    one, three = a_container("1"), a_container("3")
    sidecar = a_container("2", restartPolicy="Always")
    spec = {"containers": [one], "initContainers": [three, sidecar, three]}
    assert read(pod_object(spec=spec)).ask.physical(WHOLE) == 5


@pytest.mark.parametrize(
    "resources, node, gpus",
    [
        ({"nvidia.com/gpu": 2}, GpuNode(replicas=4), 0.5),
        ({"nvidia.com/gpu.shared": 1}, GpuNode(replicas=4), 0.25),
        ({"nvidia.com/mig-3g.20gb": 2}, GpuNode(gpu_kind="A100-SXM4-40GB"), 6 / 7),
        ({"nvidia.com/gpu": 1, "nvidia.com/gpucores": 30}, GpuNode(replicas=10), 0.3),
    ],
)
def test_every_flavour_of_ask_is_counted_in_physical_gpus(resources, node, gpus):
    assert gpus_of(resources, node) == pytest.approx(gpus)


def test_gpus_that_are_all_cut_alike_are_mig_instances():
    node = read_node_object(node_object(product="A100-SXM4-40GB-MIG-1g.5gb-SHARED"), None, None)
    assert (node.gpus.gpu_kind, node.gpus.mig_profile) == ("A100-SXM4-40GB", "nvidia_com_mig_1g_5gb")
    assert gpus_of({"nvidia.com/gpu": 2}, node.gpus) == pytest.approx(2 / 7)


@pytest.mark.parametrize(
    "annotations, memory, gpus",
    [
        ({"gpu-fraction": "0.5"}, None, 0.5),
        ({"gpu-fraction": "0.5", "gpu-fraction-num-devices": "2"}, None, 1.0),
        ({"gpu-memory": "8192"}, 16384.0, 0.5),
        ({"gpu-memory": "8192"}, None, 1.0),
    ],
)
def test_fractions_asked_by_annotation_count(annotations, memory, gpus):
    assert gpus_of({}, GpuNode(memory_mib=memory), annotations=annotations) == gpus


@pytest.mark.parametrize("text", ["0", "1.5", "half", "nan", "-0.5"])
def test_a_fraction_that_is_none_is_refused(text):
    with pytest.raises(Refused, match="gpus"):
        gpus_of({}, annotations={"gpu-fraction": text})


@pytest.mark.parametrize(
    "labels, replicas",
    [
        ({"replicas": "4", "strategy": "time-slicing"}, 4),
        ({"replicas": "4", "strategy": "mps"}, 4),
        ({"replicas": "4", "strategy": "none"}, 1),
        ({"replicas": "0", "strategy": "mps"}, 1),
        ({}, 1),
    ],
)
def test_labels_say_how_the_gpus_of_a_node_are_shared(labels, replicas):
    assert read_node_object(node_object(**labels), None, None).gpus.replicas == replicas


def restarted(count: int, **last: Any) -> dict[str, Any]:
    state = {"running": {"startedAt": stamp(500)}}
    return {"containerStatuses": [{"restartCount": count, "state": state, "lastState": {"terminated": last}}]}


def test_a_start_is_that_of_the_first_run_even_after_a_restart():
    pod = read(pod_object(scheduled=10, started=500, status=restarted(1, startedAt=stamp(70), finishedAt=stamp(400))))
    assert (pod.started, pod.finished, pod.restarts, pod.image_pull_seconds) == (at(70), None, 1, None)


def test_after_many_restarts_it_ran_from_its_initialisation_or_from_where_it_was_seen():
    status = restarted(5, startedAt=stamp(450), finishedAt=stamp(490))
    status["conditions"] = [a_condition("Initialized", 60)]
    assert read(pod_object(started=500, status=status)).started == at(60)
    seen_before = read(pod_object(started=75))
    assert read(pod_object(started=500, status=restarted(1)), seen_before).started == at(75)
    # Its image was pulled between the two: where its start was seen nothing has to be guessed.
    assert read(pod_object(started=500, status=status), seen_before).started == at(75)


def evicted(**more: Any) -> dict[str, Any]:
    status = {"reason": "Evicted", "startTime": stamp(20), "containerStatuses": []}
    return pod_object(scheduled=10, phase="Failed", status={**status, **more})


def test_what_was_evicted_before_anybody_looked_ran_from_when_its_kubelet_took_it():
    assert read(evicted()).started == at(20)
    assert read(evicted(), read(pod_object(started=75))).started == at(75)
    # Somebody watched it, and it never began to run.
    assert read(evicted(), read(pod_object(scheduled=10))).started is None
    assert read(evicted(reason="UnexpectedAdmissionError")).started is None


def test_pulling_the_image_lies_between_the_sandbox_and_the_first_container():
    ready = {"conditions": [a_condition("PodReadyToStartContainers", 15), a_condition("Initialized", 40)]}
    assert read(pod_object(scheduled=10, started=75, status=ready)).image_pull_seconds == 60
    after_init = pod_object(scheduled=10, started=75, status=ready, spec={"initContainers": [{"name": "fetch"}]})
    assert read(after_init).image_pull_seconds == 35
    assert read(pod_object(scheduled=10, started=75)).image_pull_seconds is None


def test_a_pod_that_succeeded_ended_with_its_last_container():
    document = pod_object(started=70, finished=300)
    document["status"]["containerStatuses"].append({"state": {"terminated": {"finishedAt": stamp(360)}}})
    assert ending_of(held(document)) == (at(360), Outcome.COMPLETED, None)


def test_one_container_that_ended_is_not_the_end_of_the_pod():
    assert ending_of(held(pod_object(started=70, finished=300, phase="Running"))) == (None, None, None)


def test_a_pod_that_failed_ended_too():
    status = {"containerStatuses": [{"state": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}}}]}
    document = pod_object(started=70, finished=300, phase="Failed")
    assert ending_of(held(document)) == (at(300), Outcome.FAILED, None)
    assert read(pod_object(started=70, phase="Failed", status=status)).reason == "OOMKilled"


@pytest.mark.parametrize(
    "status",
    [
        {"reason": "Evicted"},
        {"reason": "NodeLost"},
        {"reason": "Preempted"},
        {"conditions": [a_condition("DisruptionTarget", 300, reason="PreemptionByScheduler")]},
        {"conditions": [a_condition("DisruptionTarget", 300, reason="EvictionByEvictionAPI")]},
    ],
)
def test_what_the_system_took_away_did_not_end_by_itself(status):
    ending = ending_of(held(pod_object(started=70, finished=300, phase="Failed", status=status)))
    assert ending == (None, Outcome.CENSORED, at(300))


def test_an_evicted_pod_without_statuses_lived_until_it_was_no_longer_ready():
    status = {"reason": "Evicted", "containerStatuses": [], "conditions": [a_condition("Ready", 280, "False")]}
    assert ending_of(held(pod_object(phase="Failed", status=status))) == (None, Outcome.CENSORED, at(280))


def test_a_pod_taken_away_while_it_still_stops_has_not_gone_yet():
    status = {"conditions": [a_condition("DisruptionTarget", 300, reason="DeletionByTaintManager")]}
    document = pod_object(started=70, status=status, meta={"deletionTimestamp": stamp(330)})
    assert ending_of(held(document)) == (None, None, None)
    assert ending_of(held(document, gone=at(310))) == (None, Outcome.CENSORED, at(310))


DELETED = {"deletionTimestamp": stamp(330), "deletionGracePeriodSeconds": 30}


def test_a_pod_deleted_while_it_ran_was_cancelled_when_it_had_to_be_gone_or_before():
    document = pod_object(started=70, meta=DELETED)
    assert ending_of(held(document, gone=at(305))) == (at(305), Outcome.CANCELLED, None)
    assert ending_of(held(document, gone=at(400))) == (at(330), Outcome.CANCELLED, None)
    assert ending_of(held(document, seen=at(310), vanished=True)) == (at(330), Outcome.CANCELLED, None)


def test_a_container_killed_by_a_deletion_did_not_fail():
    assert ending_of(held(pod_object(started=70, finished=305, phase="Failed", meta=DELETED), gone=at(306))) == (
        at(305),
        Outcome.CANCELLED,
        None,
    )
    failed_before = pod_object(started=70, finished=200, phase="Failed", meta=DELETED)
    assert ending_of(held(failed_before, gone=at(306))) == (at(200), Outcome.FAILED, None)


def test_of_a_pod_that_went_while_nobody_watched_only_its_last_sight_is_known():
    document = pod_object(started=70)
    assert ending_of(held(document, seen=at(250), vanished=True)) == (None, Outcome.CENSORED, at(250))


def test_gpus_came_when_a_watch_saw_them_come():
    none, some = node_object(gpus="0"), node_object(gpus="8")
    empty = read_node_object(none, None, None)
    watched = read_node_object(some, empty, at(90))
    assert (empty.allocatable_at, watched.allocatable_at) == (None, at(90))
    # A plugin that restarts takes them away again, and a list does not say since when they are there.
    again = read_node_object(some, read_node_object(none, watched, at(200)), at(210))
    assert again.allocatable_at == at(90)
    assert read_node_object(some, read_node_object(some, empty, None), at(300)).allocatable_at is None
    found_with = read_node_object(some, None, None)
    assert read_node_object(some, read_node_object(none, found_with, at(200)), at(210)).allocatable_at is None
