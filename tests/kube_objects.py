"""Kubernetes objects as the API server sends them, in seconds from noon; say what matters, the rest is filled in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from advisor.cluster.objects import NotServed, ObjectKind, Page, WatchEvent
from tests.builders import NOON


def at(seconds: float) -> datetime:
    """So many seconds after noon."""
    return NOON + timedelta(seconds=seconds)


def stamp(seconds: float) -> str:
    """The same as the API server writes it."""
    return at(seconds).strftime("%Y-%m-%dT%H:%M:%SZ")


def a_condition(kind: str, seconds: float, status: str = "True", **more: Any) -> dict[str, Any]:
    return {"type": kind, "status": status, "lastTransitionTime": stamp(seconds), **more}


def owned_by(kind: str, name: str) -> list[dict[str, Any]]:
    return [{"kind": kind, "name": name, "uid": f"uid-{name}", "controller": True}]


def metadata(name: str, created: float, version: str = "1", **more: Any) -> dict[str, Any]:
    return {
        "uid": f"uid-{name}",
        "name": name,
        "resourceVersion": version,
        "creationTimestamp": stamp(created),
        **({} if more.pop("cluster_wide", False) else {"namespace": "ml"}),
        **more,
    }


def a_container(gpus: object = "1", **more: Any) -> dict[str, Any]:
    return {"name": "main", "image": "train:1", "resources": {"limits": {"nvidia.com/gpu": gpus}}, **more}


def pod_object(
    name: str = "train",
    *,
    created: float = 0,
    scheduled: float | None = None,
    started: float | None = None,
    finished: float | None = None,
    phase: str | None = None,
    **more: Any,
) -> dict[str, Any]:
    """A pod of one container with one GPU. ``meta``, ``spec`` and ``status`` add to its parts."""
    running = {} if started is None else {"startedAt": stamp(started)}
    state = {"running": running} if finished is None else {"terminated": {**running, "finishedAt": stamp(finished)}}
    conditions = [] if scheduled is None else [a_condition("PodScheduled", scheduled)]
    status = more.pop("status", {})
    known = "Pending" if started is None else ("Running" if finished is None else "Succeeded")
    return {
        "metadata": metadata(name, created, more.pop("version", "1"), **more.pop("meta", {})),
        "spec": {
            "containers": [a_container()],
            **({} if scheduled is None else {"nodeName": "n1"}),
            **more.pop("spec", {}),
        },
        "status": {
            "phase": phase or known,
            "containerStatuses": [] if started is None else [{"restartCount": 0, "state": state}],
            **status,
            "conditions": [*conditions, *status.get("conditions", [])],
        },
    }


def job_object(name: str = "train", *, created: float = 0, version: str = "1", gpus: object = "1", **more: Any) -> dict:
    """A Job of one pod with one GPU."""
    return {
        "metadata": metadata(name, created, version, **more.pop("meta", {})),
        "spec": {
            "parallelism": 1,
            "completions": 1,
            "template": {"spec": {"containers": [a_container(gpus)]}},
            **more.pop("spec", {}),
        },
        "status": more.pop("status", {}),
    }


def node_object(name: str = "n1", *, created: float = 0, gpus: object = "8", version: str = "1", **labels: str) -> dict:
    """A node of NodePool gpu; ``labels`` are those of ``nvidia.com``, with underscores for dots and dashes."""
    nvidia = {
        {"replicas": "gpu.replicas", "strategy": "gpu.sharing-strategy", "product": "gpu.product"}.get(key, key): value
        for key, value in labels.items()
    }
    return {
        "metadata": metadata(
            name,
            created,
            version,
            cluster_wide=True,
            labels={"karpenter.sh/nodepool": "gpu", **{f"nvidia.com/{key}": value for key, value in nvidia.items()}},
        ),
        "status": {"allocatable": {"cpu": "96", "nvidia.com/gpu": gpus}},
    }


def claim_object(name: str = "c1", *, created: float = 0, node: str = "n1", **moments: float) -> dict:
    """A NodeClaim of NodePool gpu; ``moments`` by condition."""
    return {
        "metadata": metadata(name, created, cluster_wide=True, labels={"karpenter.sh/nodepool": "gpu"}),
        "status": {"nodeName": node, "conditions": [a_condition(kind, moment) for kind, moment in moments.items()]},
    }


def queued_object(owner: str, conditions: list[dict[str, Any]], **status: Any) -> dict:
    """A Kueue Workload that stands for an object."""
    meta = metadata(f"job-{owner}", 0, ownerReferences=[{"kind": "Job", "name": owner, "uid": f"uid-{owner}"}])
    return {"metadata": meta, "status": {"conditions": conditions, **status}}


class StillCluster:
    """Answers lists by plural; what is not listed is not served, and nothing ever changes."""

    name = "still"

    def __init__(self, lists: Mapping[str, Sequence[dict[str, Any]]]) -> None:
        self._lists = lists

    def list(self, kind: ObjectKind, limit: int, token: str | None) -> Page:
        del limit, token
        if kind.plural not in self._lists:
            raise NotServed(kind.plural)
        return Page(self._lists[kind.plural], "1")

    def watch(self, kind: ObjectKind, version: str, timeout_seconds: float) -> Iterator[WatchEvent]:
        del kind, version, timeout_seconds
        return iter(())
