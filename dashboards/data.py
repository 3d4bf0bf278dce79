"""How data reaches the pages: one protocol over domain values, supplied by the wiring."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from advisor.domain.explanations import DurationExplanation
from advisor.domain.forecasts import DurationDistribution, DurationForecast, OutcomeChances
from advisor.domain.jobs import Job
from advisor.domain.plans import Advice, Money
from advisor.domain.promises import KeptPromises, Promise

__all__ = [
    "Compared",
    "DashboardData",
    "DemandPoint",
    "HistorySummary",
    "JobView",
    "ModelVersion",
    "PoolSkill",
    "RegisteredModel",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class DemandPoint:
    """GPUs running and pending in a pool at one past moment; None where telemetry has a gap."""

    time: datetime
    running: float | None
    pending: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class JobView:
    """One job with its prediction as made at its submission, how long it has run, and what remains if it runs.

    ``outcomes`` say how an open job will end given how long it has run, ``explanation`` why it is predicted so;
    both None where that is not known. ``promise`` is what was recorded when it was submitted, None where nothing
    was: then ``forecast`` is what would be said now from what was known at the submission.
    """

    job: Job
    forecast: DurationForecast
    elapsed_seconds: float | None
    remaining: DurationDistribution | None
    outcomes: OutcomeChances | None = None
    explanation: DurationExplanation | None = None
    promise: Promise | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class HistorySummary:
    """What the advice stands on: jobs, sources, freshness, what was dropped, and whether it is synthetic."""

    jobs: int
    first: datetime | None
    last: datetime | None
    sources: tuple[str, ...]
    dropped: int
    synthetic: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Compared:
    """A measure (``log_mae``, ``pinball_90``; smaller is better) of the model and of a rival on the same jobs."""

    measure: str
    model: float
    rival: str
    of_rival: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolSkill:
    """The skill of the demand model against the best baseline, in one pool at one horizon."""

    pool: str
    minutes: int
    skill: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelVersion:
    """One registered version: from what it was made, when, how it measured, and which alias it holds.

    ``rows`` are the jobs it was made from, ``fitted_until`` the last moment of history it has seen. ``compared`` and
    ``skills`` were measured before it was ever served, ``reasons`` are why it was, or was not, promoted.
    """

    version: str
    aliases: tuple[str, ...]
    made_at: datetime
    fitted_until: datetime
    rows: int
    data_digest: str
    synthetic: bool
    compared: tuple[Compared, ...] = ()
    skills: tuple[PoolSkill, ...] = ()
    reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RegisteredModel:
    """What is registered under one name: some versions, newest first, and how many there are ``in_all``."""

    name: str
    versions: tuple[ModelVersion, ...]
    in_all: int


class DashboardData(Protocol):
    """Everything the pages read."""

    def now(self) -> datetime:
        """The moment the pages speak of."""
        ...

    def advice(self) -> Advice:
        """The newest advice; Transient if no cycle has run yet."""
        ...

    def money(self) -> Money:
        """Prices, for money beside minutes."""
        ...

    def history(self) -> HistorySummary:
        """What the advice stands on."""
        ...

    def recent_demand(self, pool: str, hours: float) -> tuple[DemandPoint, ...]:
        """The pool's demand over the last ``hours``, oldest first."""
        ...

    def jobs(self, text: str | None, limit: int) -> tuple[JobView, ...]:
        """The newest jobs whose id, user, namespace or name holds ``text``."""
        ...

    def job(self, job_id: str, source: str | None = None) -> JobView | None:
        """One job, None if it is unknown; Refused if several sources have one of that id and none is named."""
        ...

    def kept_promises(self, days: int) -> tuple[KeptPromises, ...]:
        """How promises to jobs submitted in the last ``days`` were kept, by day (UTC) and origin, oldest first."""
        ...

    def registered(self) -> tuple[RegisteredModel, ...]:
        """What the registry holds; Transient if it cannot be reached."""
        ...
