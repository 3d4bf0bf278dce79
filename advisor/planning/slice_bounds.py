"""Which slice lengths are allowed, and which rule forbids the others."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from advisor.planning.slice_terms import LatencyTarget, SliceTerms

__all__ = ["Bounds", "Choice", "bounds_of", "candidates", "choose", "last_least", "longest_for_latency"]

Floats = NDArray[np.float64]

_TIE = 1e-12


@dataclass(frozen=True, slots=True)
class Bounds:
    """The range a length may lie in, and the rule behind either end; ``conflict`` if the ends cross."""

    lowest: float
    lowest_rule: str
    highest: float = math.inf
    highest_rule: str | None = None

    @property
    def conflict(self) -> bool:
        """True where the promise to urgent work asks for less than the shortest length that makes sense."""
        return self.highest < self.lowest


@dataclass(frozen=True, slots=True)
class Choice:
    """The chosen length, as an index into the candidates.

    ``moved`` if stability took it away from the cheapest, ``stable`` unless no length is.
    """

    index: int
    moved: bool
    stable: bool


def longest_for_latency(target: LatencyTarget, checkpoint_minutes: float, places: int) -> float:
    """The longest slice that keeps the promise to urgent work: (tau - checkpoint) / (1 - eps^(1/c)).

    The first of c boundaries spread over L is later than t with probability (1 - t/L)^c. 0 or less
    where even checkpointing alone breaks the promise.

    >>> [round(longest_for_latency(LatencyTarget(5.0), 0.0, c), 1) for c in (1, 4, 8)]
    [5.3, 9.5, 16.0]
    """
    return (target.minutes - checkpoint_minutes) / -math.expm1(math.log(target.exceeded_share) / places)


def bounds_of(terms: SliceTerms) -> Bounds:
    """The range that start latency, checkpoints, the minimum and the promise to urgent work leave.

    A lease shorter than a boot never pays, one shorter than the checkpoint interval has nothing to
    resume from. Where boundaries are aligned all fall at once, so c counts as 1.
    """
    floors = (
        (terms.minimum_minutes, "minimum"),
        (terms.start_latency_minutes, "start latency"),
        (terms.checkpoint_interval_minutes, "checkpoint interval"),
    )
    lowest, rule = max(floors, key=lambda floor: floor[0])
    if terms.latency is None:
        return Bounds(lowest, rule)
    places = 1 if terms.aligned else terms.places
    highest = longest_for_latency(terms.latency, terms.checkpoint_minutes, places)
    return Bounds(lowest, rule, highest, "priority latency")


def candidates(bounds: Bounds, grid: tuple[float, ...]) -> tuple[float, ...]:
    """The lengths to choose among: the grid within the bounds, or the lower bound where none of it fits."""
    inside = tuple(length for length in grid if bounds.lowest <= length <= bounds.highest)
    return inside or (bounds.lowest,)


def choose(cost: Floats, overhead: Floats, cap: float) -> Choice:
    """The cheapest length whose overhead the pool can bear; where none is bearable, the least overhead.

    Ties go to the longer length. With the stability rule written in the objective's own overhead,
    neither a dearer switch shortens the choice nor a tighter range lengthens it: of two lengths whose
    order a dearer switch changes the longer gains, and a longer one that is cheaper in total has
    the smaller overhead as well.
    """
    bearable = overhead <= cap
    if not bearable.any():
        return Choice(last_least(overhead), moved=last_least(overhead) != last_least(cost), stable=False)
    index = last_least(np.where(bearable, cost, np.inf))
    return Choice(index, moved=index != last_least(cost), stable=True)


def last_least(values: Floats) -> int:
    """The index of the least value; of equal ones the last, which is the longest length."""
    return int(np.flatnonzero(values <= values.min() + _TIE)[-1])
