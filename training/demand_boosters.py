"""Fit the boosted classes of a change on rows whose outcome was known in time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import lightgbm as lgb
import numpy as np
from numpy.typing import NDArray

from advisor.forecast.demand_booster import ClassBooster
from advisor.forecast.demand_law import SMALLEST_CHANGE, ChangeClasses
from advisor.forecast.demand_model import ChangeModel
from training.booster_rows import features_of, thinned, usable
from training.demand_rows import DemandFitSettings, PoolRows

__all__ = ["fit_change"]

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

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
    known = usable(pools, outcomes, horizon_minutes, until_unix)
    changes = np.concatenate([y[u] for y, u in zip(outcomes, known, strict=True)])
    if changes.size < _FEWEST_ROWS:
        return None
    classes = ChangeClasses.from_changes(changes)
    if len(classes) < 2:
        return None
    kept, weights = thinned(np.abs(changes) >= SMALLEST_CHANGE, settings.most_rows)
    features = features_of(pools, known, kept)
    labels = classes.classify(changes[kept])
    return ChangeModel(classes, _boosted((features, labels, weights), len(classes), settings))


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
