"""Nodes to have ready before they are wanted, and how long an idle one stays: one index decides both.

p_j(h) is the chance that need rises by j nodes or more within h minutes, E_j(H) the time until H that
the j-th spare is expected to stand idle, L the start latency, b 1 where booting is billed, W the worth of
a waiting GPU-minute in paid ones::

    keep the j-th idle node  iff for some H:      p(H) (b L + W L)  >  E(H)
    boot the j-th node ahead iff for some H > L:  c W [sum over h <= L of h dp + L (p(H) - p(L))]
                                                  >  b L (1 - p(H)) + E(H) - E(L)

The left side of the second is the waiting that a boot now would spare, the right side what it costs if
nothing comes. W is halved (measured: at its full price it overspends), c is one half for a pool on its own and one
where pools share nodes.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import takewhile

import numpy as np
from numpy.typing import NDArray

from advisor.domain.forecasts import RiseForecast
from advisor.domain.nodepools import NodePool
from advisor.domain.plans import WarmCurvePoint, WarmPlan
from advisor.domain.units import counted, finite, positive, shown_duration, utc
from advisor.domain.warm_rules import WarmRuleName
from advisor.errors import Refused
from advisor.planning.costs import Prices, break_even_minutes, gpu_cost, idle_cost, waiting_cost, waiting_ratio
from advisor.planning.warm_index import boot_ahead, expected_idle, keep_idle, ladder

__all__ = ["UNKNOWN_START_LATENCY_SECONDS", "WarmTerms", "plan_warm"]

Floats = NDArray[np.float64]

UNKNOWN_START_LATENCY_SECONDS = 300.0
"""From asking for a node to a schedulable GPU, where it was never measured: what a cold GPU node usually takes."""

_MODEL = "model"
_NO_FORECAST = "no forecast of rises in need"


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmTerms:
    """What warm capacity depends on besides the rise forecast and prices.

    ``start_latency_seconds`` is the P90 of the pool, None where never measured, and ``start_latency_reason`` says
    where it comes from, None where a person has set it. ``waiting_weight`` is the
    part of the price of waiting that counts, ``boot_weight`` the c of the boot rule. Nodes stay within
    ``least_nodes`` and ``most_nodes`` (64 GPUs of the usual size), keep-alives under
    ``longest_keep_alive_seconds`` and not under ``shortest_keep_alive_seconds`` or the start latency: a
    keep-alive below the boot time lets one half of a gang's nodes expire while the other half boots.
    ``accepted`` names the predictors whose rises are acted on, and ``stale_seconds`` how old they may be.
    """

    start_latency_seconds: float | None = None
    start_latency_reason: str | None = None
    waiting_weight: float = 0.5
    boot_weight: float = 0.5
    least_nodes: int = 0
    most_nodes: int = 8
    shortest_keep_alive_seconds: float = 60.0
    longest_keep_alive_seconds: float = 3600.0
    accepted: tuple[str, ...] = (_MODEL,)
    stale_seconds: float = 900.0

    def __post_init__(self) -> None:
        """Check every number once.

        Raises:
            Refused: naming the field, its value and what it may be.
        """
        if self.start_latency_seconds is not None:
            positive(self.start_latency_seconds, "start_latency_seconds", "seconds")
        for name in ("waiting_weight", "boot_weight", "shortest_keep_alive_seconds"):
            if finite(getattr(self, name), name) < 0:
                raise Refused(name, getattr(self, name), "it must be 0 or more", "Use 0 for none.")
        positive(self.longest_keep_alive_seconds, "longest_keep_alive_seconds", "seconds")
        positive(self.stale_seconds, "stale_seconds", "seconds")
        if not 0 <= self.least_nodes <= self.most_nodes:
            raise Refused(
                "least_nodes", self.least_nodes, f"it lies between 0 and {self.most_nodes}", "Lower it or raise most."
            )

    @property
    def latency_minutes(self) -> float:
        """The start latency planned with, in minutes."""
        known = self.start_latency_seconds
        return (UNKNOWN_START_LATENCY_SECONDS if known is None else known) / 60.0


@dataclass(frozen=True, eq=False)
class _Rises:
    """p_j(h) and E_j(h) on a ladder of minutes from 0 that holds every horizon and the start latency."""

    minutes: Floats
    probability: Floats
    idle: Floats

    @property
    def levels(self) -> int:
        """How many nodes of rise are foreseen."""
        return int(self.probability.shape[1])


def plan_warm(rise: RiseForecast | None, pool: NodePool, prices: Prices, terms: WarmTerms, now: datetime) -> WarmPlan:
    """Warm nodes and keep-alive of one pool, by the rule that the pool's own past speaks for, else by the index rule.

    Without a rise forecast that may be acted on: no node is booted ahead, and idle nodes stay for the
    break-even time, which needs no forecast and costs at most twice what foresight would. Both are stated.

    Raises:
        Refused: the forecast is of another pool, or of nodes this pool cannot have.
    """
    stated = _stated_latency(terms)
    refusal = _why_not(rise, pool, terms, now)
    if rise is None or refusal is not None:
        return _default_plan(pool, prices, terms, (refusal or _NO_FORECAST, *stated))
    rule = rise.rule
    if rule is None:
        return _index_plan(rise, pool, (prices, terms), stated)
    chosen = (f"{rule.words} is followed: {rule.reason}", *stated)
    if rule.name is WarmRuleName.KEEP_ALIVE:
        return _default_plan(pool, prices, terms, chosen)
    if rule.name is WarmRuleName.RISE_QUANTILE and rise.recent_rise_nodes is not None:
        return _recent_rises_plan(rise, rise.recent_rise_nodes, pool, terms, chosen)
    return _index_plan(rise, pool, (prices, replace(terms, boot_weight=rule.boot_weight or terms.boot_weight)), chosen)


def _index_plan(rise: RiseForecast, pool: NodePool, at: tuple[Prices, WarmTerms], stated: tuple[str, ...]) -> WarmPlan:
    """What the index rule says."""
    prices, terms = at
    rises = _ladder(rise, terms.latency_minutes)
    curve = tuple(_point(rises, level, rise.node_gpus, prices, terms) for level in range(rises.levels))
    stake = break_even_minutes(prices, terms.latency_minutes, weight=terms.waiting_weight)
    keep = _leading(keep_idle(rises.minutes, rises.probability, stake))
    boot = _leading(point.saving_per_hour > point.cost_per_hour for point in curve)
    wanted = boot
    boot = _bounded(boot, terms)
    keep = _bounded(keep, terms)
    keep_alive, why = _keep_alive(rises, boot, keep, prices, terms)
    return WarmPlan(
        pool=pool.name,
        warm_gpus=boot * rise.node_gpus,
        boot_nodes=boot,
        keep_nodes=keep,
        node_gpus=rise.node_gpus,
        keep_alive_seconds=keep_alive,
        start_latency_seconds=terms.latency_minutes * 60.0,
        served=rise.served,
        curve=curve,
        reasons=(_boot_reason(curve, boot, wanted, (prices, rise.node_gpus)), why, *stated),
        keep_alive_reasons=(why, *stated),
    )


def _recent_rises_plan(
    rise: RiseForecast, nodes: int, pool: NodePool, terms: WarmTerms, stated: tuple[str, ...]
) -> WarmPlan:
    """Ready for the rises of the last day: as many nodes as their quantile asks for beyond what is free."""
    ready = _bounded(nodes, terms)
    shortest = max(terms.shortest_keep_alive_seconds, terms.latency_minutes * 60.0)
    text = f"{counted(ready, 'node')} ready ahead of need, for rises within ten minutes as in the last day"
    if ready != nodes:
        text += f" (bounds; the rises ask for {nodes})"
    why = _shortest_reason(shortest, terms)
    return WarmPlan(
        pool=pool.name,
        warm_gpus=ready * rise.node_gpus,
        boot_nodes=ready,
        keep_nodes=ready,
        node_gpus=rise.node_gpus,
        keep_alive_seconds=_whole_minutes(shortest),
        start_latency_seconds=terms.latency_minutes * 60.0,
        served=WarmRuleName.RISE_QUANTILE.value,
        curve=(),
        reasons=(text, why, *stated),
        keep_alive_reasons=(why, *stated),
    )


def _bounded(nodes: int, terms: WarmTerms) -> int:
    return min(max(nodes, terms.least_nodes), terms.most_nodes)


def _why_not(rise: RiseForecast | None, pool: NodePool, terms: WarmTerms, now: datetime) -> str | None:
    """Why a forecast is not acted on; None if it is."""
    if rise is None:
        return _NO_FORECAST
    if rise.pool != pool.name:
        raise Refused("rise", rise.pool, f"the forecast must be of pool {pool.name}", "Pass that pool's forecast.")
    if rise.node_gpus not in pool.node_gpus:
        raise Refused("rise", rise.node_gpus, f"nodes of {pool.name} have {pool.node_gpus} GPUs", "Forecast in those.")
    if rise.served not in terms.accepted:
        return f"the rises come from {rise.served}, which has shown no skill"
    age = (utc(now, "now") - rise.made_at).total_seconds()
    if age > terms.stale_seconds:
        return f"the rise forecast is {shown_duration(age)} old, over {shown_duration(terms.stale_seconds)}"
    return None


def _stated_latency(terms: WarmTerms) -> tuple[str, ...]:
    """What has to be said of the start latency planned with."""
    if terms.start_latency_reason is not None:
        return (terms.start_latency_reason,)
    if terms.start_latency_seconds is not None:
        return ()
    return (f"the start latency was never measured: {shown_duration(terms.latency_minutes * 60.0)} is assumed",)


def _ladder(rise: RiseForecast, latency: float) -> _Rises:
    """The forecast on a ladder of minutes that holds the start latency."""
    minutes, probability = ladder(np.asarray(rise.horizons_minutes), np.asarray(rise.probabilities), latency)
    return _Rises(minutes, probability, expected_idle(minutes, probability))


def _point(rises: _Rises, level: int, node_gpus: int, prices: Prices, terms: WarmTerms) -> WarmCurvePoint:
    """One node more: its best horizon's cost and saving, per hour of that horizon."""
    latency = terms.latency_minutes
    boot = latency if prices.boot_billed else 0.0
    column = rises.probability[:, level]
    weight = terms.boot_weight * terms.waiting_weight
    spared, paid = boot_ahead(rises.minutes, column, latency, weight, boot)
    horizons = rises.minutes[rises.minutes > latency]
    gains = spared * waiting_ratio(prices) - paid
    best = int(np.argmax(gains / horizons))
    hours = float(horizons[best]) / 60.0
    return WarmCurvePoint(
        nodes=level + 1,
        cost_per_hour=gpu_cost(prices, float(paid[best]) * node_gpus) / hours,
        saving_per_hour=waiting_cost(prices, float(spared[best]) * node_gpus) / hours,
        probability_needed=float(column[rises.minutes > latency][best]),
        horizon_minutes=float(horizons[best]),
    )


