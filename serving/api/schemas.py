"""Response bodies, and how they are made from the values of the domain."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Self

from pydantic import Field

from advisor.domain.forecasts import DemandForecast
from advisor.domain.slices import Allocation, Decision, Slice
from serving.advice_json import demand_document
from serving.api.fields import Answer, AsOf, Reasons, Synthetic, UtcTime, Version
from serving.api.service import ModelSummary

__all__ = [
    "AllocationsAnswer",
    "Demand",
    "DemandAnswer",
    "Health",
    "ModelsAnswer",
    "Ready",
]


class Horizon(Answer):
    """Demand so many minutes from now."""

    horizon_minutes: int = Field(gt=0)
    quantiles: dict[str, Annotated[float, Field(ge=0)]] = Field(
        description="GPUs running and pending that are not exceeded with the probability in the key."
    )
    skill: float | None = Field(
        description="1 - loss / best baseline's loss on this pool's recent data; null where too little was scored."
    )
    served: str = Field(description="Who answers: model, or the name of a baseline.")


class Demand(Answer):
    """How many GPUs a pool will want."""

    pool: str
    made_at: UtcTime
    gpus_now: float = Field(ge=0, description="GPUs running and pending now.")
    model_version: Version
    skilled: bool = Field(description="True where at least one horizon is served by the model with skill above 0.")
    horizons: list[Horizon]
    reasons: Reasons


class DemandAnswer(Answer):
    """Demand forecasts of every pool, or of the one that was asked."""

    as_of: AsOf
    synthetic: Synthetic
    forecasts: list[Demand]

    @classmethod
    def of(cls, now: datetime, synthetic: bool, forecasts: Sequence[DemandForecast]) -> Self:
        """The forecasts of one call to the service."""
        demands = [Demand.model_validate(demand_document(forecast)) for forecast in forecasts]
        return cls(as_of=now, synthetic=synthetic, forecasts=demands)


class GrantedSlice(Answer):
    """The right to one GPU share from start to end."""

    start: UtcTime
    end: UtcTime
    minutes: float = Field(gt=0)
    node: str
    gpu: int = Field(ge=0, description="Physical GPU, counted from 0 on its node.")
    share: int = Field(ge=0, description="Share of that GPU, counted from 0.")
    replicas: int = Field(ge=1, description="Shares that GPU is cut into; 1 for the whole GPU.")

    @classmethod
    def of(cls, one: Slice) -> Self:
        """One granted slice."""
        return cls(
            start=one.start,
            end=one.end,
            minutes=one.length.minutes,
            node=one.share.node,
            gpu=one.share.gpu,
            share=one.share.share,
            replicas=one.share.replicas,
        )


class Placement(Answer):
    """What becomes of one job: placed with its slices, deferred, or refused."""

    id: str
    decision: Decision
    slice_count: int = Field(ge=0, description="Consecutive slices: the predicted duration over the slice length, up.")
    slices: list[GrantedSlice]
    predicted_end: UtcTime | None = Field(description="End of the last slice; null unless placed.")
    deferred_until: UtcTime | None = Field(description="When capacity is expected; null where that is not known.")
    reasons: Reasons

    @classmethod
    def of(cls, allocation: Allocation) -> Self:
        """One allocation of the service."""
        return cls(
            id=allocation.request_id,
            decision=allocation.decision,
            slice_count=allocation.slice_count,
            slices=[GrantedSlice.of(one) for one in allocation.slices],
            predicted_end=allocation.predicted_end,
            deferred_until=allocation.deferred_until,
            reasons=list(allocation.reasons),
        )


class AllocationsAnswer(Answer):
    """One placement per job, in the order asked; nothing is reserved."""

    as_of: AsOf
    synthetic: Synthetic
    allocations: list[Placement]

    @classmethod
    def of(cls, now: datetime, synthetic: bool, allocations: Sequence[Allocation]) -> Self:
        """The allocations of one call to the service."""
        return cls(as_of=now, synthetic=synthetic, allocations=[Placement.of(a) for a in allocations])


class Model(Answer):
    """One registered version."""

    name: str
    version: str
    aliases: list[str] = Field(description="champion is served, challenger is measured beside it.")
    created: UtcTime
    data_digest: str = Field(description="Digest of the snapshot it was fitted on.")
    measures: dict[str, float] = Field(description="Measured quality, by name of the measure.")
    reasons: Reasons
    synthetic: Synthetic

    @classmethod
    def of(cls, summary: ModelSummary) -> Self:
        """One version as the service sums it up."""
        return cls(
            name=summary.name,
            version=summary.version,
            aliases=list(summary.aliases),
            created=summary.created,
            data_digest=summary.data_digest,
            measures=dict(summary.measures),
            reasons=list(summary.reasons),
            synthetic=summary.synthetic,
        )


class ModelsAnswer(Answer):
    """Registered versions, newest first."""

    as_of: AsOf
    models: list[Model]

    @classmethod
    def of(cls, now: datetime, models: Sequence[ModelSummary]) -> Self:
        """The registered versions."""
        return cls(as_of=now, models=[Model.of(summary) for summary in models])


class Health(Answer):
    """The process answers."""

    status: str = "ok"


class Ready(Answer):
    """Forecasts and advice can be answered; anything else is a 503."""

    ready: bool = True
