"""Which rule of warm capacity a pool should follow: the one that would have cost least on its own last days."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from advisor.domain.warm_rules import WarmRule, WarmRuleName
from advisor.features.demand import DemandSeries
from advisor.features.recent_rises import recent_rises
from training.warm_index_schedule import WAITING_WEIGHT, index_table
from training.warm_replay import WarmRun, WarmWorld, replay_series
from training.warm_schedule import WarmSchedule

__all__ = ["WarmTrial", "tried_rule"]

_BOOT_WEIGHTS = (0.5, 1.0)
_QUANTILES = (0.85, 0.9, 0.95, 0.975)
_LONGEST_KEEP_ALIVE_MINUTES = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmTrial:
    """How rules are weighed: what nodes are like, and how many paid GPU-minutes a waiting one is worth."""

    world: WarmWorld = field(default_factory=WarmWorld)
    waiting_ratio: float = 6.0


def tried_rule(
    series: DemandSeries, first: int, foreseen: tuple[Sequence[float], NDArray[np.float32]], trial: WarmTrial
) -> WarmRule:
    """The rule with the least cost of nodes and waiting from sample ``first`` on, each as it is served.

    ``foreseen`` are horizons in minutes and the chances (samples, horizons, parts) of a model that had not seen these
    days. Ties go to the index rule.
    """
    world = replace(trial.world, node_gpus=series.node_gpus)
    horizons, chances = foreseen
    table = index_table(horizons, [chances], series.node_gpus, world)
    ready = recent_rises(series.demand, series.step_minutes, first, np.array(_QUANTILES))
    candidates = [
        *((_index(weight), table.schedule(trial.waiting_ratio, weight, world)) for weight in _BOOT_WEIGHTS),
        (WarmRule(name=WarmRuleName.KEEP_ALIVE, reason=""), _kept(len(chances), trial)),
        *(
            (_quantile(q), WarmSchedule(ahead=gpus, keep=gpus, patience_minutes=world.latency_minutes))
            for q, gpus in zip(_QUANTILES, ready.T, strict=True)
        ),
    ]
    run = replay_series(series.demand[first:], series.step_minutes, [one for _, one in candidates], world)
    totals = run.paid * world.node_gpus + trial.waiting_ratio * run.unmet_minutes
    best = int(np.argmin(totals))
    days = len(chances) * series.step_minutes / 1440.0
    return replace(candidates[best][0], reason=_told([rule for rule, _ in candidates], totals, run, days))


def _index(weight: float) -> WarmRule:
    return WarmRule(name=WarmRuleName.INDEX, reason="", boot_weight=weight)


def _quantile(level: float) -> WarmRule:
    return WarmRule(name=WarmRuleName.RISE_QUANTILE, reason="", quantile=level)


def _kept(moments: int, trial: WarmTrial) -> WarmSchedule:
    """Keep-alive alone, for the break-even time as it is served without a forecast."""
    worth = WAITING_WEIGHT * trial.waiting_ratio * trial.world.latency_minutes
    minutes = max(trial.world.latency_minutes, min(trial.world.boot_minutes + worth, _LONGEST_KEEP_ALIVE_MINUTES))
    none = np.zeros(moments)
    return WarmSchedule(ahead=none, keep=none, patience_minutes=minutes)


def _told(rules: Sequence[WarmRule], totals: NDArray[np.float64], run: WarmRun, days: float) -> str:
    """Every kind of rule at its best, against what demand itself would have cost."""
    bare = run.wanted * run.node_gpus
    if bare <= 0:
        return f"nothing was wanted on its last {days:.3g} days"
    best: dict[WarmRuleName, int] = {}
    for place in np.argsort(totals, kind="stable"):
        best.setdefault(rules[place].name, int(place))
    told = ", ".join(f"{rules[place].words} {totals[place] / bare:.3f}" for place in best.values())
    return f"cost of nodes and waiting over that of the nodes wanted, on its last {days:.3g} days: {told}"
