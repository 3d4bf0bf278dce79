"""Slices: the right to one GPU share for one slice length, and who gets them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from advisor.domain.forecasts import DurationDistribution
from advisor.domain.gpus import GpuShare
from advisor.domain.units import positive, utc
from advisor.errors import Refused

__all__ = [
    "Allocation",
    "CurvePoint",
    "Decision",
    "Slice",
    "SliceClass",
    "SliceLength",
    "SlicePlan",
    "SliceRequest",
]


@dataclass(frozen=True, slots=True, order=True)
class SliceLength:
    """How long one slice is, in minutes. Not the GPU's hardware time-slice, which is milliseconds."""

    minutes: float

    def __post_init__(self) -> None:
        """Check that it is positive and finite.

        Raises:
            Refused: it is not.
        """
        positive(self.minutes, "slice length", "minutes")

    @property
    def seconds(self) -> float:
        """The same in seconds."""
        return self.minutes * 60.0

    def slices_for(self, duration_seconds: float) -> int:
        """Consecutive slices a task of this predicted duration gets: the ceiling of D / L, at least one.

        >>> SliceLength(15).slices_for(3600), SliceLength(30).slices_for(3600)
        (4, 2)
        """
        positive(duration_seconds, "duration", "seconds")
        # A hair of tolerance, so that 0.1 + 0.2 hours over 0.1 hours is three slices and not four.
        return max(1, math.ceil(duration_seconds / self.seconds - 1e-9))


@dataclass(frozen=True, slots=True, order=True)
class Slice:
    """The right to ``share`` from ``start`` for one ``length``."""

    start: datetime
    share: GpuShare
    length: SliceLength

    def __post_init__(self) -> None:
        """Keep the start in UTC."""
        object.__setattr__(self, "start", utc(self.start, "start"))

    @property
    def end(self) -> datetime:
        """The boundary at which the task may be preempted, checkpointed or moved."""
        return self.start + timedelta(minutes=self.length.minutes)


@dataclass(frozen=True, slots=True)
class CurvePoint:
    """Cost of one candidate slice length, in lost GPU-minutes per useful GPU-minute; None where not allowed."""

    minutes: float
    cost: float
    feasible: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceClass:
    """The slice length of one class of task in a pool, with the evidence behind it.

    ``longest_minutes`` bounds the class by predicted median duration (None: no bound).
    ``minutes`` is None where the right answer is not to slice. ``closed_form_minutes`` is the
    square-root law's optimum, ``rule_of_thumb_minutes`` the rule "mean less switch cost".

    ``if_sliced_minutes`` is the best length should the class be sliced all the same, never None in a
    finished plan; ``quantum_minutes`` the run that the next pre-emption should allow (None: run to the
    end); ``double_switch_minutes`` what twice the switch cost would make of ``if_sliced_minutes``;
    ``confidence`` is ``good``, ``moderate`` or ``thin``, by the ended jobs behind it.
    """

    name: str
    longest_minutes: float | None
    share_of_jobs: float
    mean_minutes: float
    minutes: float | None
    current_minutes: float | None
    rule_of_thumb_minutes: float | None
    closed_form_minutes: float
    cost: float
    current_cost: float | None
    binding_constraint: str | None
    curve: tuple[CurvePoint, ...]
    reasons: tuple[str, ...]
    if_sliced_minutes: float | None = None
    quantum_minutes: float | None = None
    double_switch_minutes: float | None = None
    confidence: str = "thin"


@dataclass(frozen=True, slots=True, kw_only=True)
class SlicePlan:
    """Slice lengths of one pool, shortest class first, under one switch cost."""

    pool: str
    switch_cost_minutes: float
    classes: tuple[SliceClass, ...]
    reasons: tuple[str, ...]

    def class_for(self, predicted_minutes: float) -> SliceClass:
        """The class of a task by its predicted median duration."""
        for candidate in self.classes:
            if candidate.longest_minutes is None or predicted_minutes <= candidate.longest_minutes:
                return candidate
        return self.classes[-1]


class Decision(StrEnum):
    """What became of a request; exactly one of three."""

    PLACED = "placed"
    DEFERRED = "deferred"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceRequest:
    """A task asking for slices: ``gpus`` whole GPUs, or a fraction below one for a share of one GPU.

    ``slice_length`` None lets the pool's plan decide. ``deadline`` is when it must have ended.
    """

    id: str
    submit: datetime
    gpus: float
    duration: DurationDistribution
    pool: str | None = None
    gpu_kind: str | None = None
    urgent: bool = False
    deadline: datetime | None = None
    slice_length: SliceLength | None = None

    def __post_init__(self) -> None:
        """Check GPUs and times once.

        Raises:
            Refused: GPUs that are neither whole nor a share of one, or a deadline before submission.
        """
        object.__setattr__(self, "submit", utc(self.submit, "submit"))
        positive(self.gpus, "gpus", "GPUs")
        if self.gpus > 1 and self.gpus != int(self.gpus):
            raise Refused("gpus", self.gpus, "above one GPU only whole GPUs can be asked", "Round up.")
        if self.deadline is not None:
            object.__setattr__(self, "deadline", utc(self.deadline, "deadline"))
            if self.deadline <= self.submit:
                raise Refused("deadline", self.deadline.isoformat(), "it must lie after submission", "Move it later.")


@dataclass(frozen=True, slots=True, kw_only=True)
class Allocation:
    """The answer to one request: placed with its slices, deferred until a time, or refused; always with reasons.

    ``slices`` are ordered by start, then share; ``predicted_end`` is the end of the last slice.
    ``deferred_until`` is when capacity is expected for a deferred request, None if that is not known.
    ``launch_nodes`` nodes of ``launch_pool`` should be started for a deferred request that nothing
    present or coming can hold; 0 where it shares a node asked for by another, or waits for a release.
    """

    request_id: str
    decision: Decision
    slices: tuple[Slice, ...] = ()
    slice_count: int = 0
    deferred_until: datetime | None = None
    reasons: tuple[str, ...] = ()
    launch_pool: str | None = None
    launch_nodes: int = 0

    @property
    def predicted_end(self) -> datetime | None:
        """The end of the last granted slice, None unless placed."""
        return max((s.end for s in self.slices), default=None)
