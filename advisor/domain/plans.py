"""Plans: warm capacity, the changes proposed, and the advice of one cycle. Each carries its reasons."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from advisor.domain.forecasts import DemandForecast, DurationDistribution
from advisor.domain.slices import SlicePlan
from advisor.domain.units import utc
from advisor.errors import Transient

__all__ = ["Advice", "Change", "Mode", "Money", "PoolAdvice", "PoolWithoutAdvice", "WarmCurvePoint", "WarmPlan"]

Value = str | int | float | bool | None


class Mode(StrEnum):
    """How far the advisor may go on its own."""

    OBSERVE = "Observe"
    RECOMMEND = "Recommend"
    APPLY = "Apply"


@dataclass(frozen=True, slots=True)
class Money:
    """What one GPU-hour and one waiting GPU-minute cost, in the user's currency; see ``planning.costs``."""

    per_gpu_hour: float
    per_waiting_gpu_minute: float
    currency: str = "USD"


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmCurvePoint:
    """One more warm node: what it is expected to cost and to save, in money per hour of ``horizon_minutes``.

    ``probability_needed`` is the chance that need climbs by so many nodes within that horizon, the one at
    which the node does best; None where it is not known.
    """

    nodes: int
    cost_per_hour: float
    saving_per_hour: float
    probability_needed: float
    horizon_minutes: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmPlan:
    """Warm capacity of one pool: GPUs to have ready, and how long an empty node stays.

    ``boot_nodes`` is the level up to which booting ahead pays, ``keep_nodes`` the level up to which
    keeping an idle node pays. ``warm_gpus`` are physical GPUs, whole nodes. ``keep_alive_reasons`` are those of
    ``reasons`` that carry the keep-alive; empty where all of them do.
    """

    pool: str
    warm_gpus: int
    boot_nodes: int
    keep_nodes: int
    node_gpus: int
    keep_alive_seconds: int
    start_latency_seconds: float
    served: str
    curve: tuple[WarmCurvePoint, ...]
    reasons: tuple[str, ...]
    keep_alive_reasons: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One field of one object that should differ from what it is, and whether a guard allows it."""

    object: str
    field: str
    old: Value
    new: Value
    allowed: bool
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolAdvice:
    """Everything recommended for one pool in one cycle.

    ``durations`` is what the pool's next jobs are expected to last (the mixture the slice plan was
    derived from), ``patch`` the allowed changes as a manifest for server-side apply, None if there are none.
    ``manifests`` are the objects of our own that belong beside it (warm capacity, the slice length), and
    ``manifest_notes`` say where these manifests are of no use.
    """

    pool: str
    slice_plan: SlicePlan
    sharing_factor: int
    warm: WarmPlan
    gpu_limit: int | None
    demand: DemandForecast
    durations: DurationDistribution
    changes: tuple[Change, ...] = ()
    patch: dict[str, object] | None = None
    reasons: tuple[str, ...] = ()
    manifests: tuple[dict[str, object], ...] = ()
    manifest_notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class PoolWithoutAdvice:
    """A pool that could not be advised on in one cycle, and why: the sentence of the error, remedy included."""

    pool: str
    reason: str

    def __str__(self) -> str:
        """For people."""
        return f"no advice for pool {self.pool}: {self.reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Advice:
    """Everything recommended in one cycle.

    ``models`` maps ``durations`` and ``demand`` to the version served, None where a baseline is.
    ``cluster_assumed`` says that no cluster was described: what is set "now" was assumed with it.
    ``without_advice`` are the pools of the cluster that are not among ``pools``.
    """

    time: datetime
    mode: Mode
    pools: tuple[PoolAdvice, ...]
    models: dict[str, str | None] = field(default_factory=dict)
    synthetic: bool = False
    reasons: tuple[str, ...] = ()
    cluster_assumed: bool = False
    without_advice: tuple[PoolWithoutAdvice, ...] = ()

    def __post_init__(self) -> None:
        """Keep the time in UTC."""
        object.__setattr__(self, "time", utc(self.time, "time"))

    def of_pool(self, name: str) -> PoolAdvice | None:
        """The advice for the pool of that name, None where the cluster has no such pool.

        Raises:
            Transient: it has one, which could not be advised on.
        """
        for one in self.without_advice:
            if one.pool == name:
                raise Transient(str(one))
        return next((pool for pool in self.pools if pool.pool == name), None)
