"""Guards: small rules that allow a change or say why not.

Two lists. Guards of *safety* decide whether a change is fit to be made by anybody, and so whether it is
shown as allowed and stands in the printed patch. Guards of *writing* decide whether this program may
make it itself. Every guard is asked, so that a person sees all the reasons at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import TypeAlias

from advisor.cluster.fields import BUDGETS, CONSOLIDATE_AFTER, GPU_LIMIT, REPLICAS, WEIGHT, WRITABLE_FIELDS
from advisor.cluster.port import FIELD_MANAGER
from advisor.domain.nodepools import NodePool
from advisor.domain.plans import Change, Mode
from advisor.domain.units import shown_duration
from advisor.errors import Refused
from advisor.reconciler.actions import (
    BUFFER,
    CHUNK_GPUS,
    NODE_POOL,
    SETTING,
    SLICE_LENGTH,
    WARM_CHUNKS,
    amount,
    kind_of,
    own_name,
)
from advisor.reconciler.budgets import budgets_from_text, check_budget, check_carried_whole
from advisor.reconciler.pacing import RecentWants, step_bounds
from advisor.reconciler.warm import DEFAULT_CUTOFF, check_placeholder_priority

__all__ = [
    "PRIORITY",
    "SAFETY_GUARDS",
    "WRITE_GUARDS",
    "Guard",
    "GuardContext",
    "GuardRules",
    "judged",
    "reasons_not_to_write",
]

PRIORITY = "value"
"""Of a placeholder's PriorityClass."""

_PRIORITY_CLASS = "PriorityClass"
_OWN_FIELDS = {BUFFER: (WARM_CHUNKS, CHUNK_GPUS), SETTING: (SLICE_LENGTH,), _PRIORITY_CLASS: (PRIORITY,)}


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardRules:
    """The limits that guards hold changes to; pairs are the least and the most.

    ``stale_after_minutes`` is the greatest age of history and telemetry, ``observed_within_minutes`` of
    the look at the cluster. ``cool_down_minutes`` is the quiet time after a change of the same field of
    a pool, ``quiet_minutes`` how long a lower limit must have been enough. ``largest_step`` is a factor.
    ``patch_pools`` opts in to changing NodePools of others, ``take_over`` to forcing fields that somebody
    else has claimed. ``placeholder_cutoff`` is the priority below which an autoscaler starts nothing.
    """

    stale_after_minutes: float = 30.0
    observed_within_minutes: float = 5.0
    cool_down_minutes: float = 30.0
    quiet_minutes: float = 30.0
    largest_step: float = 2.0
    keep_alive_seconds: tuple[float, float] = (30.0, 7200.0)
    slice_minutes: tuple[float, float] = (1.0, 1440.0)
    most_warm_nodes: int = 8
    most_limit_gpus: int = 100_000
    patch_pools: bool = False
    take_over: bool = False
    placeholder_cutoff: int = DEFAULT_CUTOFF


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardContext:
    """What a guard may look at beside the change itself; all of it is known at ``now``.

    ``history_as_of`` is None where the history is empty, ``telemetry_as_of`` where no telemetry source
    is set up. ``wants`` None means that nobody keeps count of earlier looks (a single look by hand).
    ``busy_gpus`` are held by real work in the pool.
    """

    now: datetime
    mode: Mode
    pool: NodePool
    observed_at: datetime
    history_as_of: datetime | None
    telemetry_as_of: datetime | None = None
    skilled: bool = False
    busy_gpus: float = 0.0
    last_applied: datetime | None = None
    wants: RecentWants | None = None
    paused: bool = False
    rules: GuardRules = GuardRules()


Guard: TypeAlias = Callable[[Change, GuardContext], str | None]
"""Answers why a change must not be made, None where it may."""


def judged(change: Change, context: GuardContext) -> Change:
    """The change, allowed or not, with the reasons of every guard of safety that says no."""
    refusals = tuple(reason for guard in SAFETY_GUARDS if (reason := guard(change, context)) is not None)
    return replace(change, allowed=not refusals, reasons=(*change.reasons, *refusals))


def reasons_not_to_write(change: Change, context: GuardContext) -> tuple[str, ...]:
    """Why this program must leave the change to a person; empty where it may make it."""
    return tuple(reason for guard in WRITE_GUARDS if (reason := guard(change, context)) is not None)


def disruption_safe(change: Change, context: GuardContext) -> str | None:
    """Only fields that never replace a node, and of others' objects only NodePools."""
    kind, _, name = change.object.partition("/")
    if kind == NODE_POOL:
        if change.field == REPLICAS:
            return "fewer replicas make Karpenter remove busy nodes too; scaling a static pool is left to a person"
        if change.field not in WRITABLE_FIELDS:
            return f"{change.field} is not a field that may be changed without replacing nodes"
        return None if name == context.pool.name else f"{change.object} is not the pool this advice is for"
    if change.field not in _OWN_FIELDS.get(kind, ()):
        return f"{change.object} {change.field} is none of the fields of our own objects"
    if kind != _PRIORITY_CLASS and name != own_name(context.pool.name):
        return f"{change.object} is not an object of our own"
    return None


