"""What is kept of a pod that asks for GPUs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from advisor.cluster.documents import moment_in, part, parts, text, whole
from advisor.cluster.objects import Json
from advisor.cluster.projection import NODEPOOL_LABEL, OWNED_LABEL
from advisor.domain.asks import GpuNode, sanitised
from advisor.telemetry.kubernetes.asks import PodAsk, read_ask

__all__ = ["OwnerRef", "PodObject", "PodReader", "controller_of", "gpu_node_of", "user_of"]

_LONGEST_GRACE_SECONDS = 7 * 86_400


@dataclass(frozen=True, slots=True)
class OwnerRef:
    """The object that controls another."""

    kind: str
    name: str
    uid: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PodObject:
    """A pod's own story as far as its object tells it.

    ``prepared`` is when its sandbox was ready and its init containers were done, ``started`` when the first of its
    containers ran, ``finished`` when the last had stopped, None while one may still run. ``disrupted`` is when the
    system took it away and ``reason`` the word for that or for its end; ``deleted`` is the moment by which it is to be
    gone and ``delete_asked`` when somebody asked for that.
    """

    uid: str
    namespace: str
    name: str
    created: datetime
    ask: PodAsk
    phase: str
    scheduled: datetime | None = None
    prepared: datetime | None = None
    started: datetime | None = None
    finished: datetime | None = None
    disrupted: datetime | None = None
    reason: str | None = None
    deleted: datetime | None = None
    delete_asked: datetime | None = None
    restarts: int = 0
    node: str | None = None
    pool: str | None = None
    gpu_kind: str | None = None
    priority: int | None = None
    time_limit_seconds: float | None = None
    user: str | None = None
    owner: OwnerRef | None = None
    placeholder: bool = False

    @property
    def image_pull_seconds(self) -> float | None:
        """From the sandbox being ready to the first container running: the image, and making the container.

        None after a restart, since when a container first ran is told only of the last two times.
        """
        if self.prepared is None or self.started is None or self.restarts:
            return None
        return max((self.started - self.prepared).total_seconds(), 0.0)


class PodReader:
    """Cuts pods down; see :class:`advisor.cluster.reflector.Projection`."""

    def __init__(self, user_labels: Sequence[str]) -> None:
        """A pod's user is the value of the first of ``user_labels`` that it has."""
        self._user_labels = user_labels

    def __call__(self, document: Json, before: PodObject | None, at: datetime | None) -> PodObject | None:
        """The pod, None if it asks for no GPU.

        Raises:
            Refused: an ask or a moment cannot be read.
        """
        del at
        metadata, spec, status = part(document, "metadata"), part(document, "spec"), part(document, "status")
        ask = read_ask(spec, part(metadata, "annotations"))
        if not ask.for_gpus:
            return None
        labels, selector = part(metadata, "labels"), part(spec, "nodeSelector")
        limit = whole(spec, "activeDeadlineSeconds")
        deleted = _moment(metadata.get("deletionTimestamp"))
        return PodObject(
            uid=str(metadata.get("uid")),
            namespace=str(metadata.get("namespace", "")),
            name=str(metadata.get("name", "")),
            created=moment_in(metadata.get("creationTimestamp"), "created"),
            ask=ask,
            phase=str(status.get("phase", "Pending")),
            **_moments(spec, status, before),
            reason=_reason(status),
            deleted=deleted,
            delete_asked=_asked(deleted, metadata),
            restarts=sum(_restarts(each) for each in parts(status, "containerStatuses")),
            node=text(spec, "nodeName"),
            pool=text(selector, NODEPOOL_LABEL),
            gpu_kind=gpu_node_of(selector).gpu_kind,
            priority=whole(spec, "priority"),
            time_limit_seconds=float(limit) if limit and limit > 0 else None,
            user=user_of(labels, self._user_labels),
            owner=controller_of(metadata),
            placeholder=labels.get(OWNED_LABEL) == "true",
        )


def controller_of(metadata: Json) -> OwnerRef | None:
    """The controlling owner, else the first one."""
    owners = list(parts(metadata, "ownerReferences"))
    owners.sort(key=lambda owner: not owner.get("controller"))
    return OwnerRef(*(str(owners[0].get(key, "")) for key in ("kind", "name", "uid"))) if owners else None


