"""Advice as one JSON document: the very same from ``gsa advise --output json`` and from the API.

Field names are a promise: fields may be added, never renamed or given another meaning. Every number is
finite; what is not known, or does not apply, is null, and where that may happen the API's schema says so.
"""

from __future__ import annotations

import math
from dataclasses import asdict
from datetime import datetime
from typing import Any

from advisor.domain.forecasts import DemandForecast, DurationDistribution, HorizonForecast
from advisor.domain.plans import Advice, Change, PoolAdvice, WarmPlan
from advisor.domain.slices import CurvePoint, SliceClass

__all__ = [
    "QUANTILE_LEVELS",
    "advice_document",
    "demand_document",
    "durations_document",
    "moment",
    "pool_document",
]

QUANTILE_LEVELS = (0.1, 0.5, 0.8, 0.9, 0.95)
"""Levels of every duration that is answered."""


def moment(time: datetime) -> str:
    """A UTC time as RFC 3339 writes it, ending in Z."""
    return time.isoformat().replace("+00:00", "Z")


def advice_document(advice: Advice) -> dict[str, Any]:
    """The whole advice of one cycle, every pool with its curves and reasons."""
    return {
        **_cycle(advice),
        "pools": [_pool(pool) for pool in advice.pools],
        "without_advice": [asdict(one) for one in advice.without_advice],
        "reasons": list(advice.reasons),
    }


def pool_document(advice: Advice, pool: PoolAdvice) -> dict[str, Any]:
    """One pool's entry of the advice, beside the time, the mode and the models of its cycle."""
    return {**_cycle(advice), **_pool(pool)}


def durations_document(durations: DurationDistribution) -> dict[str, Any]:
    """A duration distribution as the numbers people ask for, in seconds."""
    return {
        "quantiles_seconds": {f"{level:g}": durations.quantile(level) for level in QUANTILE_LEVELS},
        "mean_seconds": durations.mean,
        "median_seconds": durations.median,
        "typical_seconds": durations.typical,
    }


def demand_document(forecast: DemandForecast) -> dict[str, Any]:
    """A demand forecast with the skill of each horizon."""
    return {
        "pool": forecast.pool,
        "made_at": moment(forecast.made_at),
        "gpus_now": forecast.gpus_now,
        "model_version": forecast.model_version,
        "skilled": forecast.skilled,
        "horizons": [_horizon(horizon) for horizon in forecast.horizons],
        "reasons": list(forecast.reasons),
    }


def _cycle(advice: Advice) -> dict[str, Any]:
    return {
        "time": moment(advice.time),
        "mode": advice.mode.value,
        "models": {name: advice.models.get(name) for name in ("durations", "demand")},
        "synthetic": advice.synthetic,
        "cluster_assumed": advice.cluster_assumed,
    }


def _pool(pool: PoolAdvice) -> dict[str, Any]:
    return {
        "pool": pool.pool,
        "slice_lengths": [_slice_class(one) for one in pool.slice_plan.classes],
        "switch_cost_minutes": pool.slice_plan.switch_cost_minutes,
        "slice_reasons": list(pool.slice_plan.reasons),
        "sharing_factor": pool.sharing_factor,
        "warm_gpus": pool.warm.warm_gpus,
        "keep_alive_seconds": pool.warm.keep_alive_seconds,
        "gpu_limit": pool.gpu_limit,
        "warm": _warm(pool.warm),
        "demand": demand_document(pool.demand),
        "durations": durations_document(pool.durations),
        "changes": [_change(change) for change in pool.changes],
        "patch": pool.patch,
        "manifests": list(pool.manifests),
        "manifest_notes": list(pool.manifest_notes),
        "reasons": list(pool.reasons),
    }


def _slice_class(one: SliceClass) -> dict[str, Any]:
    return {
        "class": one.name,
        # A class better left unsliced still has a best length, should somebody slice it all the same.
        "minutes": one.if_sliced_minutes if one.minutes is None else one.minutes,
        "sliced": one.minutes is not None,
        "current_minutes": one.current_minutes,
        "rule_of_thumb_minutes": one.rule_of_thumb_minutes,
        "longest_minutes": one.longest_minutes,
        "share_of_jobs": one.share_of_jobs,
        "mean_minutes": one.mean_minutes,
        "closed_form_minutes": one.closed_form_minutes,
        "cost": one.cost,
        "current_cost": one.current_cost,
        "quantum_minutes": one.quantum_minutes,
        "double_switch_minutes": one.double_switch_minutes,
        "confidence": one.confidence,
        "binding_constraint": one.binding_constraint,
        "curve": [_curve_point(point) for point in one.curve if point.feasible or math.isfinite(point.cost)],
        "reasons": list(one.reasons),
    }


def _curve_point(point: CurvePoint) -> dict[str, Any]:
    return {"minutes": point.minutes, "cost": point.cost, "feasible": point.feasible}


def _warm(warm: WarmPlan) -> dict[str, Any]:
    return {
        "boot_nodes": warm.boot_nodes,
        "keep_nodes": warm.keep_nodes,
        "node_gpus": warm.node_gpus,
        "start_latency_seconds": warm.start_latency_seconds,
        "served": warm.served,
        "curve": [
            {
                "nodes": point.nodes,
                "cost_per_hour": point.cost_per_hour,
                "saving_per_hour": point.saving_per_hour,
                "probability_needed": point.probability_needed,
                "horizon_minutes": point.horizon_minutes,
            }
            for point in warm.curve
        ],
        "reasons": list(warm.reasons),
    }


def _horizon(horizon: HorizonForecast) -> dict[str, Any]:
    return {
        "horizon_minutes": horizon.horizon_minutes,
        "quantiles": {f"{level:g}": gpus for level, gpus in zip(horizon.levels, horizon.gpus, strict=True)},
        "skill": horizon.skill,
        "served": horizon.served,
    }


def _change(change: Change) -> dict[str, Any]:
    return {
        "object": change.object,
        "field": change.field,
        "from": change.old,
        "to": change.new,
        "allowed": change.allowed,
        "reasons": list(change.reasons),
    }
