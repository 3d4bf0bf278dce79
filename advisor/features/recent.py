"""Small windows over the latest values, kept sorted as they move: cheaper than sorting at every question."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Sequence
from typing import TypeVar

__all__ = ["RecentTimes", "RecentValues", "kept", "median_of", "quantile_of"]

T = TypeVar("T")


def kept(values: list[T], value: T, size: int) -> None:
    """Take ``value`` in at the end of ``values`` and let the oldest go once there are more than ``size``."""
    values.append(value)
    if len(values) > size:
        del values[0]


def quantile_of(ordered: Sequence[float], level: float) -> float:
    """The ``level`` quantile of a sorted, non-empty sequence, linear between its values.

    >>> quantile_of([1.0, 2.0, 4.0], 0.75)
    3.0
    """
    position = level * (len(ordered) - 1)
    below = int(position)
    share = position - below
    if share == 0.0:
        return ordered[below]
    return ordered[below] + (ordered[below + 1] - ordered[below]) * share


def median_of(ordered: Sequence[float]) -> float:
    """The middle of a sorted, non-empty sequence; of an even number, the mean of the two in the middle."""
    size = len(ordered)
    half = size >> 1
    return ordered[half] if size & 1 else (ordered[half - 1] + ordered[half]) / 2.0


class RecentValues:
    """The latest ``size`` numbers, in order of arrival and sorted."""

    __slots__ = ("arrived", "ordered", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        # Lists, not deques: an empty deque takes ten times the memory, and there are many keys.
        self.arrived: list[float] = []
        self.ordered: list[float] = []

    def __len__(self) -> int:
        """How many there are, at most ``size``."""
        return len(self.ordered)

    def add(self, value: float) -> None:
        """Take ``value`` in and let the oldest go once there are more than ``size``."""
        self.arrived.append(value)
        insort(self.ordered, value)
        if len(self.ordered) > self.size:
            oldest = self.arrived.pop(0)
            del self.ordered[bisect_left(self.ordered, oldest)]

    def latest(self, count: int) -> list[float]:
        """The last ``count`` values, sorted."""
        if count >= len(self.ordered):
            return self.ordered
        values = self.arrived
        return sorted(values[-place] for place in range(1, count + 1))


class RecentTimes:
    """Moments (Unix seconds) of the last ``memory_seconds``, sorted, to count those within a window."""

    __slots__ = ("memory_seconds", "times")

    _SPARE = 64

    def __init__(self, memory_seconds: float) -> None:
        self.memory_seconds = memory_seconds
        self.times: list[float] = []

    def add(self, moment: float) -> None:
        """Take ``moment`` in, wherever it belongs; forget what no window can reach any more."""
        times = self.times
        if not times or moment >= times[-1]:
            times.append(moment)
        else:
            insort(times, moment)
        if len(times) > self._SPARE and times[self._SPARE] < times[-1] - self.memory_seconds:
            del times[: bisect_left(times, times[-1] - self.memory_seconds)]

    def since(self, moment: float) -> int:
        """How many lie at or after ``moment``; right for moments within the memory only."""
        return len(self.times) - bisect_left(self.times, moment)