def user_of(labels: Json, names: Sequence[str]) -> str | None:
    """The value of the first label that is there and not empty."""
    return next((found for name in names if (found := text(labels, name)) is not None), None)


def gpu_node_of(labels: Json) -> GpuNode:
    """What the labels of a node, or a selector of them, say of its GPUs."""
    return GpuNode.of_labels({sanitised(name): str(value) for name, value in labels.items()})


def _moments(spec: Json, status: Json, before: PodObject | None) -> dict[str, datetime | None]:
    """When it was given a node, prepared, started, finished and disrupted."""
    turned = {
        str(each.get("type")): _moment(each.get("lastTransitionTime"))
        for each in parts(status, "conditions")
        if each.get("status") == "True"
    }
    has_init = any(each.get("restartPolicy") != "Always" for each in parts(spec, "initContainers"))
    initialised = turned.get("Initialized")
    prepared = initialised if has_init else turned.get("PodReadyToStartContainers")
    return {
        "scheduled": turned.get("PodScheduled")
        or (_moment(status.get("startTime")) if text(spec, "nodeName") else None),
        "prepared": before.prepared if before is not None and before.prepared is not None else prepared,
        "started": _started(status, initialised, before),
        "finished": _finished(status),
        "disrupted": turned.get("DisruptionTarget"),
    }


def _started(status: Json, initialised: datetime | None, before: PodObject | None) -> datetime | None:
    """When the first container first ran.

    The object tells of the present run and of the one before; what was seen earlier is kept. Whoever had restarted
    more often when it was first seen ran from soon after its initialisation, and what had been evicted by then, with
    nothing told of its containers, from when its kubelet took it.
    """
    found = [
        moment
        for container in parts(status, "containerStatuses")
        for state in _states(container)
        if (moment := _moment(state.get("startedAt"))) is not None
    ]
    if before is not None and before.started is not None:
        found.append(before.started)
    elif found and initialised is not None and any(_restarts(c) > 1 for c in parts(status, "containerStatuses")):
        found.append(initialised)
    elif before is None and status.get("reason") == "Evicted" and not found:
        # Some kubelets drop the statuses of what they evict; it is they who evict what runs there.
        found += [moment for moment in (_moment(status.get("startTime")),) if moment is not None]
    return min(found) if found else None


def _states(container: Json) -> Iterator[Json]:
    for which in ("state", "lastState"):
        for how in ("running", "terminated"):
            yield part(part(container, which), how)


def _finished(status: Json) -> datetime | None:
    """When the last container had stopped; None while one may still run, or come back."""
    if status.get("phase") not in ("Succeeded", "Failed"):
        return None
    ends = [
        moment
        for container in parts(status, "containerStatuses")
        for state in _states(container)
        if (moment := _moment(state.get("finishedAt"))) is not None
    ]
    if ends:
        return max(ends)
    # The statuses of an evicted pod may be gone; its condition still says when it was no longer ready.
    unready = [
        each for each in parts(status, "conditions") if each.get("type") == "Ready" and each.get("status") != "True"
    ]
    return _moment(unready[0].get("lastTransitionTime")) if unready else None


def _reason(status: Json) -> str | None:
    """Kubernetes' word for why it ended: the pod's own, why it was taken away, or a container's."""
    taken = [
        each.get("reason")
        for each in parts(status, "conditions")
        if each.get("type") == "DisruptionTarget" and each.get("status") == "True"
    ]
    ended = [
        part(part(each, "state"), "terminated").get("reason")
        for each in parts(status, "containerStatuses")
        if part(part(each, "state"), "terminated").get("exitCode")
    ]
    return next((str(word) for word in (status.get("reason"), *taken, *ended) if word), None)


def _restarts(container: Json) -> int:
    return max(whole(container, "restartCount") or 0, 0)


def _asked(deleted: datetime | None, metadata: Json) -> datetime | None:
    """When somebody asked for a pod to go that has to be gone by ``deleted``."""
    if deleted is None:
        return None
    earliest = datetime.min.replace(tzinfo=UTC)
    grace = min(max(whole(metadata, "deletionGracePeriodSeconds") or 0, 0), _LONGEST_GRACE_SECONDS)
    return deleted - min(timedelta(seconds=grace), deleted - earliest)


def _moment(value: object) -> datetime | None:
    return None if not value else moment_in(value, "time")