def observing_only(change: Change, context: GuardContext) -> str | None:
    """In Observe nothing is proposed."""
    del change
    return "mode Observe: nothing is proposed" if context.mode is Mode.OBSERVE else None


def fresh_look(change: Change, context: GuardContext) -> str | None:
    """The cluster was looked at recently enough."""
    del change
    return _too_old("the look at the cluster", context.observed_at, context, context.rules.observed_within_minutes)


def fresh_history(change: Change, context: GuardContext) -> str | None:
    """The job history reaches close enough to now."""
    del change
    if context.history_as_of is None:
        return "the history is empty"
    return _too_old("the history", context.history_as_of, context, context.rules.stale_after_minutes)


def fresh_telemetry(change: Change, context: GuardContext) -> str | None:
    """Telemetry, where there is a source of it, has no gap up to now."""
    del change
    if context.telemetry_as_of is None:
        return None
    return _too_old("the telemetry", context.telemetry_as_of, context, context.rules.stale_after_minutes)


def skilled(change: Change, context: GuardContext) -> str | None:
    """What follows from the demand forecast needs one that beats the best baseline here at some horizon."""
    if context.skilled or change.field not in (CONSOLIDATE_AFTER, GPU_LIMIT, WARM_CHUNKS, CHUNK_GPUS):
        return None
    return "no skill: at no horizon does the demand model of this pool beat the best baseline on its recent days"


def static_pool(change: Change, context: GuardContext) -> str | None:
    """A static pool has neither a weight nor GPU limits, and ignores consolidation."""
    if context.pool.replicas is None or kind_of(change) != NODE_POOL:
        return None
    if change.field in (GPU_LIMIT, WEIGHT, CONSOLIDATE_AFTER):
        return f"a static pool (replicas {context.pool.replicas}) takes no {change.field}"
    return None


def physical_gpus(change: Change, context: GuardContext) -> str | None:
    """Karpenter charges limits with what a node advertises, which on shared GPUs is shares and not GPUs."""
    if context.pool.sharing_factor == 1 or change.field not in (GPU_LIMIT, WARM_CHUNKS, CHUNK_GPUS):
        return None
    return (
        f"GPUs of this pool are shared {context.pool.sharing_factor} ways: advice counts physical GPUs, Karpenter "
        "would count shares; set this one by hand"
    )


def within_bounds(change: Change, context: GuardContext) -> str | None:
    """Every number stays between the least and the most its rules give, or at least comes nearer to them."""
    rules, number = context.rules, amount(change.field, change.new)
    bounds = {
        CONSOLIDATE_AFTER: rules.keep_alive_seconds,
        SLICE_LENGTH: rules.slice_minutes,
        GPU_LIMIT: (float(context.pool.largest_node_gpus), float(rules.most_limit_gpus)),
        WARM_CHUNKS: (0.0, float(rules.most_warm_nodes)),
    }.get(change.field)
    if bounds is None or number is None or bounds[0] <= number <= bounds[1]:
        return None
    old = amount(change.field, change.old)
    if old is not None and (old < number < bounds[0] or bounds[1] < number < old):
        return None
    return f"{change.new} is out of bounds: {bounds[0]:g} to {bounds[1]:g} {_unit(change)}"


def one_step(change: Change, context: GuardContext) -> str | None:
    """No number moves further at once than the largest step."""
    bounds = step_bounds(change, context.pool, context.rules.largest_step)
    number = amount(change.field, change.new)
    if bounds is None or number is None or bounds[0] - 1e-9 <= number <= bounds[1] + 1e-9:
        return None
    return f"from {change.old} to {change.new} is more than the largest step of {context.rules.largest_step:g} times"


def quiet_while(change: Change, context: GuardContext) -> str | None:
    """A limit is lowered only to the most that was wanted for a quiet while."""
    old, new = amount(change.field, change.old), amount(change.field, change.new)
    if change.field != GPU_LIMIT or context.wants is None or old is None or new is None or new >= old:
        return None
    minutes = context.rules.quiet_minutes
    highest = context.wants.highest(context.pool.name, context.now - timedelta(minutes=minutes))
    if highest is None:
        return f"a limit is lowered only after {minutes:g} quiet minutes, and the looks do not reach back that far"
    return f"{highest:g} GPUs were wanted within the last {minutes:g} min" if highest > new else None


