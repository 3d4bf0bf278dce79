"""The slice plan of a pool: how long its slices should be, for one to three classes of task, and why.

>>> from advisor.domain.forecasts import DurationDistribution
>>> tasks = PoolDurations.one(DurationDistribution.point(1200.0, spread=1.0))
>>> plan = recommend_slices("a100", tasks, SliceTerms(switch_minutes=5.0))
>>> plan.classes[0].if_sliced_minutes, plan.classes[0].rule_of_thumb_minutes > 15
(15.0, True)
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from advisor.domain.slices import CurvePoint, SliceClass, SlicePlan
from advisor.domain.units import positive
from advisor.planning.durations import PoolDurations
from advisor.planning.slice_bounds import Bounds, Choice, bounds_of, candidates
from advisor.planning.slice_classes import Group, Grouping, best_grouping, choose_jointly
from advisor.planning.slice_objective import CostTable, cost_table, rule_of_thumb, square_root_law
from advisor.planning.slice_quantum import Quantum, quantum, reached_share
from advisor.planning.slice_reasons import (
    binding_reason,
    classes_reason,
    curve_reason,
    kept_reason,
    law_reason,
    quantum_reason,
    sensitivity_reason,
    thin_reason,
    unstable_reason,
)
from advisor.planning.slice_terms import SliceTerms

__all__ = ["recommend_slices"]

_NAMES = {1: ("all",), 2: ("short", "long"), 3: ("short", "medium", "long")}
_WORTH_SLICING = 0.10
_STICKY = 0.02
_GOOD_EVIDENCE = 300


@dataclass(frozen=True, slots=True)
class _Draft:
    """One class before it is written up: its parts, its bound, and its length where that is settled already."""

    first: int
    last: int
    longest_minutes: float | None
    length: float | None = None


@dataclass(frozen=True, slots=True)
class _Case:
    """Everything one pool's plan is worked out from."""

    durations: PoolDurations
    terms: SliceTerms
    bounds: Bounds
    allowed: tuple[float, ...]
    table: CostTable
    current: SlicePlan | float | None

    def current_for(self, draft: _Draft) -> SliceClass | None:
        """What the last plan says about the middle task of a class."""
        if not isinstance(self.current, SlicePlan):
            return None
        return self.current.class_for(self.durations.parts[(draft.first + draft.last) // 2].median / 60.0)

    def current_length(self, draft: _Draft) -> float | None:
        """The length in use for a class now."""
        if isinstance(self.current, float):
            return self.current
        known = self.current_for(draft)
        return None if known is None else known.minutes or known.if_sliced_minutes


@dataclass(frozen=True, slots=True)
class _Outlook:
    """What is known of one class beside its own durations: who may wait for it, and what was chosen.

    ``overhead_cap`` is what the class alone must bear; infinite where that is a matter of the whole pool.
    """

    quantum: Quantum
    waiting_index: float
    choice: Choice
    double_minutes: float
    overhead_cap: float


def recommend_slices(
    pool: str,
    durations: PoolDurations,
    terms: SliceTerms,
    current: SlicePlan | float | None = None,
) -> SlicePlan:
    """The slice lengths of ``pool`` for tasks of these predicted durations.

    The cheapest lengths by the objective, within the bounds, for as many classes as pay; the lengths
    in use (``current``: the last plan, or one length in minutes) stay unless the new ones save more than
    ``terms.margin`` of what they cost. Too few ended jobs give the length in use, or the default.

    Raises:
        Refused: a current length that is not above zero.
    """
    if isinstance(current, int | float):
        current = positive(float(current), "current slice length", "minutes")
    known = durations.ended_jobs
    if not durations.parts or (known is not None and known < terms.least_ended_jobs):
        return _thin_plan(pool, durations, terms, current)
    case = _case(durations.by_median(), terms, current)
    grouping = best_grouping(case.durations, case.table.at(case.allowed), terms)
    kept = _kept(case, grouping)
    drafts = kept if kept is not None else _drafts(case, grouping)
    reasons = [classes_reason(grouping)]
    if kept is not None:
        reasons = [f"kept as it is: the best plan would save less than {terms.margin:.0%}", *reasons]
    return _plan(pool, case, drafts, (*reasons, *terms.assumptions))


def _case(durations: PoolDurations, terms: SliceTerms, current: SlicePlan | float | None) -> _Case:
    bounds = bounds_of(terms)
    allowed = candidates(bounds, terms.grid_minutes)
    in_use: set[float] = set()
    if isinstance(current, float):
        in_use = {current}
    elif current is not None:
        in_use = {length for c in current.classes if (length := c.minutes or c.if_sliced_minutes) is not None}
    lengths = tuple(sorted({*terms.grid_minutes, *allowed, *in_use}))
    return _Case(durations, terms, bounds, allowed, cost_table(durations, lengths, terms), current)


def _drafts(case: _Case, grouping: Grouping) -> tuple[_Draft, ...]:
    """The classes of a grouping, cut half way (in ln) between the medians on either side."""
    parts = case.durations.parts
    drafts = []
    for group in grouping.groups:
        longest = None
        if group.last < len(parts):
            longest = math.sqrt(parts[group.last - 1].median * parts[group.last].median) / 60.0
        drafts.append(_Draft(group.first, group.last, longest))
    return tuple(drafts)


def _kept(case: _Case, grouping: Grouping) -> tuple[_Draft, ...] | None:
    """The classes in use with their lengths, if they may stay and a change would save too little."""
    drafts = _drafts_in_use(case)
    if not drafts:
        return None
    lost, overhead = 0.0, 0.0
    for draft in drafts:
        if draft.length is None or not case.bounds.lowest <= draft.length <= case.bounds.highest:
            return None
        table = case.table.of(draft.first, draft.last)
        at = int((case.table.minutes == draft.length).argmax())
        lost += float(table.cost[at] * table.useful.sum() / case.table.useful.sum())
        overhead += float(table.overhead_cost[at] * table.useful.sum() / case.table.useful.sum())
    stable_now = overhead <= case.terms.overhead_cap
    if not stable_now and all(choice.stable for choice in grouping.choices):
        return None
    return drafts if lost - grouping.cost <= case.terms.margin * lost else None


def _drafts_in_use(case: _Case) -> tuple[_Draft, ...]:
    if case.current is None:
        return ()
    if isinstance(case.current, float):
        return (_Draft(0, len(case.durations.parts), None, case.current),)
    medians = [part.median / 60.0 for part in case.durations.parts]
    drafts: list[_Draft] = []
    first = 0
    for known in case.current.classes:
        longest = None if known is case.current.classes[-1] else known.longest_minutes
        last = len(medians) if longest is None else sum(median <= longest for median in medians)
        if last > first:
            drafts.append(_Draft(first, last, known.longest_minutes, known.minutes or known.if_sliced_minutes))
            first = last
    if not drafts:
        return ()
    # The tasks of the longest class may all be gone; whatever comes next must still belong somewhere.
    return (*drafts[:-1], replace(drafts[-1], longest_minutes=None))


def _plan(pool: str, case: _Case, drafts: tuple[_Draft, ...], reasons: tuple[str, ...]) -> SlicePlan:
    quanta = [quantum(case.durations.between(d.first, d.last), case.terms.switch_minutes) for d in drafts]
    waiting = max(found.index for found in quanta)
    groups = tuple(Group(draft.first, draft.last) for draft in drafts)
    table = case.table.at(case.allowed)
    choices = choose_jointly(table, groups, case.terms.overhead_cap)
    doubled = choose_jointly(table.with_dearer_switch(2.0), groups, case.terms.overhead_cap)
    if not choices[0].stable:
        reasons = (unstable_reason(case.terms), *reasons)
    cap = case.terms.overhead_cap if len(drafts) == 1 and choices[0].stable else math.inf
    names = _NAMES[len(drafts)]
    classes = []
    for i, draft in enumerate(drafts):
        outlook = _Outlook(quanta[i], waiting, choices[i], float(table.minutes[doubled[i].index]), cap)
        classes.append(_class(case, draft, names[i], outlook))
    return SlicePlan(pool=pool, switch_cost_minutes=case.terms.switch_minutes, classes=tuple(classes), reasons=reasons)


def _class(case: _Case, draft: _Draft, name: str, outlook: _Outlook) -> SliceClass:
    terms, weights = case.terms, case.durations.weights
    curve = _curve(case, draft, outlook.overhead_cap)
    cost_at = {point.minutes: point.cost for point in curve}
    best, binding = _best(case, curve, outlook.choice)
    length = best if draft.length is None else draft.length
    reached = reached_share(case.durations.between(draft.first, draft.last), outlook.waiting_index)
    demanded = terms.latency is not None or terms.urgency > 0.0
    sliced = demanded or reached >= _slicing_limit(case.current_for(draft))
    weight = sum(weights[draft.first : draft.last])
    mean = float(case.table.of(draft.first, draft.last).useful.sum()) / weight
    current = case.current_length(draft)
    reasons = (
        curve_reason(curve, length),
        *(() if length == best else (kept_reason(length, best, cost_at, terms.margin),)),
        *(() if binding is None else (binding_reason(binding, case.bounds, terms),)),
        quantum_reason(outlook.quantum, reached, sliced=sliced, demanded=demanded),
        law_reason(mean, length, terms),
        sensitivity_reason(best, outlook.double_minutes),
    )
    return SliceClass(
        name=name,
        longest_minutes=draft.longest_minutes,
        share_of_jobs=weight / sum(weights),
        mean_minutes=mean,
        minutes=length if sliced else None,
        current_minutes=current,
        rule_of_thumb_minutes=rule_of_thumb(mean, terms.switch_minutes),
        closed_form_minutes=min(square_root_law(mean, terms).minutes, terms.grid_minutes[-1]),
        cost=cost_at[length],
        current_cost=None if current is None else cost_at[current],
        binding_constraint=binding,
        curve=curve,
        reasons=reasons,
        if_sliced_minutes=length,
        quantum_minutes=outlook.quantum.minutes,
        double_switch_minutes=outlook.double_minutes,
        confidence=_confidence(case.durations.ended_jobs),
    )


def _best(case: _Case, curve: tuple[CurvePoint, ...], choice: Choice) -> tuple[float, str | None]:
    """The best allowed length of a class, and the rule that kept it from the cheapest of the whole grid."""
    best = case.allowed[choice.index]
    free = min(
        (point for point in curve if point.minutes in case.terms.grid_minutes), key=lambda p: (p.cost, -p.minutes)
    ).minutes
    if choice.moved or (best == free and not choice.stable):
        return best, "stability"
    if best > free:
        return best, case.bounds.lowest_rule
    return best, case.bounds.highest_rule if best < free else None


def _curve(case: _Case, draft: _Draft, overhead_cap: float = math.inf) -> tuple[CurvePoint, ...]:
    table = case.table.of(draft.first, draft.last)
    inside = (case.bounds.lowest <= table.minutes) & (table.minutes <= max(case.bounds.highest, case.bounds.lowest))
    feasible = inside & (table.overhead_cost <= overhead_cap)
    rows = zip(table.minutes, table.cost, feasible, strict=True)
    return tuple(CurvePoint(float(length), float(cost), bool(allowed)) for length, cost, allowed in rows)


def _slicing_limit(last: SliceClass | None) -> float:
    """The share of tasks that must meet a useful boundary; what was decided last time gets a little more room."""
    if last is None:
        return _WORTH_SLICING
    return _WORTH_SLICING + _STICKY if last.minutes is None else _WORTH_SLICING - _STICKY


def _confidence(ended_jobs: int | None) -> str:
    if ended_jobs is None:
        return "moderate"
    return "good" if ended_jobs >= _GOOD_EVIDENCE else "moderate"


def _thin_plan(pool: str, durations: PoolDurations, terms: SliceTerms, current: SlicePlan | float | None) -> SlicePlan:
    """The plan where too little is known: the length in use, else the default, moved inside the bounds."""
    seen = durations if durations.parts else PoolDurations.one(durations.pooled, 0)
    case = _case(seen.by_median(), terms, None)
    wanted = _length_in_use(current)
    aim = terms.default_minutes if wanted is None else wanted
    length = min(case.allowed, key=lambda allowed: (abs(allowed - aim), allowed))
    reason = thin_reason(seen.ended_jobs or 0, length, terms, kept=wanted is not None)
    curve = _curve(case, _Draft(0, len(seen.parts), None))
    mean = float(case.table.useful.sum()) / sum(case.durations.weights)
    only = SliceClass(
        name="all",
        longest_minutes=None,
        share_of_jobs=1.0,
        mean_minutes=mean,
        minutes=length,
        current_minutes=wanted,
        rule_of_thumb_minutes=rule_of_thumb(mean, terms.switch_minutes),
        closed_form_minutes=min(square_root_law(mean, terms).minutes, terms.grid_minutes[-1]),
        cost=next(point.cost for point in curve if point.minutes == length),
        current_cost=None,
        binding_constraint=None,
        curve=curve,
        reasons=(reason,),
        if_sliced_minutes=length,
        confidence="thin",
    )
    return SlicePlan(
        pool=pool,
        switch_cost_minutes=terms.switch_minutes,
        classes=(only,),
        reasons=(reason, *terms.assumptions),
    )


def _length_in_use(current: SlicePlan | float | None) -> float | None:
    if isinstance(current, SlicePlan):
        return next((c.minutes for c in current.classes if c.minutes is not None), None)
    return current
