"""Series of samples as a Prometheus server answers them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Series"]


class Series(NamedTuple):
    """One labelled series: ``times`` (Unix seconds, ascending, none twice) and the ``values`` then, both (n,).

    ``labels`` hold the metric's name as ``__name__`` where the query kept it. A sample that was none (stale,
    absent) is not in it; NaN and infinities that were stored are.
    """

    labels: Mapping[str, str]
    times: NDArray[np.float64]
    values: NDArray[np.float64]
