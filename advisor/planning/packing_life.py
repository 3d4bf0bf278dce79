"""How long a newcomer would keep a node up alone: the time term of packing where nodes come and go.

E = integral of S_new(t) x product over the node's tasks of [1 - S_i(age_i + t) / S_i(age_i)] dt: as in
:mod:`advisor.planning.placement`, for many tasks whose predictions are log-normal.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from advisor.domain.units import SECONDS_PER_HOUR

__all__ = ["NodeLives"]

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]

_EDGES = np.concatenate([[0.0], 30.0 * 2.0 ** np.arange(14)])
_MIDDLES: Floats = (_EDGES[1:] + _EDGES[:-1]) / 2.0
_WIDTHS: Floats = np.diff(_EDGES)
_SURELY_OVER = 1e-4
_YOUNGEST_SECONDS = 1.0


@dataclass(slots=True)
class _Task:
    started: float
    log_median: float


class NodeLives:
    """The tasks of each node with their predictions: log-normal, ``sd`` of the natural log, or exact where it is 0.

    ``empty`` (nodes,) says where nothing runs.
    """

    def __init__(self, nodes: int, sd: float) -> None:
        self._tasks: list[dict[int, _Task]] = [{} for _ in range(nodes)]
        self._sd = sd
        self.empty = np.ones(nodes, dtype=bool)

    def add(self, row: int, task: int, started: float, predicted_seconds: float) -> None:
        """A task on a node, from ``started`` (seconds) on."""
        self.empty[row] = False
        self._tasks[row][task] = _Task(started, float(np.log(max(predicted_seconds, _YOUNGEST_SECONDS))))

    def remove(self, row: int, task: int) -> None:
        """A task that has ended."""
        del self._tasks[row][task]
        self.empty[row] = not self._tasks[row]

    def is_empty(self, row: int) -> bool:
        """Whether nothing runs on a node."""
        return bool(self.empty[row])

    def extension_hours(self, rows: Rows, now: float, predicted_seconds: float) -> Floats:
        """Hours that a newcomer is expected to keep each of ``rows`` up alone, (rows,)."""
        if self._sd <= 0:
            return self._exact_hours(rows, now, predicted_seconds)
        alone = np.ones((rows.size, _MIDDLES.size))
        counts = np.array([len(self._tasks[row]) for row in rows])
        busy = np.flatnonzero(counts)
        if busy.size:
            tasks = [task for row in rows[busy] for task in self._tasks[row].values()]
            ages = np.array([max(now - task.started, 0.0) for task in tasks])
            over = 1.0 - self._lasting(ages, np.array([task.log_median for task in tasks]))
            first = np.concatenate([[0], np.cumsum(counts[busy])[:-1]])
            alone[busy] = np.multiply.reduceat(over, first, axis=0)
        mu = np.array([np.log(max(predicted_seconds, _YOUNGEST_SECONDS))])
        hours: Floats = alone @ (self._lasting(np.zeros(1), mu)[0] * _WIDTHS) / SECONDS_PER_HOUR
        return hours

    def _lasting(self, ages: Floats, log_medians: Floats) -> Floats:
        """The chance of lasting until each cell's middle from now, given the ages, (tasks, cells).

        A task that has outlasted all that was thought possible is given even odds of as long again.
        """
        ahead = ages[:, None] + _MIDDLES
        survival = ndtr((log_medians[:, None] - np.log(ahead)) / self._sd)
        so_far = ndtr((log_medians - np.log(np.maximum(ages, _YOUNGEST_SECONDS))) / self._sd)
        so_far = np.where(ages > 0, so_far, 1.0)
        known = so_far[:, None] > _SURELY_OVER
        given: Floats = np.where(known, survival / np.where(known, so_far[:, None], 1.0), ages[:, None] / ahead)
        return np.minimum(given, 1.0)

    def _exact_hours(self, rows: Rows, now: float, predicted_seconds: float) -> Floats:
        last = np.array(
            [max((t.started + np.exp(t.log_median) for t in self._tasks[row].values()), default=now) for row in rows]
        )
        hours: Floats = np.maximum(0.0, now + predicted_seconds - np.maximum(last, now)) / SECONDS_PER_HOUR
        return hours
