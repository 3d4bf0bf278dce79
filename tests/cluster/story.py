"""An eventful minute on a real control plane, and what is then true of every job.

Controllers and scheduler do what they do anywhere; the rest is told to a kubelet. The truth is made of what the API
server said when an object was made, when the scheduler said it had a node, and of what the kubelet wrote.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

from advisor.domain.jobs import Job, Outcome
from tests.servers.kube_api import KubeApi, Object
from tests.servers.kubelet import Kubelet, moment, now, pod_path

__all__ = ["KINDS", "BenchStory", "nodes_of", "serve_kinds"]

POOL = "karpenter.sh/nodepool"
_POOLS: Mapping[str, tuple[Mapping[str, str], Mapping[str, str]]] = {
    "a100": ({"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB"}, {"nvidia.com/gpu": "8"}),
    "sliced": (
        {
            "nvidia.com/gpu.product": "Tesla-T4-SHARED",
            "nvidia.com/gpu.replicas": "4",
            "nvidia.com/gpu.sharing-strategy": "time-slicing",
        },
        {"nvidia.com/gpu.shared": "16"},
    ),
    "mig": (
        {"nvidia.com/gpu.product": "NVIDIA-A100-SXM4-40GB"},
        {"nvidia.com/mig-3g.20gb": "8", "nvidia.com/mig-1g.5gb": "8"},
    ),
    "hami": (
        {"nvidia.com/gpu.product": "Tesla-V100", "nvidia.com/gpu.memory": "32768"},
        {"nvidia.com/gpu": "40", "nvidia.com/gpucores": "400", "nvidia.com/gpumem": "131072"},
    ),
}
_KIND = {"a100": "NVIDIA-A100-SXM4-40GB", "sliced": "Tesla-T4", "mig": "NVIDIA-A100-SXM4-40GB", "hami": "Tesla-V100"}
KINDS = (
    ("jobset.x-k8s.io", "v1alpha2", "jobsets", "JobSet"),
    ("kubeflow.org", "v1", "pytorchjobs", "PyTorchJob"),
)
"""Kinds of operators whose objects are made by hand: group, version, plural, kind."""


def nodes_of(kubelet: Kubelet) -> None:
    """Four nodes of whole GPUs, and one of each way of sharing them."""
    for pool, (labels, resources) in _POOLS.items():
        for number in range(4 if pool == "a100" else 1):
            kubelet.node(f"{pool}-{number}", {POOL: pool, **labels}, resources)


def serve_kinds(api: KubeApi) -> None:
    """Let the API server serve the kinds of operators, whatever their objects hold."""
    for group, version, plural, kind in KINDS:
        anything = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
        served = {"name": version, "served": True, "storage": True, "schema": anything}
        definitions, name = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", f"{plural}.{group}"
        spec = {
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural, "singular": kind.lower(), "kind": kind},
            "versions": [served],
        }
        api.create(definitions, {"metadata": {"name": name}, "spec": spec})
        api.one_until(f"{definitions}/{name}", _established)


def _established(definition: Object) -> bool:
    told = definition.get("status", {}).get("conditions") or ()
    return any(each["type"] == "Established" and each["status"] == "True" for each in told)


@dataclass
class BenchStory:
    """What happens in ``namespace``, which is there.

    ``jobs`` is the truth by name. ``last_runs`` is what is left to be seen of work that runs anew, once its first run
    is gone, and ``gone`` are the names of which nothing is left.
    """

    api: KubeApi
    kubelet: Kubelet
    namespace: str
    jobs: dict[str, Job] = field(default_factory=dict)
    last_runs: dict[str, Job] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    _running: dict[str, list[tuple[Object, datetime]]] = field(default_factory=dict)

    def begin(self) -> None:
        """Everything is asked for; what can run does."""
        self._pod("whole", 2, {"nvidia.com/gpu": "2"})
        self._pod("memory", 1, {"nvidia.com/gpu": "1"})
        self._pod("again", 1, {"nvidia.com/gpu": "1"})
        self._pod("stopped", 1, {"nvidia.com/gpu": "1"})
        self._pod("vanished", 1, {"nvidia.com/gpu": "1"})
        self._pod("evicted", 1, {"nvidia.com/gpu": "1"})
        self._pod("sliced", 0.5, {"nvidia.com/gpu.shared": "2"}, pool="sliced")
        self._pod("cut", 3 / 7, {"nvidia.com/mig-3g.20gb": "1"}, pool="mig")
        self._pod("cores", 1.0, {"nvidia.com/gpu": "2", "nvidia.com/gpucores": "50"}, pool="hami")
        self._pod("part", 0.5, {}, annotations={"gpu-fraction": "0.5"})
        # Its sidecar and its largest init container together ask for more than what runs later.
        first = [_box("side", {"nvidia.com/gpu": "1"}, restartPolicy="Always"), _box("fetch", {"nvidia.com/gpu": "3"})]
        self._pod("layered", 4, {"nvidia.com/gpu": "1"}, initContainers=first)
        self._wait("waiting", 64, {"nvidia.com/gpu": "64"})
        self._made(self._spec({}), "no-gpus")
        self._made(self._spec({}), "unreadable", annotations={"gpu-fraction": "a third"})
        self._job("gang", pods=2)
        self._job("broken")
        self._job("paused", retries=6)
        self._owned_job("sweep")
        self._owned_pods("spread")

    def go_on(self) -> None:
        """Some end, each in a way of its own; the others stay as they are."""
        self._wait_for_the_second_after(max(started for pods in self._running.values() for _, started in pods))
        self._ends("whole", Outcome.COMPLETED, 0, "Completed")
        self._ends("memory", Outcome.FAILED, 137, "OOMKilled")
        ((pod, started),) = self._running["again"]
        self._running["again"] = [(pod, self.kubelet.restart(pod, started))]
        self._ends("again", Outcome.COMPLETED, 0, "Completed")
        self._true("again", restarts=1)
        self._asked_to_go("stopped")
        self._goes_at_once("vanished")
        self._evicted("evicted")
        self._ends("gang", Outcome.COMPLETED, 0, "Completed")
        self._ends("broken", Outcome.FAILED, 1, "Error")
        self._suspended_and_resumed("paused")
        self._ends("sweep", Outcome.COMPLETED, 0, "Completed")

    def _true(self, name: str, **more: Any) -> None:
        self.jobs[name] = replace(self.jobs[name], **more)

    def _spec(self, resources: Mapping[str, str], pool: str = "a100", **more: Any) -> Object:
        spec = {
            "containers": [_box("main", resources)],
            "restartPolicy": "Never",
            "nodeSelector": {POOL: pool},
            "terminationGracePeriodSeconds": 30,
        }
        return {**spec, **more}

    def _made(self, spec: Object, name: str, **metadata: Any) -> Object:
        metadata = {"name": name, "labels": {"user": "ana"}, **metadata}
        return self.api.create(f"/api/v1/namespaces/{self.namespace}/pods", {"metadata": metadata, "spec": spec})

    def _pod(
        self,
        name: str,
        gpus: float,
        resources: Mapping[str, str],
        pool: str = "a100",
        annotations: Mapping[str, str] | None = None,
        **spec: Any,
    ) -> None:
        """A pod of its own that runs."""
        pod = self._made(self._spec(resources, pool, **spec), name, annotations=dict(annotations or {}))
        self._runs(name, [pod], Job(id=pod["metadata"]["uid"], submit=_created(pod), gpus=gpus, pool=pool))

    def _wait(self, name: str, gpus: float, resources: Mapping[str, str]) -> None:
        pod = self._made(self._spec(resources), name)
        self.jobs[name] = Job(
            id=pod["metadata"]["uid"],
            submit=_created(pod),
            gpus=gpus,
            namespace=self.namespace,
            name=name,
            user="ana",
            pool="a100",
        )

    def _job(self, name: str, pods: int = 1, owner: Object | None = None, retries: int = 0) -> None:
        """A Job that runs in ``pods`` pods."""
        owners = [] if owner is None else [_owner(owner)]
        spec = self._spec({"nvidia.com/gpu": "1"})
        document = {
            "metadata": {"name": name, "ownerReferences": owners},
            "spec": {
                "parallelism": pods,
                "completions": pods,
                "backoffLimit": retries,
                "template": {"metadata": {"labels": {"user": "ana"}}, "spec": spec},
            },
        }
        job = self.api.create(f"/apis/batch/v1/namespaces/{self.namespace}/jobs", document)
        above = job if owner is None else owner
        self._runs(above["metadata"]["name"], self._pods_of(name, pods), self._of(above, pods))

    def _of(self, above: Object, gpus: float) -> Job:
        metadata = above["metadata"]
        shown = f"{above['kind']}/{metadata['name']}"
        return Job(id=metadata["uid"], submit=_created(above), gpus=gpus, created_by=shown, pool="a100")

    def _pods_of(self, job: str, count: int, but: Sequence[str] = ()) -> list[Object]:
        """The pods its controller makes, without those that went before."""

        def come(pods: Sequence[Object]) -> bool:
            return len([pod for pod in pods if pod["metadata"]["uid"] not in but]) == count

        made = self.api.until(
            f"/api/v1/namespaces/{self.namespace}/pods", come, labelSelector=f"batch.kubernetes.io/job-name={job}"
        )
        return [pod for pod in made if pod["metadata"]["uid"] not in but]

    def _owned_job(self, name: str) -> None:
        """A JobSet, and the Job its operator would have made."""
        self._job(f"{name}-workers-0", owner=self._operated("jobset.x-k8s.io/v1alpha2", "jobsets", "JobSet", name))

    def _owned_pods(self, name: str) -> None:
        """A PyTorchJob, and the two pods its operator would have made."""
        owner = self._operated("kubeflow.org/v1", "pytorchjobs", "PyTorchJob", name)
        spec = self._spec({"nvidia.com/gpu": "1"})
        pods = [self._made(spec, f"{name}-worker-{n}", ownerReferences=[_owner(owner)]) for n in range(2)]
        self._runs(name, pods, self._of(owner, 2))

    def _operated(self, version: str, plural: str, kind: str, name: str) -> Object:
        document = {"apiVersion": version, "kind": kind, "metadata": {"name": name}, "spec": {}}
        return self.api.create(f"/apis/{version}/namespaces/{self.namespace}/{plural}", document)

    def _runs(self, name: str, pods: Sequence[Object], job: Job) -> None:
        """Each of its pods is given a node and starts."""
        starts = [self.kubelet.run(pod) for pod in pods]
        self._running[name] = list(zip(pods, starts, strict=True))
        given = [self.api.read(pod_path(pod)) for pod in pods]
        self.jobs[name] = replace(
            job,
            namespace=self.namespace,
            name=name,
            user="ana",
            gpu_kind=_KIND[job.pool or ""],
            scheduled=min(_scheduled(pod) for pod in given),
            start=min(starts),
        )

    def _ends(self, name: str, outcome: Outcome, exit_code: int, reason: str) -> None:
        ends = [self.kubelet.finish(pod, started, exit_code, reason) for pod, started in self._running[name]]
        self._true(name, outcome=outcome, end=max(ends))

    def _asked_to_go(self, name: str) -> None:
        """Somebody deletes it, and its kubelet lets it stop."""
        ((pod, started),) = self._running[name]
        self.api.delete(pod_path(pod))
        self._true(name, outcome=Outcome.CANCELLED, end=self.kubelet.remove(pod, started))
        self.gone.add(name)

    def _goes_at_once(self, name: str) -> None:
        """Somebody deletes it by force, and nobody says how it ended: it was there until it was gone."""
        ((pod, _),) = self._running[name]
        before = now()
        self.api.delete(pod_path(pod), grace_seconds=0)
        self._true(name, outcome=Outcome.CANCELLED, end=before)
        self.gone.add(name)

    def _evicted(self, name: str) -> None:
        ((pod, started),) = self._running[name]
        metadata = {key: pod["metadata"][key] for key in ("name", "namespace")}
        eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata}
        self.api.create(f"{pod_path(pod)}/eviction", eviction)
        self._true(name, outcome=Outcome.CENSORED, last_seen=self.kubelet.remove(pod, started))
        self.gone.add(name)

    def _wait_for_the_second_after(self, last: datetime) -> None:
        """Moments have whole seconds: what begins and ends in one of them seems to take no time."""
        while now() <= last:
            self.api.read("/version")

    def _suspended_and_resumed(self, name: str) -> None:
        """Its pod is taken from it, and later it is given another one."""
        path = f"/apis/batch/v1/namespaces/{self.namespace}/jobs/{name}"
        ((pod, started),) = self._running[name]
        self.api.patch(path, {"spec": {"suspend": True}})
        self.api.one_until(pod_path(pod), lambda seen: "deletionTimestamp" in seen["metadata"])
        stopped = self.kubelet.remove(pod, started)
        self._wait_for_the_second_after(stopped)
        self.api.patch(path, {"spec": {"suspend": False}})
        (after,) = self._pods_of(name, 1, but=[pod["metadata"]["uid"]])
        resumed = self.kubelet.run(after)
        self._running[name] = [(after, resumed)]
        self._ends(name, Outcome.COMPLETED, 0, "Completed")
        scheduled = _scheduled(self.api.read(pod_path(after)))
        self.last_runs[name] = replace(self.jobs[name], start=resumed, scheduled=scheduled)
        self._true(name, paused_seconds=(resumed - stopped).total_seconds(), evictions=1)


def _box(name: str, resources: Mapping[str, str], **more: Any) -> Object:
    return {"name": name, "image": "train:1", "resources": {"limits": dict(resources)}, **more}


def _owner(above: Object) -> Object:
    metadata = above["metadata"]
    return {
        "apiVersion": above["apiVersion"],
        "kind": above["kind"],
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
    }


def _created(document: Object) -> datetime:
    return moment(document["metadata"]["creationTimestamp"])


def _scheduled(pod: Object) -> datetime:
    told = pod["status"]["conditions"]
    return next(moment(each["lastTransitionTime"]) for each in told if each["type"] == "PodScheduled")
