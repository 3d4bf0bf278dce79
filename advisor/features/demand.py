"""How many GPUs a pool wanted over time: the series that demand forecasts are made from.

Demand is GPUs running plus GPUs pending, in physical GPUs whatever the sharing. A moment that nobody
observed is NaN in every row, never zero.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from advisor.domain.jobs import Job, Outcome, pool_of
from advisor.domain.units import SECONDS_PER_MINUTE, positive, utc
from advisor.errors import Refused

__all__ = [
    "JOB_ENDS",
    "JOB_STARTS",
    "KNOWN_STATE",
    "PENDING_JOBS",
    "PENDING_SMALL_GPUS",
    "RUNNING_JOBS",
    "RUNNING_SMALL_GPUS",
    "DemandSeries",
    "SeriesGrid",
    "series_by_pool",
    "series_from_jobs",
]

Floats = NDArray[np.float64]

RUNNING_JOBS = "running_jobs"
PENDING_JOBS = "pending_jobs"
RUNNING_SMALL_GPUS = "running_small_gpus"
PENDING_SMALL_GPUS = "pending_small_gpus"
JOB_STARTS = "job_starts"
JOB_ENDS = "job_ends"
KNOWN_STATE = (RUNNING_JOBS, PENDING_JOBS, RUNNING_SMALL_GPUS, PENDING_SMALL_GPUS, JOB_STARTS, JOB_ENDS)
"""State rows that features know how to read; any other is offered to the model as it is."""

_DECIMALS = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesGrid:
    """When and how a pool is sampled: every ``step_minutes`` from ``start`` up to ``end``.

    ``node_gpus`` says which jobs are small (fewer GPUs than a node has), ``zone`` in which time zone
    hours and weekdays are meant.
    """

    start: datetime
    end: datetime
    step_minutes: int = 5
    node_gpus: int = 8
    zone: str = "UTC"

    def __post_init__(self) -> None:
        """Keep times in UTC and check the steps.

        Raises:
            Refused: a step that is not a positive number of minutes.
        """
        object.__setattr__(self, "start", utc(self.start, "start"))
        object.__setattr__(self, "end", utc(self.end, "end"))
        positive(self.step_minutes, "step_minutes", "minutes")
        positive(self.node_gpus, "node_gpus", "GPUs")

    def samples_until(self, now: datetime) -> int:
        """How many samples lie on or before both the end and ``now``."""
        last = min(self.end, utc(now, "now"))
        return max(0, int((last - self.start) / timedelta(minutes=self.step_minutes)) + 1) if last >= self.start else 0


@dataclass(frozen=True, kw_only=True, eq=False)
class DemandSeries:
    """One pool's GPUs over time, a sample every ``step_minutes`` from ``start``; NaN where nobody looked.

    ``running``, ``pending``, ``idle`` and ``capacity`` are physical GPUs; ``pending`` None means that
    the source cannot tell, so demand is what ran. ``state`` holds further rows of the same length.
    ``calendar_known`` False says that times are relative: hours and weekdays mean nothing.
    """

    pool: str
    start: datetime
    step_minutes: int
    running: Floats
    pending: Floats | None = None
    idle: Floats | None = None
    capacity: Floats | None = None
    state: Mapping[str, Floats] = field(default_factory=dict)
    node_gpus: int = 8
    zone: str = "UTC"
    calendar_known: bool = True
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check rows once and make them read-only copies.

        Raises:
            Refused: rows of different lengths, negative or infinite GPUs, or a step of no minutes.
        """
        object.__setattr__(self, "start", utc(self.start, "start"))
        positive(self.step_minutes, "step_minutes", "minutes")
        positive(self.node_gpus, "node_gpus", "GPUs")
        size = len(self.running)
        for name in ("running", "pending", "idle", "capacity"):
            row = getattr(self, name)
            if row is not None:
                object.__setattr__(self, name, _checked_row(row, name, size))
        object.__setattr__(self, "state", {name: _checked_row(row, name, size) for name, row in self.state.items()})

    def __len__(self) -> int:
        """Samples, known or not."""
        return int(self.running.size)

    @property
    def pending_known(self) -> bool:
        """False where the source cannot tell what waits."""
        return self.pending is not None

    @cached_property
    def demand(self) -> Floats:
        """GPUs running + pending at each sample; of running alone where pending is not known."""
        total: Floats = self.running if self.pending is None else self.running + self.pending
        return total

    @cached_property
    def unix(self) -> NDArray[np.int64]:
        """The UTC second of each sample."""
        first = int(self.start.timestamp())
        return first + np.arange(len(self), dtype=np.int64) * (self.step_minutes * 60)

    @property
    def end(self) -> datetime | None:
        """The time of the last sample, None for a series without any."""
        return self.time_at(len(self) - 1) if len(self) else None

    def time_at(self, index: int) -> datetime:
        """The time of one sample."""
        return self.start + timedelta(minutes=self.step_minutes * index)

    @cached_property
    def last_known(self) -> int | None:
        """Index of the newest sample whose demand is known, None if there is none."""
        known = np.flatnonzero(~np.isnan(self.demand))
        return int(known[-1]) if known.size else None

    @property
    def known_minutes(self) -> float:
        """Minutes of history that were really observed."""
        return float((~np.isnan(self.demand)).sum() * self.step_minutes)

    def until(self, now: datetime) -> DemandSeries:
        """The same series without anything later than ``now``."""
        keep = int(np.searchsorted(self.unix, utc(now, "now").timestamp(), side="right"))
        return self if keep == len(self) else self.between(0, keep)

    def between(self, first: int, stop: int) -> DemandSeries:
        """Samples ``first`` up to but without ``stop``."""

        def cut(row: Floats | None) -> Floats | None:
            return None if row is None else row[first:stop]

        return replace(
            self,
            start=self.time_at(first),
            running=self.running[first:stop],
            pending=cut(self.pending),
            idle=cut(self.idle),
            capacity=cut(self.capacity),
            state={name: row[first:stop] for name, row in self.state.items()},
        )

    def steps(self, minutes: float) -> int:
        """How many samples ``minutes`` ahead lies.

        Raises:
            Refused: ``minutes`` is no whole, positive number of steps.
        """
        count = minutes / self.step_minutes
        if count < 1 or count != int(count):
            raise Refused(
                "horizon",
                f"{minutes:g} min",
                f"samples of {self.pool} are {self.step_minutes} min apart",
                "Choose a horizon that is a multiple of that.",
            )
        return int(count)


