"""What the best reader could say of each piece of work: the truth, as far as some scrape has seen it.

It looks at the world, never at series, and knows which pods are whose, so it has nothing to find out. The rules are
those of the project: a pod that vanished while kube-state-metrics was being scraped was cancelled when it was last
seen, one that vanished in a gap is censored then, one whose node was lost when it was last seen on one that was not,
and so is one that was evicted.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from advisor.domain.jobs import Job, Outcome
from tests.telemetry_world.exposition import KSM_JOB, Telemetry
from tests.telemetry_world.faults import ClockSkew
from tests.telemetry_world.things import JobObject, Pod, Sharing, Work
from tests.telemetry_world.world import World

__all__ = ["Expected", "expected", "kube_state_scrapes", "watched"]

Floats = NDArray[np.float64]
_LOOKS = 0.5
"""Seconds between two looks of one who misses nothing: worlds change at whole seconds."""
_WORST_FIRST = (Outcome.FAILED, Outcome.CANCELLED, Outcome.CENSORED, Outcome.COMPLETED)


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What is to be found of one piece of work.

    ``job`` is None where nothing is, and ``why`` says why: ``placeholder``, ``reservation``, ``rejected`` and
    ``cpu_only`` are to be left out, ``never_scraped`` and ``no_pods`` cannot be known. The three ``_within`` are how
    many seconds start, end (or last seen) and pauses may be off, 0 where every moment was shown. Not ``gpus_known``
    is a pod that never had a node in a fleet whose GPUs are shared. ``in_doubt`` marks work of which
    some pod was never scraped, or that is between two runs: moments and outcome may be told otherwise.
    """

    work: Work
    job: Job | None = None
    why: str | None = None
    start_within: float = 0.0
    end_within: float = 0.0
    paused_within: float = 0.0
    gpus_known: bool = True
    in_doubt: bool = False


@dataclass(frozen=True, slots=True)
class _Seen:
    """What was seen of one pod; ``exact`` says that its end was shown rather than inferred."""

    pod: Pod
    scheduled: float | None
    started: float | None
    gone: float | None
    outcome: Outcome | None
    exact: bool
    restarts: int


@dataclass(frozen=True, slots=True)
class _Run:
    start: float
    end: float | None
    exact: bool
    failed: bool


@dataclass(slots=True)
class _Ending:
    fields: dict[str, object] = field(default_factory=dict)
    within: float = 0.0
    in_doubt: bool = False


def kube_state_scrapes(telemetry: Telemetry) -> Floats:
    """The moments at which kube-state-metrics was scraped, by any server."""
    ups = telemetry.raw("up", job=KSM_JOB)
    return np.unique(np.concatenate([series.times[series.values == 1.0] for series in ups]))


def expected(telemetry: Telemetry) -> tuple[Expected, ...]:
    """What is to be found of each piece of work of a world in this telemetry."""
    skews = [fault for fault in telemetry.faults if isinstance(fault, ClockSkew)]
    skew = sum(abs(one.kubelet_seconds) + abs(one.scraper_seconds) for one in skews)
    observer = _Observer(kube_state_scrapes(telemetry), telemetry.interval, skew)
    shared = telemetry.world.spec.sharing is not Sharing.WHOLE
    return tuple(observer.of(work, shared) for work in telemetry.world.works)


def watched(world: World) -> tuple[Expected, ...]:
    """What is to be found of each piece of work by one who is told of every change, as one who looks twice a second."""
    looks = np.arange(world.start, world.end, _LOOKS)
    observer = _Observer(looks, _LOOKS, 0.0)
    shared = world.spec.sharing is not Sharing.WHOLE
    return tuple(observer.of(work, shared) for work in world.works)


