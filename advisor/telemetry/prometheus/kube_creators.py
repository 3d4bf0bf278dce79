"""Which object's work a pod does, as kube-state-metrics tells of owners."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from typing import NamedTuple, TypeAlias

from advisor.domain.accounts import NAME_IS_FREE_AFTER
from advisor.domain.jobs import Outcome
from advisor.telemetry.pods import GANG_KINDS, CreatorRecord
from advisor.telemetry.prometheus.kube_facts import Facts, KubeFacts

__all__ = ["Creators", "moment_of"]

Named: TypeAlias = tuple[str, str, str]
"""Kind, namespace and name."""

_APART_SECONDS = NAME_IS_FREE_AFTER.total_seconds()
_CLOCKS_DIFFER_SECONDS = 60.0


class _Job(NamedTuple):
    """A Kubernetes Job, when it was created if that was told, and what batch work it is part of."""

    created: float | None
    record: CreatorRecord
    owner: Named | None


class Creators:
    """Finds the outermost object of batch work behind a pod.

    Jobs tell of themselves. Of every other object only its pods are known: it is taken to be created with the first
    of them, and one whose name comes back after an hour without any pod is another.
    """

    def __init__(self, facts: KubeFacts) -> None:
        self._pods = facts.pods
        self._jobs = {key: _jobs_of(*key, namesakes) for key, namesakes in facts.jobs.items()}

    def of(self, pod: Facts, created: float) -> CreatorRecord | None:
        """The object behind a pod ``created`` then (Unix seconds), None where it is work of its own."""
        found = self._found(pod, created)
        if found is None or isinstance(found, CreatorRecord):
            return found
        kind, namespace, name = found
        begun = [first for first, _ in self._spans.get(found, ()) if first <= created]
        first = moment_of(max(begun, default=created))
        return CreatorRecord(kind=kind, namespace=namespace, name=name, created=first, by_its_pods=True)

    def _found(self, pod: Facts, created: float) -> CreatorRecord | Named | None:
        for kind, name in pod.ever("kube_pod_owner"):
            if kind not in GANG_KINDS:
                continue
            job = _of_the_time(self._jobs.get((pod.namespace, name), ()), created) if kind == "Job" else None
            if job is None:
                return (kind, pod.namespace, name)
            return job.owner or job.record
        return None

    def _job_created(self, pod: Facts, created: float) -> float:
        """When the Job was created that made a pod for another object; it was made with the first of its Jobs."""
        for kind, name in pod.ever("kube_pod_owner"):
            job = _of_the_time(self._jobs.get((pod.namespace, name), ()), created) if kind == "Job" else None
            if job is not None and job.created is not None:
                return job.created
        return created

    @cached_property
    def _spans(self) -> dict[Named, list[tuple[float, float]]]:
        """When the pods of each object that tells nothing of itself were there, stretch by stretch."""
        spans: dict[Named, list[tuple[float, float]]] = {}
        for pod in self._pods.values():
            created = pod.value("kube_pod_created")
            if created is None:
                continue
            found = self._found(pod, created)
            if isinstance(found, tuple):
                until = max(pod.last_told("kube_pod_status_phase") or created, created)
                spans.setdefault(found, []).append((min(created, self._job_created(pod, created)), until))
        return {named: list(_joined(sorted(each))) for named, each in spans.items()}


def _joined(spans: Sequence[tuple[float, float]]) -> Iterator[tuple[float, float]]:
    """Stretches no further apart than may be, made one."""
    begin, end = spans[0]
    for first, last in spans[1:]:
        if first > end + _APART_SECONDS:
            yield begin, end
            begin = first
        end = max(end, last)
    yield begin, end


def _of_the_time(jobs: Sequence[_Job], created: float) -> _Job | None:
    """The newest of several Jobs of one name that was there when a pod was created."""
    for job in reversed(jobs):
        if job.created is None or job.created <= created + _CLOCKS_DIFFER_SECONDS:
            return job
    return None


def _jobs_of(namespace: str, name: str, namesakes: Mapping[float | None, Facts]) -> list[_Job]:
    """The Jobs that had one name, oldest first."""
    found = []
    for created, facts in namesakes.items():
        owner = next(((kind, namespace, of) for kind, of in facts.ever("kube_job_owner") if kind in GANG_KINDS), None)
        found.append(_Job(created, _record(namespace, name, created, facts), owner))
    return sorted(found, key=lambda job: -math.inf if job.created is None else job.created)


def _record(namespace: str, name: str, created: float | None, facts: Facts) -> CreatorRecord:
    started, completed = facts.value("kube_job_status_start_time"), facts.value("kube_job_status_completion_time")
    outcome = Outcome.COMPLETED if completed else None
    if not completed and any(labels[0].lower() == "true" for labels in facts.ever("kube_job_failed")):
        outcome = Outcome.FAILED
    return CreatorRecord(
        kind="Job",
        namespace=namespace,
        name=name,
        created=moment_of(created if created is not None else (started or 0.0)),
        started=moment_of(started) if started else None,
        ended=moment_of(completed) if completed else None,
        outcome=outcome,
        parallelism=_whole(facts.value("kube_job_spec_parallelism")),
        completions=_whole(facts.value("kube_job_spec_completions")),
        time_limit_seconds=facts.value("kube_job_spec_active_deadline_seconds") or None,
    )


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)


def moment_of(seconds: float) -> datetime:
    """Unix seconds as a moment in UTC."""
    return datetime.fromtimestamp(seconds, UTC)
