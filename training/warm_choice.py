"""Which rule of warm capacity to serve: the one that a replay of the pool's own past speaks for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from advisor.domain.warm_reports import KEEP_ALIVE, WarmComparison, WarmPoint
from training.warm_frontier import at_equal_cost, wait_at

__all__ = ["ADVISOR", "Choice", "chosen", "comparison"]

ADVISOR = "advisor"
_ABOVE_LEAST = (1.01, 1.03, 1.05, 1.10)


@dataclass(frozen=True, slots=True)
class Choice:
    """The rule to serve, and why; ``relative`` is each candidate's wait against keep-alive's at equal cost, less 1."""

    name: str
    reason: str
    relative: Mapping[str, float]


def chosen(
    curves: Mapping[str, Sequence[WarmPoint]], candidates: Sequence[str], measure: str = "mean_wait_minutes"
) -> Choice:
    """The candidate with the least wait at equal cost, on average over costs a little above keep-alive's least.

    ``measure`` is the wait that counts. Keep-alive alone wins where no candidate waits less.
    """
    theirs = curves[KEEP_ALIVE]
    least = min(point.cost for point in theirs)
    costs = [least * factor for factor in _ABOVE_LEAST]
    base = [wait_at(theirs, cost, measure) for cost in costs]
    relative = {}
    for name in candidates:
        pairs = [(wait_at(curves[name], cost, measure), wait) for cost, wait in zip(costs, base, strict=True)]
        known = [ours / wait - 1.0 for ours, wait in pairs if ours is not None and wait]
        if known:
            relative[name] = sum(known) / len(known)
    if not relative:
        return Choice(candidates[0], "the time before the split had no waits to tell the rules apart", {})
    best = min(relative, key=lambda name: relative[name])
    if relative[best] >= 0.0:
        return Choice(KEEP_ALIVE, "on the time before the split no rule waited less than keep-alive alone", relative)
    told = ", ".join(f"{name} {100 * found:+.0f} %" for name, found in relative.items())
    return Choice(best, f"wait against keep-alive at equal cost before the split: {told}", relative)


def comparison(curves: Mapping[str, tuple[WarmPoint, ...]], choice: Choice) -> WarmComparison:
    """Every curve, the advisor's being that of the rule it would have served."""
    shown = {ADVISOR: curves[choice.name], **curves}
    return WarmComparison(curves=shown, at_equal_cost=at_equal_cost(shown), served=choice.name, reason=choice.reason)
