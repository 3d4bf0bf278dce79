"""Rolling calibration: have the latest answers come true as often as they said?

Every answer F is later met by a duration d; u = F(d) is uniform where the answers are honest. g, the
distribution of the u of the latest questions, bends later answers: F' = F + b(F) with b = g(F) - F as far
as it exceeds what chance would show. A job that still runs counts as censored at F(age). The bend is bounded,
so that a bad hour cannot bend answers far.

What it promises is marginal: over the window, not per owner and not per GPU count.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from advisor.forecast.questions import Outcomes

__all__ = ["Bend", "CalibrationSettings"]

Floats = NDArray[np.float64]

_LEVELS = np.linspace(0.0, 1.0, 201)


@dataclass(frozen=True, slots=True, kw_only=True)
class CalibrationSettings:
    """How far back, and how far, calibration may go.

    ``window`` latest questions of at most ``days``; nothing below ``least`` of them. ``doubt`` is how many
    standard errors a deviation must exceed before what exceeds them is corrected, where jobs come in groups of
    ``alike``, which say together as much as one; ``bound`` the largest bend in probability; ``every`` how many
    questions until it is drawn anew.
    """

    window: int = 4000
    days: float = 14.0
    least: int = 150
    doubt: float = 2.0
    alike: float = 10.0
    bound: float = 0.06
    every: int = 50


@dataclass(frozen=True)
class Bend:
    """What is added to a probability, at each of 201 even levels; None: nothing."""

    added: Floats | None = None

    @classmethod
    def drawn(cls, settings: CalibrationSettings, outcomes: Outcomes) -> Bend:
        """From what came of the latest answers: a Kaplan-Meier estimate of g, linear between its steps."""
        known, censored = outcomes.u, outcomes.censored
        count = known.size
        if count < settings.least:
            return cls()
        # At equal u an end comes before a job that was still running there.
        order = np.lexsort((censored, known))
        known, censored = known[order], censored[order]
        at_risk = np.arange(count, 0, -1)
        survival = np.cumprod(np.where(censored, 1.0, 1.0 - 1.0 / at_risk))
        steps = ~censored
        # Half of each step lies before its u: the middle of the staircase, not its upper or lower corner.
        before = np.concatenate([[1.0], survival[:-1]])[steps]
        g = 1.0 - (before + survival[steps]) / 2.0
        u = np.concatenate([[0.0], known[steps], [1.0]])
        drawn = np.interp(_LEVELS, u, np.concatenate([[0.0], g, [1.0]]))
        # What chance alone would show of honest answers bends nothing.
        chance = settings.doubt * np.sqrt(_LEVELS * (1.0 - _LEVELS) * settings.alike / count)
        beyond = np.sign(drawn - _LEVELS) * np.maximum(np.abs(drawn - _LEVELS) - chance, 0.0)
        return cls(np.clip(beyond, -settings.bound, settings.bound))

    def of(self, cdf: Floats) -> Floats:
        """``cdf`` as recent experience corrects it."""
        if self.added is None:
            return cdf
        bent = np.clip(cdf + np.interp(cdf, _LEVELS, self.added), 0.0, 1.0)
        bent[0], bent[-1] = 0.0, 1.0
        return np.maximum.accumulate(bent)
