"""The latest submissions around a job, each at its duration or at its present age: what hazards are counted from.

One row per question, newest first: 20 of the same owner, GPU count and name, 20 of the same owner and GPU count,
20 of the same owner, 100 of all.
A submission is one number: ln seconds x (at least 0) where it has ended, -1 - x where it was still running
or lost sight of at that age, NaN where it has not begun or there is none.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from advisor.features.key_history import Run

__all__ = ["LATEST", "LATEST_OF_ALL", "LATEST_OF_KEY", "ended_and_logs", "latest_of"]

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]
Bools = NDArray[np.bool_]

LATEST_OF_KEY = 20
LATEST_OF_ALL = 100
LATEST = 3 * LATEST_OF_KEY + LATEST_OF_ALL
"""How many numbers a row has: name, owner and GPU count, owner, all."""


def latest_of(runs: Iterable[Run], count: int, now: float) -> list[float]:
    """The last ``count`` of ``runs`` (given oldest first) as of ``now`` (Unix s), newest first, NaN where none."""
    found = []
    log, nan = math.log, math.nan
    for run in runs:
        if run.gone:
            known = run.log_seconds
            # A job gone without having run says nothing; NaN stays NaN.
            shown = max(known, 0.0)
            found.append(-1.0 - shown if run.censored else shown)
        else:
            age = now - run.start
            # A comparison with NaN, a job that waits, is false.
            found.append(-1.0 - log(age) if age > 1.0 else -1.0 if age >= 0.0 else nan)
    found.reverse()
    return found[:count] + [nan] * (count - len(found))


def ended_and_logs(latest: Singles) -> tuple[Bools, Bools, Floats]:
    """Which numbers are ends, which are ages only, and the ln seconds of both (0 where there is nothing)."""
    ended, alive = latest >= 0.0, latest < 0.0
    return ended, alive, np.where(ended, latest, np.where(alive, -1.0 - latest, 0.0))
