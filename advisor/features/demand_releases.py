"""What is foreseen of the GPUs that running jobs give back: the columns that tell how far demand may fall."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from advisor.domain.releases import ReleaseLaw
from advisor.features.table import Feature

__all__ = ["RELEASE_COLUMNS", "ReleasesNow"]

Floats = NDArray[np.float64]

RELEASE_COLUMNS = (
    Feature("releases_expected", "GPUs that running jobs are expected to release within the horizon", "nodes"),
    Feature("releases_spread", "standard deviation of that, were their ends independent", "nodes"),
    Feature("releases_unforeseen", "GPUs of running jobs of which nothing was predicted", "nodes"),
)
"""The columns, in their order, that follow all others in a row of a model that knows releases."""


@dataclass(frozen=True, slots=True, eq=False)
class ReleasesNow:
    """The jobs that run now: their ``gpus``, the probability ``ends`` of each to end within the horizon.

    ``unforeseen`` are GPUs of running jobs that have no such probability.
    """

    gpus: Floats
    ends: Floats
    unforeseen: float = 0.0

    def row(self, node_gpus: int) -> Floats:
        """The values of :data:`RELEASE_COLUMNS`."""
        expected = float(self.gpus @ self.ends)
        spread = float((self.gpus**2) @ (self.ends * (1.0 - self.ends))) ** 0.5
        return np.array([expected, spread, self.unforeseen]) / node_gpus

    @property
    def law(self) -> ReleaseLaw:
        """The whole law of the GPUs released by those of which something is predicted."""
        return ReleaseLaw.of(self.gpus, self.ends)
