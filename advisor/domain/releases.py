"""How many GPUs the jobs that run now will have given back within a while.

Each running job ends within the horizon with a probability of its own and then frees all of its GPUs at once, so the
GPUs released are a sum of independent coins weighted by GPUs: a Poisson-binomial law.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from advisor.errors import Refused

__all__ = ["ReleaseLaw"]

Floats = NDArray[np.float64]

_MILLI = 1000
_MOST_WORK = 40_000_000
_POINTS = 1001
_REACH = 6.0
_BERRY_ESSEEN = 0.56
"""Shevtsova (2010) proved that the constant of independent, differently distributed parts is no larger."""


@dataclass(frozen=True, eq=False)
class ReleaseLaw:
    """The law of the GPUs released: ``gpus`` rising from 0 or more, with the ``probabilities`` of each.

    ``error`` bounds how far any cumulative probability may be off: 0 where the law was convolved exactly. Jobs are
    taken as independent given what was predicted of each. Those of one batch often end together, and then the truth
    is wider than this law.
    """

    gpus: Floats
    probabilities: Floats
    error: float = 0.0

    @classmethod
    def of(cls, gpus: Floats, ends: Floats) -> ReleaseLaw:
        """The law for jobs of ``gpus`` GPUs that end within the horizon with probabilities ``ends``.

        Exact as long as that takes fewer than about 4e7 steps (jobs x levels of the sum), which holds for some
        thousands of jobs; beyond that a normal law with the same mean and spread, and the bound of Berry and Esseen
        as its ``error``. GPUs are counted in thousandths.

        Raises:
            Refused: lists of different lengths, GPUs that are not above 0, or probabilities outside [0, 1].
        """
        sizes, chances = np.asarray(gpus, dtype=np.float64), np.asarray(ends, dtype=np.float64)
        _check(sizes, chances)
        certain = float(sizes[chances == 1.0].sum())
        open_jobs = (chances > 0.0) & (chances < 1.0)
        sizes, chances = sizes[open_jobs], chances[open_jobs]
        if not sizes.size:
            return cls(np.array([certain]), np.array([1.0]))
        counted = np.round(sizes * _MILLI).astype(np.int64)
        unit = int(np.gcd.reduce(counted))
        steps = counted // unit
        if sizes.size * (int(steps.sum()) + 1) > _MOST_WORK:
            return _normal(sizes, chances, certain)
        pmf = _convolved(steps, chances)
        levels: Floats = certain + np.arange(pmf.size, dtype=np.float64) * (unit / _MILLI)
        return cls(levels, pmf)

    @cached_property
    def upto(self) -> Floats:
        """P(released <= each of ``gpus``)."""
        summed: Floats = np.minimum(np.cumsum(self.probabilities), 1.0)
        summed[-1] = 1.0
        return summed

    @property
    def mean(self) -> float:
        """GPUs expected to be released."""
        return float(self.gpus @ self.probabilities)

    @property
    def deviation(self) -> float:
        """Standard deviation of the GPUs released."""
        variance = float(((self.gpus - self.mean) ** 2) @ self.probabilities)
        return math.sqrt(max(0.0, variance))

    def quantile(self, level: float) -> float:
        """The fewest GPUs that are not exceeded with probability ``level``."""
        place = int(np.searchsorted(self.upto, level - 1e-12))
        return float(self.gpus[min(place, self.gpus.size - 1)])

    def at_least(self, gpus: float) -> float:
        """P(at least so many GPUs are released)."""
        below = int(np.searchsorted(self.gpus, gpus - 1e-9))
        return 1.0 if below == 0 else float(1.0 - self.upto[below - 1])


def _check(gpus: Floats, ends: Floats) -> None:
    if gpus.shape != ends.shape or gpus.ndim != 1:
        raise Refused("ends", ends.shape, f"{gpus.size} jobs need as many probabilities", "Give one for each job.")
    if not (np.isfinite(gpus).all() and (gpus > 0).all()):
        raise Refused("gpus", gpus.tolist()[:5], "a running job holds more than 0 GPUs", "Leave the others out.")
    if not ((ends >= 0) & (ends <= 1)).all():
        raise Refused("ends", ends.tolist()[:5], "a probability lies in [0, 1]", "Give probabilities.")


def _convolved(steps: NDArray[np.int64], chances: Floats) -> Floats:
    """One coin after the other, small jobs first, so that the sum stays short for as long as it can."""
    pmf = np.zeros(int(steps.sum()) + 1)
    pmf[0] = 1.0
    reached = 0
    for at in np.argsort(steps, kind="stable").tolist():
        size, chance = int(steps[at]), float(chances[at])
        moved = pmf[: reached + 1] * chance
        pmf[: reached + 1] -= moved
        pmf[size : size + reached + 1] += moved
        reached += size
    return np.maximum(pmf, 0.0)


def _normal(sizes: Floats, chances: Floats, certain: float) -> ReleaseLaw:
    mean = float(sizes @ chances)
    spread = float(np.sqrt((sizes**2) @ (chances * (1.0 - chances))))
    third = float((sizes**3) @ (chances * (1.0 - chances) * (chances**2 + (1.0 - chances) ** 2)))
    low, high = max(0.0, mean - _REACH * spread), min(float(sizes.sum()), mean + _REACH * spread)
    gpus: Floats = np.linspace(low, high, _POINTS)
    middles = (gpus[1:] + gpus[:-1]) / 2.0
    upto: Floats = np.append(np.asarray(ndtr((middles - mean) / spread), dtype=np.float64), 1.0)
    # A point of the grid stands for what lies around it, which moves no cumulative probability by more than this.
    coarse = float(np.diff(upto, prepend=0.0).max())
    error = min(1.0, _BERRY_ESSEEN * third / spread**3 + coarse)
    return ReleaseLaw(certain + gpus, np.diff(upto, prepend=0.0), error)
