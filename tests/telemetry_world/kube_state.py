"""What kube-state-metrics 2.20 shows of a world."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from zlib import crc32

from tests.telemetry_world.scrapes import Row
from tests.telemetry_world.things import Container, JobObject, Node, Pod
from tests.telemetry_world.world import World

__all__ = ["KUBE_STATE"]

_PHASES = ("Pending", "Running", "Succeeded", "Failed", "Unknown")
_LOST_AFTER = 90
"""Seconds before a lost node is removed at which it is no longer ready."""


def _pod(pod: Pod, **more: str) -> dict[str, str]:
    return {"namespace": pod.namespace, "pod": pod.name, "uid": pod.uid, **more}


def _pod_created(pod: Pod) -> Iterator[Row]:
    yield Row(_pod(pod), pod.created, pod.deleted, pod.created)


def _pod_scheduled(pod: Pod) -> Iterator[Row]:
    if pod.scheduled is not None:
        yield Row(_pod(pod), pod.scheduled, pod.deleted, pod.scheduled)


def _pod_start(pod: Pod) -> Iterator[Row]:
    if pod.kubelet is not None:
        yield Row(_pod(pod), pod.kubelet, pod.deleted, pod.kubelet)


def _statuses_until(pod: Pod) -> int | None:
    """Until when its containers' states are shown: those of an evicted pod are gone at once."""
    return pod.ended if pod.reason == "Evicted" else pod.deleted


def _main(pod: Pod) -> Iterator[Container]:
    return (box for box in pod.containers if not box.init)


def _state_started(pod: Pod) -> Iterator[Row]:
    for box in _main(pod):
        for number, attempt in enumerate(pod.attempts):
            last = number == len(pod.attempts) - 1
            # Between two attempts a container waits, and has no start.
            until = _statuses_until(pod) if last else attempt.end
            yield Row(_pod(pod, container=box.name), attempt.start, until, attempt.start)


def _completion(pod: Pod) -> Iterator[Row]:
    """The latest end of any container, as soon as one has ended."""
    if pod.started is None or pod.reason in {"Evicted", "NodeLost"}:
        return
    early = [box.ended for box in _main(pod) if box.ended is not None]
    if early:
        yield Row(_pod(pod), early[0], pod.deleted if pod.ended is None else pod.ended, early[0])
    if pod.ended is not None:
        yield Row(_pod(pod), pod.ended, pod.deleted, pod.ended)


def _phase(pod: Pod) -> Iterator[Row]:
    moments = [(pod.created, "Pending")]
    if pod.started is not None:
        moments.append((pod.started, "Running"))
    if pod.ended is not None and pod.phase is not None:
        moments.append((pod.ended, pod.phase))
    untils = [moment for moment, _ in moments[1:]] + [pod.deleted]
    for phase in _PHASES:
        for (begin, now), until in zip(moments, untils, strict=True):
            yield Row(_pod(pod, phase=phase), begin, until, float(phase == now))


def _reason(pod: Pod) -> Iterator[Row]:
    if pod.reason is not None and pod.reason_from is not None:
        yield Row(_pod(pod, reason=pod.reason), pod.reason_from, pod.deleted, 1)


def _terminated(pod: Pod) -> Iterator[Row]:
    for box in _main(pod):
        if box.ended is not None:
            yield Row(_pod(pod, container=box.name, reason="Completed"), box.ended, pod.deleted, 1)
        elif pod.shows_completion and pod.ended is not None:
            reason = pod.attempts[-1].reason or "Completed"
            yield Row(_pod(pod, container=box.name, reason=reason), pod.ended, pod.deleted, 1)


def _restarts(pod: Pod) -> Iterator[Row]:
    if pod.kubelet is None or pod.reason == "UnexpectedAdmissionError":
        return
    for box in _main(pod):
        begins = [pod.kubelet, *(attempt.start for attempt in pod.attempts[1:])]
        untils = [*begins[1:], _statuses_until(pod)]
        for number, (begin, until) in enumerate(zip(begins, untils, strict=True)):
            yield Row(_pod(pod, container=box.name), begin, until, number)


def _owner(pod: Pod) -> Iterator[Row]:
    kind, name = pod.owner or ("", "")
    controller = "true" if pod.owner else ""
    labels = _pod(pod, owner_kind=kind, owner_name=name, owner_is_controller=controller)
    yield Row(labels, pod.created, pod.deleted, 1)


