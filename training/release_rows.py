"""What was known at each sample of a pool of the GPUs that its running jobs would give back, and what they did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from advisor.domain.forecasts import DurationDistribution
from advisor.domain.jobs import Job, Outcome
from advisor.domain.units import SECONDS_PER_MINUTE
from advisor.features.demand import DemandSeries

__all__ = ["ReleaseRows", "release_rows"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class ReleaseRows:
    """GPUs that the jobs running at each sample release within one horizon.

    ``expected`` and ``spread`` are mean and standard deviation of the sum of independent ends, given each job's age;
    ``unforeseen`` are GPUs of jobs of which nothing had been predicted; ``true`` is what came.
    """

    expected: Floats
    spread: Floats
    unforeseen: Floats
    true: Floats

    def foreseen(self, at: NDArray[np.int64], node_gpus: int) -> Floats:
        """The columns :data:`RELEASE_COLUMNS` that predicted durations give a model, in nodes: (len(at), 3)."""
        return np.column_stack([self.expected, self.spread, self.unforeseen])[at] / node_gpus

    def known(self, at: NDArray[np.int64], node_gpus: int) -> Floats:
        """The column that only perfect foresight of ends could give, in nodes: (len(at), 1)."""
        return self.true[at, None] / node_gpus


def release_rows(
    jobs: Sequence[Job], laws: Mapping[int, DurationDistribution], series: DemandSeries, horizons: Sequence[int]
) -> dict[int, ReleaseRows]:
    """Releases within each of ``horizons`` (minutes) from every sample of ``series``, which is made of ``jobs``.

    ``laws`` are the durations as predicted at submission, by place in ``jobs``. A job counts from its start until it
    is gone, as it does in the series.
    """
    size = len(series)
    moments = series.unix.astype(np.float64)
    unforeseen = np.zeros(size)
    sums = {h: np.zeros((3, size)) for h in horizons}
    for place, job in enumerate(jobs):
        if job.start is None:
            continue
        start = job.start.timestamp()
        left = job.last_seen if job.outcome is Outcome.CENSORED else job.end
        gone = np.inf if left is None else left.timestamp()
        first, stop = (int(np.searchsorted(moments, moment)) for moment in (start, gone))
        if first >= stop:
            continue
        here = slice(first, stop)
        law = laws.get(place)
        if law is None:
            unforeseen[here] += job.gpus
        for horizon, rows in sums.items():
            within = horizon * SECONDS_PER_MINUTE
            rows[2, here] += job.gpus * (gone <= moments[here] + within)
            if law is not None:
                chances = law.ends_within(moments[here] - start, within)
                rows[0, here] += job.gpus * chances
                rows[1, here] += job.gpus**2 * chances * (1.0 - chances)
    return {
        h: ReleaseRows(expected, np.sqrt(np.maximum(spread, 0.0)), unforeseen, true)
        for h, (expected, spread, true) in sums.items()
    }
