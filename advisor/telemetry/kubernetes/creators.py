"""What is kept of the objects that make pods, and of how Kueue queued them.

Jobs, JobSets, and the kinds of Kubeflow, Ray and Spark say the same things under slightly different names; one reading
serves them all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from advisor.cluster.documents import moment_in, part, parts, whole
from advisor.cluster.objects import Json
from advisor.domain.jobs import Outcome
from advisor.telemetry.kubernetes.asks import PodAsk, read_ask
from advisor.telemetry.kubernetes.pods import OwnerRef, controller_of, gpu_node_of, user_of

__all__ = ["CreatorObject", "CreatorReader", "QueuedWorkload", "read_queued"]

_CONDITIONS = {
    "Complete": Outcome.COMPLETED,
    "Completed": Outcome.COMPLETED,
    "Succeeded": Outcome.COMPLETED,
    "Failed": Outcome.FAILED,
}
_STATES = {
    "SUCCEEDED": Outcome.COMPLETED,
    "COMPLETED": Outcome.COMPLETED,
    "FAILED": Outcome.FAILED,
    "STOPPED": Outcome.CANCELLED,
}
_STARTS = ("startTime", "lastSubmissionAttemptTime")
_ENDS = ("completionTime", "endTime", "terminationTime")


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatorObject:
    """An object that makes pods. ``ask`` is that of one of its pods, None where there is no single template."""

    uid: str
    kind: str
    namespace: str
    name: str
    created: datetime
    started: datetime | None = None
    ended: datetime | None = None
    outcome: Outcome | None = None
    suspended: bool = False
    parallelism: int | None = None
    completions: int | None = None
    ask: PodAsk | None = None
    gpu_kind: str | None = None
    time_limit_seconds: float | None = None
    user: str | None = None
    owner: OwnerRef | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueuedWorkload:
    """Whom a Kueue Workload stands for, and how often that was evicted."""

    owners: tuple[str, ...]
    evictions: int


class CreatorReader:
    """Cuts the objects of one kind down; see :class:`advisor.cluster.reflector.Projection`."""

    def __init__(self, kind: str, user_labels: Sequence[str]) -> None:
        """Lists leave the ``kind`` of their objects out, so it is told here."""
        self._kind = kind
        self._user_labels = user_labels

    def __call__(self, document: Json, before: CreatorObject | None, at: datetime | None) -> CreatorObject | None:
        """The object; None for a Job whose pods ask for no GPU.

        Raises:
            Refused: an ask or a moment cannot be read.
        """
        del before, at
        metadata, spec, status = part(document, "metadata"), part(document, "spec"), part(document, "status")
        template = part(spec, "template")
        pods = part(template, "spec")
        ask = read_ask(pods, part(part(template, "metadata"), "annotations")) if self._kind == "Job" else None
        if ask is not None and not ask.for_gpus:
            return None
        ended, outcome = _ending(status)
        policy = part(spec, "runPolicy")
        limit = whole(spec, "activeDeadlineSeconds") or whole(policy, "activeDeadlineSeconds")
        labels = {**part(part(template, "metadata"), "labels"), **part(metadata, "labels")}
        return CreatorObject(
            uid=str(metadata.get("uid")),
            kind=self._kind,
            namespace=str(metadata.get("namespace", "")),
            name=str(metadata.get("name", "")),
            created=moment_in(metadata.get("creationTimestamp"), "created"),
            started=_first(status, _STARTS),
            ended=ended,
            outcome=outcome,
            suspended=bool(spec.get("suspend") or policy.get("suspend")),
            parallelism=whole(spec, "parallelism"),
            completions=whole(spec, "completions"),
            ask=ask,
            gpu_kind=gpu_node_of(part(pods, "nodeSelector")).gpu_kind,
            time_limit_seconds=float(limit) if limit and limit > 0 else None,
            user=user_of(labels, self._user_labels),
            owner=controller_of(metadata),
        )


def read_queued(document: Json, before: QueuedWorkload | None, at: datetime | None) -> QueuedWorkload | None:
    """A Kueue Workload; see :class:`advisor.cluster.reflector.Projection`. It is kept only once it was evicted."""
    del before, at
    metadata, status = part(document, "metadata"), part(document, "status")
    counted = sum(max(whole(each, "count") or 0, 0) for each in parts(part(status, "schedulingStats"), "evictions"))
    # The condition stays, as False, after the workload was admitted again; older versions count nothing.
    ever = any(each.get("type") == "Evicted" for each in parts(status, "conditions"))
    evictions = max(counted, int(ever))
    if not evictions:
        return None
    owners = tuple(str(each.get("uid", "")) for each in parts(metadata, "ownerReferences"))
    return QueuedWorkload(owners=owners, evictions=evictions)


def _ending(status: Json) -> tuple[datetime | None, Outcome | None]:
    """When and how it ended by its own account; failed ones tell no completion time, only a condition."""
    for each in parts(status, "conditions"):
        outcome = _CONDITIONS.get(str(each.get("type")))
        if outcome is not None and each.get("status") == "True":
            return _first(status, _ENDS) or moment_in(each.get("lastTransitionTime"), "ended"), outcome
    state = status.get("jobStatus") or part(status, "applicationState").get("state")
    outcome, ended = _STATES.get(str(state)), _first(status, _ENDS)
    return (ended, outcome) if outcome is not None and ended is not None else (None, None)


def _first(status: Json, names: Sequence[str]) -> datetime | None:
    return next((moment_in(status[name], name) for name in names if status.get(name)), None)
