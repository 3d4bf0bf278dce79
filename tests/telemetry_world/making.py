"""Pods and Jobs of a plan as they come to be and pass away."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from tests.telemetry_world.stories import Plan, PlannedRun
from tests.telemetry_world.things import Attempt, Ending, JobObject, Pod

if TYPE_CHECKING:
    from tests.telemetry_world.cluster import History

__all__ = ["a_pod", "ended_pods", "objects_of", "pod_names"]

_LETTERS = "bcdfghjklmnpqrstvwxz2456789"
_REASONS = {Ending.DONE: "Completed", Ending.ERROR: "Error", Ending.OUT_OF_MEMORY: "OOMKilled"}
_DELETING = (Ending.DELETED, Ending.SUSPENDED, Ending.DEADLINE)


def pod_names(plan: Plan, run: int, rng: random.Random) -> list[tuple[str, tuple[str, str] | None]]:
    """Names and owners of the pods of one run, as their controllers write them."""

    def suffix() -> str:
        return "".join(rng.choices(_LETTERS, k=5))

    name, kind, numbers = plan.name, plan.kind, range(plan.pods)
    if kind == "Job":
        return [(f"{name}-{suffix()}", (kind, name)) for _ in numbers]
    if kind == "JobSet":
        return [(f"{name}-workers-0-{number}-{suffix()}", ("Job", f"{name}-workers-0")) for number in numbers]
    if kind == "PyTorchJob":
        return [(f"{name}-master-0" if n == 0 else f"{name}-worker-{n - 1}", (kind, name)) for n in numbers]
    if kind == "RayCluster":
        return [(f"{name}-worker-{suffix()}", (kind, name)) for _ in numbers]
    if kind == "ReplicaSet":
        owner = f"{name}-6f9c7d"
        return [(f"{owner}-{suffix()}", (kind, owner)) for _ in numbers]
    if kind == "StatefulSet":
        return [(f"{name}-{number}", (kind, name)) for number in numbers]
    return [(name, None)]


def a_pod(plan: Plan, named: tuple[str, tuple[str, str] | None], created: int, rng: random.Random) -> Pod:
    """A pod that was just made."""
    text = f"{rng.getrandbits(128):032x}"
    labels = {} if plan.user is None else {"label_user": plan.user}
    if plan.noise == "placeholder":
        labels = {"label_slice_advisor_io_owned": "true"}
    return Pod(
        uid=f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}",
        namespace=plan.namespace,
        name=named[0],
        owner=named[1],
        created=created,
        containers=plan.containers,
        ask=plan.ask if plan.ask.count else None,
        labels=labels,
        noise=plan.noise,
    )


def ended_pods(plan: Plan, pods: Sequence[Pod], run: PlannedRun, rng: random.Random) -> tuple[list[Pod], int]:
    """``pods`` with the run they are about to have, and when its last one stops."""
    starts = [(pod.kubelet or 0) + 1 + min(int(rng.lognormvariate(3.0, 0.7)), 300) for pod in pods]
    backoffs = [10 * 2**n for n in range(run.crashes)]
    end = max(starts) + int(run.seconds) + sum(backoffs)
    made = []
    for pod, start in zip(pods, starts, strict=True):
        stop = end if run.ending in _DELETING or run.crashes else end + rng.randrange(3)
        attempts = _attempts(start, stop, run, backoffs)
        containers = tuple(
            box if box.ended is None else replace(box, ended=start + (stop - start) // 2) for box in pod.containers
        )
        made.append(_stopped(replace(pod, attempts=attempts, containers=containers), stop, run.ending))
    return made, max(pod.holds_until or end for pod in made)


def _attempts(start: int, stop: int, run: PlannedRun, backoffs: Sequence[int]) -> tuple[Attempt, ...]:
    """Lives of equal length with the kubelet's back-off between them; only the last ends as the run does."""
    each = (stop - start - sum(backoffs)) // (len(backoffs) + 1)
    made, now = [], start
    for wait in backoffs:
        made.append(Attempt(now, now + each, "Error"))
        now += each + wait
    return (*made, Attempt(now, stop, _REASONS.get(run.ending)))


def _stopped(pod: Pod, stop: int, ending: Ending) -> Pod:
    if ending in _DELETING:
        return replace(pod, deleted=stop)
    phase = "Succeeded" if ending is Ending.DONE else "Failed"
    evicted = ending is Ending.EVICTED
    reason = "Evicted" if evicted else None
    return replace(pod, ended=stop, phase=phase, reason=reason, reason_from=stop if evicted else None)


def objects_of(history: History, rng: random.Random) -> tuple[tuple[JobObject, ...], list[Pod]]:
    """The Jobs behind a history that is over, and its pods with the moment their objects went."""
    plan, over = history.plan, history.over or 0
    last = history.endings[-1]
    gone = over if last is Ending.DELETED else over + rng.randrange(1, 4) + plan.linger
    if last is Ending.NODE_LOST:
        gone = over
    pods = [pod if pod.deleted is not None else replace(pod, deleted=gone) for pod in history.pods]
    if plan.kind not in ("Job", "JobSet"):
        return (), pods
    said = over + rng.randrange(1, 4) if last is not Ending.DELETED else None
    done = last is Ending.DONE
    # A Job that is deleted with its object has said how it ended for as long as it lingers.
    gone = gone if said is None else max(gone, said)
    return (
        JobObject(
            namespace=plan.namespace,
            name=plan.name if plan.kind == "Job" else f"{plan.name}-workers-0",
            created=plan.submit,
            parallelism=plan.pods,
            completions=plan.tasks or plan.pods,
            deadline=_deadline(plan, over),
            owner=None if plan.kind == "Job" else (plan.kind, plan.name),
            suspended=_suspended(history),
            starts=tuple(history.admitted) if plan.queued else (plan.submit,),
            completed=said if done else None,
            failed=None if done else said,
            deleted=gone,
        ),
    ), [replace(pod, deleted=max(pod.deleted or gone, gone) if pod.ended is not None else pod.deleted) for pod in pods]


def _deadline(plan: Plan, over: int) -> int | None:
    """The limit the Job had: where it was hit, the time from its start to its end."""
    if plan.deadline is None or plan.runs[-1].ending is not Ending.DEADLINE:
        return plan.deadline
    return over - plan.submit


def _suspended(history: History) -> tuple[tuple[int, int | None], ...]:
    if not history.plan.queued:
        return ()
    begins = [history.plan.submit, *history.suspended]
    return tuple(zip(begins, history.admitted, strict=True))
