"""Why a slice length was chosen, in sentences a person can check."""

from __future__ import annotations

import math
from collections.abc import Mapping

from advisor.domain.slices import CurvePoint
from advisor.domain.units import shown_duration
from advisor.planning.slice_bounds import Bounds
from advisor.planning.slice_classes import Grouping
from advisor.planning.slice_objective import flatness, max_utilisation, rule_of_thumb, square_root_law
from advisor.planning.slice_quantum import Quantum
from advisor.planning.slice_terms import SliceTerms

__all__ = [
    "binding_reason",
    "classes_reason",
    "curve_reason",
    "kept_reason",
    "law_reason",
    "quantum_reason",
    "sensitivity_reason",
    "shown_minutes",
    "thin_reason",
    "unstable_reason",
]

_NEAR = 1.05
_WORTH_SAYING = 0.005


def shown_minutes(minutes: float) -> str:
    """Minutes for a person to read."""
    return shown_duration(minutes * 60.0)


def curve_reason(curve: tuple[CurvePoint, ...], minutes: float) -> str:
    """The chosen cost beside its neighbours', and the range that is nearly as good."""
    by_length = {point.minutes: point for point in curve}
    lengths = sorted(by_length)
    at = lengths.index(minutes)
    beside = [by_length[lengths[i]] for i in (at - 1, at + 1) if 0 <= i < len(lengths)]
    cost = by_length[minutes].cost
    near = [p.minutes for p in curve if p.feasible and p.cost <= cost * _NEAR]
    compared = ", ".join(f"{shown_minutes(p.minutes)} {p.cost:.3f}" for p in beside)
    text = f"{shown_minutes(minutes)} loses {cost:.3f} GPU-minutes per useful GPU-minute ({compared})"
    if len(near) > 1:
        text += f"; anything from {shown_minutes(min(near))} to {shown_minutes(max(near))} loses at most 5 % more"
    return text


def kept_reason(minutes: float, best: float, cost_at: Mapping[float, float], margin: float) -> str:
    """Why the length in use stays although another is cheaper."""
    cost, least = cost_at[minutes], cost_at[best]
    cheaper = f"{shown_minutes(best)} belongs to the best plan"
    if least < cost:
        cheaper = f"{shown_minutes(best)} would lose {least:.3f}, {100 * (1 - least / cost):.2g}% less"
    return f"{shown_minutes(minutes)} is in use and stays: {cheaper}, and a plan must save {margin:.0%} to replace it"


def law_reason(mean_minutes: float, minutes: float, terms: SliceTerms) -> str:
    """The closed form and the rule of thumb beside the choice, and the most a GPU can do at that length."""
    law = square_root_law(mean_minutes, terms).minutes
    if math.isinf(law):
        law_text = "the square-root law has no finite optimum, since nothing is lost to long slices"
    elif law > 0.0:
        more = flatness(minutes / law) - 1.0
        law_text = f"the square-root law says {shown_minutes(law)}"
        if more >= _WORTH_SAYING:
            law_text += f" ({shown_minutes(minutes)} costs {more:.0%} more by it)"
    else:
        law_text = "the square-root law says 0, since switching is free"
    text = (
        f"mean {shown_minutes(mean_minutes)}: {law_text}; the rule mean less switch cost says "
        f"{shown_minutes(rule_of_thumb(mean_minutes, terms.switch_minutes))}; losing {shown_minutes(terms.switching)} "
        f"at each boundary leaves at most {max_utilisation(minutes, terms.switching):.0%} of a GPU useful"
    )
    if mean_minutes < terms.minimum_minutes:
        text += "; tasks this short are batched, several to a slice"
    return text


def binding_reason(binding: str, bounds: Bounds, terms: SliceTerms) -> str:
    """The rule that moved the choice away from the cheapest length of the grid."""
    if binding == "stability":
        return f"the pool's stability at a load of {terms.load or 0.0:.0%} decides"
    if binding == bounds.highest_rule and terms.latency is not None:
        kept = f", but not under {shown_minutes(bounds.lowest)} because of the {bounds.lowest_rule}"
        return (
            f"at most {shown_minutes(bounds.highest)}, so that urgent work waits over "
            f"{shown_minutes(terms.latency.minutes)} in at most {terms.latency.exceeded_share:.0%} of cases "
            f"with {terms.places} boundaries to wait for{kept if bounds.conflict else ''}"
        )
    text = f"at least {shown_minutes(bounds.lowest)} because of the {bounds.lowest_rule}"
    if bounds.conflict:
        text += f", although the promise to urgent work asks for at most {shown_minutes(max(bounds.highest, 0.0))}"
    return text


def unstable_reason(terms: SliceTerms) -> str:
    """That no length is stable, and what would mend it."""
    text = f"no length keeps the pool stable at a load of {terms.load or 0.0:.0%}: the least overhead is chosen"
    if terms.switch_share is None or terms.reclaim_share is None:
        return f"{text}; measuring how many boundaries switch and how much of the tails is reclaimed comes first"
    return f"{text}; more GPUs or cheaper switches are needed"


def thin_reason(ended_jobs: int, minutes: float, terms: SliceTerms, *, kept: bool) -> str:
    """That too little is known to recommend anything."""
    return (
        f"thin evidence: {ended_jobs} ended jobs, at least {terms.least_ended_jobs} are needed; "
        f"{shown_minutes(minutes)} is {'what is in use' if kept else 'the default'}, not a finding"
    )


def sensitivity_reason(minutes: float, double_minutes: float) -> str:
    """What twice the switch cost would change."""
    if double_minutes == minutes:
        return f"twice the switch cost would still give {shown_minutes(minutes)}"
    return f"twice the switch cost would give {shown_minutes(double_minutes)}"


def quantum_reason(found: Quantum, reached: float, *, sliced: bool, demanded: bool) -> str:
    """Whether stopping these tasks can help anyone, by the Gittins index with set-up cost."""
    lease = "run to the end" if found.minutes is None else f"look again after {shown_minutes(found.minutes)}"
    if not sliced:
        return (
            f"do not slice: only {reached:.0%} of these tasks reach an age at which a waiting one is worth more "
            f"than a switch (their own index says: {lease}), and no urgent work needs boundaries"
        )
    if demanded:
        return f"sliced for the sake of urgent work, whatever the index of the tasks themselves ({lease})"
    return (
        f"slicing pays: {reached:.0%} of these tasks reach an age at which a waiting one is worth more "
        f"than a switch (their own index says: {lease})"
    )


def classes_reason(grouping: Grouping) -> str:
    """Why this number of classes and not another."""
    count = len(grouping.groups)
    text = f"{count} class{'es' if count > 1 else ''}: {grouping.cost:.3f} lost per useful GPU-minute"
    for other, cost, saved, split in grouping.rejected:
        text += f"; {other} would cost {cost:.3f}, {abs(saved):.2f} GPUs {'less' if saved > 0 else 'more'}"
        if split > 0:
            text += f", but splitting the pool takes {split:.2f}"
    return text
