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
from advisor.forecast.demand_rise import RISE_LEVELS, RISE_PARTS, demand_rises_within, rise_shares
from training.demand_rows import DemandFitSettings, PoolRows

__all__ = ["fit_change", "fit_rises"]

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
Indices = NDArray[np.int64]

_FEWEST_ROWS = 200
_FEWEST_RISES = 30
_RISE_EDGES = np.array(
    [
        0.5,
        1.5,
        2.5,
        4.5,
        7.5,
        8.5,
        12.5,
        15.5,
        *(RISE_PARTS * n + e for n in range(2, RISE_LEVELS + 1) for e in (0.5, 7.5)),
    ]
)
"""Candidates for bounds between classes of rises, in parts of a node: whole nodes, which rises favour, stand apart."""
_LEAF_SHARE, _FEWEST_IN_LEAF, _USUAL_IN_LEAF = 0.02, 10, 200


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
) -> tuple[ClassBooster, Floats] | None:
    """Classes of the largest rise of demand within a horizon, from outcomes known by ``until_unix``.

    The second part tells how the rises of each class were spread, (classes, parts of a node). None where
    there are too few rows or rises.
    """
    outcomes = [demand_rises_within(rows.series, rows.at, horizon_minutes) for rows in pools]
    usable = _usable(pools, outcomes, horizon_minutes, until_unix)
    rises = np.concatenate([y[u] for y, u in zip(outcomes, usable, strict=True)])
    edges = _rise_edges(rises)
    if rises.size < _FEWEST_ROWS or not edges.size:
        return None
    kept, weights = _thinned(rises > edges[0], settings.most_rows)
    classes = np.searchsorted(edges, rises)
    count = len(edges) + 1
    booster = _boosted((_features(pools, usable, kept), classes[kept], weights), count, settings)
    return booster, np.stack([rise_shares(rises[classes == one]) for one in range(count)])


def _rise_edges(rises: Floats) -> Floats:
    """Bounds between classes, in nodes, so that each class holds enough rises to learn from."""
    candidates = _RISE_EDGES / RISE_PARTS
    below = np.searchsorted(np.sort(rises), candidates)
    edges: list[float] = []
    last = 0
    for edge, count in zip(candidates, below, strict=True):
        if count - last >= _FEWEST_RISES and rises.size - count >= _FEWEST_RISES:
            edges.append(float(edge))
            last = int(count)
    return np.array(edges)


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
    """Small, slow, heavily damped trees: changes are rare, and most of what could be learnt is noise."""
    kind = {"objective": "binary"} if count == 2 else {"objective": "multiclass", "num_class": count}
    return {
        **kind,
        "num_leaves": 4,
        "learning_rate": 0.08,
        "lambda_l2": 10.0,
        "min_data_in_leaf": int(np.clip(rows * _LEAF_SHARE, _FEWEST_IN_LEAF, _USUAL_IN_LEAF)),
        "extra_trees": True,
        "feature_fraction": 0.6,
        "bagging_fraction": 0.7,
        "bagging_freq": 1,
        "seed": settings.seed,
        # Boosters are fitted side by side; threads inside one only wait for each other on so few rows.
        "num_threads": 1,
        "deterministic": True,
        "force_row_wise": True,
        "verbose": -1,
    }
