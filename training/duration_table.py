"""A history as a table: every job with the row it was asked with, and when its end became known."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from advisor.domain.jobs import Job, Outcome
from advisor.domain.units import utc
from advisor.errors import Defect
from advisor.features.duration import DURATION_SCHEMA, USAGE_SCHEMA, DurationFeatures
from advisor.features.latest import LATEST
from advisor.features.replay import EventKind, events_of
from advisor.forecast.live import run_seconds

__all__ = ["DurationTable", "Progress", "duration_table"]

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Bools = NDArray[np.bool_]

Progress = Callable[[str, int, int], None]
"""Told of what is being done, how much of it is done, and how much there is."""

_TOLD_EVERY = 1000


@dataclass(frozen=True, slots=True)
class DurationTable:
    """Rows and outcomes of jobs, in the order the jobs were given; times are Unix seconds, NaN while unknown.

    Rows have the columns of usage only where the history tells of any.
    ``rows`` and ``latest``, the submissions around each job (:mod:`advisor.features.latest`) when it was asked about,
    are kept of the last of them by submission only where there is a ``place`` for each job (-1: not kept);
    ``seconds`` is how long a job ran, or was seen to run where ``censored``; ``gone`` when that became known.
    Of rows only ``shown`` columns are answered, all where it is None.
    """

    rows: Floats
    latest: Singles
    submit: Floats
    start: Floats
    gone: Floats
    seconds: Floats
    censored: Bools
    place: NDArray[np.intp] | None = None
    shown: NDArray[np.intp] | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The features whose columns are answered, in order."""
        names = (DURATION_SCHEMA if self.rows.shape[1] == len(DURATION_SCHEMA) else USAGE_SCHEMA).names
        return names if self.shown is None else tuple(names[column] for column in self.shown)

    def telling(self, jobs: NDArray[np.intp]) -> DurationTable:
        """This table without the columns of usage that tell no two of ``jobs`` apart.

        A history without usage is fitted as if there were no such thing, and its model is the same to the last byte.
        """
        first = len(DURATION_SCHEMA)
        usage = self.asked(jobs)[0][:, first:]
        known = ~np.isnan(usage)
        low, high = np.where(known, usage, np.inf).min(axis=0), np.where(known, usage, -np.inf).max(axis=0)
        shown = np.append(np.arange(first), first + np.flatnonzero(low < high))
        return self if shown.size == self.rows.shape[1] else replace(self, shown=shown)

    def kept(self, jobs: NDArray[np.intp]) -> NDArray[np.intp]:
        """Those of ``jobs`` whose rows were kept."""
        return jobs if self.place is None else jobs[self.place[jobs] >= 0]

    def asked(self, jobs: NDArray[np.intp]) -> tuple[Floats, Singles]:
        """Rows and latest submissions of ``jobs``.

        Raises:
            Defect: of one of them they were not kept.
        """
        places = jobs if self.place is None else self.place[jobs]
        if places.size and places.min() < 0:
            raise Defect("a job is asked about whose row was not kept")
        rows = self.rows[places]
        return rows if self.shown is None else rows[:, self.shown], self.latest[places]

    def known_at(self, now: float) -> tuple[Floats, Bools, Bools]:
        """As of ``now``: seconds run so far, whether that is the whole duration, and which jobs have run at all.

        Ends up to and including ``now`` are known; a job that starts then has not run yet.
        """
        gone = self.gone <= now
        age = np.where(gone, self.seconds, now - self.start)
        return age, gone & ~self.censored, age > 0


def duration_table(
    jobs: Sequence[Job], until: datetime, progress: Progress | None = None, newest: int | None = None
) -> DurationTable:
    """Replay ``jobs`` up to ``until`` and keep the row of every submission, or of the ``newest`` so many.

    Jobs submitted later have a row of NaN, and of no job is anything known that happened later.
    """
    limit = utc(until, "until").timestamp()
    moments = [(job.submit, job.start, job.gone_at) for job in jobs]
    times = np.array([[math.nan if m is None else m.timestamp() for m in three] for three in moments]).reshape(-1, 3)
    times[times > limit] = np.nan
    seconds = np.array([run_seconds(job) for job in jobs], dtype=np.float64)
    place = _places(times[:, 0], newest)
    rows, latest = _asked(jobs, until, place, progress)
    return DurationTable(
        rows=rows,
        latest=latest,
        submit=times[:, 0],
        start=times[:, 1],
        gone=times[:, 2],
        seconds=np.where(np.isnan(times[:, 2]), np.nan, seconds),
        censored=np.array([job.outcome is Outcome.CENSORED for job in jobs], dtype=np.bool_),
        place=place,
    )


def _places(submit: Floats, newest: int | None) -> NDArray[np.intp] | None:
    """Where the rows of the ``newest`` jobs go, -1 for all others; None where all are kept."""
    if newest is None or newest >= submit.size:
        return None
    kept = np.argsort(submit, kind="stable")[-newest:]
    place = np.full(submit.size, -1, dtype=np.intp)
    place[kept] = np.arange(newest)
    return place


def _asked(
    jobs: Sequence[Job], until: datetime, place: NDArray[np.intp] | None, progress: Progress | None
) -> tuple[Floats, Singles]:
    with_usage = any(job.usage is not None for job in jobs)
    features = DurationFeatures(with_usage=with_usage)
    size = len(jobs) if place is None else int(place.max()) + 1
    rows = np.full((size, len(USAGE_SCHEMA if with_usage else DURATION_SCHEMA)), np.nan)
    latest = np.full((size, LATEST), np.nan, dtype=np.float32)
    asked = 0
    for event in events_of(jobs, until):
        if event.kind is EventKind.SUBMITTED:
            at = event.place if place is None else int(place[event.place])
            if at >= 0:
                rows[at] = features.row(event.job, event.moment)
                latest[at] = features.latest(event.job, event.moment)
            features.submitted(event.job)
            asked += 1
            if progress is not None and (asked % _TOLD_EVERY == 0 or asked == len(jobs)):
                progress("features", asked, len(jobs))
        elif event.kind is EventKind.STARTED:
            features.started(event.job)
        else:
            features.ended(event.job, event.moment)
    return rows, latest
