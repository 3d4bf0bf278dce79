"""The warm-capacity rule read off its definition, one loop at a time."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from advisor.domain.forecasts import RiseForecast
from advisor.planning.costs import Prices, waiting_ratio
from advisor.planning.warm_capacity import WarmTerms, plan_warm
from tests.builders import NOON, a_node_pool

HORIZONS = (5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 240.0)


def chance(rise: RiseForecast, level: int, minutes: float) -> float:
    known = [(0.0, 0.0), *zip(rise.horizons_minutes, (row[level] for row in rise.probabilities), strict=True)]
    for (low, before), (high, after) in itertools.pairwise(known):
        if minutes <= high:
            return before + (after - before) * (minutes - low) / (high - low)
    return known[-1][1]


def levels_by_definition(rise: RiseForecast, latency: float, worth: float, c: float) -> tuple[int, int]:
    """Boot and keep levels for W' = ``worth`` and billed boots."""
    rungs = sorted({0.0, latency, 2.0 * latency if latency >= HORIZONS[-1] else latency, *HORIZONS})

    def idle(level: int, until: float) -> float:
        total = 0.0
        for low, high in itertools.pairwise(rungs):
            if high <= until:
                total += (high - low) * (1.0 - (chance(rise, level, low) + chance(rise, level, high)) / 2.0)
        return total

    def boots(level: int) -> bool:
        early = sum(
            (low + high) / 2.0 * (chance(rise, level, high) - chance(rise, level, low))
            for low, high in itertools.pairwise(rungs)
            if high <= latency
        )
        return any(
            c * worth * (early + latency * (chance(rise, level, until) - chance(rise, level, latency)))
            > latency * (1.0 - chance(rise, level, until)) + idle(level, until) - idle(level, latency)
            for until in rungs
            if until > latency
        )

    def keeps(level: int) -> bool:
        return any(chance(rise, level, until) * (latency + worth * latency) > idle(level, until) for until in rungs[1:])

    def leading(rule) -> int:
        count = 0
        while count < len(rise.probabilities[0]) and rule(count):
            count += 1
        return count

    return leading(boots), leading(keeps)


@pytest.mark.parametrize("seed", range(40))
def test_boot_and_keep_levels_by_their_definition(seed):
    random = np.random.default_rng(seed)
    levels = np.sort(random.uniform(0.02, 40.0, 6) ** random.uniform(0.3, 1.2))[::-1]
    table = tuple(tuple(float(-np.expm1(-rate * h / 60.0)) for rate in levels) for h in HORIZONS)
    rise = RiseForecast(
        pool="default", made_at=NOON, node_gpus=8, horizons_minutes=HORIZONS, probabilities=table, served="model"
    )
    latency = float(random.choice([3.0, 5.0, 8.0]))
    prices = Prices(per_gpu_hour=2.0, per_waiting_gpu_minute=float(random.uniform(0.05, 1.5)))
    terms = WarmTerms(start_latency_seconds=latency * 60.0, boot_weight=float(random.choice([0.5, 1.0])))
    plan = plan_warm(rise, a_node_pool(), prices, terms, NOON)
    boot, keep = levels_by_definition(rise, latency, 0.5 * waiting_ratio(prices), terms.boot_weight)
    assert (plan.boot_nodes, plan.keep_nodes) == (boot, keep)
