"""How far an answer leans on the baseline: the less a history holds, the more."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from advisor.domain.forecasts import DurationDistribution

__all__ = ["Shrinkage"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Shrinkage:
    """The baseline's share in an answer: ``most`` where nothing has ended yet, half of it after ``half_at`` ends.

    Trees know who is alike, the baseline repeats exactly what was seen last. Where few jobs have ended the
    trees are the less certain of the two; where many have, they know better.
    """

    most: float = 0.3
    half_at: float = 100.0

    def mixed(self, cdf: Floats, log_edges: Floats, floor: DurationDistribution, ends: int) -> Floats:
        """The model's ``cdf`` at ``log_edges`` with the baseline's share after ``ends`` jobs of the same key."""
        share = self.most * self.half_at / (self.half_at + ends)
        mixed = (1.0 - share) * cdf + share * np.interp(log_edges, floor.log_edges, floor.cdf)
        # What the baseline puts beyond the grid is counted at its outermost edges.
        mixed[0], mixed[-1] = 0.0, 1.0
        return mixed
