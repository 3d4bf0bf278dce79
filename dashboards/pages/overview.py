"""The first page: every pool, what is recommended against what is, and what needs attention first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated
from urllib.parse import quote

from advisor.domain.forecasts import DemandForecast
from advisor.domain.plans import PoolAdvice
from advisor.domain.slices import SliceClass
from dashboards.pages.frame import Page, Seen, frame

__all__ = [
    "SKILLED",
    "ClassLine",
    "DemandAhead",
    "OverviewPage",
    "PoolRow",
    "cost_change",
    "overview_page",
    "pool_url",
    "soon",
]

SKILLED = "Whether at least one horizon is served by the model with skill above 0; without, no capacity is changed."
"""The help of every ``skilled``."""

_SOON_MINUTES = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassLine:
    """The slice length of one class in one line."""

    name: Annotated[str, "Class of task, by predicted duration; each class has its own slice length."]
    minutes: Annotated[float | None, "Recommended slice length; none where the class is better left unsliced."]
    current_minutes: Annotated[float | None, "Slice length in use."]
    cost_change: Annotated[float | None, "Change of lost GPU time by the recommended length, relative to today's."]


@dataclass(frozen=True, slots=True, kw_only=True)
class DemandAhead:
    """Demand so many minutes from now."""

    minutes: Annotated[int, "Minutes from now."]
    p50_gpus: Annotated[float, "Demand with even odds of being exceeded."]
    p90_gpus: Annotated[float, "Demand that is exceeded once in ten times."]


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolRow:
    """One pool in one row."""

    pool: Annotated[str, "NodePool."]
    url: Annotated[str, "The pool's own page."]
    classes: Annotated[tuple[ClassLine, ...], "Slice lengths by class of task, shortest tasks first."]
    warm_gpus: Annotated[int, "GPUs to have ready before the demand arrives, in whole nodes."]
    keep_alive_seconds: Annotated[int, "How long an empty node should stay (consolidateAfter)."]
    sharing_factor: Annotated[int, "Shares that one GPU is cut into; 1 is the whole GPU."]
    demand_now_gpus: Annotated[float, "GPUs running and pending now."]
    soon: Annotated[DemandAhead | None, "Demand at the horizon nearest to an hour; none where nothing is forecast."]
    skilled: Annotated[bool, SKILLED]
    changes_allowed: Annotated[int, "Changes proposed that every guard allows."]
    changes_refused: Annotated[int, "Changes that a guard refuses; the pool's page says why."]


@dataclass(frozen=True, slots=True, kw_only=True)
class OverviewPage(Page):
    """Every pool."""

    pools: Annotated[tuple[PoolRow, ...], "Pools, those with something to change first."]
    changes_allowed: Annotated[int, "Changes proposed over all pools."]
    changes_refused: Annotated[int, "Changes refused by a guard over all pools."]
    warm_gpus: Annotated[int, "GPUs to have ready over all pools."]
    demand_now_gpus: Annotated[float, "GPUs running and pending over all pools."]


def overview_page(seen: Seen) -> OverviewPage:
    """The overview from what was read; without advice it is empty, and its frame says why."""
    pools = () if seen.advice is None else seen.advice.pools
    rows = sorted((_row(pool) for pool in pools), key=_attention)
    return OverviewPage(
        frame=frame(seen),
        pools=tuple(rows),
        changes_allowed=sum(row.changes_allowed for row in rows),
        changes_refused=sum(row.changes_refused for row in rows),
        warm_gpus=sum(row.warm_gpus for row in rows),
        demand_now_gpus=sum(row.demand_now_gpus for row in rows),
    )


def pool_url(pool: str) -> str:
    """The address of a pool's page."""
    return f"/pools/{quote(pool, safe='')}"


def cost_change(one: SliceClass) -> float | None:
    """Change of a class's cost against today's, relative to it; None where today's is not known."""
    if one.current_cost is None or one.current_cost <= 0:
        return None
    return one.cost / one.current_cost - 1.0


def soon(demand: DemandForecast) -> DemandAhead | None:
    """Demand at the horizon nearest to an hour; None where nothing is forecast."""
    if not demand.horizons:
        return None
    nearest = min(demand.horizons, key=lambda horizon: abs(horizon.horizon_minutes - _SOON_MINUTES))
    return DemandAhead(minutes=nearest.horizon_minutes, p50_gpus=nearest.quantile(0.5), p90_gpus=nearest.quantile(0.9))


def _row(pool: PoolAdvice) -> PoolRow:
    allowed = sum(change.allowed for change in pool.changes)
    return PoolRow(
        pool=pool.pool,
        url=pool_url(pool.pool),
        classes=tuple(
            ClassLine(
                name=one.name,
                minutes=one.minutes,
                current_minutes=one.current_minutes,
                cost_change=cost_change(one),
            )
            for one in pool.slice_plan.classes
        ),
        warm_gpus=pool.warm.warm_gpus,
        keep_alive_seconds=pool.warm.keep_alive_seconds,
        sharing_factor=pool.sharing_factor,
        demand_now_gpus=pool.demand.gpus_now,
        soon=soon(pool.demand),
        skilled=pool.demand.skilled,
        changes_allowed=allowed,
        changes_refused=len(pool.changes) - allowed,
    )


def _attention(row: PoolRow) -> tuple[bool, float, str]:
    # What can be acted on comes first, the largest saving of it before the others.
    changes = [line.cost_change for line in row.classes if line.cost_change is not None]
    return (row.changes_allowed == 0, min(changes, default=0.0), row.pool)
