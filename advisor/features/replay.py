"""History as the events a live system would have seen, in the order it would have seen them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from enum import IntEnum
from typing import NamedTuple

from advisor.domain.jobs import Job

__all__ = ["ENDS", "Event", "EventKind", "events_of"]


class EventKind(IntEnum):
    """What happened; the numbers order events of the same instant.

    Ends come before submissions of the same instant (who submits can know of them), except of jobs
    that ended the instant they were submitted or started.
    """

    ENDED = 0
    STARTED = 1
    SUBMITTED = 2
    ENDED_AT_ONCE = 3


ENDS = frozenset({EventKind.ENDED, EventKind.ENDED_AT_ONCE})
"""The kinds after which a job is gone."""


class Event(NamedTuple):
    """``job``, the ``place``-th of those given, did this at ``moment`` (Unix seconds ``at``)."""

    at: float
    kind: EventKind
    place: int
    moment: datetime
    job: Job


def events_of(jobs: Sequence[Job], until: datetime | None = None) -> list[Event]:
    """What happened to ``jobs`` up to and including ``until``, in order; ties keep the order of ``jobs``."""
    limit = None if until is None else until.timestamp()
    found = [event for place, job in enumerate(jobs) for event in _of_job(place, job)]
    if limit is not None:
        found = [event for event in found if event.at <= limit]
    # The order is decided before a moment or a job would have to be compared.
    found.sort(key=lambda event: event[:3])
    return found


def _of_job(place: int, job: Job) -> Iterable[Event]:
    submit, start, gone = job.submit, job.start, job.gone_at
    yield Event(submit.timestamp(), EventKind.SUBMITTED, place, submit, job)
    if start is not None and start > submit:
        yield Event(start.timestamp(), EventKind.STARTED, place, start, job)
    if gone is not None:
        begun = submit if start is None else start
        gone = max(gone, begun)
        kind = EventKind.ENDED_AT_ONCE if gone == begun else EventKind.ENDED
        yield Event(gone.timestamp(), kind, place, gone, job)
