"""Examples of requests, answers and problems, as OpenAPI shows them; a test holds each against its schema."""

from __future__ import annotations

from typing import Any

from advisor.errors import Refused, Transient
from serving.api.problems import Problem, from_error, from_status
from serving.api.service import Unknown

__all__ = [
    "ALLOCATIONS",
    "ALLOCATIONS_ASK",
    "DEMAND",
    "DURATIONS",
    "DURATIONS_ASK",
    "MODELS",
    "POOL_RECOMMENDATION",
    "PROBLEMS",
    "RECOMMENDATIONS",
]

_QUANTILES = {"0.1": 310.0, "0.5": 1510.0, "0.8": 4380.0, "0.9": 7950.0, "0.95": 13200.0}

DURATIONS_ASK: dict[str, Any] = {
    "jobs": [
        {"id": "train-17", "gpus": 1, "user": "ada", "namespace": "vision", "name": "resnet-train-17"},
        {"id": "train-16", "gpus": 8, "user": "ada", "elapsed_seconds": 1200},
    ],
    "explain": True,
}

DURATIONS: dict[str, Any] = {
    "as_of": "2026-03-02T12:00:00Z",
    "synthetic": False,
    "model_version": "4",
    "predictions": [
        {
            "id": "train-17",
            "quantiles_seconds": _QUANTILES,
            "mean_seconds": 3120.0,
            "median_seconds": 1510.0,
            "typical_seconds": 1290.0,
            "elapsed_seconds": None,
            "remaining": None,
            "served": "model",
            "model_version": "4",
            "key": "user+gpus",
            "key_count": 214,
            "reasons": [],
            "outcomes": {"completed": 0.82, "failed": 0.13, "cancelled": 0.05},
            "explanation": {
                "key": "user+gpus",
                "key_count": 214,
                "last_end": "2026-03-02T11:41:00Z",
                "weights": {"forest": 0.6, "hazard": 0.38, "median_of_5": 0.02},
                "effects": [
                    {
                        "name": "og_median_5",
                        "meaning": "jobs of the same owner and GPU count: median of the last five that ended",
                        "unit": "s",
                        "value": 1420.0,
                        "direction": "shorter",
                        "share": 0.21,
                    }
                ],
                "narrower": ["give the job a name or an image that stays the same when the same work runs again"],
            },
        }
    ],
}

DEMAND: dict[str, Any] = {
    "as_of": "2026-03-02T12:00:00Z",
    "synthetic": False,
    "forecasts": [
        {
            "pool": "a100",
            "made_at": "2026-03-02T12:00:00Z",
            "gpus_now": 148.0,
            "model_version": "3",
            "skilled": True,
            "horizons": [
                {
                    "horizon_minutes": 30,
                    "quantiles": {"0.5": 148.0, "0.8": 152.0, "0.9": 156.0, "0.95": 160.0, "0.99": 172.0},
                    "skill": 0.11,
                    "served": "model",
                }
            ],
            "reasons": [],
        }
    ],
}

ALLOCATIONS_ASK: dict[str, Any] = {
    "jobs": [{"id": "train-17", "gpus": 1, "user": "ada", "pool": "a100", "deadline": "2026-03-02T18:00:00Z"}]
}

ALLOCATIONS: dict[str, Any] = {
    "as_of": "2026-03-02T12:00:00Z",
    "synthetic": False,
    "allocations": [
        {
            "id": "train-17",
            "decision": "placed",
            "slice_count": 1,
            "slices": [
                {
                    "start": "2026-03-02T12:00:00Z",
                    "end": "2026-03-02T12:30:00Z",
                    "minutes": 30.0,
                    "node": "a100-node-3",
                    "gpu": 5,
                    "share": 0,
                    "replicas": 1,
                }
            ],
            "predicted_end": "2026-03-02T12:30:00Z",
            "deferred_until": None,
            "reasons": ["fits on a node that is already in use"],
        }
    ],
}

MODELS: dict[str, Any] = {
    "as_of": "2026-03-02T12:00:00Z",
    "models": [
        {
            "name": "durations",
            "version": "4",
            "aliases": ["champion"],
            "created": "2026-03-01T03:00:00Z",
            "data_digest": "sha256:5b1f",
            "measures": {"log_mae": 0.96, "coverage_0.9": 0.9},
            "reasons": ["beats the median of the last five by 14 %"],
            "synthetic": False,
        }
    ],
}


_CYCLE: dict[str, Any] = {
    "time": "2026-03-02T12:00:00Z",
    "mode": "Recommend",
    "models": {"durations": "4", "demand": "3"},
    "synthetic": False,
}

_POOL: dict[str, Any] = {
    "pool": "a100",
    "slice_lengths": [
        {
            "class": "all",
            "minutes": 30.0,
            "sliced": True,
            "current_minutes": 15.0,
            "rule_of_thumb_minutes": 51.0,
            "longest_minutes": None,
            "share_of_jobs": 1.0,
            "mean_minutes": 52.0,
            "closed_form_minutes": 14.4,
            "cost": 0.19,
            "current_cost": 0.24,
            "quantum_minutes": 4.5,
            "double_switch_minutes": 30.0,
            "confidence": "good",
            "binding_constraint": None,
            "curve": [
                {"minutes": 15.0, "cost": 0.24, "feasible": True},
                {"minutes": 30.0, "cost": 0.19, "feasible": True},
            ],
            "reasons": ["30 min costs 21 % less than the 15 min in use"],
        }
    ],
    "switch_cost_minutes": 1.0,
    "slice_reasons": [],
    "sharing_factor": 1,
    "warm_gpus": 8,
    "keep_alive_seconds": 600,
    "gpu_limit": 256,
    "warm": {
        "boot_nodes": 1,
        "keep_nodes": 1,
        "node_gpus": 8,
        "start_latency_seconds": 300.0,
        "served": "model",
        "curve": [{"nodes": 1, "cost_per_hour": 20.0, "saving_per_hour": 34.5, "probability_needed": 0.41}],
        "reasons": ["one warm node saves more waiting than it costs"],
    },
    "demand": DEMAND["forecasts"][0],
    "durations": {
        "quantiles_seconds": _QUANTILES,
        "mean_seconds": 3120.0,
        "median_seconds": 1510.0,
        "typical_seconds": 1290.0,
    },
    "changes": [
        {
            "object": "NodePool/a100",
            "field": "spec.disruption.consolidateAfter",
            "from": "180s",
            "to": "600s",
            "allowed": True,
            "reasons": ["an empty node is wanted again within 10 min more often than not"],
        }
    ],
    "patch": {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "a100"},
        "spec": {"disruption": {"consolidateAfter": "600s"}},
    },
    "manifests": [],
    "reasons": [],
}

RECOMMENDATIONS: dict[str, Any] = {**_CYCLE, "pools": [_POOL], "reasons": []}
POOL_RECOMMENDATION: dict[str, Any] = {**_CYCLE, **_POOL}

PROBLEMS: dict[int, Problem] = {
    400: from_status(400, "The body is not JSON: expected value at line 1 column 1."),
    404: from_error(Unknown("pool", "h100", "known pools are a100 and t4", "Use one of them.")),
    413: from_status(413, "The body is larger than 4,000,000 bytes. Split the request."),
    422: from_error(Refused("jobs", 1001, "at most 1000 jobs a request", "Split them over several requests.")),
    503: from_error(Transient("no advice cycle has run yet")),
}
"""One problem of each status that a route documents."""
