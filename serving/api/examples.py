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
        {
            "id": "train-17",
            "gpus": 1,
            "user": "ada",
            "namespace": "vision",
            "name": "resnet-train-17",
            "priority": 0,
            "time_limit_seconds": 86400,
        },
        {"id": "train-16", "gpus": 8, "user": "ada", "elapsed_seconds": 1200},
    ],
    "explain": True,
}

_NAMED: dict[str, Any] = {
    "id": "train-17",
    "quantiles_seconds": _QUANTILES,
    "mean_seconds": 3120.0,
    "median_seconds": 1510.0,
    "typical_seconds": 1290.0,
    "elapsed_seconds": None,
    "remaining": None,
    "served": "model",
    "model_version": "4",
    "key": "user+gpus+name",
    "key_count": 31,
    "reasons": [],
    "outcomes": {"completed": 0.82, "failed": 0.13, "cancelled": 0.05},
    "explanation": {
        "key": "user+gpus+name",
        "key_count": 31,
        "last_end": "2026-03-02T11:41:00Z",
        "weights": {"forest": 0.6, "hazard": 0.38, "median_of_5": 0.02},
        "effects": [
            {
                "name": "ogn_median_5",
                "meaning": "jobs of the same owner, GPU count and name: median of the last five that ended",
                "unit": "s",
                "value": 1420.0,
                "direction": "shorter",
                "share": 0.21,
            }
        ],
        "narrower": [],
    },
}

_RUNNING: dict[str, Any] = {
    "id": "train-16",
    "quantiles_seconds": {"0.1": 900.0, "0.5": 5400.0, "0.8": 12600.0, "0.9": 19800.0, "0.95": 28800.0},
    "mean_seconds": 8100.0,
    "median_seconds": 5400.0,
    "typical_seconds": 5000.0,
    "elapsed_seconds": 1200.0,
    "remaining": {
        "quantiles_seconds": {"0.1": 1100.0, "0.5": 4900.0, "0.8": 12300.0, "0.9": 19700.0, "0.95": 28900.0},
        "mean_seconds": 7900.0,
        "median_seconds": 4900.0,
    },
    "served": "model",
    "model_version": "4",
    "key": "user+gpus",
    "key_count": 12,
    "reasons": [],
    "outcomes": {"completed": 0.9, "failed": 0.06, "cancelled": 0.04},
    "explanation": {
        "key": "user+gpus",
        "key_count": 12,
        "last_end": "2026-03-01T22:05:00Z",
        "weights": {"forest": 0.55, "hazard": 0.42, "median_of_5": 0.03},
        "effects": [
            {
                "name": "gpus",
                "meaning": "GPUs asked for",
                "unit": "GPUs",
                "value": 8.0,
                "direction": "longer",
                "share": 0.17,
            }
        ],
        "narrower": ["give the job a name or an image that stays the same when the same work runs again"],
    },
}

