"""What a slice length depends on besides durations, checked once."""

from __future__ import annotations

import math
from dataclasses import dataclass

from advisor.domain.units import finite, positive
from advisor.errors import Refused

__all__ = ["FINE_GRID_MINUTES", "GRID_MINUTES", "LatencyTarget", "SliceTerms"]

GRID_MINUTES: tuple[float, ...] = (5.0, 10.0, 15.0, 20.0, 30.0, 45.0, 60.0, 90.0, 120.0)
"""Lengths that are recommended: round ones, near enough to each other that the flat optimum loses little.

Against every length in between they lose at most 5 % where the best is 10 min or more and tasks differ by at
least a standard deviation of 0.8 in ln; between 5 and 10 min, where neighbours double, up to 15 %.
"""

FINE_GRID_MINUTES: tuple[float, ...] = tuple(
    sorted({*GRID_MINUTES, 6.0, 7.0, 8.0, 12.0, 18.0, 25.0, 38.0, 52.0, 75.0, 105.0}),
)
"""For pools where a few per cent matter more than round numbers: loses at most 3 % from a deviation of 0.5 on."""


def _fraction(value: float, field: str) -> float:
    if not 0.0 <= finite(value, field) <= 1.0:
        raise Refused(field, value, "a share lies between 0 and 1", "Give 0.3 for 30 %.")
    return value


def _not_negative(value: float, field: str, unit: str) -> float:
    if finite(value, field) < 0:
        raise Refused(field, value, f"it must be 0 {unit} or more", "Use 0 for none.")
    return value


