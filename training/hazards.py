"""Fits the hazard model: which share of the jobs that got this far ends within the next bin."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import lightgbm
import numpy as np
from numpy.typing import NDArray

from advisor.domain.units import SECONDS_PER_DAY
from advisor.errors import Refused
from advisor.forecast.grid import LogGrid
from advisor.forecast.hazard import HazardBins, HazardModel, HazardRows, hazard_columns
from training.duration_table import DurationTable

__all__ = ["HazardSettings", "fit_hazard", "hazard_bins"]

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

_BATCH = 2000


@dataclass(frozen=True, slots=True, kw_only=True)
class HazardSettings:
    """How the hazard is fitted: on the ``newest_jobs``, a job's weight falling to 1/e in ``decay_days``.

    ``quantiles`` of the known durations are the edges of its bins, none narrower than a factor ``narrowest``
    or wider than ``widest``, from ``first_seconds`` on.
    """

    newest_jobs: int = 20_000
    decay_days: float = 21.0
    rounds: int = 120
    learning_rate: float = 0.05
    leaves: int = 31
    least_in_leaf: int = 300
    columns: float = 0.35
    bagging: float = 0.7
    l2: float = 5.0
    bins: int = 127
    quantiles: int = 16
    first_seconds: float = 5.0
    narrowest: float = 1.15
    widest: float = 2.2


def hazard_bins(log_seconds: Floats, grid: LogGrid, settings: HazardSettings) -> HazardBins:
    """Bins whose edges are quantiles of ``log_seconds``, wide gaps split evenly, all on edges of ``grid``."""
    first, narrowest, widest = np.log([settings.first_seconds, settings.narrowest, settings.widest])
    edges = [first]
    for quantile in np.quantile(log_seconds, np.linspace(0.0, 1.0, settings.quantiles + 2)[1:-1]):
        if quantile - edges[-1] >= narrowest:
            edges.append(float(quantile))
    edges.append(grid.cells * grid.step)
    cuts = {0, grid.cells}
    for low, high in pairwise(edges):
        parts = max(int(np.ceil((high - low) / widest)), 1)
        cuts |= {round(edge / grid.step) for edge in np.linspace(low, high, parts + 1)}
    return HazardBins(grid, tuple(sorted(cut for cut in cuts if 0 <= cut <= grid.cells)))


def fit_hazard(
    table: DurationTable, now: float, grid: LogGrid, settings: HazardSettings, seed: int, threads: int
) -> HazardModel:
    """The hazard as known at ``now`` (Unix seconds); some jobs must have ended by then.

    A job that ended gives one row for each bin up to its last, a running one for each bin it survived whole.

    Raises:
        Refused: settings that LightGBM does not take.
    """
    seconds, ended, ran = table.known_at(now)
    usable = table.kept(np.flatnonzero(ran))
    usable = usable[np.argsort(table.submit[usable], kind="stable")][-settings.newest_jobs :]
    logs = np.log(seconds[usable])
    bins = hazard_bins(np.log(seconds[ended & ran]), grid, settings)
    last = bins.of_cell[grid.cells_of(np.maximum(logs, 0.0))]
    weights = np.exp((table.submit[usable] - table.submit[usable[-1]]) / (settings.decay_days * SECONDS_PER_DAY))
    places = np.arange(len(bins))
    # Of a running job's present bin nothing is known yet.
    lived = places < last[:, np.newaxis] + ended[usable][:, np.newaxis]
    died = (places == last[:, np.newaxis]) & ended[usable][:, np.newaxis]
    parts = _Parts(hazard_columns(table.names), tuple(_rows(table, usable, bins, lived)))
    booster = _boosted(parts, died[lived], np.repeat(weights, lived.sum(axis=1)), settings, (seed, threads))
    return HazardModel(booster.model_to_string(), bins)


class _Parts(NamedTuple):
    """All that is shown, part by part, and what its columns are called."""

    columns: tuple[str, ...]
    rows: tuple[HazardRows, ...]


def _boosted(
    parts: _Parts, died: Bools, weights: Floats, settings: HazardSettings, seed_threads: tuple[int, int]
) -> lightgbm.Booster:
    try:
        data = lightgbm.Dataset(
            np.concatenate([part.rows for part in parts.rows]),
            died,
            weight=weights,
            init_score=np.concatenate([part.start for part in parts.rows]),
            feature_name=list(parts.columns),
            params={"max_bin": settings.bins, "verbosity": -1},
            free_raw_data=True,
        )
        return lightgbm.train(dict(_parameters(settings, *seed_threads)), data, num_boost_round=settings.rounds)
    except lightgbm.basic.LightGBMError as error:
        limit = f"LightGBM refuses them ({error})"
        raise Refused("hazard settings", asdict(settings), limit, "Correct them.") from error


def _rows(table: DurationTable, usable: NDArray[np.intp], bins: HazardBins, lived: Bools) -> Iterator[HazardRows]:
    for first in range(0, usable.size, _BATCH):
        chosen, kept = usable[first : first + _BATCH], lived[first : first + _BATCH]
        shown = bins.rows(*table.asked(chosen))
        yield HazardRows(shown.rows[kept], shown.start[kept])


def _parameters(settings: HazardSettings, seed: int, threads: int) -> Mapping[str, Any]:
    return {
        "objective": "binary",
        "learning_rate": settings.learning_rate,
        "num_leaves": settings.leaves,
        "min_data_in_leaf": settings.least_in_leaf,
        "feature_fraction": settings.columns,
        "bagging_fraction": settings.bagging,
        "bagging_freq": 1,
        "lambda_l2": settings.l2,
        "max_bin": settings.bins,
        "boost_from_average": False,
        "deterministic": True,
        "force_row_wise": True,
        "num_threads": threads,
        "seed": seed,
        "verbosity": -1,
    }