DURATIONS: dict[str, Any] = {
    "as_of": "2026-03-02T12:00:00Z",
    "synthetic": False,
    "model_version": "4",
    "predictions": [_NAMED, _RUNNING],
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

# Neither a deadline nor a pool: what is posted as it stands must be answered on any cluster, at any time.
ALLOCATIONS_ASK: dict[str, Any] = {
    "jobs": [
        {"id": "train-17", "gpus": 1, "user": "ada", "name": "resnet-train-17"},
        {"id": "debug-3", "gpus": 1, "user": "cleo", "urgent": True, "slice_minutes": 30},
    ]
}


def _slice(start: str, end: str, minutes: float, node: str, gpu: int) -> dict[str, Any]:
    day = "2026-03-02T"
    placed: dict[str, Any] = {"start": f"{day}{start}:00Z", "end": f"{day}{end}:00Z", "minutes": minutes}
    return {**placed, "node": node, "gpu": gpu, "share": 0, "replicas": 1}


ALLOCATIONS: dict[str, Any] = {
    "as_of": "2026-03-02T12:00:00Z",
    "synthetic": False,
    "allocations": [
        {
            "id": "train-17",
            "decision": "placed",
            "slice_count": 3,
            "slices": [
                _slice("12:00", "12:10", 10.0, "a100-3", 5),
                _slice("12:10", "12:20", 10.0, "a100-3", 5),
                _slice("12:20", "12:30", 10.0, "a100-3", 5),
            ],
            "predicted_end": "2026-03-02T12:30:00Z",
            "deferred_until": None,
            "reasons": [
                "a100-3: of the nodes with room the fullest",
                "3 slices of 10 min (class all of the pool's plan) for a predicted 25.2 min at the 50% level",
            ],
        },
        {
            "id": "debug-3",
            "decision": "placed",
            "slice_count": 1,
            "slices": [_slice("12:00", "12:30", 30.0, "a100-3", 6)],
            "predicted_end": "2026-03-02T12:30:00Z",
            "deferred_until": None,
            "reasons": [
                "a100-3: of the nodes with room the fullest",
                "1 slice of 30 min (as asked) for a predicted 4 min at the 50% level",
            ],
        },
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
    "cluster_assumed": False,
    "models": {"durations": "4", "demand": "3"},
    "synthetic": False,
}

_POOL: dict[str, Any] = {
    "pool": "a100",
    "slice_lengths": [
        {
            "class": "all",
            "minutes": 10.0,
            "sliced": True,
            "current_minutes": 30.0,
            "rule_of_thumb_minutes": 51.0,
            "longest_minutes": None,
            "share_of_jobs": 1.0,
            "mean_minutes": 52.0,
            "closed_form_minutes": 10.2,
            "cost": 0.196,
            "current_cost": 0.322,
            "quantum_minutes": 17.6,
            "double_switch_minutes": 15.0,
            "confidence": "good",
            "binding_constraint": None,
            "curve": [
                {"minutes": 5.0, "cost": 0.248, "feasible": True},
                {"minutes": 10.0, "cost": 0.196, "feasible": True},
                {"minutes": 15.0, "cost": 0.211, "feasible": True},
                {"minutes": 30.0, "cost": 0.322, "feasible": True},
            ],
            "reasons": ["10 min loses 0.196 GPU-minutes per useful GPU-minute, the 30 min in use 0.322"],
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
        "curve": [
            {
                "nodes": 1,
                "cost_per_hour": 20.0,
                "saving_per_hour": 34.5,
                "probability_needed": 0.41,
                "horizon_minutes": 240.0,
            }
        ],
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
            "to": "360s",
            "allowed": True,
            "reasons": ["a step of at most twice as much on the way to 600s"],
        },
        {
            "object": "ConfigMap/slice-advisor-a100",
            "field": 'metadata.annotations["slice-advisor.io/slice-length"]',
            "from": "30m",
            "to": "15m",
            "allowed": True,
            "reasons": ["a step of at most twice as little on the way to 10m"],
        },
    ],
    "patch": {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "a100"},
        "spec": {"disruption": {"consolidateAfter": "360s"}},
    },
    "manifests": [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": "slice-advisor-a100",
                "namespace": "gpu-slice-advisor",
                "annotations": {"slice-advisor.io/slice-length": "15m"},
            },
            "data": {"nodepool": "a100", "slice-length": "15m"},
        }
    ],
    "manifest_notes": [],
    "reasons": [],
}

RECOMMENDATIONS: dict[str, Any] = {**_CYCLE, "pools": [_POOL], "without_advice": [], "reasons": []}
POOL_RECOMMENDATION: dict[str, Any] = {**_CYCLE, **_POOL}

PROBLEMS: dict[int, Problem] = {
    400: from_status(400, "The body is not JSON: expected value at line 1 column 1."),
    404: from_error(Unknown("pool", "h100", "known pools are a100 and t4", "Use one of them.")),
    413: from_status(413, "The body is larger than 4,000,000 bytes. Split the request."),
    422: from_error(Refused("jobs", 1001, "at most 1000 jobs a request", "Split them over several requests.")),
    503: from_error(Transient("no advice cycle has run yet")),
}
"""One problem of each status that a route documents."""