def series_from_jobs(jobs: Iterable[Job], pool: str, grid: SeriesGrid, now: datetime) -> DemandSeries:
    """The demand of ``pool`` from the history of its jobs, as it was known at ``now``.

    A job counts as pending from submission and as running from its start until its end; one whose end
    was lost counts until it was last seen. Fractions of a GPU add up to physical GPUs.
    """
    mine = [job for job in jobs if job.submit <= now and pool_of(job) == pool]
    return _sampled(mine, pool, grid, now)


def series_by_pool(jobs: Iterable[Job], grid: SeriesGrid, now: datetime) -> dict[str, DemandSeries]:
    """The demand of every pool that any of ``jobs`` belongs to, by name in order, as known at ``now``."""
    by_pool: dict[str, list[Job]] = {}
    for job in jobs:
        if job.submit <= now:
            by_pool.setdefault(pool_of(job), []).append(job)
    return {pool: _sampled(by_pool[pool], pool, grid, now) for pool in sorted(by_pool)}


def _sampled(jobs: list[Job], pool: str, grid: SeriesGrid, now: datetime) -> DemandSeries:
    count = grid.samples_until(now)
    # Samples end by now, so what happened later falls on none of them.
    seen = _JobTimes.of(jobs)
    counter = _Counter(grid.start.timestamp(), grid.step_minutes * SECONDS_PER_MINUTE, count)
    small = seen.gpus * (seen.gpus < grid.node_gpus)
    one = np.ones_like(seen.gpus)
    waited = ~seen.start_assumed
    pending_known = bool(waited.any()) or not jobs
    notes = () if pending_known else ("starts are not known, so nothing is seen waiting: demand is what ran",)
    return DemandSeries(
        pool=pool,
        start=grid.start,
        step_minutes=grid.step_minutes,
        running=counter.present(seen.start, seen.end, seen.gpus),
        pending=counter.present(seen.submit, seen.stopped_waiting, seen.gpus) if pending_known else None,
        state={
            RUNNING_JOBS: counter.present(seen.start, seen.end, one),
            PENDING_JOBS: counter.present(seen.submit, seen.stopped_waiting, one),
            RUNNING_SMALL_GPUS: counter.present(seen.start, seen.end, small),
            PENDING_SMALL_GPUS: counter.present(seen.submit, seen.stopped_waiting, small),
            JOB_STARTS: counter.happened(seen.start),
            JOB_ENDS: counter.happened(seen.end),
        },
        node_gpus=grid.node_gpus,
        zone=grid.zone,
        calendar_known=all(job.calendar_known for job in jobs),
        notes=notes,
    )


