"""Chances of a rise as they would have been foreseen over a span: refitted on the way, nothing learnt early."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from advisor.features.demand import DemandSeries
from advisor.features.demand_table import feature_rows
from advisor.forecast.demand_rise import (
    RISE_LEVELS,
    RISE_PARTS,
    RiseModel,
    demand_rises_within,
    rise_horizons,
    rise_shares,
)
from training.demand_groups import in_groups
from training.demand_rows import DemandFitSettings, PoolRows, rows_of
from training.rise_boosters import fit_rises

__all__ = ["RiseForecasts", "foreseen", "rolling_rises", "seen_shares"]

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

Step = Callable[[], None]
"""Called after every refit."""

_DAY = 86_400


@dataclass(frozen=True, eq=False)
class RiseForecasts:
    """For the samples ``first`` up to but without ``stop`` of every pool, chances (samples, horizons, parts).

    All pools are sampled at the same moments.
    """

    first: int
    stop: int
    horizons_minutes: tuple[int, ...]
    by_pool: dict[str, NDArray[np.float32]]
    refits: int


def rolling_rises(
    series: Sequence[DemandSeries],
    span: tuple[int, int],
    refit_days: float,
    settings: DemandFitSettings,
    step: Step | None = None,
) -> RiseForecasts:
    """What a model that is refitted every ``refit_days`` foresaw at each sample of ``span``.

    Pools are fitted together. Where nothing can be fitted, as often as each rise has been seen stands in.
    """
    first, stop = span
    rows, extra = rows_of(series, settings.row_minutes)
    horizons = rise_horizons(series[0].step_minutes)
    at = np.arange(first, stop)
    features = {one.pool: feature_rows(one, at, extra) for one in series}
    every = max(1, round(refit_days * 1440 / series[0].step_minutes))
    found: dict[str, list[NDArray[np.float32]]] = {one.pool: [] for one in series}
    cuts = list(range(first, stop, every))
    for cut in cuts:
        until = float(series[0].unix[cut])
        model = _fitted(rows, horizons, until, settings)
        here = slice(cut - first, min(cut + every, stop) - first)
        for one in series:
            usual = seen_shares(one, cut, horizons)
            found[one.pool].append(foreseen(model, features[one.pool][here], horizons, usual))
        if step is not None:
            step()
    by_pool = {name: np.concatenate(parts) for name, parts in found.items()}
    return RiseForecasts(first, stop, horizons, by_pool, len(cuts))


def _fitted(
    rows: Sequence[PoolRows], horizons: tuple[int, ...], until_unix: float, settings: DemandFitSettings
) -> RiseModel | None:
    groups = {one.pool: "all" for one in rows if one.known_days(until_unix) >= settings.least_history_days}
    by = in_groups(rows, groups, horizons, settings, partial(fit_rises, until_unix=until_unix)).get("all", {})
    if len(by) < len(horizons):
        return None
    return RiseModel({h: b for h, (b, _) in by.items()}, {h: w for h, (_, w) in by.items()})


def seen_shares(series: DemandSeries, cut: int, horizons: tuple[int, ...]) -> Floats:
    """How often each rise was seen before ``cut``: (horizons, parts)."""
    table = np.zeros((len(horizons), (RISE_LEVELS + 1) * RISE_PARTS))
    past = series.between(0, cut)
    for place, horizon in enumerate(horizons):
        rises = demand_rises_within(past, np.arange(cut), horizon)
        table[place] = rise_shares(rises[~np.isnan(rises)]) if not np.isnan(rises).all() else 0.0
    return table


def foreseen(model: RiseModel | None, rows: Floats, horizons: tuple[int, ...], usual: Floats) -> NDArray[np.float32]:
    """Chances (rows, horizons, parts) of a model where it can read the features, else those ``usual``."""
    table = np.repeat(usual[None].astype(np.float32), len(rows), axis=0)
    if model is not None:
        readable = model.can_read(rows)
        table[readable] = model.exceedance(rows[readable], horizons).astype(np.float32)
    return table
