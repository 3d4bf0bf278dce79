"""Which rule a pool's own last days speak for."""

from __future__ import annotations

import numpy as np
import pytest

from advisor.domain.warm_rules import WarmRuleName
from advisor.forecast.demand_rise import RISE_LEVELS, RISE_PARTS
from tests.builders import a_demand_series
from training.warm_index_schedule import foresight
from training.warm_trial import WarmTrial, tried_rule

PARTS = (RISE_LEVELS + 1) * RISE_PARTS
DAY = 1440


def blind(moments: int) -> tuple[tuple[float, ...], np.ndarray]:
    """A forecast in which nothing ever rises."""
    return (10.0, 60.0), np.zeros((moments, 2, PARTS), dtype=np.float32)


def trains(days: int, every: int, gpus: float) -> np.ndarray:
    """Two minutes of so many GPUs more, at a distance that no clock knows."""
    demand = np.full(days * DAY, 8.0)
    for start in range(0, demand.size, every):
        demand[start : start + 2] += gpus
    return demand


def test_who_foresees_follows_the_index_rule():
    series = a_demand_series(trains(4, 240, 16.0), step_minutes=1)
    horizons, known = foresight(series, np.arange(2 * DAY, 4 * DAY))
    rule = tried_rule(series, 2 * DAY, (horizons, known.astype(np.float32)), WarmTrial())
    assert rule.name is WarmRuleName.INDEX
    assert "keep-alive alone" in rule.reason


def test_steady_trains_without_a_forecast_follow_the_plain_rule():
    """A node more every 61 min, a waiting minute worth 400: it pays to be ready always, and keep-alive ends at 1 h."""
    series = a_demand_series(trains(4, 61, 8.0), step_minutes=1)
    rule = tried_rule(series, 2 * DAY, blind(2 * DAY), WarmTrial(waiting_ratio=400.0))
    assert rule.name is WarmRuleName.RISE_QUANTILE
    assert rule.quantile == 0.85


def test_rare_rises_without_a_forecast_leave_nothing_but_keep_alive_or_less():
    series = a_demand_series(trains(4, 12 * 60 + 7, 8.0), step_minutes=1)
    rule = tried_rule(series, 2 * DAY, blind(2 * DAY), WarmTrial(waiting_ratio=1.0))
    assert rule.name is not WarmRuleName.RISE_QUANTILE


def test_a_pool_that_wanted_nothing_says_so():
    series = a_demand_series(np.zeros(2 * DAY), step_minutes=1)
    rule = tried_rule(series, DAY, blind(DAY), WarmTrial())
    assert rule.reason == "nothing was wanted on its last 1 days"


@pytest.mark.parametrize("node_gpus", [4, 8])
def test_nodes_are_those_of_the_pool(node_gpus):
    series = a_demand_series(trains(3, 100, 4.0), step_minutes=1, node_gpus=node_gpus)
    assert tried_rule(series, 2 * DAY, blind(DAY), WarmTrial()).reason
