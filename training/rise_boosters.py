"""Fit the boosted classes of the largest rise of demand within a horizon."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import lightgbm as lgb
import numpy as np
from numpy.typing import NDArray

from advisor.forecast.demand_booster import ClassBooster
from advisor.forecast.demand_rise import RISE_LEVELS, RISE_PARTS, demand_rises_within, rise_shares
from training.booster_rows import features_of, thinned, usable
from training.demand_rows import DemandFitSettings, PoolRows

__all__ = ["fit_rises"]

Floats = NDArray[np.float64]

_FEWEST_ROWS = 200
_FEWEST_RISES = 30
_LEAF_SHARE, _FEWEST_IN_LEAF, _USUAL_IN_LEAF = 0.02, 10, 200
_RISE_EDGES = np.array(
    [
        *(0.5, 1.5, 2.5, 4.5, 7.5, 8.5, 12.5, 15.5),
        *(RISE_PARTS * nodes + part for nodes in range(2, RISE_LEVELS + 1) for part in (0.5, 7.5)),
    ]
)
"""Candidates for bounds between classes, in parts of a node: whole nodes, which rises favour, stand apart."""


def fit_rises(
    pools: Sequence[PoolRows], horizon_minutes: int, settings: DemandFitSettings, until_unix: float
) -> tuple[ClassBooster, Floats] | None:
    """Classes of the largest rise of demand within a horizon, from outcomes known by ``until_unix``.

    The second part tells how the rises of each class were spread, (classes, parts of a node). None where
    there are too few rows or rises.
    """
    outcomes = [demand_rises_within(rows.series, rows.at, horizon_minutes) for rows in pools]
    known = usable(pools, outcomes, horizon_minutes, until_unix)
    rises = np.concatenate([y[u] for y, u in zip(outcomes, known, strict=True)])
    edges = _rise_edges(rises)
    if rises.size < _FEWEST_ROWS or not edges.size:
        return None
    kept, weights = thinned(rises > edges[0], settings.most_rows)
    classes = np.searchsorted(edges, rises)
    count = len(edges) + 1
    booster = _boosted((features_of(pools, known, kept), classes[kept], weights), count, settings)
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


def _boosted(rows: tuple[Floats, NDArray[np.int64], Floats], count: int, settings: DemandFitSettings) -> ClassBooster:
    features, classes, weights = rows
    data = lgb.Dataset(features, classes, weight=weights, free_raw_data=True)
    booster = lgb.train(_parameters(len(classes), count, settings.seed), data, settings.rounds)
    return ClassBooster(booster.model_to_string(), count, np.any(np.isnan(features), axis=0))


def _parameters(rows: int, count: int, seed: int) -> dict[str, Any]:
    """Small, heavily damped trees with thresholds drawn at random: no single train of jobs is learnt by heart."""
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
        "seed": seed,
        # Boosters are fitted side by side; threads inside one only wait for each other on so few rows.
        "num_threads": 1,
        "deterministic": True,
        "force_row_wise": True,
        "verbose": -1,
    }
