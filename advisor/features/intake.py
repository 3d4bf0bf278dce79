"""A history that grows, as events each handed out once: what lets a live state be fed instead of rebuilt.

A state fed with these events equals one rebuilt from the whole history as long as they come in the order in
which a rebuild would take them in. Where they do not (an end that is told after later things happened, a start
that was corrected) the intake says so by :attr:`Intake.exact`, and hands the news out all the same: a state that
has taken them in late knows more than one that has not, and is to be replaced by a rebuilt one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime
from heapq import heappop, heappush
from typing import NamedTuple

from advisor.domain.jobs import Job, JobIdentity
from advisor.features.replay import SUBMISSIONS_TURN, Event, EventKind, events_of_job

__all__ = ["Intake", "JobKey", "Told"]


class JobKey(NamedTuple):
    """Whose event it is, in the order of a history: by submission, then id, then source."""

    submit: datetime
    id: str
    source: str


class Told(NamedTuple):
    """An event, and the job it happened to. ``late``: it comes after what it should have come before."""

    key: JobKey
    event: Event
    late: bool


class _Turn(NamedTuple):
    """Where an event stands among all others: a rebuild takes them in in this order."""

    at: float
    turn: int
    key: JobKey
    kind: EventKind


@dataclass(slots=True)
class _Known:
    """A job as last told of, and what of it has been handed out."""

    job: Job
    taken: set[EventKind] = field(default_factory=set)


class Intake:
    """Jobs as they become known, by their identity, and their events up to a moment that moves on.

    Knows no clock and no store: :meth:`tell` it what has changed, then ask for :meth:`events`.
    """

    def __init__(self) -> None:
        self._known: dict[JobIdentity, _Known] = {}
        self._sources: set[str] = set()
        self._order: list[JobKey] = []
        self._touched: set[JobKey] = set()
        self._ahead: list[tuple[float, JobKey]] = []
        self._last: _Turn | None = None
        self._exact = True

    @property
    def exact(self) -> bool:
        """Whether a state fed with everything handed out so far equals one rebuilt from what is known."""
        return self._exact

    def beyond(self, now: datetime) -> bool:
        """Whether something was handed out that happened after ``now``, so that time has moved backwards."""
        return self._last is not None and self._last.at > now.timestamp()

    def tell(self, jobs: Iterable[Job]) -> None:
        """These jobs are new or better known; telling the same again changes nothing."""
        added = False
        for job in jobs:
            identity = job.identity
            key = JobKey(job.submit, job.id, identity[0])
            known = self._known.get(identity)
            if known is None:
                self._known[identity] = _Known(job)
                self._sources.add(identity[0])
                self._order.append(key)
                added = True
            elif known.job == job:
                continue
            else:
                self._exact = self._exact and _still_true(known, job)
                known.job = job
            self._touched.add(key)
        if added:
            self._order.sort()

    def events(self, now: datetime) -> list[Told]:
        """What happened up to and including ``now`` and was not handed out before, in the order of a rebuild."""
        limit = now.timestamp()
        while self._ahead and self._ahead[0][0] <= limit:
            self._touched.add(heappop(self._ahead)[1])
        found = sorted(self._turns(limit), key=lambda one: one[0])
        self._touched.clear()
        told = []
        for turn, event in found:
            late = self._last is not None and turn < self._last
            if late:
                self._exact = False
            else:
                self._last = turn
            told.append(Told(turn.key, event, late))
        return told

    def _turns(self, limit: float) -> Iterator[tuple[_Turn, Event]]:
        for key in self._touched:
            known = self._known[key.source, key.id]
            for event in _untold(known):
                if event.at > limit:
                    heappush(self._ahead, (event.at, key))
                    break
                known.taken.add(event.kind)
                if event.kind is EventKind.SUBMITTED and known.job.start == known.job.submit:
                    # Told by the submission itself.
                    known.taken.add(EventKind.STARTED)
                yield _Turn(event.at, event.turn, key, event.kind), event

    def jobs(self) -> list[Job]:
        """Every job as last told of, what lies ahead included, by submission, then id, then source."""
        return [self._known[key.source, key.id].job for key in self._order]

    def called(self, job_id: str) -> list[Job]:
        """The jobs of that id as last told of, one a source at most, by the names of their sources."""
        found = (self._known.get((source, job_id)) for source in sorted(self._sources))
        return [known.job for known in found if known is not None]


def _untold(known: _Known) -> Iterator[Event]:
    """Events of the job that were not handed out, in order."""
    job = known.job
    for event in events_of_job(job):
        if event.kind not in known.taken:
            yield event
        if event.kind is EventKind.SUBMITTED and _began_unseen(known):
            yield Event(event.at, SUBMISSIONS_TURN, 0, EventKind.STARTED, job.submit, job)


def _began_unseen(known: _Known) -> bool:
    """Whether it is now known to have begun at its submission, which was told of while it seemed to wait."""
    told = EventKind.SUBMITTED in known.taken and not known.taken & {EventKind.STARTED, EventKind.ENDED}
    return told and known.job.start == known.job.submit


def _still_true(known: _Known, job: Job) -> bool:
    """Whether everything handed out of a job would be handed out the same, now that it is known as ``job``."""
    before = known.job
    if EventKind.SUBMITTED in known.taken and _request(before) != _request(job):
        return False
    if EventKind.STARTED in known.taken and before.start != job.start:
        return False
    return EventKind.ENDED not in known.taken or _end(before) == _end(job)


def _end(job: Job) -> tuple[object, ...]:
    """What an end teaches: how long the job ran, how it ended, on what kind of GPU and what it did with its GPUs."""
    return (job.start, job.gone_at, job.outcome, job.paused_seconds, job.gpu_kind, job.usage)


def _request(job: Job) -> Job:
    """What a duration is predicted from: neither how the job fared nor the pool it went to nor what made it."""
    return replace(job.as_asked(), pool=None, created_by=None)
