"""The difference between advice and a NodePool, as changes; running it on its own result gives nothing.

Only fields that never replace a node can be named here. Warm capacity and the slice length live on
objects of our own, so that whoever manages the NodePool keeps it: a CapacityBuffer with its PodTemplate,
and a ConfigMap whose annotation ``slice-advisor.io/slice-length`` holds the pool's slice length.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from advisor.cluster.fields import CONSOLIDATE_AFTER, GPU_LIMIT, consolidate_after_seconds, shown_consolidate_after
from advisor.cluster.projection import SLICE_LENGTH_ANNOTATION
from advisor.domain.nodepools import GPU_RESOURCE, Node, NodePool, WarmBuffer
from advisor.domain.plans import Change, PoolAdvice, Value
from advisor.domain.quantities import LARGEST_QUANTITY, parse_quantity
from advisor.domain.slices import SliceClass
from advisor.domain.units import counted, parse_duration
from advisor.reconciler.limits import limit_effect, whole_node_limit

__all__ = [
    "BUFFER",
    "CHUNK_GPUS",
    "NODE_POOL",
    "SETTING",
    "SLICE_LENGTH",
    "WARM_CHUNKS",
    "amount",
    "applied_to",
    "diff",
    "kind_of",
    "main_class",
    "own_name",
    "shown_amount",
    "wanted_limit",
]

NODE_POOL = "NodePool"
BUFFER = "CapacityBuffer"
SETTING = "ConfigMap"

WARM_CHUNKS = "spec.replicas"
"""Of our CapacityBuffer: chunks kept ready, each a node of its pool."""
CHUNK_GPUS = f'podTemplate.spec.containers[0].resources.requests["{GPU_RESOURCE}"]'
"""Of our CapacityBuffer's PodTemplate: GPUs of one chunk."""
SLICE_LENGTH = f'metadata.annotations["{SLICE_LENGTH_ANNOTATION}"]'
"""Of our ConfigMap: the pool's slice length."""

_SAME = 1e-9
_LONGEST_NAME = 40
_UNFIT = re.compile(r"[^a-z0-9-]+")


@dataclass(frozen=True, slots=True)
class _Wanted:
    """Where one field should arrive, and why."""

    object: str
    field: str
    old: Value
    new: Value
    reasons: tuple[str, ...]


def diff(advice: PoolAdvice, pool: NodePool, nodes: Sequence[Node] = ()) -> tuple[Change, ...]:
    """What would have to change for the pool to be as advised; not yet judged, so none is allowed.

    ``nodes`` are the pool's own, and say what a limit means beside them. A field the advice says
    nothing about is left alone; in particular no limit is ever taken away.
    """
    wanted = (_keep_alive(advice, pool), _limit(advice, pool, nodes), *_warm(advice, pool), _slice_length(advice, pool))
    return tuple(
        Change(object=one.object, field=one.field, old=one.old, new=one.new, allowed=False, reasons=one.reasons)
        for one in wanted
        if one is not None and not _same(one)
    )


def wanted_limit(advice: PoolAdvice, pool: NodePool) -> float | None:
    """The limit advised, in whole nodes, whether or not it differs from what is; None where none is advised."""
    return None if advice.gpu_limit is None else float(whole_node_limit(advice.gpu_limit, pool.node_gpus).gpus)


def amount(field: str, value: Value) -> float | None:
    """The number behind a value: seconds, GPUs, chunks or minutes; None where there is none."""
    if value is None or isinstance(value, bool):
        return None
    if field == CONSOLIDATE_AFTER:
        return consolidate_after_seconds(str(value))
    if field == SLICE_LENGTH:
        return parse_duration(str(value), field) / 60.0
    if field == GPU_LIMIT:
        # What is larger the API server caps; no float could hold all that a quantity can spell.
        most = Fraction(LARGEST_QUANTITY)
        return float(max(-most, min(parse_quantity(value, field), most)))
    return float(value) if isinstance(value, (int, float)) else None


def shown_amount(field: str, number: float) -> Value:
    """A number as its field is written: the inverse of :func:`amount`."""
    if field == CONSOLIDATE_AFTER:
        return shown_consolidate_after(number)
    if field == SLICE_LENGTH:
        return f"{number:g}m" if number == int(number) else f"{round(number * 60)}s"
    if field == GPU_LIMIT:
        return str(round(number))
    return round(number)


def kind_of(change: Change) -> str:
    """The kind of the object a change belongs to."""
    return change.object.partition("/")[0]


