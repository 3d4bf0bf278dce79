"""The simple predictors every model must beat, and the ones that stand in where a model has nothing to go by.

The median of the last five durations of the same owner and GPU count is a hard floor on GPU clusters:
people submit the same work again and again. Where that key has no history its parents answer in turn
(owner, namespace, GPU count, all jobs), and where nothing has ended at all a stated prior does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from advisor.domain.forecasts import DurationDistribution, DurationForecast
from advisor.domain.jobs import Job, JobIdentity, Outcome
from advisor.errors import Refused
from advisor.features.keys import LEVELS, JobKeys, keys_of
from advisor.features.recent import RecentValues, kept, median_of, quantile_of

__all__ = ["MEDIAN_OF_5", "NO_HISTORY", "PRIOR", "DurationModelLike", "MedianOfFive", "ages_of"]

Floats = NDArray[np.float64]

MEDIAN_OF_5 = "median_of_5"
NO_HISTORY = "no_history"

_FIVE = 5

# The floor is defined on owner and GPU count; the name of the work is what models may know beyond it.
_FLOOR_LEVELS = LEVELS[1:]

_PRIOR_MEDIAN_SECONDS = 1200.0
_PRIOR_SPREAD = 2.0
"""Standard deviation in ln seconds: 80 % of jobs between 2 min and 4 h."""


def _log_logistic(median_seconds: float, spread: float) -> DurationDistribution:
    """A wide, smooth distribution around a median: logistic in ln seconds, cut at one second."""
    scale = spread * math.sqrt(3.0) / math.pi
    centre = math.log(median_seconds)
    half = np.linspace(0.0, centre, 49)
    # Symmetric around the median, so that the cut takes as much from either side.
    edges = np.concatenate([centre - half[:0:-1], centre + half])
    cdf = 1.0 / (1.0 + np.exp(-(edges - centre) / scale))
    cdf = (cdf - cdf[0]) / (cdf[-1] - cdf[0])
    cdf[-1] = 1.0
    return DurationDistribution(edges, cdf)


PRIOR = _log_logistic(_PRIOR_MEDIAN_SECONDS, _PRIOR_SPREAD)
"""What is answered where no job has ever ended: median 20 min, anything from a second to weeks."""


class DurationModelLike(Protocol):
    """What answers "how long will this run", and learns as jobs are submitted, start and end."""

    @property
    def version(self) -> str | None:
        """The version of the model that answers, None for a baseline."""
        ...

    def submitted(self, job: Job) -> None:
        """``job`` was submitted; where its start is its submission it runs from here on."""
        ...

    def started(self, job: Job) -> None:
        """``job`` began to run, at its start."""
        ...

    def ended(self, job: Job) -> None:
        """``job`` ended, or was lost sight of."""
        ...

    def forecast(
        self, jobs: Sequence[Job], now: datetime, elapsed: Sequence[float] | None = None
    ) -> list[DurationForecast]:
        """One answer per job as of ``now``; of the remaining time where it has already run ``elapsed`` seconds."""
        ...


def ages_of(jobs: Sequence[Job], elapsed: Sequence[float] | None) -> Sequence[float]:
    """One age in seconds per job, zero where none were given.

    Raises:
        Refused: another number of ages than jobs, or one that is negative or not finite.
    """
    if elapsed is None:
        return [0.0] * len(jobs)
    if len(elapsed) != len(jobs):
        limit = f"one age is needed for each of {len(jobs)} jobs"
        raise Refused("elapsed", len(elapsed), limit, "Give 0 for a job that has not started.")
    for age in elapsed:
        if not (math.isfinite(age) and age >= 0):
            raise Refused("elapsed", age, "an age is 0 s or more", "Give the seconds the job has run.")
    return elapsed


@dataclass(slots=True)
class _Level:
    """What one level of the hierarchy has been off by lately: ln(actual / predicted)."""

    residuals: RecentValues
    quantiles: tuple[Floats, Floats] | None = None


class MedianOfFive:
    """The floor: the median of the last five durations that ended, widened by how far off it has been lately.

    The median of every answer is exactly that median; each half of the distribution follows the latest
    residuals of its sign at the level that answered.
    """

    version = None

    _WINDOW = 500
    _SHARES = np.linspace(0.0, 1.0, 21)[1:]
    _LEAST = 20
    _NARROWEST = 0.02
    _WIDEST = 3.0

    def __init__(self, prior: DurationDistribution = PRIOR) -> None:
        self._prior = prior
        self._last_five: dict[tuple[object, ...], list[float]] = {}
        self._counts: dict[tuple[object, ...], int] = {}
        self._last_end: dict[tuple[object, ...], datetime] = {}
        self._levels = {level: _Level(RecentValues(self._WINDOW)) for level in _FLOOR_LEVELS}
        self._open: dict[JobIdentity, tuple[str, float] | None] = {}

    def submitted(self, job: Job) -> None:
        """Remember what would have been answered, to learn later how far off it was."""
        if job.identity in self._open:
            return
        level = self.level_of(keys_of(job))
        self._open[job.identity] = None if level is None else (level, self._median(keys_of(job), level))

    def started(self, job: Job) -> None:
        """Nothing to learn: only ends count."""

    def ended(self, job: Job) -> None:
        """Take the duration in at every level, where there is one above zero."""
        if job.identity not in self._open:
            return
        answered = self._open.pop(job.identity)
        seconds = job.duration_seconds
        if job.outcome is Outcome.CENSORED or seconds is None or seconds <= 0:
            return
        if answered is not None:
            level = self._levels[answered[0]]
            level.residuals.add(math.log(seconds / answered[1]))
            level.quantiles = None
        for key in keys_of(job):
            if key is None:
                continue
            kept(self._last_five.setdefault(key, []), seconds, _FIVE)
            self._counts[key] = self._counts.get(key, 0) + 1
            if job.gone_at is not None:
                self._last_end[key] = job.gone_at

    def forecast(
        self, jobs: Sequence[Job], now: datetime, elapsed: Sequence[float] | None = None
    ) -> list[DurationForecast]:
        """One answer per job; see :class:`DurationModelLike`.

        Raises:
            Refused: ages that do not fit the jobs.
        """
        del now  # the last five are the last five whenever one asks
        return [self.answer(job, age) for job, age in zip(jobs, ages_of(jobs, elapsed), strict=True)]

    def level_of(self, keys: JobKeys) -> str | None:
        """The level that answers: the most specific at which a job like this has ended, None where there is none."""
        return next((level for level in _FLOOR_LEVELS if getattr(keys, level) in self._last_five), None)

    def _median(self, keys: JobKeys, level: str) -> float:
        return median_of(sorted(self._last_five[getattr(keys, level)]))

    def evidence(self, job: Job) -> tuple[str, int]:
        """The most specific key at which a job like this has ended, as people read it, and how many have."""
        keys = keys_of(job)
        for level, key in zip(LEVELS, keys, strict=True):
            if key in self._last_five:
                return keys.shown(level), self._counts[key]
        return keys.shown("all"), 0

    def last_end(self, job: Job) -> datetime | None:
        """When the latest job of the key of :meth:`evidence` ended, None where none has."""
        return next((self._last_end[key] for key in keys_of(job) if key in self._last_end), None)

    def ends(self, job: Job) -> tuple[int, int]:
        """How many jobs of the same owner and GPU count have ended, and how many of the same owner."""
        keys = keys_of(job)
        return self._counts.get(keys.owner_gpus, 0), self._counts.get(keys.owner, 0)

    def answer(self, job: Job, age: float) -> DurationForecast:
        """The answer for one job that has already run ``age`` seconds."""
        keys = keys_of(job)
        level = self.level_of(keys)
        if level is None:
            law = self._prior
            reasons: tuple[str, ...] = (f"{NO_HISTORY}: no job has ended yet; a prior stands in",)
        else:
            law = self._around(self._median(keys, level), level)
            wider = f"{NO_HISTORY}: nothing more specific than {keys.shown(level)} has ended yet"
            reasons = () if level == _FLOOR_LEVELS[0] else (wider,)
        count = 0 if level is None else self._counts[getattr(keys, level)]
        return DurationForecast(
            distribution=law.given_age(age),
            served=MEDIAN_OF_5,
            model_version=None,
            key=keys.shown(level or "all"),
            key_count=count,
            reasons=reasons,
        )

    def _around(self, seconds: float, level: str) -> DurationDistribution:
        known = self._levels[level]
        if known.quantiles is None:
            known.quantiles = self._halves(known.residuals.ordered)
        below, above = known.quantiles
        centre = math.log(seconds)
        edges = np.concatenate([centre - below[::-1], [centre], centre + above])
        return DurationDistribution(edges, np.linspace(0.0, 1.0, edges.size))

    def _halves(self, residuals: Sequence[float]) -> tuple[Floats, Floats]:
        """Distances from the median at equal steps of probability, to the lower and to the upper side."""
        if len(residuals) < self._LEAST:
            return self._thinly(residuals)
        return (
            self._distances([-value for value in reversed(residuals) if value < 0]),
            self._distances([value for value in residuals if value > 0]),
        )

    def _thinly(self, residuals: Sequence[float]) -> tuple[Floats, Floats]:
        """The same of a few residuals, filled up with an even spread over a wide range.

        One residual says little about where half of all durations lie. Those on the spot count to both sides.
        """
        missing = self._LEAST - len(residuals)
        even = [self._WIDEST * (place + 0.5) / missing for place in range(missing)]
        return (
            self._distances(sorted([*(-value for value in residuals if value <= 0), *even])),
            self._distances(sorted([*(value for value in residuals if value >= 0), *even])),
        )

    def _distances(self, sizes: Sequence[float]) -> Floats:
        """Strictly rising distances of one side, narrow where it has never been off to that side."""
        steps = np.array([quantile_of(sizes, share) if sizes else 0.0 for share in self._SHARES])
        distances: Floats = np.maximum(steps, self._NARROWEST * self._SHARES) + 1e-6 * self._SHARES
        return distances
