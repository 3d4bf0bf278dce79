"""Whether a pool's model has earned the right to be served, by its own recent days."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from advisor.domain.units import counted

__all__ = [
    "CONSTANT",
    "FULL_WINDOW_DAYS",
    "MODEL",
    "PERSISTENCE",
    "DailyLosses",
    "GateVerdict",
    "LowerVerdict",
    "judged",
    "judged_lower",
]

Floats = NDArray[np.float64]

MODEL = "model"
"""What a forecast says it served where it was the model."""
CONSTANT = "constant"
"""The baseline that every other one, and the model, must displace."""
PERSISTENCE = "persistence"
"""The baseline without spread, which is compared at the median only."""

FULL_WINDOW_DAYS = 14
"""Days of recent losses that a verdict is made from."""

_FEWEST_DAYS = 2
_FEWEST_DAYS_OF_RELEASES = 4
_CLEARLY = 3.0
_MEDIAN_ALLOWED = 1.02
_CERTAIN = 1e6
"""What t is given as where daily savings have no scatter at all; JSON has no infinity."""


@dataclass(frozen=True, slots=True)
class GateVerdict:
    """What to serve for one pool at one horizon, and the evidence.

    ``t`` is the mean daily saving of loss over the best baseline in standard errors, ``skill`` the share
    of that baseline's loss saved; both are None where fewer than two days were scored. ``reason`` follows
    "such a one is served," and is None where the model is served for its skill. ``holds_median`` says that the
    model's median is held at the present demand, since it was worse than that.
    """

    served: str
    best_baseline: str
    days: int
    t: float | None
    skill: float | None
    reason: str | None
    holds_median: bool = False

    def to_json(self) -> dict[str, Any]:
        """As plain fields."""
        return asdict(self)


@dataclass(frozen=True, slots=True, eq=False)
class DailyLosses:
    """Mean losses of each scored day, oldest first.

    ``model`` and ``baselines`` are losses of the upper quantiles (NaN where a baseline could not speak),
    ``model_median`` and ``persistence_median`` those at the median.
    """

    model: Floats
    baselines: Mapping[str, Floats]
    model_median: Floats
    persistence_median: Floats


@dataclass(frozen=True, slots=True)
class LowerVerdict:
    """Whether the quantiles below the median are told what running jobs may release, and the evidence.

    ``saving`` is the share of their loss that this saved on ``days`` days; None where too few were scored.
    """

    served: bool
    days: int
    saving: float | None

    def to_json(self) -> dict[str, Any]:
        """As plain fields."""
        return asdict(self)


def judged_lower(told: Floats, untold: Floats) -> LowerVerdict:
    """Judge daily losses of a model that was told releases against those of one that was not.

    It is served where the mean daily saving is above one standard error: releases come from another model, whose
    faults must not enter on chance.
    """
    days = int(told.size)
    if days < _FEWEST_DAYS_OF_RELEASES:
        return LowerVerdict(served=False, days=days, saving=None)
    total = float(untold.sum())
    saving = 1.0 - float(told.sum()) / total if total > 0 else 0.0
    return LowerVerdict(served=_t(untold - told) > 1.0, days=days, saving=saving)


def judged(losses: DailyLosses) -> GateVerdict:
    """Judge the model against the best baseline, and against persistence at the median.

    The model is served if its mean daily saving over the best baseline is above zero. While fewer than
    fourteen days are scored it is served, too, if that saving is less than one standard error below zero,
    since little evidence against it is little evidence; the verdict then says so. Where its median cost more
    than 2 % over persistence, that alone is held at the present: the upper quantiles have proved themselves.

    The best baseline is the constant, unless another one saved loss over it by three standard errors.
    Persistence never is: without spread it costs nothing in a quiet fortnight, and everything after it.
    """
    best = _best_baseline(losses.baselines)
    days = int(losses.model.size)
    if days < _FEWEST_DAYS or best is None:
        name = best or PERSISTENCE
        return GateVerdict(name, name, days, None, None, f"scored on {counted(days, 'day')}, needs {_FEWEST_DAYS}")
    saving = losses.baselines[best] - losses.model
    t = _t(saving)
    total = float(losses.baselines[best].sum())
    skill = float(1.0 - losses.model.sum() / total) if total > 0 else 0.0
    doubtful = days < FULL_WINDOW_DAYS and t > -1 and bool(saving.any())
    if not (t > 0 or doubtful):
        return GateVerdict(best, best, days, t, skill, f"no skill against {best}")
    holds = bool(losses.model_median.sum() > _MEDIAN_ALLOWED * losses.persistence_median.sum())
    return GateVerdict(MODEL, best, days, t, skill, None if t > 0 else _doubt(skill, best, days), holds)


def _doubt(skill: float, best: str, days: int) -> str:
    behind = f"{-100 * skill:.2g} % worse than" if skill < 0 else "no better than"
    return (
        f"though it was {behind} {best}: by less than one standard error on {counted(days, 'day')}, "
        f"of {FULL_WINDOW_DAYS} that would settle it"
    )


def _best_baseline(baselines: Mapping[str, Floats]) -> str | None:
    """The constant, or the one that displaced it; the least loss of those that spoke where it could not."""
    spoke = {n: x for n, x in baselines.items() if n != PERSISTENCE and x.size and not np.isnan(x).any()}
    if CONSTANT not in spoke:
        return min(spoke, key=lambda name: (float(spoke[name].sum()), name), default=None)
    clearer = {name: t for name, x in spoke.items() if (t := _t(spoke[CONSTANT] - x)) > _CLEARLY}
    return min(clearer, key=lambda name: (float(spoke[name].sum()), name), default=CONSTANT)


def _t(saving: Floats) -> float:
    """Mean of daily savings in standard errors; 0 for less than two days."""
    if saving.size < _FEWEST_DAYS:
        return 0.0
    error = float(saving.std(ddof=1) / np.sqrt(saving.size))
    return float(saving.mean()) / error if error > 0 else float(np.sign(saving.mean())) * _CERTAIN
