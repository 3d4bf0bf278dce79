"""What a policy knows of durations: asked by row of a job and useful age, answered from what was made beforehand.

The answer to a row holds what was known when that job was submitted and nothing else; ages are what the
policy sees happen. One per cent of every distribution is kept for what no history has shown, evenly over ln
seconds, and where fewer than 1 in 10,000 would have survived so long, the median of what remains is the age.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from advisor.domain.forecasts import DurationDistribution
from advisor.errors import Defect

__all__ = ["Ages", "Distributions", "Foresight", "Truth"]

Floats = NDArray[np.float64]
Places = NDArray[np.intp]

_STEP = 0.12
_EDGES = 140
_UNFORESEEN = 0.01
_UNFORESEEN_UNTIL = 15.6
_SURVIVORS_KNOWN = 1e-4


class Foresight(Protocol):
    """What is known of every job of a workload, by its place."""

    def remaining(self, place: int, age: float, level: float = 0.5) -> float:
        """The ``level`` quantile of the seconds that remain of a job with ``age`` useful seconds behind it."""
        ...

    def remaining_of(self, places: Places, ages: Floats, level: float = 0.5) -> Floats:
        """The same of many jobs."""
        ...

    def ended_by(self, places: Places, ages: Floats, seconds: Floats) -> Floats:
        """P(ended within so many more seconds), [job, moment]."""
        ...


class Distributions:
    """Distributions on one grid of ln seconds, a row each."""

    def __init__(self, laws: Sequence[DurationDistribution]) -> None:
        if not laws:
            raise Defect("foresight needs at least one distribution")
        grid = np.arange(_EDGES) * _STEP
        unforeseen = np.clip(grid / _UNFORESEEN_UNTIL, 0.0, 1.0)
        # Many jobs are answered by one and the same distribution.
        known: dict[int, Floats] = {}
        rows = np.empty((len(laws), _EDGES))
        for place, law in enumerate(laws):
            row = known.get(id(law))
            if row is None:
                own = np.interp(grid, law.log_edges, law.cdf)
                row = known[id(law)] = (1.0 - _UNFORESEEN) * own + _UNFORESEEN * unforeseen
                row[-1] = 1.0
            rows[place] = row
        self._rows = rows

    def remaining(self, place: int, age: float, level: float = 0.5) -> float:
        """See :class:`Foresight`."""
        row = self._rows[place]
        gone = 0.0
        if age > 1.0:
            at = min(math.log(age) / _STEP, _EDGES - 1.000001)
            below = int(at)
            gone = float(row[below] + (at - below) * (row[below + 1] - row[below]))
        if 1.0 - gone < _SURVIVORS_KNOWN:
            return age
        wanted = gone + level * (1.0 - gone)
        at = int(row.searchsorted(wanted))
        if at == 0:
            return 1.0
        low, high = float(row[at - 1]), float(row[at])
        total = math.exp(_STEP * (at - 1 + (wanted - low) / (high - low)))
        return max(total - age, 1.0)

    def remaining_of(self, places: Places, ages: Floats, level: float = 0.5) -> Floats:
        """See :class:`Foresight`."""
        rows = self._rows[places]
        gone = self._at(places, ages)
        wanted = gone + level * (1.0 - gone)
        at = np.clip((rows < wanted[:, None]).sum(axis=1), 1, _EDGES - 1)
        every = np.arange(len(places))
        low, high = rows[every, at - 1], rows[every, at]
        share = np.clip((wanted - low) / np.maximum(high - low, 1e-300), 0.0, 1.0)
        total = np.exp(_STEP * (at - 1 + share))
        found: Floats = np.where(1.0 - gone < _SURVIVORS_KNOWN, ages, np.maximum(total - ages, 1.0))
        return found

    def ended_by(self, places: Places, ages: Floats, seconds: Floats) -> Floats:
        """See :class:`Foresight`."""
        gone = self._at(places, ages)[:, None]
        by_then = self._at(places[:, None], ages[:, None] + seconds)
        left = 1.0 - gone
        known: Floats = np.clip((by_then - gone) / np.maximum(left, _SURVIVORS_KNOWN), 0.0, 1.0)
        # Beyond all that is known, an even chance to end within as long as it has run.
        return np.where(left < _SURVIVORS_KNOWN, seconds / (seconds + np.maximum(ages[:, None], 1.0)), known)

    def _at(self, places: Places, seconds: Floats) -> Floats:
        at = np.minimum(np.log(np.maximum(seconds, 1.0)) / _STEP, _EDGES - 1.000001)
        below = at.astype(np.intp)
        low = self._rows[places, below]
        found: Floats = low + (at - below) * (self._rows[places, below + 1] - low)
        return found


class Truth:
    """The durations as they are: what a clairvoyant knows."""

    def __init__(self, seconds: Sequence[float]) -> None:
        self._seconds = np.asarray(seconds, dtype=np.float64)

    def remaining(self, place: int, age: float, level: float = 0.5) -> float:
        """See :class:`Foresight`; the same at every level."""
        del level
        return max(float(self._seconds[place]) - age, 1.0)

    def remaining_of(self, places: Places, ages: Floats, level: float = 0.5) -> Floats:
        """See :class:`Foresight`."""
        del level
        return np.maximum(self._seconds[places] - ages, 1.0)

    def ended_by(self, places: Places, ages: Floats, seconds: Floats) -> Floats:
        """See :class:`Foresight`: 0 before the end, 1 from there on."""
        left = (self._seconds[places] - ages)[:, None]
        return (left <= seconds).astype(np.float64)


class Ages:
    """No prediction at all: what has run for so long goes on for as long again, at even odds."""

    def remaining(self, place: int, age: float, level: float = 0.5) -> float:
        """See :class:`Foresight`."""
        del place
        return max(age, 1.0) * level / (1.0 - level)

    def remaining_of(self, places: Places, ages: Floats, level: float = 0.5) -> Floats:
        """See :class:`Foresight`."""
        del places
        found: Floats = np.maximum(ages, 1.0) * level / (1.0 - level)
        return found

    def ended_by(self, places: Places, ages: Floats, seconds: Floats) -> Floats:
        """See :class:`Foresight`."""
        del places
        found: Floats = seconds / (seconds + np.maximum(ages[:, None], 1.0))
        return found