def cool_down(change: Change, context: GuardContext) -> str | None:
    """A field rests after it was changed; raising a limit and following demand with warm capacity may not wait."""
    if context.last_applied is None or kind_of(change) == BUFFER:
        return None
    old, new = amount(change.field, change.old), amount(change.field, change.new)
    if change.field == GPU_LIMIT and old is not None and new is not None and new > old:
        return None
    rested = (context.now - context.last_applied).total_seconds()
    needed = context.rules.cool_down_minutes * 60.0
    if rested >= needed:
        return None
    return f"changed {shown_duration(rested)} ago; it rests for {shown_duration(needed)} after a change"


def whole_nodes(change: Change, context: GuardContext) -> str | None:
    """A limit is a multiple of the largest node."""
    number = amount(change.field, change.new) if change.field == GPU_LIMIT else None
    if number is None or number % context.pool.largest_node_gpus == 0:
        return None
    return (
        f"a limit of {change.new} GPUs is no multiple of the {context.pool.largest_node_gpus} GPUs of the largest node"
    )


def deliberate_never(change: Change, context: GuardContext) -> str | None:
    """``Never`` is somebody's word against consolidation, and no number to be adjusted."""
    del context
    if change.field != CONSOLIDATE_AFTER or change.old != "Never":
        return None
    return "consolidation was switched off by hand (Never); switching it on is a person's decision"


def warm_fits_limit(change: Change, context: GuardContext) -> str | None:
    """Warm capacity is subject to the pool's limit; what lies beyond would never come."""
    limit, chunks = amount(GPU_LIMIT, context.pool.gpu_limit), amount(change.field, change.new)
    if kind_of(change) != BUFFER or change.field != WARM_CHUNKS or limit is None or not chunks:
        return None
    needed = context.busy_gpus + chunks * context.pool.largest_node_gpus
    if needed <= limit:
        return None
    return f"{context.busy_gpus:g} busy GPUs and the warm ones make {needed:g}, beyond the pool's limit of {limit:g}"


def sound_budgets(change: Change, context: GuardContext) -> str | None:
    """Budgets are readable by Karpenter itself, and every entry in force is carried along."""
    if change.field != BUDGETS:
        return None
    try:
        budgets = budgets_from_text(str(change.new))
        for budget in budgets:
            check_budget(budget)
        check_carried_whole(context.pool.budgets, budgets)
    except Refused as error:
        return str(error)
    return None


def scalable_placeholder(change: Change, context: GuardContext) -> str | None:
    """A placeholder's priority lets real work pre-empt it, and the autoscaler still start nodes for it."""
    if kind_of(change) != _PRIORITY_CLASS or not isinstance(change.new, int):
        return None
    try:
        check_placeholder_priority(change.new, context.rules.placeholder_cutoff)
    except Refused as error:
        return str(error)
    return None


def apply_mode(change: Change, context: GuardContext) -> str | None:
    """Only in Apply does this program write."""
    del change
    return None if context.mode is Mode.APPLY else f"mode {context.mode}: left to a person"


def kill_switch(change: Change, context: GuardContext) -> str | None:
    """Nothing is written while paused."""
    del change
    return "paused: nothing is written until it is resumed" if context.paused else None


def opted_in(change: Change, context: GuardContext) -> str | None:
    """NodePools of others are changed only where their owner asked for it."""
    if kind_of(change) != NODE_POOL or context.pool.owned or context.rules.patch_pools:
        return None
    return "patching NodePools is not opted in to; the printed patch does it by hand"


def unclaimed(change: Change, context: GuardContext) -> str | None:
    """A field that somebody else claimed is theirs, unless taking over was asked for."""
    others = [name for name in context.pool.field_managers.get(change.field, ()) if name != FIELD_MANAGER]
    if kind_of(change) != NODE_POOL or not others or context.rules.take_over:
        return None
    return f"{change.field} is claimed by {', '.join(others)}: let it go there, or apply the printed patch there"


def _too_old(what: str, moment: datetime, context: GuardContext, minutes: float) -> str | None:
    age = (context.now - moment).total_seconds()
    if age <= minutes * 60.0:
        return None
    return f"stale: {what} is {shown_duration(age)} old, and {shown_duration(minutes * 60.0)} is the most"


def _unit(change: Change) -> str:
    return {CONSOLIDATE_AFTER: "s", SLICE_LENGTH: "min", GPU_LIMIT: "GPUs"}.get(change.field, "nodes")


SAFETY_GUARDS: tuple[Guard, ...] = (
    disruption_safe,
    observing_only,
    fresh_look,
    fresh_history,
    fresh_telemetry,
    skilled,
    static_pool,
    physical_gpus,
    within_bounds,
    one_step,
    quiet_while,
    cool_down,
    whole_nodes,
    deliberate_never,
    warm_fits_limit,
    sound_budgets,
    scalable_placeholder,
)
WRITE_GUARDS: tuple[Guard, ...] = (apply_mode, kill_switch, opted_in, unclaimed)
