r"""What a slice length costs: the exact objective for any duration distribution, and its closed forms.

Per useful GPU-minute, for tasks of duration D with mean m and survival S, slice length L::

    J(L) = pi s B(L, b) / m  +  (1 - r) F(L) / m  +  kappa L
    B(L, b) = sum over n >= 1 of S(nL + b)        boundaries a task meets
    F(L)    = L (1 + B(L, 0)) - m                 unused tail of its last slice

s is the switch cost, pi the share of boundaries that switch, r the share of a tail that is reclaimed,
b a grace buffer and kappa the waiting of urgent work. B never rises with L, so J at a dearer switch
minus J at a cheaper one never rises with L either: **a dearer switch never shortens the best length**.
For L short against D, B is near m/L - 1/2 and F near L/2, which gives the square-root (Young/Daly) law.

>>> terms = SliceTerms(switch_minutes=5.0)
>>> round(exponential_optimum(20.0, 5.0).minutes, 2), round(square_root_law(20.0, terms).minutes, 1)
(12.65, 14.1)
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from advisor.domain.forecasts import DurationDistribution
from advisor.domain.units import positive
from advisor.planning.durations import PoolDurations, surviving_boundaries, surviving_boundaries_of
from advisor.planning.slice_terms import SliceTerms

__all__ = [
    "CostTable",
    "Optimum",
    "cost_table",
    "costs",
    "exponential_optimum",
    "flatness",
    "lowest_stable_minutes",
    "max_utilisation",
    "rule_of_thumb",
    "square_root_law",
    "unused_tail",
]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Optimum:
    """A best length and what it costs per useful GPU-minute; infinite where longer is always better."""

    minutes: float
    cost: float


@dataclass(frozen=True, eq=False)
class CostTable:
    """What each of several lengths loses for each part of a pool, in weighted minutes per task.

    ``switching``, ``tails`` and ``urgent`` (the waiting of urgent work) are [part, length], ``useful``
    [part] is the run time itself; all of them add up over parts.
    """

    minutes: Floats
    switching: Floats
    tails: Floats
    urgent: Floats
    useful: Floats

    @property
    def overhead(self) -> Floats:
        """What the pool's stability feels: switching and tails."""
        return self.switching + self.tails

    def at(self, minutes: tuple[float, ...]) -> CostTable:
        """The columns of those lengths only."""
        columns = np.flatnonzero(np.isin(self.minutes, minutes))
        return CostTable(
            self.minutes[columns],
            self.switching[:, columns],
            self.tails[:, columns],
            self.urgent[:, columns],
            self.useful,
        )

    def of(self, first: int, last: int) -> CostTable:
        """The rows of ``parts[first:last]`` only."""
        rows = slice(first, last)
        return CostTable(self.minutes, self.switching[rows], self.tails[rows], self.urgent[rows], self.useful[rows])

    def with_dearer_switch(self, factor: float) -> CostTable:
        """The table at ``factor`` times the switch cost."""
        return replace(self, switching=self.switching * factor)

    @property
    def cost(self) -> Floats:
        """J of all parts together at each length."""
        cost: Floats = (self.overhead + self.urgent).sum(axis=0) / self.useful.sum()
        return cost

    @property
    def overhead_cost(self) -> Floats:
        """J of all parts together without the waiting of urgent work."""
        cost: Floats = self.overhead.sum(axis=0) / self.useful.sum()
        return cost


def unused_tail(distribution: DurationDistribution, minutes: Floats) -> Floats:
    """F(L): expected minutes of the last slice that are left over, for each length."""
    lengths = np.asarray(minutes, dtype=np.float64)
    tail: Floats = lengths * (1.0 + surviving_boundaries(distribution, lengths)) - distribution.mean / 60.0
    return np.maximum(tail, 0.0)


def cost_table(durations: PoolDurations, minutes: tuple[float, ...], terms: SliceTerms) -> CostTable:
    """The losses of every part at every length, each part weighted.

    Raises:
        Refused: a length that is not above zero.
    """
    lengths = np.array([positive(value, "slice length", "minutes") for value in minutes], dtype=np.float64)
    weights = np.array(durations.weights)[:, None]
    means = np.array([part.mean / 60.0 for part in durations.parts])[:, None]
    every = surviving_boundaries_of(durations.parts, lengths)
    met = surviving_boundaries_of(durations.parts, lengths, terms.grace_minutes) if terms.grace_minutes else every
    tails = np.maximum(lengths * (1.0 + every) - means, 0.0)
    useful = (means * weights)[:, 0]
    return CostTable(
        minutes=lengths,
        switching=terms.switching * weights * met,
        tails=terms.tail_share * weights * tails,
        urgent=terms.urgency * np.outer(useful, lengths),
        useful=useful,
    )


def costs(distribution: DurationDistribution, minutes: tuple[float, ...], terms: SliceTerms) -> tuple[float, ...]:
    """J(L) of one distribution at each of ``minutes``, in lost GPU-minutes per useful GPU-minute."""
    return tuple(float(cost) for cost in cost_table(PoolDurations.one(distribution), minutes, terms).cost)


def square_root_law(mean_minutes: float, terms: SliceTerms) -> Optimum:
    """The optimum of J for slices short against the tasks: sqrt(2 m pi s / (1 - r + 2 m kappa)) (Young/Daly)."""
    losing = terms.tail_share + 2.0 * mean_minutes * terms.urgency
    cost = math.sqrt(2.0 * terms.switching * losing / mean_minutes)
    if losing <= 0.0:
        return Optimum(0.0 if terms.switching == 0.0 else math.inf, cost)
    return Optimum(math.sqrt(2.0 * mean_minutes * terms.switching / losing), cost)


def exponential_optimum(mean_minutes: float, switch_minutes: float) -> Optimum:
    """The exact optimum for exponential durations where every boundary switches and no tail is reclaimed.

    x = L / m solves e^x - 1 - x = s / m, and the cost at the optimum is x itself.
    """
    positive(mean_minutes, "mean", "minutes")
    ratio = switch_minutes / mean_minutes
    if ratio <= 0.0:
        return Optimum(0.0, 0.0)
    root = float(brentq(lambda x: math.expm1(x) - x - ratio, 0.0, 1.0 + math.sqrt(2.0 * ratio), xtol=1e-12))
    return Optimum(root * mean_minutes, root)


def flatness(factor: float) -> float:
    """Cost at ``factor`` times the square-root optimum over the cost at it: (u + 1/u) / 2."""
    return (factor + 1.0 / factor) / 2.0


def max_utilisation(minutes: float, switching_minutes: float) -> float:
    """Most of a GPU's time that can be useful if every slice of ``minutes`` is followed by a switch.

    >>> max_utilisation(15, 5)
    0.75
    """
    return minutes / (minutes + switching_minutes)


def lowest_stable_minutes(load: float, switching_minutes: float, reserve: float) -> float:
    """The shortest length at which switching leaves a pool at ``load`` its ``reserve``; infinite if none does."""
    spare = 1.0 - load - reserve
    return load * switching_minutes / spare if spare > 0.0 else math.inf


def rule_of_thumb(mean_minutes: float, switch_minutes: float) -> float:
    """The rule "mean less switch cost", never below zero (zero: batch instead of slicing).

    Shown as a check only: it meets the square-root law where m is about 3.7 s and nowhere else.
    """
    return max(0.0, mean_minutes - switch_minutes)
