"""The index rule over many moments is the rule of a single plan."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.domain.forecasts import RiseForecast
from advisor.forecast.demand_rise import RISE_LEVELS, RISE_PARTS, monotone
from advisor.planning.costs import Prices
from advisor.planning.warm_capacity import WarmTerms, plan_warm
from tests.builders import NOON, a_demand_series, a_node_pool
from training.warm_index_schedule import foresight, index_table, together
from training.warm_replay import WarmWorld
from training.warm_schedule import levels

HORIZONS = (5.0, 10.0, 30.0, 120.0)
PARTS = (RISE_LEVELS + 1) * RISE_PARTS


def memoryless(seed: int, moments: int) -> np.ndarray:
    """Rises that come with constant odds, the larger the rarer."""
    rates = np.random.default_rng(seed).gamma(0.3, 0.05, (moments, PARTS))
    rates = np.sort(rates, axis=1)[:, ::-1]
    return 1.0 - np.exp(-rates[:, None, :] * np.array(HORIZONS)[None, :, None])


def anyhow(seed: int, moments: int) -> np.ndarray:
    raw = np.random.default_rng(seed).beta(0.4, 2.0, (moments, len(HORIZONS), PARTS))
    return monotone(np.sort(raw, axis=2)[:, :, ::-1])


def asked(table: np.ndarray, ratio: float, boot_weight: float, free: int) -> list[tuple[int, int]]:
    """Nodes to have ready and to keep at each moment, as the replay reads them."""
    world = WarmWorld(latency_minutes=5.0)
    schedule = index_table(HORIZONS, [table], 8, world).schedule(ratio, boot_weight, world)
    gpus = np.full(len(table), float(free))
    wanted = (levels(schedule.ahead, gpus, 8), levels(schedule.keep, gpus, 8))
    return [(min(int(ahead), 8), min(int(keep), 8)) for ahead, keep in zip(*wanted, strict=True)]


def planned(table: np.ndarray, ratio: float, boot_weight: float, free: int) -> list[tuple[int, int]]:
    """The same from a plan of each moment."""
    prices = Prices(per_gpu_hour=60.0, per_waiting_gpu_minute=ratio)
    terms = WarmTerms(start_latency_seconds=300.0, boot_weight=boot_weight)
    found = []
    for moment in table:
        rise = RiseForecast(
            pool="default",
            made_at=NOON,
            node_gpus=8,
            horizons_minutes=HORIZONS,
            probabilities=tuple(
                tuple(float(p) for p in row) for row in moment[:, free + RISE_PARTS * np.arange(RISE_LEVELS)]
            ),
            served="model",
        )
        plan = plan_warm(rise, a_node_pool(), prices, terms, NOON)
        found.append((plan.boot_nodes, plan.keep_nodes))
    return found


TERMS = (st.integers(0, 10_000), st.floats(0.0, 40.0), st.sampled_from([0.5, 1.0]), st.integers(0, 7))


@given(*TERMS)
def test_a_replay_asks_for_the_levels_of_the_plan(seed, ratio, boot_weight, free):
    table = memoryless(seed, 4)
    assert asked(table, ratio, boot_weight, free) == planned(table, ratio, boot_weight, free)


@given(*TERMS)
def test_whatever_the_chances_a_replay_never_asks_for_more_than_the_plan(seed, ratio, boot_weight, free):
    """It looks at every part of a node on the way to a level, the plan only at the levels."""
    table = anyhow(seed, 4)
    both = zip(asked(table, ratio, boot_weight, free), planned(table, ratio, boot_weight, free), strict=True)
    for (ahead, keep), (boot, kept) in both:
        assert ahead <= boot
        assert keep == kept


def test_chances_of_several_pools_are_those_of_the_sum_of_their_rises():
    """Pool one rises by 1 part with chance .5, pool two by 2 with chance .2."""
    one, two = np.zeros((1, 1, PARTS)), np.zeros((1, 1, PARTS))
    one[..., 0] = 0.5
    two[..., :2] = 0.2
    both = together([one, two])[0, 0]
    assert both[:4] == pytest.approx([1 - 0.5 * 0.8, 0.2, 0.5 * 0.2, 0.0], abs=1e-12)


def test_rises_beyond_what_is_told_apart_are_not_lost():
    sure = np.ones((1, 1, PARTS))
    assert together([sure, sure])[0, 0].min() == pytest.approx(1.0)


def test_foresight_knows_when_and_by_how_much_demand_rises():
    series = a_demand_series([0.0, 0.0, 3.0, 3.0, 0.0, 0.0], step_minutes=1)
    horizons, table = foresight(series, np.array([0]))
    assert horizons[:3] == (1.0, 2.0, 3.0)
    assert table[0, 0].sum() == 0
    assert table[0, 1].sum() == 3
