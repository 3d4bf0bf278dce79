"""The page of one pool: what to change there, and the curve, forecast and reasons behind each number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import yaml

from advisor.domain.forecasts import DemandForecast, DurationDistribution, HorizonForecast
from advisor.domain.plans import Change, PoolAdvice, Value, WarmPlan
from advisor.domain.slices import SliceClass
from dashboards.charts import Chart, demand_fan, duration_chart, slice_cost, warm_nodes
from dashboards.data import DemandPoint
from dashboards.pages.frame import Page, Seen, frame
from dashboards.pages.overview import SKILLED, ClassLine, DemandAhead, cost_change, pool_url, soon

__all__ = ["PoolPage", "pool_page"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolLink:
    """Another pool."""

    pool: Annotated[str, "NodePool."]
    url: Annotated[str, "The pool's own page."]


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceView(ClassLine):
    """The slice length of one class of task."""

    longest_minutes: Annotated[
        float | None, "The class holds tasks up to this predicted median; none for the last class."
    ]
    share_of_jobs: Annotated[float, "Share of the pool's jobs that fall into the class."]
    mean_minutes: Annotated[float, "Expected duration of a task of the class."]
    if_sliced_minutes: Annotated[float | None, "The best length should the class be sliced all the same."]
    rule_of_thumb_minutes: Annotated[float | None, "The usual rule: mean duration less the switch cost."]
    closed_form_minutes: Annotated[float, "Optimum of the square-root law, for comparison."]
    cost: Annotated[float, "GPU time lost per useful GPU time at the recommended length."]
    current_cost: Annotated[float | None, "GPU time lost per useful GPU time at the length in use."]
    quantum_minutes: Annotated[float | None, "Run that the next pre-emption should allow; none to let it end."]
    double_switch_minutes: Annotated[float | None, "The best length if a switch cost twice as much."]
    confidence: Annotated[str, "How far the jobs that have ended bear the length out: good, moderate or thin."]
    binding_constraint: Annotated[str | None, "What keeps the length from the lowest point of its curve."]
    reasons: Annotated[tuple[str, ...], "Why this length."]
    chart: Annotated[Chart | None, "Cost of every candidate length, with the chosen one and the one in use."]


@dataclass(frozen=True, slots=True, kw_only=True)
class DurationView:
    """How long the pool's next jobs may run."""

    p50_seconds: Annotated[float, "Half of the next jobs are expected to end within this time."]
    p90_seconds: Annotated[float, "Nine in ten of the next jobs are expected to end within this time."]
    mean_seconds: Annotated[float, "Expected duration; a few very long jobs pull it far above the median."]
    typical_seconds: Annotated[float, "The duration p whose window from p/2 to 2p holds the most jobs."]
    chart: Annotated[Chart, "Likelihood of every duration, and the share still running after it."]


