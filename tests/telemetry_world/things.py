"""What a world is made of: nodes with their GPUs, pods on them, Kubernetes Jobs. Moments are whole Unix seconds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum, StrEnum

__all__ = ["Ask", "Attempt", "Container", "Device", "Ending", "JobObject", "Node", "Pod", "Sharing", "Slot", "Work"]


class Sharing(StrEnum):
    """How the GPUs of a world are cut."""

    WHOLE = "whole"
    TIME_SLICED = "time_sliced"
    MIG = "mig"
    HAMI = "hami"


class Ending(Enum):
    """How one run of a piece of work stops."""

    DONE = "done"
    ERROR = "error"
    OUT_OF_MEMORY = "out_of_memory"
    DELETED = "deleted"
    EVICTED = "evicted"
    SUSPENDED = "suspended"
    DEADLINE = "deadline"
    NODE_LOST = "node_lost"


@dataclass(frozen=True, slots=True)
class Slot:
    """The smallest part of a GPU that is given away: all of it, a time slice, a MIG instance, a quarter of a card.

    ``number`` counts within the GPU, ``share`` is the part of a physical GPU it is, ``unit`` what a pod has to ask
    for to get it. ``instance`` and ``profile`` are those of MIG.
    """

    uuid: str
    number: int
    unit: str
    share: float
    instance: int | None = None
    profile: str | None = None


@dataclass(frozen=True, slots=True)
class Device:
    """One physical GPU: ``index`` on its node, MiB of memory, and what it is cut into."""

    uuid: str
    index: int
    memory_mib: int
    slots: tuple[Slot, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A machine of a NodePool; ``removed`` is when it was lost, None for one that stays.

    ``product`` is the label GPU feature discovery sets, ``gpu_kind`` the model in it, ``model`` how dcgm writes it;
    ``advertised`` is how much of which resource (sanitised name) the device plugin offers.
    """

    name: str
    pool: str
    gpu_kind: str
    product: str
    model: str
    created: int
    devices: tuple[Device, ...]
    advertised: Mapping[str, int]
    replicas: int = 1
    memory_mib: int = 0
    removed: int | None = None


@dataclass(frozen=True, slots=True)
class Ask:
    """What one pod needs: ``count`` slots of ``unit``, all ``on_one_card`` or wherever there is room on a node.

    ``gpus`` is what that is in physical GPUs.
    """

    unit: str
    count: int
    gpus: float
    on_one_card: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """A container and its asks by sanitised resource name; ``ended`` where it stopped before its pod did."""

    name: str
    image: str
    asks: Mapping[str, float] = field(default_factory=dict)
    init: bool = False
    sidecar: bool = False
    ended: int | None = None


@dataclass(frozen=True, slots=True)
class Attempt:
    """One life of a pod's containers; ``reason`` is why it ended (``Completed``, ``Error``, ``OOMKilled``)."""

    start: int
    end: int | None = None
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pod:
    """A pod and all that happened to it; None is what did not happen before the world ends.

    ``kubelet`` is when the kubelet took it, ``ended`` when it stopped, ``deleted`` when its object went, which for a
    pod that was deleted while it ran is the same. ``phase`` is the last one, ``reason`` Kubernetes' word for the pod
    as a whole, shown from ``reason_from``. ``run`` counts the runs of its work. ``noise`` is work of nobody.
    """

    uid: str
    namespace: str
    name: str
    created: int
    containers: tuple[Container, ...]
    owner: tuple[str, str] | None = None
    ask: Ask | None = None
    node: Node | None = None
    scheduled: int | None = None
    kubelet: int | None = None
    attempts: tuple[Attempt, ...] = ()
    ended: int | None = None
    deleted: int | None = None
    phase: str | None = None
    reason: str | None = None
    reason_from: int | None = None
    slots: tuple[Slot, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    run: int = 0
    noise: str | None = None

    @property
    def started(self) -> int | None:
        """When a container of it first ran."""
        return self.attempts[0].start if self.attempts else None

    @property
    def holds_until(self) -> int | None:
        """When it let go of its GPUs."""
        moments = [moment for moment in (self.ended, self.deleted) if moment is not None]
        return min(moments) if moments else None

    @property
    def shows_completion(self) -> bool:
        """Whether its containers' ends are shown: not of an evicted pod, nor of one that never ran."""
        return self.ended is not None and bool(self.attempts) and self.reason not in {"Evicted", "NodeLost"}


@dataclass(frozen=True, slots=True, kw_only=True)
class JobObject:
    """A Kubernetes Job. ``suspended`` are the stretches in which it was; ``starts`` when its status said it started."""

    namespace: str
    name: str
    created: int
    parallelism: int = 1
    completions: int = 1
    deadline: int | None = None
    owner: tuple[str, str] | None = None
    suspended: tuple[tuple[int, int | None], ...] = ()
    starts: tuple[int, ...] = ()
    completed: int | None = None
    failed: int | None = None
    deleted: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """One piece of work, which is one job: its pods in order, and the Jobs behind them.

    ``creator`` is the object that counts as having made the pods, None where each pod is a job of its own.
    ``endings`` says how each run stopped, ``containers`` are those of the template of its pods.
    """

    story: str
    namespace: str
    name: str
    user: str | None
    creator: tuple[str, str] | None
    objects: tuple[JobObject, ...]
    pods: tuple[Pod, ...]
    endings: tuple[Ending, ...]
    pool: str
    containers: tuple[Container, ...] = ()