@dataclass(frozen=True, slots=True)
class _Observer:
    """``scrapes`` of kube-state-metrics that were kept, every ``interval`` seconds but for gaps."""

    scrapes: Floats
    interval: float
    skew: float

    def of(self, work: Work, shared: bool) -> Expected:
        """What is to be found of ``work``."""
        noise = next((pod.noise for pod in work.pods if pod.noise not in {None, "rejected"}), None)
        real = [pod for pod in work.pods if not self._turned_away(pod)]
        if noise is not None or (work.pods and not real and not self._objects(work)):
            return Expected(work=work, why=noise or "rejected")
        seen = [one for pod in real if (one := self._pod(pod)) is not None]
        if not seen:
            return Expected(work=work, why="never_scraped" if real else "no_pods")
        runs = _runs(seen)
        ending = self._ending(work, seen, runs)
        inner = [run for run in runs[:-1] if not run.exact]
        return Expected(
            work=work,
            job=self._job(work, seen, runs, ending.fields),
            start_within=self.skew,
            end_within=ending.within + self.skew,
            paused_within=self.interval * len(inner) + self.skew * (len(runs) > 1),
            gpus_known=not shared or any(one.scheduled is not None for one in seen),
            in_doubt=ending.in_doubt or len(seen) < len(real),
        )

    def _turned_away(self, pod: Pod) -> bool:
        """Whether it was seen that its node did not admit it; until then it is a pod that waits."""
        return pod.noise == "rejected" and pod.reason_from is not None and self._any(pod.reason_from, pod.deleted)

    def _any(self, begin: float, until: float | None) -> bool:
        """Whether there was a scrape from ``begin`` on and before ``until``."""
        first = int(np.searchsorted(self.scrapes, begin, "left"))
        return first < len(self.scrapes) and (until is None or bool(self.scrapes[first] < until))

    def _pod(self, pod: Pod) -> _Seen | None:
        first = int(np.searchsorted(self.scrapes, pod.created, "left"))
        last = len(self.scrapes) if pod.deleted is None else int(np.searchsorted(self.scrapes, pod.deleted, "left"))
        if first >= last:
            return None
        scheduled = pod.scheduled if pod.scheduled is not None and self._any(pod.scheduled, pod.deleted) else None
        gone, outcome, exact = self._gone(pod, last)
        restarts = [n for n, one in enumerate(pod.attempts) if self._any(one.start, _shown_until(pod))]
        return _Seen(pod, scheduled, self._started(pod), gone, outcome, exact, max(restarts, default=0))

    def _started(self, pod: Pod) -> float | None:
        """The first start that was shown: that of an attempt goes when the attempt ends, but for the last."""
        for number, one in enumerate(pod.attempts):
            last = number == len(pod.attempts) - 1
            if self._any(one.start, _shown_until(pod) if last else one.end):
                return one.start
        return None

    def _gone(self, pod: Pod, after: int) -> tuple[float | None, Outcome | None, bool]:
        """When it stopped, how, and whether that was shown; ``after`` is the first scrape without it."""
        if pod.ended is not None and self._any(pod.ended, pod.deleted):
            if pod.reason == "Evicted":
                return pod.ended, Outcome.CENSORED, False
            return pod.ended, Outcome.COMPLETED if pod.phase == "Succeeded" else Outcome.FAILED, True
        if pod.reason == "NodeLost" and pod.reason_from is not None and self._any(pod.reason_from, pod.deleted):
            # From when it is told that its node was lost nobody knows what it does, though its object stays.
            place = int(np.searchsorted(self.scrapes, pod.reason_from, "left"))
            before = float(self.scrapes[place - 1]) if place else 0.0
            return max(before, float(pod.created)), Outcome.CENSORED, False
        if after == len(self.scrapes):
            return None, None, True
        last = float(self.scrapes[after - 1])
        unwatched = self.scrapes[after] - last > 1.5 * self.interval
        return last, Outcome.CENSORED if unwatched else Outcome.CANCELLED, False

    def _objects(self, work: Work) -> list[JobObject]:
        """Its Jobs that were seen."""
        return [one for one in work.objects if self._any(one.created, one.deleted)]

    def _said(self, one: JobObject) -> tuple[float, Outcome] | None:
        """What a Job says of its end, where that was seen."""
        for moment, outcome in ((one.completed, Outcome.COMPLETED), (one.failed, Outcome.FAILED)):
            if moment is not None and self._any(moment, one.deleted):
                return moment, outcome
        return None

    def _ending(self, work: Work, seen: Sequence[_Seen], runs: Sequence[_Run]) -> _Ending:
        objects = self._objects(work) if work.creator is not None else []
        said = next((found for one in objects if (found := self._said(one)) is not None), None)
        if said is None and any(one.gone is None for one in seen):
            return _Ending()
        last = max(one.pod.run for one in seen)
        outcomes = [one.outcome for one in seen if one.pod.run == last]
        outcome = said[1] if said is not None else next(one for one in _WORST_FIRST if one in outcomes)
        gone = max(one.gone for one in seen if one.gone is not None) if said is None else said[0]
        if runs and runs[-1].end is not None:
            gone = runs[-1].end
        exact = runs[-1].exact if runs else said is not None
        within = 0.0 if exact else self.interval
        # A Job that is still there and says nothing of an end is going to have another run.
        waiting = said is None and any(one.deleted is None or self.scrapes[-1] < one.deleted for one in objects)
        if outcome is Outcome.CENSORED:
            return _Ending({"outcome": outcome, "last_seen": _moment(gone)}, within, waiting)
        if not runs:
            return _Ending({"outcome": Outcome.CANCELLED, "end": _moment(gone)}, within, waiting or said is not None)
        return _Ending({"outcome": outcome, "end": _moment(gone)}, within, waiting)

    def _job(self, work: Work, seen: Sequence[_Seen], runs: Sequence[_Run], ending: dict[str, object]) -> Job:
        objects = self._objects(work) if work.creator is not None else []
        submit = min([one.pod.created for one in seen] + [one.created for one in objects])
        bound = [one for one in seen if one.scheduled is not None and one.pod.node is not None]
        node = bound[0].pod.node if bound else None
        scheduled = min((one.scheduled for one in bound if one.scheduled is not None), default=None)
        # A run that follows one that failed is a retry, any other follows one that was taken away.
        retries = sum(run.failed for run in runs[:-1])
        first = seen[0].pod
        return Job(
            id=first.uid if work.creator is None else _identity(work, submit),
            submit=_moment(submit),
            scheduled=None if scheduled is None else _moment(scheduled),
            start=_moment(runs[0].start) if runs else None,
            namespace=work.namespace,
            name=work.name,
            user=work.user,
            gpus=max(_gpus(seen, run) for run in {one.pod.run for one in seen}),
            gpu_kind=None if node is None else node.gpu_kind,
            pool=None if node is None else node.pool,
            nodes=len({one.pod.node.name for one in bound if one.pod.node is not None}) or None,
            created_by=None if work.creator is None else "/".join(work.creator),
            restarts=sum(one.restarts for one in seen) + retries,
            evictions=max(self._suspensions(objects), len(runs[:-1]) - retries),
            # Scrapes have milliseconds, what is below them is the float's own.
            paused_seconds=round(sum(later.start - run.end for run, later in pairwise(runs) if run.end is not None), 3),
            time_limit_seconds=next((float(one.deadline) for one in objects if one.deadline is not None), None),
            **ending,  # type: ignore[arg-type]
        )

    def _suspensions(self, objects: Iterable[JobObject]) -> int:
        """How often a Job was seen to be suspended again."""
        return sum(self._any(begun, until or one.deleted) for one in objects for begun, until in one.suspended[1:])


def _shown_until(pod: Pod) -> int | None:
    return pod.ended if pod.reason == "Evicted" else pod.deleted


def _runs(seen: Sequence[_Seen]) -> list[_Run]:
    """The runs in which a pod was seen to have started."""
    made = []
    for number in sorted({one.pod.run for one in seen}):
        ran = [one for one in seen if one.pod.run == number and one.started is not None]
        if ran:
            start = min(one.started for one in ran if one.started is not None)
            ends = [one.gone for one in ran]
            end = None if None in ends else max([one for one in ends if one is not None] + [start])
            latest = [one for one in ran if one.gone == end]
            failed = any(one.outcome is Outcome.FAILED for one in latest)
            made.append(_Run(start, end, all(one.exact for one in latest), failed))
    return made


def _gpus(seen: Sequence[_Seen], run: int) -> float:
    return round(sum(one.pod.ask.gpus for one in seen if one.pod.run == run and one.pod.ask is not None), 9)


def _identity(work: Work, created: float) -> str:
    kind, name = work.creator or ("", work.name)
    return f"{work.namespace}/{kind}/{name}/{_moment(created):%Y%m%dT%H%M%SZ}"


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)
