"""The shape of recommendations, as OpenAPI shows it and as every answer is checked against.

The document itself is made in ``serving.advice_json``, which the command line shares.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from serving.api.duration_schema import Quantiles
from serving.api.fields import Answer, Reasons, Synthetic, UtcTime, Version
from serving.api.schemas import Demand

__all__ = ["PoolRecommendationAnswer", "RecommendationsAnswer"]

Cost = Annotated[float, Field(ge=0, description="Lost GPU-minutes per useful GPU-minute.")]


class SlicePoint(Answer):
    """Cost of one candidate slice length."""

    minutes: float = Field(gt=0)
    cost: Cost
    feasible: bool = Field(description="False where a constraint forbids this length.")


class SliceLengthFields(Answer):
    """The recommended slice length of one class of task in a pool, and the evidence about it."""

    class_: str = Field(alias="class")
    minutes: float = Field(
        gt=0, description="Recommended length of one slice; where ``sliced`` is false, the best should it be sliced."
    )
    sliced: bool = Field(description="False where tasks of the class are better left to run to their end.")
    current_minutes: float | None = Field(description="Slice length in use; null where there is none.")
    rule_of_thumb_minutes: float | None = Field(
        description="Mean duration less the switch cost; null where that leaves nothing."
    )
    longest_minutes: float | None = Field(
        description="The class holds tasks up to this predicted median; null for the last class."
    )
    share_of_jobs: float = Field(ge=0, le=1, description="Share of the pool's jobs that fall into the class.")
    mean_minutes: float = Field(gt=0, description="Expected duration of a task of the class.")
    closed_form_minutes: float = Field(ge=0, description="Optimum of the square-root law, for comparison.")
    cost: Cost
    current_cost: float | None = Field(description="Cost of the length in use; null where there is none.")
    quantum_minutes: float | None = Field(
        description="Run that the next pre-emption should allow; null to let it run to the end."
    )
    double_switch_minutes: float | None = Field(
        description="Best length if a switch cost twice as much; null where that was not worked out."
    )
    confidence: str = Field(description="good, moderate or thin, by the ended jobs behind it.")
    binding_constraint: str | None = Field(description="What keeps the length from the curve's minimum, if anything.")
    curve: list[SlicePoint]
    reasons: Reasons


class WarmPoint(Answer):
    """One more warm node: expected cost and saving, in money per hour."""

    nodes: int = Field(ge=0)
    cost_per_hour: float
    saving_per_hour: float
    probability_needed: float = Field(ge=0, le=1, description="Chance that it is needed within the horizon.")
    horizon_minutes: float | None = Field(description="Minutes over which it is weighed; null where not known.")


class Warm(Answer):
    """How the warm capacity was derived."""

    boot_nodes: int = Field(ge=0, description="Nodes up to which booting ahead pays.")
    keep_nodes: int = Field(ge=0, description="Nodes up to which keeping an idle one pays.")
    node_gpus: int = Field(ge=1, description="GPUs of one node.")
    start_latency_seconds: float = Field(ge=0, description="From asking for a node to a usable GPU.")
    served: str = Field(description="Who forecast the rises: model, or the name of a baseline.")
    curve: list[WarmPoint]
    reasons: Reasons


class ExpectedDurations(Answer):
    """What the pool's next jobs are expected to last."""

    quantiles_seconds: Quantiles
    mean_seconds: float = Field(gt=0)
    median_seconds: float = Field(gt=0)
    typical_seconds: float = Field(gt=0)


class ProposedChange(Answer):
    """One field of one object that should differ from what it is."""

    object: str
    field: str
    from_: str | int | float | bool | None = Field(alias="from", description="Value now; null where it is unset.")
    to: str | int | float | bool | None = Field(description="Value proposed; null to unset it.")
    allowed: bool = Field(description="False where a guard refuses; the reasons name it.")
    reasons: Reasons


class PoolFields(Answer):
    """Everything recommended for one pool."""

    pool: str
    slice_lengths: list[SliceLengthFields] = Field(description="Every class, shortest first.")
    switch_cost_minutes: float = Field(ge=0, description="Checkpoint, requeue, restore and relaunch.")
    slice_reasons: Reasons
    sharing_factor: int = Field(ge=1, description="Shares that one GPU is cut into.")
    warm_gpus: int = Field(ge=0, description="Physical GPUs to have ready, in whole nodes.")
    keep_alive_seconds: int = Field(ge=0, description="How long an empty node stays (consolidateAfter).")
    gpu_limit: int | None = Field(description="Limit of the pool's GPUs; null to leave it unlimited.")
    warm: Warm
    demand: Demand
    durations: ExpectedDurations
    changes: list[ProposedChange]
    patch: dict[str, Any] | None = Field(description="The allowed changes as a manifest for server-side apply.")
    manifests: list[dict[str, Any]] = Field(description="Objects of our own that belong beside the patch.")
    manifest_notes: list[str] = Field(description="Where patch and manifests are of no use, for instance on Slurm.")
    reasons: Reasons


class Models(Answer):
    """Which versions the advice was made with."""

    durations: Version
    demand: Version


class CycleFields(Answer):
    """When and how the advice was made."""

    time: UtcTime
    mode: str = Field(description="Observe, Recommend or Apply.")
    models: Models
    synthetic: Synthetic
    cluster_assumed: bool = Field(description="Whether no cluster was described, so that what is set now was assumed.")


class WithoutAdvice(Answer):
    """A pool that could not be advised on."""

    pool: str
    reason: str = Field(description="What stood in the way, and how to mend it.")


class RecommendationsAnswer(CycleFields):
    """The newest advice: every pool with curves and reasons."""

    pools: list[PoolFields]
    without_advice: list[WithoutAdvice] = Field(description="Pools of the cluster that could not be advised on.")
    reasons: Reasons


class PoolRecommendationAnswer(PoolFields, CycleFields):
    """The newest advice for one pool."""
