"""Fit the boosted classes of a change, and of a rise, on rows whose outcome was known in time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import lightgbm as lgb
import numpy as np
from numpy.typing import NDArray

from advisor.forecast.demand_booster import ClassBooster
from advisor.forecast.demand_law import SMALLEST_CHANGE, ChangeClasses
from advisor.forecast.demand_model import ChangeModel
from advisor.forecast.demand_rise import RISE_LEVELS, rises_within
from training.demand_rows import DemandFitSettings, PoolRows

__all__ = ["fit_change", "fit_rises"]

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Indices = NDArray[np.int64]

_FEWEST_ROWS = 200
_FEWEST_RISES = 30
_LEAF_SHARE, _FEWEST_IN_LEAF, _USUAL_IN_LEAF = 0.06, 10, 800


def fit_change(
    pools: Sequence[PoolRows], horizon_minutes: int, settings: DemandFitSettings, until_unix: float
) -> ChangeModel | None:
    """The law of the change of demand over a horizon, from outcomes that had come to pass by ``until_unix``.

    None where there are too few of them, or where demand never changed.
    """
    outcomes = [rows.changes(horizon_minutes) for rows in pools]
    usable = _usable(pools, outcomes, horizon_minutes, until_unix)
    changes = np.concatenate([y[u] for y, u in zip(outcomes, usable, strict=True)])
    if changes.size < _FEWEST_ROWS:
        return None
    classes = ChangeClasses.from_changes(changes)
    if len(classes) < 2:
        return None
    kept, weights = _thinned(np.abs(changes) >= SMALLEST_CHANGE, settings.most_rows)
    features = _features(pools, usable, kept)
    labels = classes.classify(changes[kept])
    return ChangeModel(classes, _boosted((features, labels, weights), len(classes), settings))


def fit_rises(
    pools: Sequence[PoolRows], horizon_minutes: int, settings: DemandFitSettings, until_unix: float
) -> tuple[ClassBooster, tuple[float, ...]] | None:
    """Classes of the largest rise of need within a horizon, from outcomes known by ``until_unix``.

    The last class holds every rise from its number on; the second part tells how those were spread over
    the levels above. None where there are too few rows or rises.
    """
    outcomes = [rises_within(rows.series, rows.at, horizon_minutes) for rows in pools]
    usable = _usable(pools, outcomes, horizon_minutes, until_unix)
    rises = np.concatenate([y[u] for y, u in zip(outcomes, usable, strict=True)])
    reached = np.array([(rises >= level).sum() for level in range(1, RISE_LEVELS + 1)])
    last = int((reached >= _FEWEST_RISES).sum())
    if rises.size < _FEWEST_ROWS or last == 0:
        return None
    kept, weights = _thinned(rises > 0, settings.most_rows)
    labels = np.minimum(rises[kept], last).astype(np.int64)
    booster = _boosted((_features(pools, usable, kept), labels, weights), last + 1, settings)
    return booster, tuple(float(r) / float(reached[last - 1]) for r in reached[last:])


def _usable(
    pools: Sequence[PoolRows], outcomes: Sequence[Floats], horizon_minutes: int, until_unix: float
) -> list[Indices]:
    """Rows of each pool whose outcome had come to pass and was seen."""
    return [
        np.flatnonzero(~np.isnan(y) & (rows.unix + horizon_minutes * 60 <= until_unix))
        for rows, y in zip(pools, outcomes, strict=True)
    ]


def _thinned(eventful: Bools, most: int) -> tuple[Indices, Floats]:
    """At most about ``most`` rows, and the weights with which they stand for all.

    Most rows are moments after which nothing changed; those are thinned first, as they differ least.
    """
    events, quiet = np.flatnonzero(eventful), np.flatnonzero(~eventful)
    if eventful.size <= most:
        return np.arange(eventful.size), np.ones(eventful.size)
    every_event = max(1, -(-2 * events.size // most))
    events = events[::every_event]
    every_quiet = max(1, -(-quiet.size // max(1, most - events.size)))
    quiet = quiet[::every_quiet]
    kept = np.concatenate([events, quiet])
    weights = np.concatenate([np.full(events.size, every_event), np.full(quiet.size, every_quiet)])
    order = np.argsort(kept)
    return kept[order], weights[order].astype(np.float64)


def _features(pools: Sequence[PoolRows], usable: Sequence[Indices], kept: Indices) -> Floats:
    """Rows of features of the ``kept`` among all usable rows of all pools, without a copy of the others."""
    ends = np.cumsum([len(u) for u in usable])
    parts = np.split(kept, np.searchsorted(kept, ends[:-1]))
    starts = np.concatenate([[0], ends[:-1]])
    return np.concatenate(
        [rows.features[u[k - start]] for rows, u, k, start in zip(pools, usable, parts, starts, strict=True)]
    )


def _boosted(rows: tuple[Floats, NDArray[np.int64], Floats], count: int, settings: DemandFitSettings) -> ClassBooster:
    features, labels, weights = rows
    data = lgb.Dataset(features, labels, weight=weights, free_raw_data=True)
    booster = lgb.train(_parameters(len(labels), count, settings), data, settings.rounds)
    gaps: Bools = np.any(np.isnan(features), axis=0)
    return ClassBooster(booster.model_to_string(), count, gaps)


def _parameters(rows: int, count: int, settings: DemandFitSettings) -> dict[str, Any]:
    """Small, slow, heavily damped trees: changes are rare, and most of what could be learnt is noise.

    Rows a few minutes apart share most of their outcome, so a leaf needs far more of them than it seems to.
    """
    kind = {"objective": "binary"} if count == 2 else {"objective": "multiclass", "num_class": count}
    return {
        **kind,
        "num_leaves": 4,
        "learning_rate": 0.05,
        "lambda_l2": 10.0,
        "min_data_in_leaf": int(np.clip(rows * _LEAF_SHARE, _FEWEST_IN_LEAF, _USUAL_IN_LEAF)),
        "feature_fraction": 0.5,
        "bagging_fraction": 0.5,
        "bagging_freq": 1,
        "seed": settings.seed,
        # Boosters are fitted side by side; threads inside one only wait for each other on so few rows.
        "num_threads": 1,
        "deterministic": True,
        "force_row_wise": True,
        "verbose": -1,
    }
