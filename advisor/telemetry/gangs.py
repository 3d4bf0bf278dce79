"""Jobs from pods: what ran together is a gang, what came after another had ended is a further run of the same job.

Pods of an object with more completions than parallelism are tasks of their own, and so is every pod whose creators
are no batch work (a Deployment, a StatefulSet) or that has none.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import groupby, pairwise
from typing import Any, NamedTuple

from advisor.domain.accounts import EndTold, JobAccount, JobRun
from advisor.domain.jobs import TOLD_BY_NODES, Job, Outcome
from advisor.errors import Refused
from advisor.telemetry.pods import TAKEN_BY_THE_SYSTEM, CreatorRecord, PodRecord
from advisor.telemetry.tally import RejectionTally

__all__ = ["Work", "jobs_of", "uids_of", "work_of"]

_RESERVATIONS = ("kai-resource-reservation", "kai-scale-adjust")
_NEVER_ADMITTED = ("UnexpectedAdmissionError", "OutOfnvidia.com/gpu", "OutOfgpu")
_FAILED_ABOVE = (Outcome.FAILED, Outcome.CANCELLED, Outcome.CENSORED)


class Work(NamedTuple):
    """One piece of work: the job, the pods it ran in by creation, and how it is known."""

    job: Job
    pods: tuple[PodRecord, ...]
    account: JobAccount


def jobs_of(pods: Iterable[PodRecord], creators: Iterable[CreatorRecord], tally: RejectionTally) -> tuple[Job, ...]:
    """The jobs of :func:`work_of`."""
    return tuple(work.job for work in work_of(pods, creators, tally))


def uids_of(found: Iterable[Work]) -> dict[str, tuple[str, ...]]:
    """The uids of the pods of each piece of work that has any, by the id of its job."""
    return {work.job.id: tuple(pod.uid for pod in work.pods) for work in found if work.pods}


def work_of(pods: Iterable[PodRecord], creators: Iterable[CreatorRecord], tally: RejectionTally) -> tuple[Work, ...]:
    """One job per piece of work, in order of submission; what is left out is counted in ``tally``.

    ``creators`` are objects to be known even where no pod of theirs is: their own status then says what is known.
    """
    counted = [pod for pod in pods if _counts(pod, tally)]
    counted.sort(key=_work_key)
    found: list[Work] = []
    with_pods: set[tuple[Any, ...]] = set()
    for _, group in groupby(counted, key=_work_key):
        members = sorted(group, key=lambda pod: (pod.created, pod.uid))
        creator = members[0].creator
        if creator is not None:
            with_pods.add(creator.key)
        _append(found, _Piece(creator if _is_gang(members[0]) else None, members), tally)
    for alone in creators:
        if alone.key not in with_pods and alone.gpus_per_pod:
            _append(found, _Piece(alone, []), tally)
    return tuple(sorted(found, key=lambda work: (work.job.submit, work.job.id)))


def _counts(pod: PodRecord, tally: RejectionTally) -> bool:
    """Whether a pod is somebody's work: not a placeholder, not a scheduler's own reservation, not turned away."""
    shown = f"{pod.namespace}/{pod.name}"
    if pod.placeholder:
        tally.add("placeholder", shown)
    elif pod.namespace in _RESERVATIONS:
        tally.add("reservation_of_a_scheduler", shown)
    elif pod.reason in _NEVER_ADMITTED:
        # The node turned it away at once; its owner's next pod is the real one.
        tally.add("turned_away_by_the_node", f"{shown}: {pod.reason}")
    elif pod.gpus <= 0:
        tally.add("asks_for_no_gpus", shown)
    else:
        return True
    return False


def _is_gang(pod: PodRecord) -> bool:
    creator = pod.creator
    if creator is None:
        return False
    return not (creator.completions is not None and creator.completions > (creator.parallelism or 1))


def _work_key(pod: PodRecord) -> tuple[Any, ...]:
    """Equal for the pods of one piece of work."""
    if pod.creator is not None and _is_gang(pod):
        return (0, *pod.creator.key[:3], pod.creator.created.isoformat())
    return (1, pod.uid)


def _append(found: list[Work], piece: _Piece, tally: RejectionTally) -> None:
    try:
        found.append(piece.work())
    except Refused as error:
        tally.add(f"inconsistent_{error.field}", f"{piece.shown}: {error}")


@dataclass(frozen=True, slots=True)
class _Piece:
    """One piece of work: the object behind it, if any, and its pods by creation."""

    creator: CreatorRecord | None
    pods: Sequence[PodRecord]

    @property
    def shown(self) -> str:
        if self.creator is not None:
            return f"{self.creator.namespace} {self.creator.shown}"
        return f"{self.pods[0].namespace}/{self.pods[0].name}"

    def work(self) -> Work:
        """The job with its pods.

        Raises:
            Refused: its moments contradict each other.
        """
        creator, pods = self.creator, self.pods
        submit = min([pod.created for pod in pods] + ([creator.created] if creator is not None else []))
        runs = self._runs(submit)
        job = self._job(submit, runs)
        told = EndTold.ITSELF if job.end is None else self._end_told()
        by_its_pods = creator is not None and creator.by_its_pods
        return Work(job, tuple(pods), JobAccount(runs=tuple(runs), end_told=told, by_its_pods=by_its_pods))

    def _job(self, submit: datetime, runs: Sequence[JobRun]) -> Job:
        creator, pods = self.creator, self.pods
        start = runs[0].start if runs else None
        ending = self._ending(runs)
        namespace, name = (
            (creator.namespace, creator.name) if creator is not None else (pods[0].namespace, pods[0].name)
        )
        return Job(
            id=self._identity(),
            submit=submit,
            scheduled=self._scheduled(submit, start),
            start=start,
            namespace=namespace,
            name=name,
            gpus=self._gpus(),
            created_by=None if creator is None else creator.shown,
            restarts=sum(pod.restarts for pod in pods) + self._retries(runs) if pods else None,
            evictions=self._evictions(runs),
            paused_seconds=_paused(runs),
            image_pull_seconds=max(pulls) if (pulls := self._known("image_pull_seconds")) else None,
            cpus=self._cpus(),
            **self._described(),
            **ending,
        )

    def _identity(self) -> str:
        if self.creator is None:
            return self.pods[0].uid
        # A name may be used again after the object is gone; its creation tells them apart.
        return self.creator.uid or "/".join(
            (
                self.creator.namespace,
                self.creator.kind,
                self.creator.name,
                self.creator.created.strftime("%Y%m%dT%H%M%SZ"),
            )
        )

    def _known(self, field: str) -> list[Any]:
        return [value for pod in self.pods if (value := getattr(pod, field)) is not None]

    def _described(self) -> dict[str, Any]:
        """What is the same for all pods: from what asks for it, else from the first whose node tells."""
        found: dict[str, Any] = {}
        nodes = len(set(self._known("node"))) or None
        told = set() if nodes is None else {"nodes"}
        for field in ("gpu_kind", "pool", "priority", "time_limit_seconds", "user", "image"):
            asked = [getattr(pod, field) for pod in self.pods if field not in pod.told_by_node]
            known = [value for value in (*asked, getattr(self.creator, field, None)) if value is not None]
            if not known and (known := self._known(field)):
                told.add(field)
            found[field] = known[0] if known else None
        return {**found, "nodes": nodes, "told_by_node": tuple(name for name in TOLD_BY_NODES if name in told)}

    def _runs(self, submit: datetime) -> list[JobRun]:
        """When any pod ran, overlapping stretches joined, in order."""
        spans = sorted(
            ((max(pod.started, submit), pod.gone) for pod in self.pods if pod.started is not None),
            key=lambda span: span[0],
        )
        if not self.pods and self.creator is not None and self.creator.started is not None:
            spans = [(self.creator.started, self.creator.ended or self._creator_gone())]
        runs: list[JobRun] = []
        for start, end in spans:
            # Clocks of nodes differ by seconds: an end before its start is an end at it.
            until = None if end is None else max(end, start)
            last = runs[-1] if runs else None
            if last is None or (last.end is not None and last.end < start):
                runs.append(JobRun(start=start, end=until))
            else:
                joined = None if last.end is None or until is None else max(last.end, until)
                runs[-1] = JobRun(start=last.start, end=joined)
        return [replace(run, failed=self._failed(run), restarts=self._restarts(run)) for run in runs]

    def _creator_gone(self) -> datetime | None:
        creator = self.creator
        return creator.last_seen if creator is not None and (creator.suspended or creator.partial) else None

    def _scheduled(self, submit: datetime, start: datetime | None) -> datetime | None:
        moments = [pod.scheduled for pod in self.pods if pod.scheduled is not None]
        if not moments:
            return None
        first = max(min(moments), submit)
        return first if start is None else min(first, start)

    def _gpus(self) -> float:
        """The most GPUs its pods held or wanted at one time; the template's where no pod is known."""
        if not self.pods and self.creator is not None:
            return (self.creator.gpus_per_pod or 0.0) * (self.creator.parallelism or 1)
        return self._most([pod.gpus for pod in self.pods])

    def _cpus(self) -> float | None:
        """The same of CPUs."""
        if not self.pods and self.creator is not None:
            each = self.creator.cpus_per_pod
            return None if each is None else each * (self.creator.parallelism or 1)
        return self._most([pod.cpus or 0.0 for pod in self.pods]) if self._known("cpus") else None

    def _most(self, amounts: Sequence[float]) -> float:
        """The most that its pods, of which each holds its amount from its creation on, held at one time."""
        changes = [(pod.created, 1, amount) for pod, amount in zip(self.pods, amounts, strict=True)]
        changes += [
            (max(gone, pod.created), 0, -amount)
            for pod, amount in zip(self.pods, amounts, strict=True)
            if (gone := pod.gone) is not None
        ]
        held, most = 0.0, max(amounts)
        for _, _, change in sorted(changes):
            held += change
            most = max(most, held)
        return round(most, 9)

    def _retries(self, runs: Sequence[JobRun]) -> int:
        """Further runs after one that failed."""
        return sum(run.failed for run in runs[:-1])

    def _evictions(self, runs: Sequence[JobRun]) -> int:
        """Further runs after one that was taken away, or as often as the object itself says."""
        told = self.creator.evictions if self.creator is not None else 0
        return max(told, len(runs[:-1]) - self._retries(runs))

    def _failed(self, run: JobRun) -> bool:
        ended = [pod for pod in self.pods if pod.started is not None and pod.gone == run.end]
        return any(pod.outcome is Outcome.FAILED and pod.reason not in TAKEN_BY_THE_SYSTEM for pod in ended)

    def _restarts(self, run: JobRun) -> int:
        """How often containers of the pods that began in a run began anew."""
        return sum(
            pod.restarts
            for pod in self.pods
            if pod.started is not None and run.start <= pod.started and (run.end is None or pod.started <= run.end)
        )

    def _end_told(self) -> EndTold:
        """Who told its end."""
        if self.creator is not None and self.creator.outcome is not None:
            return EndTold.ITSELF
        last = max((pod.gone or pod.created for pod in self.pods), default=None)
        if any(pod.vanished and pod.gone == last for pod in self.pods):
            return EndTold.NOBODY
        return EndTold.ITSELF if self.creator is None else EndTold.PODS

    def _ending(self, runs: Sequence[JobRun]) -> dict[str, Any]:
        """End and outcome, or when it was last seen."""
        creator = self.creator
        still_there = any(pod.gone is None for pod in self.pods) or (
            not self.pods and (not runs or runs[-1].end is None)
        )
        if creator is not None and creator.outcome is not None and creator.ended is not None:
            if creator.partial:
                # Earlier runs are missing: it ran at least as long as the last one.
                return {"outcome": Outcome.CENSORED, "last_seen": creator.ended}
            return self._closed(runs, creator.ended, creator.outcome)
        if still_there:
            return {}
        gone = [pod.gone for pod in self.pods if pod.gone is not None]
        last = max(gone) if gone else runs[-1].end
        if last is None:
            return {}
        told = None if creator is None else creator.outcome
        outcome = told if told is not None and self.pods else self._outcome_of_pods()
        if outcome is Outcome.CENSORED or (creator is not None and creator.suspended):
            return {"outcome": Outcome.CENSORED, "last_seen": last}
        return self._closed(runs, last, outcome)

    def _closed(self, runs: Sequence[JobRun], ended: datetime, outcome: Outcome) -> dict[str, Any]:
        """An end that is known: of the last run where there was one, of the object where it never ran."""
        if not runs:
            return {"end": max(ended, self.pods[0].created if self.pods else ended), "outcome": Outcome.CANCELLED}
        # The object is said to have ended some seconds after the last container has.
        end = runs[-1].end
        return {"end": max(ended, runs[-1].start) if end is None else end, "outcome": outcome}

    def _outcome_of_pods(self) -> Outcome:
        """The outcome of the pods that were there last."""
        last = max((pod for pod in self.pods), key=lambda pod: (pod.gone or pod.created, pod.created))
        begun = last.started or last.created
        together = {pod.outcome for pod in self.pods if pod.outcome is not None and (pod.gone or pod.created) >= begun}
        for outcome in _FAILED_ABOVE:
            if outcome in together:
                return outcome
        return Outcome.COMPLETED


def _paused(runs: Sequence[JobRun]) -> float:
    gaps = ((before.end, after.start) for before, after in pairwise(runs))
    return sum((start - end).total_seconds() for end, start in gaps if end is not None)
