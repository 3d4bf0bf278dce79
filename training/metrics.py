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
from advisor.domain.reports import DurationScores, RunningScores

__all__ = [
    "AGES",
    "CURVE",
    "LEVELS",
    "PINBALL_LEVELS",
    "Marks",
    "crps_log",
    "mark",
    "pinball",
    "rest_by",
    "running_scores_of",
    "scores_of",
]

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

LEVELS = (0.5, 0.8, 0.9, 0.95)
"""Quantiles whose coverage is measured."""

PINBALL_LEVELS = (0.5, 0.9, 0.95)
"""Quantiles whose pinball loss is measured."""

CURVE = tuple(twentieth / 20 for twentieth in range(1, 20))
"""Levels of the calibration curve."""

AGES = (600.0, 3600.0, 21_600.0)
"""Ages in seconds at which running jobs are asked about again."""

_LN2 = math.log(2.0)
_ROUNDING = 1e-9
"""People repeat durations exactly, and who runs exactly as long as a quantile has ended by it, whatever was rounded."""

_LOW_25, _HIGH_25 = math.log(1.25), -math.log(0.75)


class Marks(NamedTuple):
    """What is measured of each answer, one row a job: all a report needs, so the distributions may go.

    ``reached`` is the answered probability of the duration that came; ``rest`` that of the rest, at every
    one of ``AGES`` which the job outlasted, NaN at the others.
    """

    seconds: Floats
    quantiles: Floats
    reached: Floats
    rest: Floats
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


def _rests(law: DurationDistribution, seconds: float) -> list[float]:
    return [rest_by(law, age, seconds - age) if seconds > age else math.nan for age in AGES]


def rest_by(law: DurationDistribution, age: float, rest: float) -> float:
    """P(a job that has run ``age`` seconds runs at most ``rest`` more), both above 0.

    The same as ``law.given_age(age).probability_by(rest)``, at a tenth of the cost: of the conditional
    distribution only the piece that holds ``rest`` is made.
    """
    log_age, x = math.log(age), math.log(rest)
    gone = _mixed(law, [log_age])[0]
    if 1.0 - gone < _SURVIVORS_KNOWN:
        return min(max((x - log_age + _LN2) / (2.0 * _LN2), 0.0), 1.0)
    top = math.log(max(math.exp(float(law.log_edges[-1])) - age, 2.0))
    if not 0.0 < x < top:
        return float(x >= top)
    low, high = _piece(law, age, x, top)
    ends = (_mixed(law, [math.log(age + math.exp(low)), math.log(age + math.exp(high))]) - gone) / (1.0 - gone)
    first, last = min(max(float(ends[0]), 0.0), 1.0), min(max(float(ends[1]), 0.0), 1.0)
    # What ends within the first second counts from there on, and by the last edge all has ended.
    first, last = (0.0 if low == 0.0 else first), (1.0 if high == top else last)
    return first + (last - first) * ((x - low) / (high - low) if high > low else 1.0)


# Those of DurationDistribution.given_age, which a test holds them to.
_UNFORESEEN = 0.01
_SURVIVORS_KNOWN = 1e-4
_REMAINING_STEP = 0.05


def _mixed(law: DurationDistribution, logs: list[float]) -> Floats:
    """P(duration <= exp x) for each of ``logs``, with a little probability kept for the unforeseen."""
    first, last = float(law.log_edges[0]), law.unforeseen_until
    spread = np.array([min(max((x - first) / (last - first), 0.0), 1.0) for x in logs])
    mixed: Floats = (1.0 - _UNFORESEEN) * np.interp(logs, law.log_edges, law.cdf) + _UNFORESEEN * spread
    return mixed


def _piece(law: DurationDistribution, age: float, x: float, top: float) -> tuple[float, float]:
    """The neighbours of ``x``, ln seconds to go: a step of the ladder from 0 to ``top``, or a nearer shifted edge."""
    steps = max(2, int(top / _REMAINING_STEP)) - 1
    step = min(int(x / top * steps), steps - 1)
    low, high = top * step / steps, top if step + 1 == steps else top * (step + 1) / steps
    above = int(np.searchsorted(law.log_edges, math.log(age + math.exp(x)), side="right"))
    if above > 0 and (shifted := math.exp(float(law.log_edges[above - 1])) - age) > 1.0:
        low = min(max(low, math.log(shifted)), x)
    if above < law.log_edges.size and (shifted := math.exp(float(law.log_edges[above])) - age) > 1.0:
        high = max(min(high, math.log(shifted)), x)
    return low, high


def pinball(level: float, log_predicted: Floats, log_actual: Floats) -> float:
    """Mean quantile loss: an answer too low costs ``level`` per unit, one too high the rest."""
    miss = log_actual - log_predicted
    return float(np.mean(np.maximum(level * miss, (level - 1.0) * miss)))


def mark(laws: Sequence[DurationDistribution], seconds: Floats) -> Marks:
    """Measure every answer against the ``seconds`` (above 0) the job ran."""
    return Marks(
        seconds=seconds,
        quantiles=np.array([[law.quantile(level) for level in LEVELS] for law in laws]).reshape(-1, len(LEVELS)),
        reached=np.array([law.probability_by(float(actual)) for law, actual in zip(laws, seconds, strict=True)]),
        rest=np.array([_rests(law, float(actual)) for law, actual in zip(laws, seconds, strict=True)]).reshape(
            -1, len(AGES)
        ),
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
    hit = {level: marks.seconds <= quantile * (1.0 + _ROUNDING) for level, quantile in by_level.items()}
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
        n_by_week=[int((weeks == week).sum()) for week in range(week_count)],
        reliability={str(level): float((marks.reached <= level + _ROUNDING).mean()) for level in CURVE},
        crossings=int((np.diff(marks.quantiles, axis=1) < 0).any(axis=1).sum()),
        not_positive=int((~(np.isfinite(marks.quantiles) & (marks.quantiles > 0))).any(axis=1).sum()),
    )


def _by_week(hit: Bools, weeks: Floats, count: int) -> list[float | None]:
    """Share of hits in each week, None where nothing was submitted."""
    return [float(hit[weeks == week].mean()) if (weeks == week).any() else None for week in range(count)]


def running_scores_of(marks: Marks) -> dict[str, RunningScores]:
    """Coverage of what was left of the jobs that outlasted each of ``AGES``."""
    found = {}
    for age, rest in zip(AGES, marks.rest.T, strict=True):
        known = rest[~np.isnan(rest)]
        coverage = {str(level): float((known <= level + _ROUNDING).mean()) for level in LEVELS} if known.size else {}
        found[f"{age:g}"] = RunningScores(n=known.size, coverage=coverage)
    return found
