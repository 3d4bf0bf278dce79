"""What any source knows of a pod and of the object that created it, before jobs are made of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from advisor.domain.jobs import Outcome

__all__ = ["GANG_KINDS", "TAKEN_BY_THE_SYSTEM", "CreatorRecord", "PodRecord"]

GANG_KINDS = frozenset(
    {
        "Job",
        "JobSet",
        "TrainJob",
        "PyTorchJob",
        "TFJob",
        "MPIJob",
        "XGBoostJob",
        "PaddleJob",
        "JAXJob",
        "RayJob",
        "RayCluster",
        "LeaderWorkerSet",
        "SparkApplication",
    }
)
"""Kinds whose pods are one piece of work; of several in a chain of creators the outermost counts."""


TAKEN_BY_THE_SYSTEM = frozenset(
    {
        "Evicted",
        "NodeLost",
        "NodeShutdown",
        "Preempted",
        "Preempting",
        "Shutdown",
        "Terminated",
        # Reasons of the condition DisruptionTarget.
        "DeletionByPodGC",
        "DeletionByTaintManager",
        "EvictionByEvictionAPI",
        "PreemptionByScheduler",
        "TerminationByKubelet",
    }
)
"""Kubernetes' words for taking a pod away whose work would have gone on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatorRecord:
    """An object that creates pods: a Kubernetes Job, a JobSet, a PyTorchJob and so on.

    ``created`` tells two objects of one name apart, ``uid`` too where the source knows it. ``started``,
    ``ended`` and ``outcome`` are what its own status says. ``gpus_per_pod`` and ``cpus_per_pod`` are what its template
    asks for, None where the source does not show it. ``evictions`` counts how often it was suspended after it had run;
    ``partial`` says that earlier runs are known to be missing. ``last_seen`` is up to when it is known to have been
    there.
    ``by_its_pods`` says that nothing is told of it but its name, so that it was created when its first known pod was.
    """

    kind: str
    namespace: str
    name: str
    created: datetime
    uid: str | None = None
    started: datetime | None = None
    ended: datetime | None = None
    outcome: Outcome | None = None
    last_seen: datetime | None = None
    parallelism: int | None = None
    completions: int | None = None
    gpus_per_pod: float | None = None
    cpus_per_pod: float | None = None
    gpu_kind: str | None = None
    suspended: bool = False
    evictions: int = 0
    partial: bool = False
    by_its_pods: bool = False
    time_limit_seconds: float | None = None
    priority: int | None = None
    user: str | None = None
    image: str | None = None

    @property
    def key(self) -> tuple[str, str, str, datetime]:
        """What tells it from every other object."""
        return (self.kind, self.namespace, self.name, self.created)

    @property
    def shown(self) -> str:
        """As a person names it."""
        return f"{self.kind}/{self.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class PodRecord:
    """A pod that asks for GPUs.

    ``gpus`` are physical. ``started`` is when its first container began to run, ``ended`` when the last stopped; a
    pod that vanished has the end its source inferred (``vanished``), and outcome ``CENSORED`` with ``last_seen`` where
    nobody knows. ``creator`` is the object whose work it does, None for a pod of its own. ``reason`` is Kubernetes'
    word for why it ended (``Evicted``, ``OOMKilled``). ``told_by_node`` is as that of a
    :class:`~advisor.domain.jobs.Job`.
    """

    uid: str
    namespace: str
    name: str
    created: datetime
    gpus: float
    scheduled: datetime | None = None
    started: datetime | None = None
    ended: datetime | None = None
    outcome: Outcome | None = None
    vanished: bool = False
    last_seen: datetime | None = None
    reason: str | None = None
    restarts: int = 0
    image_pull_seconds: float | None = None
    creator: CreatorRecord | None = None
    gpu_kind: str | None = None
    pool: str | None = None
    node: str | None = None
    cpus: float | None = None
    priority: int | None = None
    time_limit_seconds: float | None = None
    user: str | None = None
    image: str | None = None
    told_by_node: tuple[str, ...] = ()
    placeholder: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)

    @property
    def gone(self) -> datetime | None:
        """When it stopped holding its GPUs as far as is known; None while it is there."""
        return self.ended if self.ended is not None else (self.last_seen if self.outcome else None)
