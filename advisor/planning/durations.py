"""How long the tasks of a pool last: weighted distributions, and the sums that planning needs of them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from advisor.domain.forecasts import DurationDistribution
from advisor.domain.units import SECONDS_PER_DAY, positive
from advisor.errors import Refused

__all__ = [
    "UNKNOWN_DURATIONS",
    "PoolDurations",
    "mean_and_deviation",
    "surviving_boundaries",
    "surviving_boundaries_of",
]

Floats = NDArray[np.float64]

UNKNOWN_DURATIONS = DurationDistribution(np.array([0.0, np.log(7 * SECONDS_PER_DAY)]), np.array([0.0, 1.0]))
"""What stands in where no task has ended yet: log-uniform between a second and a week."""

_MOST_EDGES = 512
_HAIR = 1e-6


@dataclass(frozen=True, slots=True)
class PoolDurations:
    """What a pool's next tasks may last: one predicted distribution per task (or kind), with weights.

    A weight counts tasks times their GPUs, since each GPU share has slices of its own. ``ended_jobs``
    is how many ended jobs stand behind the predictions, None where that is not known.
    """

    parts: tuple[DurationDistribution, ...]
    weights: tuple[float, ...]
    ended_jobs: int | None = None

    def __post_init__(self) -> None:
        """Check the weights.

        Raises:
            Refused: not one weight per part, or a weight that is not above zero.
        """
        if len(self.parts) != len(self.weights):
            raise Refused("weights", len(self.weights), f"{len(self.parts)} parts need as many", "Give one for each.")
        for weight in self.weights:
            positive(weight, "weight", "GPUs")
        if self.ended_jobs is not None and self.ended_jobs < 0:
            raise Refused("ended_jobs", self.ended_jobs, "a count is 0 or more", "Leave an unknown count out.")

    @classmethod
    def one(cls, distribution: DurationDistribution, ended_jobs: int | None = None) -> PoolDurations:
        """The same distribution for every task."""
        return cls((distribution,), (1.0,), ended_jobs)

    @classmethod
    def observed(cls, seconds: Sequence[float], gpus: Sequence[float] | None = None) -> PoolDurations:
        """Durations that were seen, each taken as certain, weighted by ``gpus`` (1 each where left out).

        Raises:
            Refused: a duration that is not above zero and finite.
        """
        parts = tuple(_certain(value) for value in seconds)
        return cls(parts, tuple(gpus) if gpus is not None else (1.0,) * len(parts), len(parts))

    @property
    def pooled(self) -> DurationDistribution:
        """The law of one task drawn by weight; a stated prior where there is none."""
        return _pooled(self.parts, np.asarray(self.weights, dtype=np.float64))

    def by_median(self) -> PoolDurations:
        """The same parts in order of predicted median, shortest first."""
        order = sorted(range(len(self.parts)), key=lambda i: (self.parts[i].median, i))
        return PoolDurations(
            tuple(self.parts[i] for i in order), tuple(self.weights[i] for i in order), self.ended_jobs
        )

    def between(self, first: int, last: int) -> DurationDistribution:
        """The law of one task drawn from ``parts[first:last]``."""
        return _pooled(self.parts[first:last], np.asarray(self.weights[first:last], dtype=np.float64))


def _certain(seconds: float) -> DurationDistribution:
    """A task that ends at ``seconds`` and, so that its last slice boundary is not passed, not a hair later."""
    end = math.log(positive(seconds, "duration", "seconds"))
    return DurationDistribution(np.array([end - _HAIR, end]), np.array([0.0, 1.0]))


def _pooled(parts: tuple[DurationDistribution, ...], weights: Floats) -> DurationDistribution:
    """The mixture, on a common grid of bounded size where the parts' own edges are too many."""
    if not parts:
        return UNKNOWN_DURATIONS
    if len(parts) == 1:
        return parts[0]
    edges = np.unique(np.concatenate([part.log_edges for part in parts]))
    if edges.size > _MOST_EDGES:
        edges = np.linspace(edges[0], edges[-1], _MOST_EDGES)
    rows = np.array([np.interp(edges, part.log_edges, part.cdf) for part in parts])
    cdf = np.maximum.accumulate(np.clip(weights @ rows / weights.sum(), 0.0, 1.0))
    cdf[0], cdf[-1] = 0.0, 1.0
    return DurationDistribution(edges, cdf)


def mean_and_deviation(distribution: DurationDistribution) -> tuple[float, float]:
    """Mean and standard deviation of a duration in seconds, exact for the piecewise log-uniform law."""
    ends = np.exp(distribution.log_edges)
    second = float(np.diff(distribution.cdf) @ (np.diff(ends**2) / (2.0 * np.diff(distribution.log_edges))))
    mean = distribution.mean
    return mean, math.sqrt(max(0.0, second - mean * mean))


def surviving_boundaries(distribution: DurationDistribution, minutes: Floats, grace_minutes: float = 0.0) -> Floats:
    """Expected number of slice boundaries a task is still running at: sum over n >= 1 of S(nL + b), per L.

    Exact: within a piece of the distribution S is linear in ln t, and the sum of ln(nL + b) over
    consecutive n is a difference of log-gamma functions, so a task of a week costs no more to sum
    than one of an hour.
    """
    rows: Floats = _boundary_sums(distribution.log_edges, distribution.cdf[None, :], minutes, grace_minutes)[0]
    return rows


def surviving_boundaries_of(
    parts: Sequence[DurationDistribution], minutes: Floats, grace_minutes: float = 0.0
) -> Floats:
    """The same for many distributions, [part, length]; those on a common grid are summed together."""
    by_grid: dict[bytes, list[int]] = {}
    for i, part in enumerate(parts):
        by_grid.setdefault(part.log_edges.tobytes(), []).append(i)
    total = np.empty((len(parts), len(minutes)))
    for members in by_grid.values():
        cdfs = np.array([parts[i].cdf for i in members])
        total[members] = _boundary_sums(parts[members[0]].log_edges, cdfs, minutes, grace_minutes)
    return total


def _boundary_sums(edges: Floats, cdfs: Floats, minutes: Floats, grace_minutes: float) -> Floats:
    """Boundary sums [part, length] of distributions [part, edge] on one grid."""
    length = np.asarray(minutes, dtype=np.float64)[:, None] * 60.0
    offset = grace_minutes * 60.0 / length
    # Boundaries at or before each edge; the hair keeps one that falls on an edge on its near side.
    reached = np.maximum(np.floor(np.exp(edges)[None, :] / length - offset + 1e-9), 0.0)
    counts = np.diff(reached, axis=1)
    log_sums = counts * np.log(length) + np.diff(gammaln(reached + 1.0 + offset), axis=1)
    slopes = np.diff(cdfs, axis=1) / np.diff(edges)
    inside = (1.0 - cdfs[:, :-1] + slopes * edges[:-1]) @ counts.T - slopes @ log_sums.T
    total: Floats = np.maximum(reached[:, 0] + inside, 0.0)
    return total
