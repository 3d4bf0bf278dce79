"""A kubelet that does as it is told: nodes come, and pods that were given to them run, stop and go when a test says.

Moments are those of this machine, in whole seconds as Kubernetes writes them, and are told back: they are the truth.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from tests.servers.kube_api import KubeApi, Object

__all__ = ["Kubelet", "moment", "now", "pod_path"]


def moment(text: str) -> datetime:
    """What the API server writes as a moment."""
    return datetime.fromisoformat(text)


def pod_path(pod: Object) -> str:
    """Where it is."""
    metadata = pod["metadata"]
    return f"/api/v1/namespaces/{metadata['namespace']}/pods/{metadata['name']}"


def _condition(kind: str, at: str, *, true: bool = True) -> Object:
    return {"type": kind, "status": "True" if true else "False", "lastTransitionTime": at}


class Kubelet:
    """Plays every kubelet of the cluster behind ``api``."""

    def __init__(self, api: KubeApi) -> None:
        """It speaks through ``api``, which must be allowed to do everything."""
        self._api = api

    def node(self, name: str, labels: Mapping[str, str], resources: Mapping[str, str]) -> None:
        """A node that is ready, as soon as the scheduler may use it."""
        amounts = {"cpu": "64", "memory": "512Gi", "pods": "250", **resources}
        document = {
            "metadata": {"name": name, "labels": dict(labels)},
            "status": {
                "capacity": amounts,
                "allocatable": amounts,
                "conditions": [
                    {**_condition("Ready", _stamp(now())), "lastHeartbeatTime": _stamp(now()), "reason": "KubeletReady"}
                ],
            },
        }
        self._api.create("/api/v1/nodes", document)
        self._api.one_until(f"/api/v1/nodes/{name}", lambda node: not node["spec"].get("taints"))

    def run(self, pod: Object) -> datetime:
        """Let it run as soon as it has a node; when its containers started."""
        pod = self._api.one_until(pod_path(pod), lambda seen: "nodeName" in seen["spec"])
        at = now()
        state = {"running": {"startedAt": _stamp(at)}}
        boxes = [_box(box, state) for box in pod["spec"]["containers"]]
        # An init container that does not keep running is done as soon as it has begun.
        first = [
            _box(box, state if box.get("restartPolicy") == "Always" else _terminated(at, at, 0, "Completed"))
            for box in pod["spec"].get("initContainers", ())
        ]
        kinds = ("PodReadyToStartContainers", "Initialized", "ContainersReady", "Ready")
        self._say(
            pod,
            phase="Running",
            startTime=_stamp(at),
            conditions=[_condition(kind, _stamp(at)) for kind in kinds],
            containerStatuses=boxes,
            **({"initContainerStatuses": first} if first else {}),
        )
        return at

    def restart(self, pod: Object, started: datetime) -> datetime:
        """Let its container, that had ``started`` then, fail and start anew; when it did."""
        at = now()
        boxes = [
            {
                **_box(box, {"running": {"startedAt": _stamp(at)}}),
                "restartCount": 1,
                "lastState": _terminated(started, at, 1, "Error"),
            }
            for box in pod["spec"]["containers"]
        ]
        self._say(pod, containerStatuses=boxes)
        return at

    def finish(self, pod: Object, started: datetime, exit_code: int = 0, reason: str = "Completed") -> datetime:
        """Let its containers, that had ``started`` then, stop; when they did."""
        at = now()
        stopped = _terminated(started, at, exit_code, reason)
        told = self._api.read(pod_path(pod))["status"]["containerStatuses"]
        boxes = [{**box, "ready": False, "started": False, "state": stopped} for box in told]
        self._say(
            pod,
            phase="Failed" if exit_code else "Succeeded",
            conditions=[_condition(kind, _stamp(at), true=False) for kind in ("ContainersReady", "Ready")],
            containerStatuses=boxes,
        )
        return at

    def remove(self, pod: Object, started: datetime | None) -> datetime:
        """Let a pod that was asked to go stop, say so, and go; when it stopped."""
        at = now() if started is None else self.finish(pod, started, 137, "Error")
        self._api.delete(pod_path(pod), grace_seconds=0)
        self._api.gone(pod_path(pod))
        return at

    def _say(self, pod: Object, **status: Any) -> None:
        self._api.patch(f"{pod_path(pod)}/status", {"status": status})


def now() -> datetime:
    """This moment, as Kubernetes would write it."""
    return datetime.now(UTC).replace(microsecond=0)


def _stamp(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")


def _box(box: Object, state: Object) -> Object:
    image = {"image": box["image"], "imageID": box["image"]}
    return {"name": box["name"], "ready": True, "started": True, "restartCount": 0, "state": state, **image}


def _terminated(started: datetime, finished: datetime, exit_code: int, reason: str) -> Object:
    return {
        "terminated": {
            "startedAt": _stamp(started),
            "finishedAt": _stamp(finished),
            "exitCode": exit_code,
            "reason": reason,
        }
    }