@dataclass(frozen=True, slots=True)
class _JobTimes:
    """Times of jobs in Unix seconds; infinite where not known."""

    submit: Floats
    start: Floats
    end: Floats
    gpus: Floats
    start_assumed: NDArray[np.bool_]

    @classmethod
    def of(cls, jobs: list[Job]) -> _JobTimes:
        def known(moment: datetime | None) -> float:
            return np.inf if moment is None else moment.timestamp()

        def left(job: Job) -> datetime | None:
            # Only a job given up as lost ends when last seen; one still running merely was seen then.
            return job.last_seen if job.outcome is Outcome.CENSORED else job.end

        return cls(
            submit=np.array([job.submit.timestamp() for job in jobs]),
            start=np.array([known(job.start) for job in jobs]),
            end=np.array([known(left(job)) for job in jobs]),
            gpus=np.array([job.gpus for job in jobs]),
            start_assumed=np.array([job.start_assumed for job in jobs], dtype=np.bool_),
        )

    @property
    def stopped_waiting(self) -> Floats:
        """When a job stopped waiting: it started, or was cancelled before it did."""
        return np.minimum(self.start, self.end)


@dataclass(frozen=True, slots=True)
class _Counter:
    """Counts what is present or happens on a grid of ``count`` samples, ``step`` seconds apart."""

    first: float
    step: float
    count: int

    def present(self, begin: Floats, end: Floats, weight: Floats) -> Floats:
        """Sum of ``weight`` over those with begin <= t < end, at every sample t."""
        came = np.bincount(self._next_sample(begin), weight, self.count + 1)
        went = np.bincount(self._next_sample(np.maximum(begin, end)), weight, self.count + 1)
        # Sums of shares leave dust behind, and "no change" must be exactly that.
        level = np.cumsum(came - went)[: self.count]
        rounded: Floats = np.maximum(np.round(level, _DECIMALS), 0.0)
        return rounded

    def happened(self, when: Floats) -> Floats:
        """How many of ``when`` lie after the sample before and not after this one."""
        inside = when[when > self.first - self.step]
        return np.bincount(self._next_sample(inside), minlength=self.count + 1)[: self.count].astype(np.float64)

    def _next_sample(self, when: Floats) -> NDArray[np.int64]:
        """Index of the first sample at or after each moment; ``count`` where there is none."""
        steps = np.ceil((when - self.first) / self.step)
        return np.clip(steps, 0, self.count).astype(np.int64)


def _checked_row(row: Floats, name: str, size: int) -> Floats:
    values = np.array(row, dtype=np.float64)
    if values.shape != (size,):
        raise Refused(name, values.shape, f"every row needs {size} samples", "Give one number a sample.")
    if np.isinf(values).any() or (values < 0).any():
        bad = values[np.isinf(values) | (values < 0)][0]
        raise Refused(name, float(bad), "GPUs and counts are 0 or more", "Leave unknown samples out (NaN).")
    values.flags.writeable = False
    return values
