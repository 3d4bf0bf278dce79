"""Series of samples as a Prometheus server answers them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Series", "joined"]


class Series(NamedTuple):
    """One labelled series: ``times`` (Unix seconds, ascending, none twice) and the ``values`` then, both (n,).

    ``labels`` hold the metric's name as ``__name__`` where the query kept it. A sample that was none (stale,
    absent) is not in it; NaN and infinities that were stored are.
    """

    labels: Mapping[str, str]
    times: NDArray[np.float64]
    values: NDArray[np.float64]


def joined(earlier: Iterable[Series], later: Iterable[Series]) -> list[Series]:
    """Each series once, of samples that follow one another: those of ``earlier``, then those of ``later``."""
    found = {frozenset(series.labels.items()): series for series in earlier}
    for series in later:
        key = frozenset(series.labels.items())
        before = found.get(key)
        found[key] = series if before is None else _after(before, series)
    return list(found.values())


def _after(before: Series, series: Series) -> Series:
    times = np.concatenate([before.times, series.times])
    return Series(before.labels, times, np.concatenate([before.values, series.values]))
