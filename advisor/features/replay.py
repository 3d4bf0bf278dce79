"""History as the events a live system would have seen, in the order it would have seen them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from enum import IntEnum
from typing import NamedTuple

from advisor.domain.jobs import Job

__all__ = ["SUBMISSIONS_TURN", "Event", "EventKind", "events_of", "events_of_job"]


class EventKind(IntEnum):
    """What happened, in the order in which it happens to one job."""

    SUBMITTED = 0
    STARTED = 1
    ENDED = 2


class Event(NamedTuple):
    """``job``, the ``place``-th of those given, did this at ``moment`` (Unix seconds ``at``).

    ``turn`` orders events of one instant: ends first, then starts, then submissions, so that who submits
    can know of both; a job that ends the instant it is submitted or started does so right after it.
    """

    at: float
    turn: int
    place: int
    kind: EventKind
    moment: datetime
    job: Job


SUBMISSIONS_TURN = 2
"""The turn of submissions, the last of an instant."""


def events_of(jobs: Sequence[Job], until: datetime | None = None) -> list[Event]:
    """What happened to ``jobs`` up to and including ``until``, in order; ties keep the order of ``jobs``."""
    limit = None if until is None else until.timestamp()
    found = [event for place, job in enumerate(jobs) for event in events_of_job(job, place)]
    if limit is not None:
        found = [event for event in found if event.at <= limit]
    found.sort(key=lambda event: event[:4])
    return found


def events_of_job(job: Job, place: int = 0) -> Iterable[Event]:
    """What happened to ``job``, the ``place``-th of those given, in order, whatever is still to come included."""
    submit, start, gone = job.submit, job.start, job.gone_at
    yield Event(submit.timestamp(), SUBMISSIONS_TURN, place, EventKind.SUBMITTED, submit, job)
    begun, turn = submit, SUBMISSIONS_TURN
    if start is not None and start > submit:
        begun, turn = start, 1
        yield Event(start.timestamp(), turn, place, EventKind.STARTED, start, job)
    if gone is not None:
        # A job may have been last seen before it is said to have started.
        gone = max(gone, begun)
        yield Event(gone.timestamp(), turn if gone == begun else 0, place, EventKind.ENDED, gone, job)
