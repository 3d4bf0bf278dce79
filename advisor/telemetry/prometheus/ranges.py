"""The moments a range query asks for: a grid that stays where it is, cut into pieces a server answers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from math import floor

import numpy as np
from numpy.typing import NDArray

from advisor.domain.units import utc
from advisor.errors import Refused

__all__ = ["MOST_POINTS", "Window"]

MOST_POINTS = 11_001
"""A server answers at most 11,000 steps of one series, which are 11,001 points."""


@dataclass(frozen=True, slots=True)
class Window:
    """The stamps ``start``, ``start`` + ``step``, ... up to ``end``, both included.

    All are Unix seconds and multiples of ``step``.

    >>> whole = Window(start=0, end=691_200, step=60)  # eight days
    >>> whole.points, [chunk.points for chunk in whole.chunks()]
    (11521, [11001, 520])
    """

    start: int
    end: int
    step: int

    def __post_init__(self) -> None:
        """Refuse what is no grid.

        Raises:
            Refused: the step is below a second, the end lies before the start, or an edge is off the grid.
        """
        if self.step < 1:
            raise Refused("step_seconds", self.step, "a step is at least 1 s", "Ask for whole seconds.")
        if self.end < self.start:
            raise Refused("window", (self.start, self.end), "it ends before it starts", "Swap the two moments.")
        if self.start % self.step or self.end % self.step:
            limit = f"its edges are multiples of the step of {self.step} s"
            raise Refused("window", (self.start, self.end), limit, "Make it with Window.over.")

    @classmethod
    def over(cls, start: datetime, end: datetime, step_seconds: int) -> Window:
        """The grid of ``step_seconds`` over two aware moments, each moved down to the multiple at or before it.

        Both go down, and by multiples since 1970: a range that moves on by a few seconds keeps its stamps, and one
        that moves on by more shares those that lie in both. Nothing after ``end`` is asked for.

        Raises:
            Refused: a moment without an offset, a step below a second, or an end before the start.
        """
        step = max(step_seconds, 1)
        edges = [floor(utc(at, name).timestamp()) // step * step for at, name in ((start, "start"), (end, "end"))]
        return cls(start=edges[0], end=edges[1], step=step_seconds)

    @property
    def points(self) -> int:
        """How many stamps it has."""
        return (self.end - self.start) // self.step + 1

    def stamps(self) -> NDArray[np.float64]:
        """Every stamp, ascending, in Unix seconds."""
        return np.arange(self.start, self.end + self.step, self.step, dtype=np.float64)

    def chunks(self, most_points: int = MOST_POINTS) -> Iterator[Window]:
        """Windows of at most ``most_points`` stamps in order of time; each begins one step after the one before.

        Fewer points keep the answers small where a query has many series; more than a server answers are never
        asked for.

        Raises:
            Refused: less than one point.
        """
        if most_points < 1:
            raise Refused("most_points", most_points, "a chunk has at least 1 point", "Ask for more.")
        return self._cut(min(most_points, MOST_POINTS))

    def halves(self) -> tuple[Window, Window]:
        """The first half of its stamps and the rest; needs two points."""
        first, second = self._cut((self.points + 1) // 2)
        return first, second

    def _cut(self, most_points: int) -> Iterator[Window]:
        first = self.start
        while first <= self.end:
            last = min(self.end, first + (most_points - 1) * self.step)
            yield Window(first, last, self.step)
            first = last + self.step