def _leading(answers: Iterable[bool]) -> int:
    """How many answers are yes before the first no: a level counts only if all below it do."""
    return sum(1 for _ in takewhile(bool, answers))


def _keep_alive(rises: _Rises, boot: int, keep: int, prices: Prices, terms: WarmTerms) -> tuple[int, str]:
    """``consolidateAfter`` in seconds, and the rule behind it.

    A keep-alive knows no levels, so it can only say how long the first idle node stays that the warm
    objects do not hold already, level boot + 1. Where that one is not worth keeping, it is as short as is
    safe. Where it is, it stays for the T that costs least, E(T) + B (1 - p(T)): as long as the
    chance that it is wanted in the next minute exceeds 1 / B. Twice the break-even time B bounds the harm of a
    wrong forecast.
    """
    shortest = max(terms.shortest_keep_alive_seconds, terms.latency_minutes * 60.0)
    if keep <= boot or boot >= rises.levels:
        return _whole_minutes(shortest), _shortest_reason(shortest, terms)
    break_even = break_even_minutes(prices, terms.latency_minutes, weight=terms.waiting_weight)
    minutes = np.arange(0.0, float(rises.minutes[-1]) + 1.0)
    probability = np.interp(minutes, rises.minutes, rises.probability[:, boot])
    cost = expected_idle(minutes, probability) + break_even * (1.0 - probability)
    best = float(minutes[int(np.argmin(cost))]) * 60.0
    chosen = max(shortest, min(best, 2.0 * break_even * 60.0, terms.longest_keep_alive_seconds))
    return _whole_minutes(chosen), (
        f"{counted(keep, 'idle node')} worth keeping, {boot} of them ready anyway: the next stays "
        f"{shown_duration(chosen)}, where idling costs least against a cold start worth "
        f"{shown_duration(break_even * 60.0)} of idling"
    )


