"""How far one change may go at once, and what was wanted lately.

A forecast that swings around the size of a node would swing the cluster with it. So a limit grows at once
and shrinks only to the most that was wanted within a quiet while, and no number moves further in one step
than by a factor.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from advisor.cluster.fields import CONSOLIDATE_AFTER, GPU_LIMIT
from advisor.domain.decisions import DecisionRecord
from advisor.domain.nodepools import NodePool
from advisor.domain.plans import Change
from advisor.reconciler.actions import CHUNK_GPUS, SLICE_LENGTH, WARM_CHUNKS, amount, shown_amount

__all__ = ["RecentWants", "changes_per_hour", "step_bounds", "stepped"]

_ALWAYS_REACHED = {CONSOLIDATE_AFTER: 30.0}
"""A factor of nothing is nothing: from any lower value one step may go this far, the shortest Karpenter can tell."""
_GRAIN = {CONSOLIDATE_AFTER: 1.0, SLICE_LENGTH: 1.0 / 60.0}
"""Both are written in whole seconds; a slice length counts in minutes."""
_HAIR = 1e-9


@dataclass(frozen=True, slots=True)
class RecentWants:
    """The GPU limits wanted lately: pool to (time, GPUs), one entry a look, oldest first."""

    looks: Mapping[str, tuple[tuple[datetime, float], ...]] = field(default_factory=dict)

    def remembering(self, now: datetime, pool: str, wanted: float, keep_minutes: float) -> RecentWants:
        """These wants and the one of ``now``; those older than ``keep_minutes`` are dropped, but for the last.

        The last one before the window stays because it was what was wanted when the window began.
        """
        looks = self.looks.get(pool, ())
        older = sum(1 for time, _ in looks if time <= now - timedelta(minutes=keep_minutes))
        return RecentWants({**self.looks, pool: (*looks[max(older - 1, 0) :], (now, wanted))})

    def highest(self, pool: str, since: datetime) -> float | None:
        """The most that was wanted from ``since`` on, None where nobody has looked for that long."""
        before = [wanted for time, wanted in self.looks.get(pool, ()) if time <= since]
        if not before:
            return None
        return max(before[-1], *(wanted for time, wanted in self.looks[pool] if time > since), 0.0)


def step_bounds(change: Change, pool: NodePool, largest_step: float) -> tuple[float, float] | None:
    """The least and the most this change may set, given what is; None where any number may be set.

    At most ``largest_step`` times as much as is set now, with a least step, or else nothing would ever leave
    zero: a keep-alive may always rise to 30 s, a count moves by at least one, a limit by whole nodes of the
    largest type. Warm capacity may be given up at once: holding it while the jobs it was meant for arrive
    would pay for them twice.
    """
    old = amount(change.field, change.old)
    if old is None or math.isinf(old) or change.field == CHUNK_GPUS:
        return None
    if change.field == GPU_LIMIT:
        return _limit_bounds(old, pool.largest_node_gpus, largest_step)
    if change.field == WARM_CHUNKS:
        return 0.0, max(math.floor(old * largest_step), old + 1)
    grain = _GRAIN.get(change.field, 1.0)
    low, high = old / largest_step, max(old * largest_step, _ALWAYS_REACHED.get(change.field, 0.0))
    return math.ceil(low / grain - _HAIR) * grain, math.floor(high / grain + _HAIR) * grain


def _limit_bounds(old: float, node: int, largest_step: float) -> tuple[float, float]:
    one_less = max((math.ceil(old / node - _HAIR) - 1) * node, 0)
    one_more = (math.floor(old / node + _HAIR) + 1) * node
    low = math.ceil(old / largest_step / node - _HAIR) * node
    high = math.floor(old * largest_step / node + _HAIR) * node
    return min(low, one_less), max(high, one_more)


def stepped(change: Change, pool: NodePool, largest_step: float) -> Change:
    """The change itself, or as much of it as one step allows, saying where it is headed."""
    bounds, wanted = step_bounds(change, pool, largest_step), amount(change.field, change.new)
    old = amount(change.field, change.old)
    if bounds is None or wanted is None or old is None or bounds[0] - _HAIR <= wanted <= bounds[1] + _HAIR:
        return change
    reached = min(max(wanted, bounds[0]), bounds[1])
    within = old / largest_step - _HAIR <= reached <= old * largest_step + _HAIR
    rule = "at most" if within else "the least there is, though more than"
    reason = f"one step towards {change.new}: {rule} {largest_step:g} times as much or as little at once"
    return replace(change, new=shown_amount(change.field, reached), reasons=(*change.reasons, reason))


def changes_per_hour(records: Iterable[DecisionRecord], now: datetime) -> int:
    """How many changes were made to the cluster within the hour before ``now``."""
    since = now - timedelta(hours=1)
    return sum(1 for record in records if record.applied and since < record.time <= now)