def _info(pod: Pod) -> Iterator[Row]:
    kind, name = pod.owner or ("<none>", "<none>")
    common = _pod(pod, created_by_kind=kind, created_by_name=name, host_network="false")
    bound = pod.deleted if pod.scheduled is None else pod.scheduled
    yield Row(common, pod.created, bound, 1)
    if pod.scheduled is not None and pod.node is not None:
        where = {"node": pod.node.name, "host_ip": _address(pod.node.name)}
        yield Row({**common, **where}, pod.scheduled, pod.deleted, 1)


def _address(name: str) -> str:
    number = crc32(name.encode())
    return f"10.0.{number >> 8 & 255}.{number & 255}"


def _container_info(init: bool) -> Callable[[Pod], Iterator[Row]]:
    def rows(pod: Pod) -> Iterator[Row]:
        if pod.kubelet is None:
            return
        for box in pod.containers:
            if box.init is init:
                labels = _pod(pod, container=box.name, image=box.image, image_spec=box.image)
                if init and box.sidecar:
                    labels["restart_policy"] = "Always"
                yield Row(labels, pod.kubelet, _statuses_until(pod), 1)

    return rows


def _requests(init: bool) -> Callable[[Pod], Iterator[Row]]:
    def rows(pod: Pod) -> Iterator[Row]:
        for box in pod.containers:
            if box.init is not init:
                continue
            for resource, amount in box.asks.items():
                unit = "core" if resource == "cpu" else "integer"
                labels = _pod(pod, container=box.name, resource=resource, unit=unit)
                # An unbound pod's node is empty; it is another series from the moment it is bound.
                bound = pod.deleted if pod.scheduled is None else pod.scheduled
                yield Row(labels, pod.created, bound, amount)
                if pod.scheduled is not None and pod.node is not None:
                    yield Row({**labels, "node": pod.node.name}, pod.scheduled, pod.deleted, amount)

    return rows


def _labels(pod: Pod) -> Iterator[Row]:
    yield Row(_pod(pod, **pod.labels), pod.created, pod.deleted, 1)


def _job(one: JobObject, **more: str) -> dict[str, str]:
    return {"namespace": one.namespace, "job_name": one.name, **more}


def _of_job(value: Callable[[JobObject], int | None]) -> Callable[[JobObject], Iterator[Row]]:
    def rows(one: JobObject) -> Iterator[Row]:
        found = value(one)
        if found is not None:
            yield Row(_job(one), one.created, one.deleted, found)

    return rows


def _job_start(one: JobObject) -> Iterator[Row]:
    """Reset on each resumption, and not there while the Job is suspended."""
    for start in one.starts:
        ends = [begun for begun, _ in one.suspended if begun > start]
        yield Row(_job(one), start, min(ends) if ends else one.deleted, start)


def _job_completion(one: JobObject) -> Iterator[Row]:
    if one.completed is not None:
        yield Row(_job(one), one.completed, one.deleted, one.completed)


def _job_condition(moment: Callable[[JobObject], int | None]) -> Callable[[JobObject], Iterator[Row]]:
    def rows(one: JobObject) -> Iterator[Row]:
        begin = moment(one)
        if begin is not None:
            for condition in ("true", "false", "unknown"):
                yield Row(_job(one, condition=condition), begin, one.deleted, float(condition == "true"))

    return rows


def _job_suspended(one: JobObject) -> Iterator[Row]:
    for number, (begun, until) in enumerate(one.suspended):
        yield Row(_job(one), begun, until if until is not None else one.deleted, 1)
        if until is not None:
            after = one.suspended[number + 1][0] if number + 1 < len(one.suspended) else one.deleted
            yield Row(_job(one), until, after, 0)


def _job_owner(one: JobObject) -> Iterator[Row]:
    kind, name = one.owner or ("", "")
    controller = "true" if one.owner else ""
    yield Row(_job(one, owner_kind=kind, owner_name=name, owner_is_controller=controller), one.created, one.deleted, 1)