def _shortest_reason(shortest: float, terms: WarmTerms) -> str:
    """Why an idle node that is not worth keeping stays as long as it does."""
    floor = (
        "a node takes as long to start, and a shorter one would let half of a gang's nodes expire while the others boot"
        if shortest > terms.shortest_keep_alive_seconds
        else "no keep-alive is set shorter"
    )
    return (
        f"keep-alive not under {shown_duration(shortest)}: {floor}; and not above it, since idle nodes beyond the warm "
        "ones are not worth keeping for longer"
    )


def _whole_minutes(seconds: float) -> int:
    return math.ceil(seconds / 60.0 - 1e-9) * 60


def _boot_reason(curve: tuple[WarmCurvePoint, ...], boot: int, wanted: int, price: tuple[Prices, int]) -> str:
    """The level chosen, the last node accepted and the first rejected, in money."""
    text = f"{counted(boot, 'node')} ready ahead of need"
    if boot != wanted:
        text += f" (bounds; the curve says {wanted})"
    for point in curve[max(0, wanted - 1) : wanted]:
        text += f"; the last would {_weighed(point, price)}"
    for point in curve[wanted : wanted + 1]:
        text += f"; rejected: one more would {_weighed(point, price)}"
    return text


def _weighed(point: WarmCurvePoint, price: tuple[Prices, int]) -> str:
    """What one node is expected to save and to cost, beside its price, and over which time."""
    prices, node_gpus = price
    unit = f"{prices.currency}/h"
    text = (
        f"save {point.saving_per_hour:.2f} {unit} of waiting for {point.cost_per_hour:.2f} {unit} of booting in vain "
        f"and idling until used (the node's price is {idle_cost(prices, node_gpus, 60.0):.2f} {unit})"
    )
    if point.horizon_minutes is None:
        return text
    span = shown_duration(point.horizon_minutes * 60.0)
    return (
        f"{text}, weighed over the next {span}, in which need for it comes with {100 * point.probability_needed:.0f} %"
    )


def _default_plan(pool: NodePool, prices: Prices, terms: WarmTerms, reasons: tuple[str, ...]) -> WarmPlan:
    """The plan that needs no forecast."""
    shortest = max(terms.shortest_keep_alive_seconds, terms.latency_minutes * 60.0)
    break_even = break_even_minutes(prices, terms.latency_minutes, weight=terms.waiting_weight) * 60.0
    keep_alive = _whole_minutes(max(shortest, min(break_even, terms.longest_keep_alive_seconds)))
    nodes = terms.least_nodes
    rule = (
        f"default: {counted(nodes, 'node')} ready, idle ones stay {shown_duration(keep_alive)} (break-even is "
        f"{shown_duration(break_even)}: then idling has cost as much as a cold start)"
    )
    return WarmPlan(
        pool=pool.name,
        warm_gpus=nodes * pool.largest_node_gpus,
        boot_nodes=nodes,
        keep_nodes=nodes,
        node_gpus=pool.largest_node_gpus,
        keep_alive_seconds=keep_alive,
        start_latency_seconds=terms.latency_minutes * 60.0,
        served="default",
        curve=(),
        reasons=(rule, *reasons),
    )
