"""What the API asks of the product: the protocol its routes call, implemented by ``serving.live``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from advisor.domain.explanations import DurationExplanation
from advisor.domain.forecasts import DemandForecast, DurationForecast
from advisor.domain.plans import Advice
from advisor.domain.slices import Allocation
from advisor.errors import Refused

__all__ = [
    "AdvisorService",
    "AllocationAsk",
    "DurationAnswer",
    "DurationAsk",
    "ModelSummary",
    "Readiness",
    "Unknown",
]


class Unknown(Refused):
    """The request names something that does not exist; the API answers 404."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DurationAsk:
    """A job that somebody wants predicted: what is known when it is submitted, and how long it has run so far."""

    id: str
    gpus: float
    user: str | None = None
    namespace: str | None = None
    name: str | None = None
    image: str | None = None
    gpu_kind: str | None = None
    pool: str | None = None
    cpus: float | None = None
    nodes: int | None = None
    priority: int | None = None
    time_limit_seconds: float | None = None
    elapsed_seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DurationAnswer:
    """One prediction: total duration, what remains where the job already runs, and why where that was asked.

    ``as_of`` is the moment it was made for; the same for all answers of one call.
    """

    id: str
    as_of: datetime
    forecast: DurationForecast
    elapsed_seconds: float | None = None
    explanation: DurationExplanation | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AllocationAsk:
    """A task that asks for slices: the job it is, how urgent, and by when it must have ended."""

    job: DurationAsk
    urgent: bool = False
    deadline: datetime | None = None
    slice_minutes: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSummary:
    """One registered version: what it is, since when, how it measured, and which alias it holds."""

    name: str
    version: str
    aliases: tuple[str, ...]
    created: datetime
    data_digest: str
    measures: dict[str, float] = field(default_factory=dict)
    reasons: tuple[str, ...] = ()
    synthetic: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Readiness:
    """Whether the service can answer, and if not, what is missing."""

    ready: bool
    reasons: tuple[str, ...] = ()


class AdvisorService(Protocol):
    """Everything the routes call. Every method may raise the errors of ``advisor.errors``.

    Methods are called from several threads at once; ``durations`` also from the event loop itself for a
    few asks, so it must not wait for anything.
    """

    def now(self) -> datetime:
        """The moment that answers refer to: the clock, or the end of a replayed history."""
        ...

    def synthetic(self) -> bool:
        """Whether the history is a generated workload, which every answer must then say."""
        ...

    def durations(self, asks: Sequence[DurationAsk], *, explain: bool = False) -> tuple[DurationAnswer, ...]:
        """One answer per ask, in order, all from one model version."""
        ...

    def demand(self, pool: str | None) -> tuple[DemandForecast, ...]:
        """Forecasts of every pool, or of one; Unknown if there is no such pool."""
        ...

    def advice(self) -> Advice:
        """The newest advice; Transient if no cycle has run yet."""
        ...

    def allocate(self, asks: Sequence[AllocationAsk]) -> tuple[Allocation, ...]:
        """One allocation per ask, on the newest snapshot; nothing is reserved."""
        ...

    def models(self) -> tuple[ModelSummary, ...]:
        """Registered versions, newest first."""
        ...

    def readiness(self) -> Readiness:
        """Whether forecasts and advice can be answered now."""
        ...