def _node_info(node: Node) -> Iterator[Row]:
    labels = {
        "node": node.name,
        "internal_ip": _address(node.name),
        "provider_id": f"aws:///us-east-1a/i-{crc32(node.name.encode()):017x}",
    }
    yield Row(labels, node.created, node.removed, 1)


def _node_created(node: Node) -> Iterator[Row]:
    yield Row({"node": node.name}, node.created, node.removed, node.created)


def _node_labels(node: Node) -> Iterator[Row]:
    labels = {
        "node": node.name,
        "label_karpenter_sh_nodepool": node.pool,
        "label_karpenter_sh_capacity_type": "spot" if node.pool.startswith("spot") else "on-demand",
        "label_nvidia_com_gpu_product": node.product,
        "label_nvidia_com_gpu_count": str(len(node.devices)),
        "label_nvidia_com_gpu_replicas": str(node.replicas),
        "label_nvidia_com_gpu_memory": str(node.memory_mib),
    }
    yield Row(labels, node.created, node.removed, 1)


def _node_allocatable(node: Node) -> Iterator[Row]:
    for resource, amount in node.advertised.items():
        yield Row({"node": node.name, "resource": resource, "unit": "integer"}, node.created, node.removed, amount)


def _node_condition(node: Node) -> Iterator[Row]:
    unknown = None if node.removed is None else max(node.removed - _LOST_AFTER, node.created)
    for status in ("true", "false", "unknown"):
        labels = {"node": node.name, "condition": "Ready", "status": status}
        yield Row(labels, node.created, unknown, float(status == "true"))
        if unknown is not None:
            yield Row(labels, unknown, node.removed, float(status == "unknown"))


_OF_PODS: Mapping[str, Callable[[Pod], Iterator[Row]]] = {
    "kube_pod_created": _pod_created,
    "kube_pod_status_scheduled_time": _pod_scheduled,
    "kube_pod_start_time": _pod_start,
    "kube_pod_container_state_started": _state_started,
    "kube_pod_completion_time": _completion,
    "kube_pod_status_phase": _phase,
    "kube_pod_status_reason": _reason,
    "kube_pod_container_status_terminated_reason": _terminated,
    "kube_pod_container_status_restarts_total": _restarts,
    "kube_pod_owner": _owner,
    "kube_pod_info": _info,
    "kube_pod_container_info": _container_info(init=False),
    "kube_pod_init_container_info": _container_info(init=True),
    "kube_pod_container_resource_requests": _requests(init=False),
    "kube_pod_init_container_resource_requests": _requests(init=True),
    "kube_pod_labels": _labels,
}
_OF_JOBS: Mapping[str, Callable[[JobObject], Iterator[Row]]] = {
    "kube_job_created": _of_job(lambda one: one.created),
    "kube_job_status_start_time": _job_start,
    "kube_job_status_completion_time": _job_completion,
    "kube_job_complete": _job_condition(lambda one: one.completed),
    "kube_job_failed": _job_condition(lambda one: one.failed),
    "kube_job_spec_parallelism": _of_job(lambda one: one.parallelism),
    "kube_job_spec_completions": _of_job(lambda one: one.completions),
    "kube_job_spec_active_deadline_seconds": _of_job(lambda one: one.deadline),
    "kube_job_status_suspended": _job_suspended,
    "kube_job_owner": _job_owner,
}
_OF_NODES: Mapping[str, Callable[[Node], Iterator[Row]]] = {
    "kube_node_info": _node_info,
    "kube_node_created": _node_created,
    "kube_node_labels": _node_labels,
    "kube_node_status_allocatable": _node_allocatable,
    "kube_node_status_condition": _node_condition,
}


def _all(name: str) -> Callable[[World], Iterator[Row]]:
    def rows(world: World) -> Iterator[Row]:
        if name in _OF_PODS:
            for pod in world.pods:
                yield from _OF_PODS[name](pod)
        elif name in _OF_JOBS:
            for one in world.objects:
                yield from _OF_JOBS[name](one)
        else:
            for node in world.nodes:
                yield from _OF_NODES[name](node)

    return rows


KUBE_STATE: Mapping[str, Callable[[World], Iterator[Row]]] = {
    name: _all(name) for name in (*_OF_PODS, *_OF_JOBS, *_OF_NODES)
}
"""Every metric by name with what it shows of a world: rows with their labels and the time they are shown."""
