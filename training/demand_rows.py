"""Rows for the demand model: what was known at a moment, and, once it has come to pass, what happened next."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from advisor.errors import Refused
from advisor.features.demand import DemandSeries
from advisor.features.demand_table import extra_state_of, feature_rows
from advisor.forecast.demand import DEFAULT_HORIZONS, LEAST_HISTORY_DAYS

__all__ = ["DemandFitSettings", "PoolRows", "rows_of"]

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

_MOST_ROWS_HELD = 800_000


@dataclass(frozen=True, slots=True, kw_only=True)
class DemandFitSettings:
    """How the demand model is fitted and judged.

    ``row_minutes`` is the distance of rows, ``most_rows`` the most that all boosters of one horizon are
    fitted on together, ``threads`` how many boosters are fitted at a time. The model is judged for
    ``replay_days`` before it is fitted for good, with a refit every ``refit_days``; transforms of the last
    ``calibration_days`` correct its levels.
    """

    horizons_minutes: tuple[int, ...] = DEFAULT_HORIZONS
    row_minutes: int = 5
    most_rows: int = 40_000
    rounds: int = 100
    replay_days: float = 14.0
    refit_days: float = 7.0
    calibration_days: float = 7.0
    least_history_days: float = LEAST_HISTORY_DAYS
    rises: bool = True
    seed: int = 1
    threads: int = 2


@dataclass(frozen=True, eq=False)
class PoolRows:
    """One pool's rows: ``at`` are samples of ``series`` whose demand is known, ``features`` what was known then."""

    series: DemandSeries
    at: Indices
    unix: NDArray[np.int64]
    features: Floats

    @property
    def pool(self) -> str:
        """The pool's name."""
        return self.series.pool

    def changes(self, horizon_minutes: int) -> Floats:
        """Change of demand over the horizon in nodes for each row; NaN where its end was not seen."""
        later = self.at + self.series.steps(horizon_minutes)
        inside = later < len(self.series)
        ended = self.series.demand[np.where(inside, later, 0)]
        moved: Floats = np.where(inside, ended - self.series.demand[self.at], np.nan) / self.series.node_gpus
        return moved

    def known_days(self, until_unix: float) -> float:
        """Days of samples that were really seen up to a moment."""
        seen = ~np.isnan(self.series.demand) & (self.series.unix <= until_unix)
        return float(seen.sum() * self.series.step_minutes / 1440.0)


def rows_of(pools: Sequence[DemandSeries], row_minutes: int) -> tuple[list[PoolRows], tuple[str, ...]]:
    """Rows of every pool, and the further state columns that they have beside the declared ones.

    Raises:
        Refused: no series at all, two of one pool, or series sampled at different steps.
    """
    _check(pools)
    extra = tuple(sorted({name for series in pools for name in extra_state_of(series)}))
    every = max(1, row_minutes // pools[0].step_minutes)
    # Many pools over a long time would not fit into memory: keep fewer moments of each.
    every *= max(1, -(-sum(len(series) for series in pools) // (every * _MOST_ROWS_HELD)))
    return [_rows(series, every, extra) for series in pools], extra


def _rows(series: DemandSeries, every: int, extra: tuple[str, ...]) -> PoolRows:
    at = np.arange(0, len(series), every)
    at = at[~np.isnan(series.demand[at])]
    return PoolRows(series, at, series.unix[at], feature_rows(series, at, extra))


def _check(pools: Sequence[DemandSeries]) -> None:
    if not pools:
        raise Refused("series", 0, "there is nothing to learn from", "Ingest a history with at least one pool.")
    names = [series.pool for series in pools]
    twice = {name for name in names if names.count(name) > 1}
    if twice:
        raise Refused("pool", min(twice), "every series needs a pool of its own", "Rename one of them.")
    steps = {series.step_minutes for series in pools}
    if len(steps) > 1:
        raise Refused("step_minutes", sorted(steps), "all series need one step", "Sample them at the same minutes.")
