"""A world as the API server holds it: the document of every object at any moment of its life.

What happens at a moment is in the documents of that moment. An object behind pods that the world itself does not have
(a PyTorchJob, a RayCluster) is made with the first of them and goes with the last.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, TypeAlias

from tests.telemetry_world.things import Attempt, Container, Ending, JobObject, Node, Pod, Work
from tests.telemetry_world.world import World

__all__ = ["ApiObject", "Document", "api_objects"]

Document: TypeAlias = dict[str, Any]

_GRACE_SECONDS = 30
_STOPPING_SECONDS = 5
"""From being asked to go until a pod has gone."""
_SAID_AFTER = 2
"""Seconds after its last pod at which an operator says how a job ended."""
_MIG = re.compile(r"nvidia_com_mig_(\d+)g_(\d+)gb")
_EXIT_CODES = {"Completed": 0, "OOMKilled": 137}
_OPERATED = {"PyTorchJob": "pytorchjobs", "RayCluster": "rayclusters"}


@dataclass(frozen=True, slots=True)
class ApiObject:
    """One object: its ``document`` at any of the ``moments`` at which it changes, the first being its creation.

    ``deleted`` is when it goes, None where it stays, and ``last`` the document that is then told of it once more.
    """

    plural: str
    moments: tuple[int, ...]
    document: Callable[[int], Document]
    deleted: int | None = None
    last: Document = field(default_factory=dict)


def api_objects(world: World, *, last_phase: bool = True) -> Iterator[ApiObject]:
    """Every object of ``world``; before each moment of change it is as it was at the one before.

    ``last_phase`` is whether kubelets say how containers of a pod that is deleted stopped, before it goes (1.27 on).
    """
    owners = _Owners(world)
    for node in world.nodes:
        yield _object("nodes", node.created, node.removed, (), _node_documents(node))
    for pod in world.pods:
        owner = owners.of_pod(pod)
        documents = _pod_documents(pod, owner, last_phase)
        one_pod = _object("pods", pod.created, pod.deleted, _pod_moments(pod), documents)
        # Kubelets stop its containers, say so or not, and only then is it gone.
        yield one_pod if pod.deleted is None else replace(one_pod, last=documents(pod.deleted))
    for work, one in owners.jobs:
        moments = _job_moments(one)
        yield _object("jobs", one.created, one.deleted, moments, _job_documents(work, one))
        if one.owner is not None:
            yield _object("jobsets", one.created, one.deleted, moments, _job_set_documents(one))
        if one.suspended:
            yield _object("workloads", one.created, one.deleted, moments, _workload_documents(one))
    for work in world.works:
        if work.creator is not None and work.creator[0] in _OPERATED and work.pods:
            yield _operated(work)


def _object(
    plural: str,
    created: int,
    deleted: int | None,
    moments: Iterable[int | None],
    document: Callable[[int], Document],
) -> ApiObject:
    within = {moment for moment in moments if moment is not None and (deleted is None or moment < deleted)}
    changes = (created, *sorted(moment for moment in within if moment > created))
    return ApiObject(plural, changes, document, deleted, document(changes[-1]))


class _Owners:
    """Which Job made a pod: of several of one name the newest that was there."""

    def __init__(self, world: World) -> None:
        found = {_job_uid(one): (work, one) for work in world.works for one in work.objects}
        self.jobs = tuple(found.values())
        self._by_name: dict[tuple[str, str], list[JobObject]] = {}
        for _, one in sorted(self.jobs, key=lambda each: each[1].created):
            self._by_name.setdefault((one.namespace, one.name), []).append(one)

    def of_pod(self, pod: Pod) -> list[Document]:
        if pod.owner is None:
            return []
        kind, name = pod.owner
        if kind != "Job":
            return _owned(kind, name, _uid(kind, pod.namespace, name))
        (*_, made_by) = (one for one in self._by_name[pod.namespace, name] if one.created <= pod.created)
        return _owned(kind, name, _job_uid(made_by))


def _owned(kind: str, name: str, uid: str) -> list[Document]:
    return [{"kind": kind, "name": name, "uid": uid, "controller": True}]


def _uid(kind: str, namespace: str, name: str) -> str:
    return f"{kind.lower()}-{namespace}-{name}"


def _job_uid(one: JobObject) -> str:
    return f"{_uid('Job', one.namespace, one.name)}-{one.created}"


def _stamp(moment: int) -> str:
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _metadata(uid: str, name: str, created: int, **more: Any) -> Document:
    return {"uid": uid, "name": name, "creationTimestamp": _stamp(created), **more}


def _condition(kind: str, since: int, *, true: bool = True, reason: str | None = None) -> Document:
    told = {"type": kind, "status": "True" if true else "False", "lastTransitionTime": _stamp(since)}
    return told if reason is None else {**told, "reason": reason}


def _come(moment: int | None, now: int) -> bool:
    return moment is not None and moment <= now


def _resource(sanitised: str) -> str:
    """A resource as the API server writes it."""
    cut = _MIG.fullmatch(sanitised)
    if cut is not None:
        return f"nvidia.com/mig-{cut[1]}g.{cut[2]}gb"
    return sanitised.replace("nvidia_com_", "nvidia.com/")


def _amounts(asks: Mapping[str, float]) -> dict[str, str]:
    return {
        _resource(name): f"{amount * 1000:.0f}m" if name == "cpu" else f"{amount:.0f}" for name, amount in asks.items()
    }


def _container(box: Container) -> Document:
    amounts = _amounts(box.asks)
    told: Document = {"name": box.name, "image": box.image, "resources": {"requests": amounts, "limits": amounts}}
    return {**told, "restartPolicy": "Always"} if box.sidecar else told


def _pod_spec(containers: Iterable[Container]) -> Document:
    boxes = list(containers)
    spec: Document = {"containers": [_container(box) for box in boxes if not box.init]}
    first = [_container(box) for box in boxes if box.init]
    return {**spec, "initContainers": first} if first else spec


def _labels(pod_labels: Mapping[str, str]) -> dict[str, str]:
    names = {"label_user": "user", "label_slice_advisor_io_owned": "slice-advisor.io/owned"}
    return {names[name]: value for name, value in pod_labels.items()}


def _node_documents(node: Node) -> Callable[[int], Document]:
    labels = {
        "karpenter.sh/nodepool": node.pool,
        "karpenter.sh/capacity-type": "spot" if node.pool.startswith("spot") else "on-demand",
        "nvidia.com/gpu.product": node.product,
        "nvidia.com/gpu.count": str(len(node.devices)),
        "nvidia.com/gpu.replicas": str(node.replicas),
        "nvidia.com/gpu.memory": str(node.memory_mib),
        "nvidia.com/gpu.sharing-strategy": "time-slicing" if node.replicas > 1 else "none",
    }
    document = {
        "metadata": _metadata(f"uid-{node.name}", node.name, node.created, labels=labels),
        "status": {"allocatable": _amounts(node.advertised)},
    }
    return lambda _: document


def _asked_to_go(pod: Pod) -> int | None:
    """When a pod that had not ended was deleted, by somebody or with its node."""
    if pod.deleted is None or pod.ended is not None:
        return None
    if pod.reason == "NodeLost" and pod.reason_from is not None:
        return pod.reason_from
    return max(pod.deleted - _STOPPING_SECONDS, pod.started or pod.created)


def _pod_moments(pod: Pod) -> Iterator[int | None]:
    yield from (pod.scheduled, pod.kubelet, pod.ended, pod.reason_from, _asked_to_go(pod))
    for one in pod.attempts:
        yield from (one.start, one.end)
    for box in pod.containers:
        yield box.ended


def _pod_documents(pod: Pod, owner: list[Document], last_phase: bool) -> Callable[[int], Document]:
    common = {"namespace": pod.namespace, "labels": _labels(pod.labels), "ownerReferences": owner}
    asked = _asked_to_go(pod)

    def document(now: int) -> Document:
        metadata = _metadata(pod.uid, pod.name, pod.created, **common)
        if asked is not None and _come(asked, now):
            metadata["deletionTimestamp"] = _stamp(asked + _GRACE_SECONDS)
            metadata["deletionGracePeriodSeconds"] = _GRACE_SECONDS
        spec = _pod_spec(pod.containers)
        if pod.node is not None and _come(pod.scheduled, now):
            spec["nodeName"] = pod.node.name
        return {"metadata": metadata, "spec": spec, "status": _pod_status(pod, now, last_phase)}

    return document


def _pod_status(pod: Pod, now: int, last_phase: bool) -> Document:
    stopped = last_phase and _come(pod.deleted, now) and pod.ended is None and pod.reason is None
    stopped = stopped and pod.started is not None
    phase = "Running" if _come(pod.started, now) else "Pending"
    if _come(pod.ended, now) and pod.phase is not None:
        phase = pod.phase
    status: Document = {"phase": "Failed" if stopped else phase, "conditions": list(_pod_conditions(pod, now))}
    if pod.kubelet is not None and pod.kubelet <= now:
        status["startTime"] = _stamp(pod.kubelet)
        if not (_come(pod.ended, now) and (pod.reason == "Evicted" or not pod.attempts)):
            killed = pod.deleted if stopped else None
            boxes = [box for box in pod.containers if not box.init]
            status["containerStatuses"] = [_container_status(pod, box, now, killed) for box in boxes]
    if pod.reason is not None and _come(pod.reason_from, now):
        status["reason"] = pod.reason
    return status


def _pod_conditions(pod: Pod, now: int) -> Iterator[Document]:
    if pod.scheduled is not None and pod.scheduled <= now:
        yield _condition("PodScheduled", pod.scheduled)
    else:
        yield _condition("PodScheduled", pod.created, true=False, reason="Unschedulable")
    if pod.kubelet is not None and pod.kubelet <= now:
        has_init = any(box.init and not box.sidecar for box in pod.containers)
        initialised = pod.started if has_init else pod.kubelet
        yield _condition("PodReadyToStartContainers", pod.kubelet)
        if initialised is not None and initialised <= now:
            yield _condition("Initialized", initialised)
    if pod.started is not None and pod.started <= now:
        ended = pod.ended if _come(pod.ended, now) else None
        yield _condition("Ready", pod.started if ended is None else ended, true=ended is None)
    if pod.reason_from is not None and pod.reason_from <= now:
        # A node that turns a pod away disrupts nothing.
        words = {"Evicted": "TerminationByKubelet", "NodeLost": "DeletionByTaintManager"}
        if pod.reason in words:
            yield _condition("DisruptionTarget", pod.reason_from, reason=words[pod.reason])


def _container_status(pod: Pod, box: Container, now: int, killed: int | None) -> Document:
    begun = [one for one in pod.attempts if one.start <= now]
    if not begun:
        return {"name": box.name, "restartCount": 0, "state": {"waiting": {"reason": "ContainerCreating"}}}
    number, one = len(begun) - 1, begun[-1]
    status: Document = {"name": box.name, "restartCount": number}
    if number:
        status["lastState"] = _terminated(begun[-2])
    if box.ended is not None and box.ended <= now:
        return {**status, "state": _terminated(Attempt(one.start, box.ended, "Completed"))}
    if one.end is not None and one.end <= now and _come(pod.ended, now):
        return {**status, "state": _terminated(one)}
    if one.end is not None and one.end <= now and one is not pod.attempts[-1]:
        return {**status, "state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": _terminated(one)}
    if killed is not None:
        return {**status, "state": _terminated(Attempt(one.start, killed, "Error"))}
    return {**status, "state": {"running": {"startedAt": _stamp(one.start)}}}


def _terminated(one: Attempt) -> Document:
    reason = one.reason or "Completed"
    assert one.end is not None
    told = {"startedAt": _stamp(one.start), "finishedAt": _stamp(one.end), "reason": reason}
    return {"terminated": {**told, "exitCode": _EXIT_CODES.get(reason, 1)}}


def _job_moments(one: JobObject) -> Iterator[int | None]:
    yield from (one.completed, one.failed, *one.starts)
    for begun, until in one.suspended:
        yield from (begun, until)


def _job_conditions(one: JobObject, now: int, complete: str) -> Iterator[Document]:
    if one.completed is not None and one.completed <= now:
        yield _condition(complete, one.completed)
    if one.failed is not None and one.failed <= now:
        yield _condition("Failed", one.failed, reason="BackoffLimitExceeded")


def _is_suspended(one: JobObject, now: int) -> bool:
    return any(begun <= now and (until is None or now < until) for begun, until in one.suspended)


def _job_documents(work: Work, one: JobObject) -> Callable[[int], Document]:
    kind, name = one.owner or ("", "")
    owner = _owned(kind, name, _owner_uid(one)) if one.owner is not None else []
    metadata = _metadata(_job_uid(one), one.name, one.created, namespace=one.namespace, ownerReferences=owner)
    user = {} if work.user is None else {"user": work.user}
    template = {"metadata": {"labels": user}, "spec": _pod_spec(work.containers)}
    limit = {} if one.deadline is None else {"activeDeadlineSeconds": one.deadline}

    def document(now: int) -> Document:
        suspended = _is_suspended(one, now)
        started = [] if suspended else [start for start in one.starts if start <= now]
        status: Document = {"conditions": list(_job_conditions(one, now, "Complete"))}
        if started:
            status["startTime"] = _stamp(started[-1])
        if one.completed is not None and one.completed <= now:
            status["completionTime"] = _stamp(one.completed)
        counts = {"parallelism": one.parallelism, "completions": one.completions}
        return {
            "metadata": metadata,
            "spec": {**counts, **limit, "suspend": suspended, "template": template},
            "status": status,
        }

    return document


def _owner_uid(one: JobObject) -> str:
    kind, name = one.owner or ("", "")
    return f"{_uid(kind, one.namespace, name)}-{one.created}"


def _job_set_documents(one: JobObject) -> Callable[[int], Document]:
    _, name = one.owner or ("", "")
    metadata = _metadata(_owner_uid(one), name, one.created, namespace=one.namespace)
    return lambda now: {
        "metadata": metadata,
        "spec": {"suspend": _is_suspended(one, now)},
        "status": {"conditions": list(_job_conditions(one, now, "Completed"))},
    }


def _workload_documents(one: JobObject) -> Callable[[int], Document]:
    """Kueue's view of a Job: it is evicted each time it is suspended again."""
    owner = _owned("Job", one.name, _job_uid(one))
    metadata = _metadata(f"workload-{_job_uid(one)}", f"job-{one.name}", one.created, ownerReferences=owner)

    def document(now: int) -> Document:
        evicted = [begun for begun, _ in one.suspended[1:] if begun <= now]
        status: Document = {"conditions": []}
        if evicted:
            true = _is_suspended(one, now)
            status["conditions"] = [_condition("Evicted", evicted[-1], true=true, reason="Preempted")]
            status["schedulingStats"] = {"evictions": [{"reason": "Preempted", "count": len(evicted)}]}
        return {"metadata": {**metadata, "namespace": one.namespace}, "status": status}

    return document


def _operated(work: Work) -> ApiObject:
    """The object of an operator of which the world knows only the pods."""
    kind, name = work.creator or ("", "")
    created = min(pod.created for pod in work.pods)
    ends = [pod.ended for pod in work.pods]
    ended = None if None in ends else max(one for one in ends if one is not None)
    gone = [pod.deleted for pod in work.pods]
    deleted = None if None in gone else max(one for one in gone if one is not None)
    said = None if ended is None or kind == "RayCluster" else ended + _SAID_AFTER
    word = "Succeeded" if work.endings and work.endings[-1] is Ending.DONE else "Failed"
    metadata = _metadata(_uid(kind, work.namespace, name), name, created, namespace=work.namespace)

    def document(now: int) -> Document:
        status: Document = {"conditions": [_condition("Created", created)], "startTime": _stamp(created)}
        if said is not None and said <= now:
            status = {
                "conditions": [_condition(word, said)],
                "completionTime": _stamp(said),
                "startTime": _stamp(created),
            }
        return {"metadata": metadata, "spec": {}, "status": status}

    return _object(_OPERATED[kind], created, deleted, (said,), document)
