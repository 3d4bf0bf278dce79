"""What was promised to a job when it was submitted, and how promises have been kept."""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime
from typing import Self

import numpy as np

from advisor.domain.forecasts import DurationDistribution, DurationForecast
from advisor.errors import Defect

__all__ = ["KeptPromises", "Promise"]

_LEVELS = (
    *(0.001, 0.005, 0.01, 0.02, 0.03),
    *(step / 20 for step in range(1, 20)),
    *(0.97, 0.98, 0.99, 0.995, 0.999),
)
_NARROWEST = 1e-12


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """The forecast given to one job when its submission was first taken in; it never changes afterwards.

    ``asked_at`` is when that was, ``replayed`` says that it was made afterwards, from what had been known at the
    submission. ``law`` holds the distribution thinned to (probability, seconds), from 0 to 1; the measures
    beside it were taken before. ``model_version`` is the registry's, None where the baseline ``served`` answered.
    """

    source: str
    job_id: str
    asked_at: datetime
    replayed: bool
    served: str
    model_version: str | None
    key: str
    key_count: int
    p50_seconds: float
    p90_seconds: float
    typical_seconds: float
    mean_seconds: float
    law: tuple[tuple[float, float], ...]
    reasons: tuple[str, ...]

    @classmethod
    def of(cls, source: str, job_id: str, forecast: DurationForecast, asked_at: datetime, *, replayed: bool) -> Self:
        """What ``forecast`` promises."""
        law = forecast.distribution
        return cls(
            source=source,
            job_id=job_id,
            asked_at=asked_at,
            replayed=replayed,
            served=forecast.served,
            model_version=forecast.model_version,
            key=forecast.key,
            key_count=forecast.key_count,
            p50_seconds=law.quantile(0.5),
            p90_seconds=law.quantile(0.9),
            typical_seconds=law.typical,
            mean_seconds=law.mean,
            law=_thinned(law),
            reasons=forecast.reasons,
        )

    @property
    def forecast(self) -> DurationForecast:
        """The forecast, its distribution exact at the levels that are shown and thinned between them."""
        edges = [math.log(seconds) for _, seconds in self.law]
        for place in range(1, len(edges)):
            edges[place] = max(edges[place], edges[place - 1] + _NARROWEST)
        return DurationForecast(
            distribution=DurationDistribution(np.array(edges), np.array([level for level, _ in self.law])),
            served=self.served,
            model_version=self.model_version,
            key=self.key,
            key_count=self.key_count,
            reasons=self.reasons,
        )


def _thinned(law: DurationDistribution) -> tuple[tuple[float, float], ...]:
    first = int(np.flatnonzero(law.cdf <= 0.0)[-1])
    last = int(np.flatnonzero(law.cdf >= law.cdf[-1])[0])
    inner = [(level, law.quantile(level)) for level in _LEVELS]
    return ((0.0, math.exp(law.log_edges[first])), *inner, (1.0, math.exp(law.log_edges[last])))


@dataclass(frozen=True, slots=True, kw_only=True)
class KeptPromises:
    """How the promises to jobs submitted in one stretch of time were kept, as known at some moment.

    All of one origin: made when the jobs were submitted, or ``replayed``, made afterwards by a model that may have
    been fitted on these very jobs. The two are never one figure, since only the first kind foresaw anything.
    ``ended`` jobs ran and ended; ``overdue`` ones run, or were lost sight of, beyond their P90, which is broken
    whatever comes. Jobs that run and are younger are not counted yet, so that the latest stretches look a little
    better than they will.
    """

    begin: datetime
    replayed: bool
    ended: int
    overdue: int
    within_p50: int
    within_p90: int

    @property
    def counted(self) -> int:
        """Promises of which it is known whether they were kept."""
        return self.ended + self.overdue

    @property
    def p50_share(self) -> float | None:
        """The share that ended within the promised P50; None where nothing is known yet."""
        return self.within_p50 / self.counted if self.counted else None

    @property
    def p90_share(self) -> float | None:
        """The share that ended within the promised P90; None where nothing is known yet."""
        return self.within_p90 / self.counted if self.counted else None

    def joined(self, later: KeptPromises) -> KeptPromises:
        """This stretch and a ``later`` one as one.

        Raises:
            Defect: one of them was made in time and the other afterwards.
        """
        if self.replayed != later.replayed:
            raise Defect("promises made in time and promises made afterwards are not counted together")
        return KeptPromises(
            begin=self.begin,
            replayed=self.replayed,
            ended=self.ended + later.ended,
            overdue=self.overdue + later.overdue,
            within_p50=self.within_p50 + later.within_p50,
            within_p90=self.within_p90 + later.within_p90,
        )
