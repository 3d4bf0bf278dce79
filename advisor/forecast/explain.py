"""Explains a prediction in the terms of the features and of the history it rests on."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from advisor.domain.explanations import FeatureEffect
from advisor.domain.forecasts import DurationDistribution
from advisor.domain.jobs import Job
from advisor.domain.units import counted
from advisor.features.table import Feature
from advisor.forecast.duration_model import DurationModel

__all__ = ["effects_of", "narrower"]

Floats = NDArray[np.float64]

_PLAIN: Mapping[str, tuple[str, Callable[[float], float]]] = {
    "ln s": ("s", math.exp),
    "ln(1 + s)": ("s", math.expm1),
    "ln bytes": ("bytes", math.exp),
    "ln(1 + jobs)": ("jobs", math.expm1),
}
"""Units of features that are logarithms, and how to read them without."""

_MOST = 6
_LEAST_SHARE = 0.02
_ENOUGH_ENDS = 20
_WIDE = 30.0


def effects_of(model: DurationModel, rows: Floats) -> list[tuple[FeatureEffect, ...]]:
    """What moved the trees most for each row, strongest first: exact Shapley values of the forests (Lundberg 2018)."""
    shown = model.own(rows)
    filled, _, _ = model.readable(shown)
    pushed = model.contributions(filled)
    features = model.schema.features
    return [_strongest(features, row, push) for row, push in zip(shown, pushed, strict=True)]


def _strongest(features: Sequence[Feature], row: Floats, pushed: Floats) -> tuple[FeatureEffect, ...]:
    whole = float(np.abs(pushed).sum())
    if not whole > 0:
        return ()
    order = np.argsort(-np.abs(pushed), kind="stable")[:_MOST]
    return tuple(
        FeatureEffect(
            name=feature.name,
            meaning=feature.meaning,
            unit=unit,
            value=None if math.isnan(row[place]) else plain(float(row[place])),
            longer=bool(pushed[place] > 0),
            share=float(abs(pushed[place]) / whole),
        )
        for place in order.tolist()
        if abs(pushed[place]) >= _LEAST_SHARE * whole
        for feature in (features[place],)
        for unit, plain in (_PLAIN.get(feature.unit, (feature.unit, float)),)
    )


def narrower(
    job: Job, law: DurationDistribution, evidence: tuple[str, int], unsaid: Sequence[str], *, runs: bool
) -> tuple[str, ...]:
    """What would make the prediction of ``law`` for ``job`` sharper.

    ``evidence`` is the key that carried it and how many of its jobs have ended, ``unsaid`` what the request left
    out, ``runs`` whether it has begun.
    """
    key, count = evidence
    found = []
    if job.user is None:
        found.append("name the user: habits are people's; without one, the namespace or everybody stands in")
    if job.name is None and job.image is None:
        found.append("give the job a name or an image that stays the same when the same work runs again")
    if count < _ENOUGH_ENDS:
        found.append(
            f"wait for more ends: of {key} {counted(count, 'job')} ended so far, and about {_ENOUGH_ENDS} show a habit"
        )
    found += [f"say {name}: the request left it out and the usual was taken" for name in unsaid]
    if not runs and law.quantile(0.9) > _WIDE * law.quantile(0.1):
        found.append("ask again once it runs: work this varied is told apart best by the age it has reached")
    return tuple(found)
