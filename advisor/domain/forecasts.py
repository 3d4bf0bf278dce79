"""Forecasts: always a distribution, never a bare number."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from advisor.domain.units import positive, utc
from advisor.domain.warm_rules import WarmRule
from advisor.errors import Defect, Refused

__all__ = [
    "DemandForecast",
    "DurationDistribution",
    "DurationForecast",
    "HorizonForecast",
    "OutcomeChances",
    "RiseForecast",
]

Floats = NDArray[np.float64]

_LN2 = float(np.log(2.0))
_SURVIVORS_KNOWN = 1e-4
_UNFORESEEN = 0.01
_NEARLY_ALL = 0.999
_REMAINING_STEP = 0.05


def _remaining_grid(log_edges: Floats, age_seconds: float) -> Floats:
    """Ln seconds still to go, from one second to the last edge: the old edges shifted, and a fine ladder between.

    The ladder is needed because what was linear in ln total is not linear in ln remaining.
    """
    remaining = np.exp(log_edges) - age_seconds
    longest = max(float(remaining[-1]), 2.0)
    ladder = np.linspace(0.0, np.log(longest), max(2, int(np.log(longest) / _REMAINING_STEP)))
    shifted = np.log(remaining[remaining > 1.0])
    grid = np.unique(np.concatenate([ladder, shifted[shifted < ladder[-1]]]))
    # Two edges closer than rounding would make a piece without width.
    kept: Floats = grid[np.concatenate([[True], np.diff(grid) > 1e-9])]
    return kept


@dataclass(frozen=True, eq=False)
class DurationDistribution:
    """How long a job may run: a cumulative distribution over seconds, linear in ln seconds between edges.

    ``log_edges`` are n strictly increasing ln seconds, ``cdf`` the n probabilities of ending by then,
    from 0 to 1 and never falling; so quantiles are ordered and positive by construction.
    """

    log_edges: Floats
    cdf: Floats

    def __post_init__(self) -> None:
        """Check shape and order; a broken distribution is a defect of the model that made it."""
        edges = np.ascontiguousarray(self.log_edges, dtype=np.float64)
        cdf = np.ascontiguousarray(self.cdf, dtype=np.float64)
        if edges.ndim != 1 or edges.shape != cdf.shape or edges.size < 2:
            raise Defect(
                f"a distribution needs two equal rows of at least 2 numbers, got {edges.shape} and {cdf.shape}"
            )
        if not (np.isfinite(edges).all() and np.isfinite(cdf).all()):
            raise Defect("a distribution holds a number that is not finite")
        if (np.diff(edges) <= 0).any() or (np.diff(cdf) < 0).any() or cdf[0] != 0.0 or abs(cdf[-1] - 1.0) > 1e-9:
            raise Defect("a distribution needs rising edges and a cdf that climbs from 0 to 1")
        edges.flags.writeable = False
        cdf.flags.writeable = False
        object.__setattr__(self, "log_edges", edges)
        object.__setattr__(self, "cdf", cdf)

    def __eq__(self, other: object) -> bool:
        """Equal where edges and probabilities are equal to the bit."""
        if not isinstance(other, DurationDistribution):
            return NotImplemented
        return np.array_equal(self.log_edges, other.log_edges) and np.array_equal(self.cdf, other.cdf)

    def __hash__(self) -> int:
        """Hash of the bytes of both rows."""
        return hash((self.log_edges.tobytes(), self.cdf.tobytes()))

    def quantile(self, level: float) -> float:
        """The duration in seconds by which the job has ended with probability ``level``.

        Raises:
            Refused: ``level`` outside (0, 1).
        """
        if not 0.0 < level < 1.0:
            raise Refused("level", level, "a quantile level lies strictly between 0 and 1", "Ask for 0.5 or 0.9.")
        at = int(np.searchsorted(self.cdf, level, side="left"))
        low, high = self.cdf[at - 1], self.cdf[at]
        share = (level - low) / (high - low)
        return float(np.exp(self.log_edges[at - 1] + share * (self.log_edges[at] - self.log_edges[at - 1])))

    def probability_by(self, seconds: float) -> float:
        """P(duration <= seconds)."""
        if seconds <= 0:
            return 0.0
        return float(np.interp(np.log(seconds), self.log_edges, self.cdf))

    def survival(self, seconds: float) -> float:
        """P(duration > seconds)."""
        return 1.0 - self.probability_by(seconds)

    def survival_at(self, seconds: Floats) -> Floats:
        """P(duration > s) for every s of an array, in seconds; 1 at and below zero."""
        with np.errstate(divide="ignore"):
            logs = np.log(np.maximum(seconds, 0.0))
        return 1.0 - np.interp(logs, self.log_edges, self.cdf)

    @cached_property
    def mean(self) -> float:
        """Expected duration in seconds, exact for the piecewise log-uniform law."""
        ends = np.exp(self.log_edges)
        return float(np.diff(self.cdf) @ (np.diff(ends) / np.diff(self.log_edges)))

    def mean_within(self, seconds: float) -> float:
        """Expected min(duration, ``seconds``), in seconds: the integral of the survival up to there."""
        if seconds <= 0:
            return 0.0
        limit = float(np.log(seconds))
        logs = np.minimum(self.log_edges, limit)
        cdf = np.interp(logs, self.log_edges, self.cdf)
        widths = np.diff(logs)
        # Where a piece has no width its mass is zero too, and any finite stand-in for its mean will do.
        means = np.diff(np.exp(logs)) / np.where(widths > 0, widths, 1.0)
        return float(np.diff(cdf) @ means + (1.0 - cdf[-1]) * seconds)

    @cached_property
    def median(self) -> float:
        """The duration in seconds with even odds of being exceeded."""
        return self.quantile(0.5)

    @cached_property
    def typical(self) -> float:
        """The duration p in seconds whose window [p/2, 2p] holds the most probability.

        Where tails are heavy the median is typical of nothing; this is. Of equally heavy windows
        the middle of the first stretch is taken.
        """
        return self.heaviest(_LN2, _LN2)

    def heaviest(self, below: float, above: float) -> float:
        """The duration p in seconds whose window of ln seconds [ln p - ``below``, ln p + ``above``] holds the most.

        Of equally heavy windows the middle of the first stretch is taken.
        """
        # The window's mass is piecewise linear in its centre, so its maximum is at a point where
        # one of its two ends meets an edge.
        centres = np.concatenate([self.log_edges - above, self.log_edges + below])
        centres = np.unique(np.clip(centres, self.log_edges[0], self.log_edges[-1]))
        mass = self._by(centres + above) - self._by(centres - below)
        heaviest = mass >= mass.max() - 1e-12
        first = int(np.argmax(heaviest))
        last = first
        while last + 1 < heaviest.size and heaviest[last + 1]:
            last += 1
        return float(np.exp((centres[first] + centres[last]) / 2.0))

    def _by(self, log_seconds: Floats) -> Floats:
        found: Floats = np.interp(log_seconds, self.log_edges, self.cdf)
        return found

    def given_age(self, age_seconds: float) -> DurationDistribution:
        """The *remaining* seconds of a job that has already run ``age_seconds``.

        One per cent of the probability is kept for the unforeseen (uniform in ln seconds up to four times the
        99.9 % quantile), so an expired prediction never says "zero left"; where even that leaves fewer
        than 1 in 10,000 survivors, the median remaining time equals the age (Lindy's rule).

        Raises:
            Refused: a negative or non-finite age.
        """
        if not (np.isfinite(age_seconds) and age_seconds >= 0):
            raise Refused("age_seconds", age_seconds, "an age is 0 s or more", "Give the seconds it has run.")
        if age_seconds == 0:
            return self
        log_age = float(np.log(age_seconds))
        gone = float(self._with_unforeseen(log_age))
        if 1.0 - gone < _SURVIVORS_KNOWN:
            return DurationDistribution(np.array([log_age - _LN2, log_age + _LN2]), np.array([0.0, 1.0]))
        log_remaining = _remaining_grid(self.log_edges, age_seconds)
        by_then = self._with_unforeseen(np.log(age_seconds + np.exp(log_remaining)))
        cdf = np.clip((by_then - gone) / (1.0 - gone), 0.0, 1.0)
        # The sliver that ends within the first second is counted from the first edge on.
        cdf[0], cdf[-1] = 0.0, 1.0
        return DurationDistribution(log_remaining, np.maximum.accumulate(cdf))

    def ends_within(self, ages_seconds: Floats, within_seconds: float) -> Floats:
        """P(it ends within the next ``within_seconds``) at each age in seconds it has run.

        What :meth:`given_age` says, for many ages at once and without making the remaining laws: the unforeseen is
        kept and Lindy's rule holds in the same way.
        """
        ages = np.maximum(ages_seconds, 1.0)
        gone = self._with_unforeseen(np.log(ages))
        left = 1.0 - gone
        by_then = self._with_unforeseen(np.log(ages + within_seconds))
        chances = np.clip((by_then - gone) / np.maximum(left, _SURVIVORS_KNOWN), 0.0, 1.0)
        lindy = np.clip((np.log(within_seconds / ages) + _LN2) / (2.0 * _LN2), 0.0, 1.0)
        found: Floats = np.where(left < _SURVIVORS_KNOWN, lindy, chances)
        return found

    def _with_unforeseen(self, log_seconds: Floats | float) -> Floats:
        """P(duration <= exp x) with a little kept for what no history has shown, evenly over ln seconds.

        It ends not far beyond what the law itself holds for possible: spread to the end of the grid, one per
        cent would outweigh all the rest in the mean.
        """
        spread = np.clip((log_seconds - self.log_edges[0]) / (self.unforeseen_until - self.log_edges[0]), 0.0, 1.0)
        own = np.interp(log_seconds, self.log_edges, self.cdf)
        found: Floats = np.asarray((1.0 - _UNFORESEEN) * own + _UNFORESEEN * spread)
        return found

    @cached_property
    def unforeseen_until(self) -> float:
        """Ln seconds up to which something is kept for the unforeseen: see :meth:`given_age`."""
        return min(float(np.log(self.quantile(_NEARLY_ALL))) + 2.0 * _LN2, float(self.log_edges[-1]))

    @classmethod
    def point(cls, seconds: float, spread: float = 0.01) -> DurationDistribution:
        """A distribution narrow around ``seconds`` (``spread`` in ln either side): for tests and oracles."""
        centre = float(np.log(positive(seconds, "seconds", "seconds")))
        return cls(np.array([centre - spread, centre + spread]), np.array([0.0, 1.0]))

    @classmethod
    def mixture(cls, parts: tuple[DurationDistribution, ...], weights: Floats) -> DurationDistribution:
        """The law of a job drawn from ``parts`` with ``weights`` (not negative, summing above zero)."""
        if not parts or len(parts) != len(weights) or not np.sum(weights) > 0:
            raise Defect("a mixture needs as many weights as parts, summing above zero")
        edges = np.unique(np.concatenate([part.log_edges for part in parts]))
        rows = np.array([np.interp(edges, part.log_edges, part.cdf) for part in parts])
        cdf = np.asarray(weights, dtype=np.float64) @ rows / np.sum(weights)
        cdf[0], cdf[-1] = 0.0, 1.0
        return cls(edges, np.maximum.accumulate(np.clip(cdf, 0.0, 1.0)))


@dataclass(frozen=True, slots=True, kw_only=True)
class OutcomeChances:
    """How a job will end: three probabilities that sum to 1. Whatever frees the GPUs is an end."""

    completed: float
    failed: float
    cancelled: float

    def __post_init__(self) -> None:
        """Check that they are probabilities; anything else is the model's defect."""
        parts = (self.completed, self.failed, self.cancelled)
        if not all(0.0 <= part <= 1.0 for part in parts) or abs(sum(parts) - 1.0) > 1e-6:
            raise Defect(f"chances of outcomes lie in [0, 1] and sum to 1, got {parts}")


@dataclass(frozen=True, slots=True, kw_only=True)
class DurationForecast:
    """The answer to "how long will this run": a distribution, who made it, and on what evidence.

    ``served`` names the predictor (``model`` or a baseline); ``key`` the history that carried it
    (for instance ``user+gpus``) and ``key_count`` how many ended jobs that history has.
    ``reasons`` say why a baseline or a prior was served, empty for the model itself. ``outcomes`` say how it
    will end, None where a baseline answers.
    """

    distribution: DurationDistribution
    served: str
    model_version: str | None
    key: str
    key_count: int
    reasons: tuple[str, ...] = ()
    outcomes: OutcomeChances | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HorizonForecast:
    """Demand (GPUs running + pending) ``horizon_minutes`` from now, as ordered quantiles of 0 or more GPUs.

    ``skill`` is 1 - loss / best baseline's loss on this pool's recent data; None where too little was
    scored. ``served`` is ``model`` or the name of the baseline whose quantiles stand here.
    """

    horizon_minutes: int
    levels: tuple[float, ...]
    gpus: tuple[float, ...]
    skill: float | None
    served: str

    def __post_init__(self) -> None:
        """Check lengths, order and sign; anything else is the model's defect."""
        if len(self.levels) != len(self.gpus) or not self.levels:
            raise Defect("a horizon needs one demand per level")
        if any(b < a for a, b in zip(self.gpus, self.gpus[1:], strict=False)) or self.gpus[0] < 0:
            raise Defect(f"demand quantiles must be ordered and not negative: {self.gpus}")

    def quantile(self, level: float) -> float:
        """GPUs at ``level``, interpolated between the stored levels, held at the outermost ones."""
        return float(np.interp(level, self.levels, self.gpus))


@dataclass(frozen=True, slots=True, kw_only=True)
class DemandForecast:
    """How many GPUs a pool will want at each horizon, as known at ``made_at``."""

    pool: str
    made_at: datetime
    gpus_now: float
    horizons: tuple[HorizonForecast, ...]
    model_version: str | None = None
    reasons: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Keep the time in UTC."""
        object.__setattr__(self, "made_at", utc(self.made_at, "made_at"))

    @property
    def skilled(self) -> bool:
        """True where at least one horizon is served by the model with skill above zero."""
        return any(h.served == "model" and h.skill is not None and h.skill > 0 for h in self.horizons)


@dataclass(frozen=True, slots=True, kw_only=True)
class RiseForecast:
    """P(the largest rise of need within h >= j nodes), the raw material of warm capacity.

    ``probabilities[i][j - 1]`` belongs to ``horizons_minutes[i]`` and level j = 1, 2, ...; it never
    falls in h and never rises in j. Need is running + pending GPUs in nodes of ``node_gpus``. ``rule`` is the one that
    the pool's past speaks for, None where it was never tried, and ``recent_rise_nodes`` what the plain rule asks to
    have ready, None unless that is the one.
    """

    pool: str
    made_at: datetime
    node_gpus: int
    horizons_minutes: tuple[float, ...]
    probabilities: tuple[tuple[float, ...], ...]
    served: str
    rule: WarmRule | None = None
    recent_rise_nodes: int | None = None

    def __post_init__(self) -> None:
        """Check the shape and both monotonicities."""
        table = np.asarray(self.probabilities, dtype=np.float64)
        if table.ndim != 2 or table.shape[0] != len(self.horizons_minutes):
            raise Defect("a rise forecast needs one row of levels per horizon")
        if (np.diff(table, axis=0) < -1e-12).any() or (np.diff(table, axis=1) > 1e-12).any():
            raise Defect("rise probabilities must grow with the horizon and shrink with the level")
        object.__setattr__(self, "made_at", utc(self.made_at, "made_at"))
