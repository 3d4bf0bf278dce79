"""How much each part of an answer is believed: by how well it and its mixtures have foretold lately.

The score of a mixture is quadratic in its weights, so the best weights follow from how the parts and every two of
them have done. They are drawn for histories of different depth apart, since trees, hazards and the baseline
differ in how much past they need; where there is little to go by they lean on the window as a whole, and that
leans on a prior.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from advisor.forecast.questions import Outcomes

__all__ = ["BlendSettings", "Weights", "best_mixture"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class BlendSettings:
    """``prior`` weights of forest, hazard and baseline, worth ``prior_questions`` questions.

    ``depths`` are the first counts of ended jobs at which a new class of history begins; a class's own
    questions outweigh the others from ``own_questions`` on. Where the key has no end yet, the prior is
    ``prior_unseen``: trees know little there, and its parents' median much.
    """

    prior: tuple[float, ...] = (0.55, 0.42, 0.03)
    prior_unseen: tuple[float, ...] = (0.15, 0.35, 0.5)
    prior_questions: float = 1500.0
    depths: tuple[int, ...] = (0, 1, 5, 20, 100)
    own_questions: float = 500.0

    def prior_of(self, number: int) -> Floats:
        """The prior weights of the ``number``-th class."""
        seen = number and self.depths[number - 1] > 0
        return np.array(self.prior if seen else self.prior_unseen)


@dataclass(frozen=True)
class Weights:
    """Weights of the parts, one row for each class of history: (classes, parts)."""

    settings: BlendSettings
    by_class: Floats

    @classmethod
    def prior(cls, settings: BlendSettings) -> Weights:
        """Before anything was asked."""
        return cls(settings, np.array([settings.prior_of(number) for number in range(len(settings.depths) + 1)]))

    @classmethod
    def drawn(cls, settings: BlendSettings, outcomes: Outcomes) -> Weights:
        """From what came of the latest answers."""
        if not outcomes.depth.size:
            return cls.prior(settings)
        overall = outcomes.losses.mean(axis=0)
        count = float(len(outcomes.losses))
        classes = np.searchsorted(np.array(settings.depths), outcomes.depth, side="right")
        rows = []
        for number in range(len(settings.depths) + 1):
            own = outcomes.losses[classes == number]
            pooled = (own.sum(axis=0) + settings.own_questions * overall) / (len(own) + settings.own_questions)
            prior = settings.prior_of(number)
            rows.append(best_mixture(pooled, prior, settings.prior_questions / (settings.prior_questions + count)))
        return cls(settings, np.array(rows))

    def of(self, depth: int) -> Floats:
        """The weights of a job whose owner and GPU count has had ``depth`` ends: (parts,)."""
        found: Floats = self.by_class[int(np.searchsorted(self.settings.depths, depth, side="right"))]
        return found


def best_mixture(losses: Floats, prior: Floats, doubt: float) -> Floats:
    """Weights on the simplex with the smallest w' ``losses`` w + doubt * tr(losses)/n * |w - prior|^2.

    Solved exactly: the best point of each face of the simplex, of which there are few.
    """
    size = prior.size
    ridge = doubt * float(np.trace(losses)) / size
    matrix = losses + ridge * np.eye(size)
    # Where nothing is lost anywhere, nothing is known to be better than the prior.
    best, least = prior, float(prior @ losses @ prior)
    for count in range(1, size + 1):
        for face in combinations(range(size), count):
            weights = _on_face(matrix, ridge * prior, face)
            if weights is None:
                continue
            loss = float(weights @ losses @ weights + ridge * ((weights - prior) ** 2).sum())
            if loss < least - 1e-12:
                best, least = weights, loss
    return best


def _on_face(matrix: Floats, pull: Floats, face: tuple[int, ...]) -> Floats | None:
    """The stationary point of w' matrix w - 2 pull' w on sum(w) = 1 with w zero off ``face``; None outside it."""
    count = len(face)
    chosen = list(face)
    system = np.zeros((count + 1, count + 1))
    system[:count, :count] = matrix[np.ix_(chosen, chosen)]
    system[:count, count] = system[count, :count] = 1.0
    try:
        solution = np.linalg.solve(system, np.append(pull[chosen], 1.0))[:count]
    except np.linalg.LinAlgError:
        return None
    if (solution < 0).any():
        return None
    weights = np.zeros(matrix.shape[0])
    weights[chosen] = solution
    return weights
