"""How good were the answers: losses and coverage of duration distributions against what happened.

Logs are natural, of seconds. Losses on ln seconds weigh a factor the same for short and for long jobs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from advisor.domain.forecasts import DurationDistribution
from advisor.domain.reports import DurationScores

__all__ = ["LEVELS", "PINBALL_LEVELS", "Marks", "crps_log", "mark", "pinball", "scores_of"]

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

LEVELS = (0.5, 0.8, 0.9, 0.95)
"""Quantiles whose coverage is measured."""

PINBALL_LEVELS = (0.5, 0.9, 0.95)
"""Quantiles whose pinball loss is measured."""

_LN2 = math.log(2.0)
_LOW_25, _HIGH_25 = math.log(1.25), -math.log(0.75)


class Marks(NamedTuple):
    """What is measured of each answer, one row a job: all a report needs, so the distributions may go."""

    seconds: Floats
    quantiles: Floats
    typical_2x: Floats
    typical_25: Floats
    crps: Floats

    def of(self, chosen: Bools) -> Marks:
        """The marks of some of the jobs."""
        return Marks(*(column[chosen] for column in self))


def crps_log(law: DurationDistribution, seconds: float) -> float:
    """Continuous ranked probability score of ln seconds, exact for the piecewise linear distribution.

    The integral of (F(x) - 1{x >= y})^2 over x; where F is linear from a to b over a width h, F^2
    integrates to h (a^2 + ab + b^2) / 3.
    """
    y = math.log(seconds)
    edges, cdf = law.log_edges, law.cdf
    at = int(np.searchsorted(edges, y))
    mid = float(np.interp(y, edges, cdf))
    below = _integral_of_square(np.concatenate([edges[:at], [y]]), np.concatenate([cdf[:at], [mid]]))
    above = _integral_of_square(np.concatenate([[y], edges[at:]]), 1.0 - np.concatenate([[mid], cdf[at:]]))
    return below + above


def _integral_of_square(x: Floats, f: Floats) -> float:
    a, b = f[:-1], f[1:]
    return float((x[1:] - x[:-1]) @ (a * a + a * b + b * b)) / 3.0


def pinball(level: float, log_predicted: Floats, log_actual: Floats) -> float:
    """Mean quantile loss: an answer too low costs ``level`` per unit, one too high the rest."""
    miss = log_actual - log_predicted
    return float(np.mean(np.maximum(level * miss, (level - 1.0) * miss)))


def mark(laws: Sequence[DurationDistribution], seconds: Floats) -> Marks:
    """Measure every answer against the ``seconds`` (above 0) the job ran."""
    return Marks(
        seconds=seconds,
        quantiles=np.array([[law.quantile(level) for level in LEVELS] for law in laws]).reshape(-1, len(LEVELS)),
        typical_2x=np.array([law.typical for law in laws]),
        typical_25=np.array([law.heaviest(_LOW_25, _HIGH_25) for law in laws]),
        crps=np.array([crps_log(law, float(actual)) for law, actual in zip(laws, seconds, strict=True)]),
    )


@dataclass(frozen=True, slots=True)
class _Errors:
    """Errors of one point prediction per job."""

    predicted: Floats
    actual: Floats

    def log_mae(self) -> float:
        return float(np.mean(np.abs(np.log(self.predicted / self.actual))))

    def within_2x(self) -> float:
        return float(np.mean(np.abs(np.log(self.predicted / self.actual)) <= _LN2 + 1e-12))

    def within_25_percent(self) -> float:
        return float(np.mean(np.abs(self.predicted / self.actual - 1.0) <= 0.25 + 1e-12))


def scores_of(marks: Marks, weeks: Floats, week_count: int) -> DurationScores:
    """One predictor's quality; ``weeks`` is the week of each job's submission, counted from 0."""
    count = marks.seconds.size
    if not count:
        return DurationScores(n=0)
    logs = np.log(marks.seconds)
    by_level = {level: marks.quantiles[:, place] for place, level in enumerate(LEVELS)}
    hit = {level: marks.seconds <= quantile for level, quantile in by_level.items()}
    median = _Errors(by_level[0.5], marks.seconds)
    return DurationScores(
        n=count,
        log_mae=median.log_mae(),
        within_25_percent=median.within_25_percent(),
        within_2x=median.within_2x(),
        typical_within_25_percent=_Errors(marks.typical_25, marks.seconds).within_25_percent(),
        typical_within_2x=_Errors(marks.typical_2x, marks.seconds).within_2x(),
        crps_log=float(marks.crps.mean()),
        pinball_log={str(level): pinball(level, np.log(by_level[level]), logs) for level in PINBALL_LEVELS},
        coverage={str(level): float(hit[level].mean()) for level in LEVELS},
        coverage_by_week={str(level): _by_week(hit[level], weeks, week_count) for level in LEVELS},
        crossings=int((np.diff(marks.quantiles, axis=1) < 0).any(axis=1).sum()),
        not_positive=int((~(np.isfinite(marks.quantiles) & (marks.quantiles > 0))).any(axis=1).sum()),
    )


def _by_week(hit: Bools, weeks: Floats, count: int) -> list[float | None]:
    """Share of hits in each week, None where nothing was submitted."""
    return [float(hit[weeks == week].mean()) if (weeks == week).any() else None for week in range(count)]
