"""Warm capacity in a replay: the rise of need that was exceeded only so often over the last day is kept ready."""

from __future__ import annotations

from bisect import bisect_left, insort
from collections import deque

from advisor.domain.units import SECONDS_PER_DAY

__all__ = ["WARM_EVERY_SECONDS", "Warmth"]

WARM_EVERY_SECONDS = 120.0
"""Seconds between two records of need."""

_WITHIN_SECONDS = 600.0


class Warmth:
    """GPUs to have ready: the ``level`` quantile, over 24 h, of the rise of need in ten minutes, at most ``most``."""

    def __init__(self, level: float, most: float = 64.0) -> None:
        self._level = level
        self._steps = round(_WITHIN_SECONDS / WARM_EVERY_SECONDS)
        self._kept = round(SECONDS_PER_DAY / WARM_EVERY_SECONDS)
        self._most = most
        self._recent: deque[float] = deque(maxlen=self._steps + 1)
        self._rises: deque[float] = deque()
        self._sorted: list[float] = []
        self.target = 0.0

    def record(self, need: float) -> None:
        """Need (GPUs running and waited for) at one more step; a rise is known once its ten minutes are over."""
        self._recent.append(need)
        if len(self._recent) <= self._steps:
            return
        rise = max(self._recent) - self._recent[0]
        self._rises.append(rise)
        insort(self._sorted, rise)
        if len(self._rises) > self._kept:
            del self._sorted[bisect_left(self._sorted, self._rises.popleft())]
        at = min(int(self._level * len(self._sorted)), len(self._sorted) - 1)
        self.target = min(self._sorted[at], self._most)
