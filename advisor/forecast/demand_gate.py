"""Whether a pool's model has earned the right to be served, by its own recent days."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["FULL_WINDOW_DAYS", "MODEL", "GateVerdict", "judged"]

Floats = NDArray[np.float64]

MODEL = "model"
"""What a forecast says it served where it was the model."""

FULL_WINDOW_DAYS = 14
"""Days of recent losses that a verdict is made from."""

_FEWEST_DAYS = 2
_CERTAIN = 1e6
"""What t is given as where daily savings have no scatter at all; JSON has no infinity."""


@dataclass(frozen=True, slots=True)
class GateVerdict:
    """What to serve for one pool at one horizon, and the evidence.

    ``t`` is the mean daily saving of loss over the best baseline in standard errors, ``skill`` the share
    of that baseline's loss saved; both are None where fewer than two days were scored.
    """

    served: str
    best_baseline: str
    days: int
    t: float | None
    skill: float | None
    reason: str | None

    def to_json(self) -> dict[str, Any]:
        """As plain fields."""
        return asdict(self)


def judged(model: Floats, baselines: Mapping[str, Floats]) -> GateVerdict:
    """Judge the model by daily mean losses, oldest first; a baseline that could not speak has NaN.

    The model is served if its mean saving over the best baseline is above zero; while fewer than fourteen
    days are scored, if it is not more than one standard error below zero, since little evidence against
    it is little evidence.
    """
    spoke = {name: losses for name, losses in baselines.items() if not np.isnan(losses).any()}
    best = min(spoke, key=lambda name: (float(spoke[name].sum()), name), default="persistence")
    days = int(model.size)
    if days < _FEWEST_DAYS or best not in spoke:
        return GateVerdict(best, best, days, None, None, f"scored on {days} days, needs {_FEWEST_DAYS}")
    saving = spoke[best] - model
    error = float(saving.std(ddof=1) / np.sqrt(days))
    t = float(saving.mean() / error) if error > 0 else float(np.sign(saving.mean())) * _CERTAIN
    total = float(spoke[best].sum())
    skill = float(1.0 - model.sum() / total) if total > 0 else 0.0
    doubtful = days < FULL_WINDOW_DAYS and t > -1 and bool(saving.any())
    if t > 0 or doubtful:
        return GateVerdict(MODEL, best, days, t, skill, None)
    return GateVerdict(best, best, days, t, skill, f"no skill against {best}")