@dataclass(frozen=True, slots=True, kw_only=True)
class HorizonRow(DemandAhead):
    """The forecast at one horizon."""

    skill: Annotated[
        float | None, "1 - loss / best baseline's loss on this pool's recent data; above 0 the model is better."
    ]
    served: Annotated[
        str, "Who answers at this horizon: the model, or a baseline where recent days speak against the model."
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class DemandView:
    """How many GPUs the pool will want."""

    now_gpus: Annotated[float, "GPUs running and pending now."]
    soon: Annotated[DemandAhead | None, "Demand at the horizon nearest to an hour; none where nothing is forecast."]
    skilled: Annotated[bool, SKILLED]
    horizons: Annotated[tuple[HorizonRow, ...], "The forecast at every horizon."]
    reasons: Annotated[tuple[str, ...], "What the forecast assumed."]
    chart: Annotated[Chart | None, "Demand over the last hours and the fan of its forecast."]


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmRow:
    """One more warm node."""

    nodes: Annotated[int, "Which warm node: the first, the second, ..."]
    cost_per_hour: Annotated[
        float, "Expected cost of having it ready, an hour of the time weighed: the boot in vain, and idling until used."
    ]
    saving_per_hour: Annotated[float, "Worth of the waiting it is expected to avoid, an hour of the time weighed."]
    probability_needed: Annotated[float, "Chance that demand climbs this many nodes above now within the time weighed."]
    horizon_minutes: Annotated[
        float | None, "The time weighed: of those past the start latency the one over which this node does best."
    ]
    chosen: Annotated[bool, "Whether it is among the recommended ones."]


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmView:
    """Warm capacity and keep-alive of the pool."""

    warm_gpus: Annotated[int, "GPUs to have ready before the demand arrives, in whole nodes."]
    boot_nodes: Annotated[int, "Nodes up to which booting ahead of demand pays."]
    keep_nodes: Annotated[int, "Nodes up to which keeping an idle one pays."]
    node_gpus: Annotated[int, "GPUs of one node."]
    keep_alive_seconds: Annotated[int, "How long an empty node should stay (consolidateAfter)."]
    current_keep_alive: Annotated[str | None, "consolidateAfter as it is; none where no change of it is proposed."]
    start_latency_seconds: Annotated[float, "From asking for a node to a usable GPU, P90."]
    served: Annotated[str, "Who forecast the rises of demand: the model, or a simple baseline."]
    curve: Annotated[tuple[WarmRow, ...], "What the first, second, ... warm node costs and saves."]
    reasons: Annotated[tuple[str, ...], "Why so many."]
    chart: Annotated[Chart | None, "Marginal cost and saving of each warm node."]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeRow:
    """One field that should differ from what it is."""

    object: Annotated[str, "The object to change."]
    field: Annotated[str, "The field of that object."]
    old: Annotated[Value, "Its value now."]
    new: Annotated[Value, "Its value as proposed."]
    allowed: Annotated[bool, "Whether every guard allows the change."]
    reasons: Annotated[tuple[str, ...], "Why it is proposed, or which guard refuses it."]


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolPage(Page):
    """One pool."""

    pool: Annotated[str, "NodePool."]
    others: Annotated[tuple[PoolLink, ...], "The other pools."]
    sharing_factor: Annotated[int, "Shares that one GPU is cut into; 1 is the whole GPU."]
    gpu_limit: Annotated[int | None, "Recommended limit of the pool's GPUs; none leaves it unlimited."]
    switch_cost_minutes: Annotated[
        float, "What a switch at a slice boundary costs: checkpoint, requeue, restore, relaunch."
    ]
    classes: Annotated[tuple[SliceView, ...], "Slice lengths by class of task, shortest tasks first."]
    slice_reasons: Annotated[tuple[str, ...], "What holds for the slice lengths of all classes."]
    durations: Annotated[DurationView, "How long the pool's next jobs may run."]
    demand: Annotated[DemandView, "How many GPUs the pool will want."]
    warm: Annotated[WarmView, "Warm capacity and keep-alive."]
    changes: Annotated[tuple[ChangeRow, ...], "What should change, and what a guard refuses."]
    manifest: Annotated[str | None, "The allowed changes for `kubectl apply --server-side`; none where there are none."]
    manifest_notes: Annotated[tuple[str, ...], "Where the manifest is of no use: where the pool may be no NodePool."]
    reasons: Annotated[tuple[str, ...], "What holds for the whole pool, beside the reasons of its parts."]


def pool_page(seen: Seen, found: PoolAdvice, recent: tuple[DemandPoint, ...]) -> PoolPage:
    """The page of one pool of the newest advice, with its recent demand."""
    pools = () if seen.advice is None else seen.advice.pools
    currency = "" if seen.money is None else seen.money.currency
    return PoolPage(
        frame=frame(seen),
        pool=found.pool,
        others=tuple(PoolLink(pool=p.pool, url=pool_url(p.pool)) for p in pools if p.pool != found.pool),
        sharing_factor=found.sharing_factor,
        gpu_limit=found.gpu_limit,
        switch_cost_minutes=found.slice_plan.switch_cost_minutes,
        classes=tuple(_slice(one, position) for position, one in enumerate(found.slice_plan.classes)),
        slice_reasons=found.slice_plan.reasons,
        durations=_durations(found.durations),
        demand=_demand(found.demand, recent),
        warm=_warm(found.warm, found.changes, currency),
        changes=tuple(_change(change) for change in found.changes),
        manifest=_manifest(found),
        manifest_notes=found.manifest_notes,
        reasons=_own_reasons(found),
    )


def _own_reasons(pool: PoolAdvice) -> tuple[str, ...]:
    # The advice sums up its parts, each line under the part's name; on the page each part says it itself.
    said = {*pool.slice_plan.reasons, *pool.warm.reasons, *pool.demand.reasons}
    return tuple(line for line in pool.reasons if line not in said and line.partition(": ")[2] not in said)


def _slice(one: SliceClass, position: int) -> SliceView:
    return SliceView(
        name=one.name,
        longest_minutes=one.longest_minutes,
        share_of_jobs=one.share_of_jobs,
        mean_minutes=one.mean_minutes,
        minutes=one.minutes,
        if_sliced_minutes=one.if_sliced_minutes,
        current_minutes=one.current_minutes,
        rule_of_thumb_minutes=one.rule_of_thumb_minutes,
        closed_form_minutes=one.closed_form_minutes,
        cost=one.cost,
        current_cost=one.current_cost,
        cost_change=cost_change(one),
        quantum_minutes=one.quantum_minutes,
        double_switch_minutes=one.double_switch_minutes,
        confidence=one.confidence,
        binding_constraint=one.binding_constraint,
        reasons=one.reasons,
        chart=slice_cost(one, position),
    )


def _durations(durations: DurationDistribution) -> DurationView:
    return DurationView(
        p50_seconds=durations.median,
        p90_seconds=durations.quantile(0.9),
        mean_seconds=durations.mean,
        typical_seconds=durations.typical,
        chart=duration_chart("durations", "How long the next jobs may run", durations),
    )


def _demand(demand: DemandForecast, recent: tuple[DemandPoint, ...]) -> DemandView:
    return DemandView(
        now_gpus=demand.gpus_now,
        soon=soon(demand),
        skilled=demand.skilled,
        horizons=tuple(_horizon(horizon) for horizon in demand.horizons),
        reasons=demand.reasons,
        chart=demand_fan(recent, demand),
    )


def _horizon(horizon: HorizonForecast) -> HorizonRow:
    return HorizonRow(
        minutes=horizon.horizon_minutes,
        p50_gpus=horizon.quantile(0.5),
        p90_gpus=horizon.quantile(0.9),
        skill=horizon.skill,
        served=horizon.served,
    )


def _warm(warm: WarmPlan, changes: tuple[Change, ...], currency: str) -> WarmView:
    chosen = warm.warm_gpus // warm.node_gpus
    current = next((change.old for change in changes if change.field.endswith("consolidateAfter")), None)
    return WarmView(
        warm_gpus=warm.warm_gpus,
        boot_nodes=warm.boot_nodes,
        keep_nodes=warm.keep_nodes,
        node_gpus=warm.node_gpus,
        keep_alive_seconds=warm.keep_alive_seconds,
        current_keep_alive=None if current is None else str(current),
        start_latency_seconds=warm.start_latency_seconds,
        served=warm.served,
        curve=tuple(
            WarmRow(
                nodes=point.nodes,
                cost_per_hour=point.cost_per_hour,
                saving_per_hour=point.saving_per_hour,
                probability_needed=point.probability_needed,
                horizon_minutes=point.horizon_minutes,
                chosen=point.nodes <= chosen,
            )
            for point in warm.curve
        ),
        reasons=warm.reasons,
        chart=warm_nodes(warm, currency),
    )


def _change(change: Change) -> ChangeRow:
    return ChangeRow(
        object=change.object,
        field=change.field,
        old=change.old,
        new=change.new,
        allowed=change.allowed,
        reasons=change.reasons,
    )


def _manifest(pool: PoolAdvice) -> str | None:
    documents = [*([pool.patch] if pool.patch is not None else []), *pool.manifests]
    if not documents:
        return None
    spaces = dict.fromkeys(one["metadata"].get("namespace") for one in documents if isinstance(one["metadata"], dict))
    first = "".join(
        f"# once, where it is not there yet: kubectl create namespace {space}\n" for space in spaces if space
    )
    # A name of the history may hold a line break, and a comment ends with its line.
    notes = "".join(f"# note: {' '.join(note.split())}\n" for note in pool.manifest_notes)
    return notes + first + yaml.safe_dump_all(documents, sort_keys=False)