def own_name(pool: str) -> str:
    """The name of our own objects of a pool; where the pool's does not fit, shortened and told apart by a digest."""
    fit = _UNFIT.sub("-", pool.lower()).strip("-")[:_LONGEST_NAME].strip("-")
    told_apart = "" if fit == pool else "-" + hashlib.sha256(pool.encode()).hexdigest()[:6]
    return f"slice-advisor-{fit}{told_apart}"


def main_class(advice: PoolAdvice) -> SliceClass | None:
    """The class whose slice length stands for the pool: the one with most jobs; None where it is not to be sliced."""
    classes = advice.slice_plan.classes
    largest = max(classes, key=lambda one: one.share_of_jobs, default=None)
    return None if largest is None or largest.minutes is None else largest


def applied_to(pool: NodePool, changes: Sequence[Change]) -> NodePool:
    """The pool as it would be once these changes are made."""
    for change in changes:
        number = amount(change.field, change.new)
        if change.field == CONSOLIDATE_AFTER:
            pool = replace(pool, consolidate_after=str(change.new))
        elif change.field == GPU_LIMIT:
            pool = replace(pool, limits={**pool.limits, GPU_RESOURCE: str(change.new)})
        elif change.field == SLICE_LENGTH:
            pool = replace(pool, slice_minutes=number)
        elif kind_of(change) == BUFFER and number is not None:
            before = pool.warm or WarmBuffer(0, pool.largest_node_gpus)
            part = {"replicas" if change.field == WARM_CHUNKS else "gpus_each": round(number)}
            pool = replace(pool, warm=replace(before, **part))
    return pool


def _same(one: _Wanted) -> bool:
    before, after = amount(one.field, one.old), amount(one.field, one.new)
    if before is None or after is None:
        return one.old == one.new
    return before == after or math.isclose(before, after, rel_tol=0.0, abs_tol=_SAME)


def _keep_alive(advice: PoolAdvice, pool: NodePool) -> _Wanted | None:
    if pool.replicas is not None:
        return None
    new = shown_consolidate_after(advice.warm.keep_alive_seconds)
    reasons = advice.warm.keep_alive_reasons or advice.warm.reasons
    return _Wanted(f"{NODE_POOL}/{pool.name}", CONSOLIDATE_AFTER, pool.consolidate_after, new, reasons)


def _limit(advice: PoolAdvice, pool: NodePool, nodes: Sequence[Node]) -> _Wanted | None:
    if advice.gpu_limit is None or pool.replicas is not None:
        return None
    whole = whole_node_limit(advice.gpu_limit, pool.node_gpus)
    effect = limit_effect(nodes, whole.gpus)
    reasons = (*whole.reasons, *effect.reasons) or (f"the demand ahead fits in {counted(whole.gpus, 'GPU')}",)
    return _Wanted(f"{NODE_POOL}/{pool.name}", GPU_LIMIT, pool.gpu_limit, str(whole.gpus), reasons)


def _chunks(advice: PoolAdvice) -> int:
    return math.ceil(advice.warm.warm_gpus / advice.warm.node_gpus - _SAME)


def _warm(advice: PoolAdvice, pool: NodePool) -> tuple[_Wanted, ...]:
    """Chunks to keep ready, and their size where that changes too; a pool without a buffer needs none for zero."""
    chunks, before = _chunks(advice), pool.warm
    if pool.replicas is not None or (chunks == 0 and (before is None or before.replicas == 0)):
        return ()
    name = f"{BUFFER}/{own_name(pool.name)}"
    old = None if before is None else before.replicas
    wanted = [_Wanted(name, WARM_CHUNKS, old, chunks, advice.warm.reasons)]
    size = advice.warm.node_gpus
    if chunks > 0 and (before is None or before.gpus_each != size):
        reason = f"one chunk is one node of {counted(size, 'GPU')}"
        wanted.append(_Wanted(name, CHUNK_GPUS, None if before is None else before.gpus_each, size, (reason,)))
    return tuple(wanted)


def _slice_length(advice: PoolAdvice, pool: NodePool) -> _Wanted | None:
    main = main_class(advice)
    if main is None or main.minutes is None:
        return None
    old = None if pool.slice_minutes is None else shown_amount(SLICE_LENGTH, pool.slice_minutes)
    new = shown_amount(SLICE_LENGTH, main.minutes)
    several = len(advice.slice_plan.classes) > 1
    whose = (f"for the {main.name} tasks, which most jobs of the pool are",) if several else ()
    reasons = (*whose, *main.reasons)
    return _Wanted(f"{SETTING}/{own_name(pool.name)}", SLICE_LENGTH, old, new, reasons)