@dataclass(frozen=True, slots=True)
class LatencyTarget:
    """Urgent work may wait longer than ``minutes`` in at most ``exceeded_share`` of its arrivals."""

    minutes: float
    exceeded_share: float = 0.05

    def __post_init__(self) -> None:
        """Check both.

        Raises:
            Refused: a time that is not above zero, or a share outside (0, 1).
        """
        positive(self.minutes, "latency target", "minutes")
        if not 0.0 < finite(self.exceeded_share, "exceeded_share") < 1.0:
            raise Refused("exceeded_share", self.exceeded_share, "it lies strictly between 0 and 1", "Use 0.05.")


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceTerms:
    """Costs, load and rules of one pool's slices.

    ``switch_minutes`` is checkpoint + requeue + restore + relaunch of one task (a gang: its slowest
    member's); everything depends on it, so it has no default. ``checkpoint_minutes`` is the part of it
    before the GPU is free for somebody else.

    ``switch_share`` is the *measured* share of boundaries at which a task really gives way (about
    3 % where leases are renewed free), ``reclaim_share`` the measured share of an unused tail that
    others get to use. Where nothing was measured, leave both None: every boundary then switches and no
    tail is reclaimed. Each is the worst case, they err in opposite directions, and together they put the
    optimum where simulation puts it, though they make a wrong length look dearer than it is.

    ``slices`` are the GPU shares of the pool and ``gang_shares`` how many move together; ``load`` is
    used over usable GPUs, None where unknown. ``urgent_per_minute`` urgent tasks arrive, each waiting
    minute worth ``urgent_price_ratio`` GPU-minutes, and find everything busy with probability
    ``busy_probability`` (None: the load). ``aligned`` says that all boundaries fall together.
    """

    switch_minutes: float
    checkpoint_minutes: float = 0.0
    switch_share: float | None = None
    reclaim_share: float | None = None
    grace_minutes: float = 0.0
    slices: int = 8
    gang_shares: int = 1
    load: float | None = None
    stability_reserve: float = 0.05
    urgent_per_minute: float = 0.0
    urgent_price_ratio: float = 6.0
    busy_probability: float | None = None
    aligned: bool = False
    latency: LatencyTarget | None = None
    start_latency_minutes: float = 0.0
    checkpoint_interval_minutes: float = 0.0
    minimum_minutes: float = 5.0
    max_classes: int = 3
    least_class_share: float = 0.05
    pooling_beta: float = 1.0
    margin: float = 0.05
    least_ended_jobs: int = 30
    default_minutes: float = 15.0
    grid_minutes: tuple[float, ...] = GRID_MINUTES

    def __post_init__(self) -> None:
        """Check every number once.

        Raises:
            Refused: naming the field, its value and what it may be.
        """
        for name in (
            "switch_minutes",
            "checkpoint_minutes",
            "grace_minutes",
            "start_latency_minutes",
            "checkpoint_interval_minutes",
        ):
            _not_negative(getattr(self, name), name, "minutes")
        _not_negative(self.urgent_per_minute, "urgent_per_minute", "tasks a minute")
        _not_negative(self.urgent_price_ratio, "urgent_price_ratio", "GPU-minutes")
        _not_negative(self.pooling_beta, "pooling_beta", "")
        _not_negative(self.margin, "margin", "of the cost")
        positive(self.minimum_minutes, "minimum_minutes", "minutes")
        positive(self.default_minutes, "default_minutes", "minutes")
        for name in ("switch_share", "reclaim_share", "busy_probability"):
            value = getattr(self, name)
            if value is not None:
                _fraction(value, name)
        for name in ("stability_reserve", "least_class_share"):
            _fraction(getattr(self, name), name)
        self._check_counts()

    def _check_counts(self) -> None:
        if not self.grid_minutes or list(self.grid_minutes) != sorted({*self.grid_minutes}):
            raise Refused("grid_minutes", self.grid_minutes, "lengths ascend, none twice", "List at least one.")
        for length in self.grid_minutes:
            positive(length, "grid_minutes", "minutes")
        if self.slices < 1 or self.gang_shares < 1:
            raise Refused("slices", (self.slices, self.gang_shares), "a pool has at least one share", "Use 1.")
        if not 1 <= self.max_classes <= 3:
            raise Refused("max_classes", self.max_classes, "1 to 3 classes are told apart", "Use 2.")
        if self.load is not None and _not_negative(self.load, "load", "") > 1.0:
            raise Refused("load", self.load, "used over usable GPUs is at most 1", "Leave it out if unknown.")

    @property
    def switching(self) -> float:
        """Expected minutes lost at one boundary: the share that switches times what a switch costs."""
        return (1.0 if self.switch_share is None else self.switch_share) * self.switch_minutes

    @property
    def tail_share(self) -> float:
        """The part of an unused tail that nobody gets."""
        return 1.0 - (self.reclaim_share or 0.0)

    @property
    def places(self) -> int:
        """How many tasks (or gangs) hold slices at once: the boundaries urgent work may wait for."""
        return max(1, self.slices // self.gang_shares)

    @property
    def urgency(self) -> float:
        """Cost per useful GPU-minute of one more minute of slice, through the urgent work that waits for it.

        ``price ratio x arrivals x P(busy) / (c rho (c + 1))``: with c unaligned boundaries the first
        comes after L / (c + 1) on average, with aligned ones after L / 2. An unknown load counts as full.
        """
        load = 1.0 if self.load is None else self.load
        if self.urgent_per_minute == 0.0 or load == 0.0:
            return 0.0
        busy = load if self.busy_probability is None else self.busy_probability
        waits = 2.0 if self.aligned else self.places + 1.0
        return self.urgent_price_ratio * self.urgent_per_minute * busy / (waits * self.places * load)

    @property
    def overhead_cap(self) -> float:
        """Most overhead per useful minute the pool can bear and stay stable; infinite where the load is unknown."""
        if not self.load:
            return math.inf
        return (1.0 - self.stability_reserve) / self.load - 1.0

    @property
    def assumptions(self) -> tuple[str, ...]:
        """What had to be assumed because nobody measured it, for a person to read."""
        found = []
        if self.switch_share is None:
            found.append("no measured share of boundaries that switch: every boundary is taken to switch")
        if self.reclaim_share is None:
            found.append("no measured reclaim of unused tails: none is taken to be reclaimed")
        if self.load is None:
            found.append("the pool's load is unknown: its stability was not checked")
        return tuple(found)
