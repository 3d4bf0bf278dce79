"""The grid of ln seconds on which duration distributions are kept."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from advisor.errors import Refused

__all__ = ["LogGrid"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class LogGrid:
    """``cells`` equal steps of ln seconds from one second up, and a tail beyond for what no job has reached.

    A duration below one second falls into the first cell, one beyond the last into the last: with the
    defaults, 69 days. What survives the longest job seen is spread evenly over the next ``tail`` of ln seconds.
    """

    step: float = 0.12
    cells: int = 130
    tail: float = 1.0

    def __post_init__(self) -> None:
        """Check that there is a grid.

        Raises:
            Refused: a step or tail that is not positive, or fewer than 2 cells.
        """
        if not (self.step > 0 and self.tail > 0 and self.cells >= 2):
            raise Refused("grid", (self.step, self.cells, self.tail), "steps are positive, cells 2 or more", "Mend it.")

    @cached_property
    def log_edges(self) -> Floats:
        """Edges of all cells, those of the tail included, from 0 up."""
        beyond = int(np.ceil(self.tail / self.step))
        edges: Floats = np.arange(self.cells + beyond + 1, dtype=np.float64) * self.step
        edges.flags.writeable = False
        return edges

    def cell_of(self, log_seconds: float) -> int:
        """The cell a duration falls into."""
        return min(max(int(log_seconds / self.step), 0), self.cells - 1)

    def cells_of(self, log_seconds: Floats) -> NDArray[np.intp]:
        """The cells durations fall into."""
        return np.minimum(np.maximum((log_seconds / self.step).astype(np.intp), 0), self.cells - 1)

    def at(self, cdfs: Floats, log_seconds: Floats) -> Floats:
        """Each row of ``cdfs`` (n, edges) at its own ``log_seconds`` (n), linear between edges."""
        place = np.clip(log_seconds / self.step, 0.0, cdfs.shape[1] - 1.0)
        below = np.minimum(place.astype(np.intp), cdfs.shape[1] - 2)
        rows = np.arange(cdfs.shape[0])
        low = cdfs[rows, below]
        found: Floats = low + (place - below) * (cdfs[rows, below + 1] - low)
        return found

    def survivors_spread(self, survival: Floats, last: NDArray[np.intp]) -> Floats:
        """CDFs at every edge, given ``survival`` (..., cells) after each cell and the ``last`` (...) one known of.

        What survives that cell ends evenly over the next ``tail`` of ln seconds.
        """
        cdf = np.zeros((*last.shape, self.log_edges.size))
        cdf[..., 1 : self.cells + 1] = 1.0 - survival
        ends = last[..., np.newaxis]
        left = np.take_along_axis(survival, ends, axis=-1)
        beyond = np.arange(self.log_edges.size) - ends - 1
        fading = left * self._fading[np.maximum(beyond, 1) - 1]
        np.subtract(1.0, fading, out=cdf, where=beyond > 0)
        cdf[..., -1] = 1.0
        return cdf

    def with_tail(self, by_cell: Floats) -> Floats:
        """CDFs at every edge, given those after each cell (n, cells): what survives them all ends over the ``tail``."""
        cdf = np.zeros((len(by_cell), self.log_edges.size))
        cdf[:, 1 : self.cells + 1] = np.minimum(by_cell, 1.0)
        left = 1.0 - cdf[:, self.cells]
        beyond = cdf.shape[1] - self.cells - 1
        cdf[:, self.cells + 1 :] = 1.0 - left[:, np.newaxis] * self._fading[:beyond]
        cdf[:, -1] = 1.0
        return cdf

    @cached_property
    def _fading(self) -> Floats:
        """What is left of the survivors one, two, ... edges after the last thing known."""
        return np.maximum(0.0, 1.0 - self.log_edges[1:] / self.tail)
