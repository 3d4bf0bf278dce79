"""Demand forecasts of one cycle: many pools at eight horizons, as the advice asks for them, beside the bare trees.

``GSA_BENCH_POOLS`` (default 500) pools of five weeks at 5 minutes. The model is fitted on the first twenty of them and
speaks for all, so that fitting does not take the time that is to be measured. Times are CPU seconds of one thread:
whatever else the machine does is not in them.
"""

from __future__ import annotations

import os
import time
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np

from advisor.features.demand import DemandSeries
from advisor.features.demand_table import feature_rows
from advisor.forecast.demand import HISTORY_MINUTES, DemandForecaster, DemandModel
from training.demand import DemandFitSettings, fit_demand

HORIZONS = (5, 10, 15, 30, 60, 120, 360, 1440)
FITTED = 20
DAYS = 35
ALLOWED_SECONDS = 10.0
START = datetime(2026, 3, 2, tzinfo=UTC)


def main() -> None:
    """Measure, and print how long one cycle takes, and how many times what the trees alone take."""
    pools = [_pool(number) for number in range(int(os.environ.get("GSA_BENCH_POOLS", "500")))]
    now = pools[0].time_at(len(pools[0]) - 1)
    begin = time.process_time()
    model = _for_all(fit_demand(pools[:FITTED], now, DemandFitSettings(horizons_minutes=HORIZONS)), pools)
    print(f"fit on {FITTED} pools, {len(HORIZONS)} horizons and rises: {time.process_time() - begin:.1f} s")
    forecaster = DemandForecaster(model)
    forecaster.forecast(pools[0], now)
    begin = time.process_time()
    forecasts = [forecaster.forecast(one, now) for one in pools]
    demand = time.process_time() - begin
    begin = time.process_time()
    for one in pools:
        forecaster.rise(one, now)
    rises = time.process_time() - begin
    modelled = sum(h.served == "model" for one in forecasts for h in one.horizons)
    trees = _trees(model, pools)
    total = len(pools) * len(HORIZONS)
    print(f"one cycle, {len(pools)} pools x {len(HORIZONS)} horizons ({modelled} of {total} by the model):")
    took = f"demand {demand:.2f} s, rises {rises:.2f} s, together {demand + rises:.2f} s"
    print(f"  {took} of {ALLOWED_SECONDS:g} allowed")
    print(f"  {demand / trees:.1f} x the same trees asked for all pools at once ({trees:.2f} s)")


def _pool(number: int) -> DemandSeries:
    """Trains of small jobs on top of a level that wanders, each pool its own; nothing of it is real."""
    rng = np.random.default_rng(number)
    count = DAYS * 288
    minute = np.arange(count) * 5
    level = np.abs(8.0 * np.cumsum(rng.choice([-1, 0, 1], size=count, p=[0.02, 0.96, 0.02])))
    burst = 16.0 * ((minute + 7 * number) % 240 < 40) * (rng.uniform(size=count) < 0.9)
    return DemandSeries(pool=f"pool-{number}", start=START, step_minutes=5, running=level + burst, pending=0.0 * level)


def _for_all(model: DemandModel, pools: list[DemandSeries]) -> DemandModel:
    records = list(model.pools.values())
    return replace(model, pools={one.pool: records[at % len(records)] for at, one in enumerate(pools)})


def _trees(model: DemandModel, pools: list[DemandSeries]) -> float:
    """Seconds that the trees of every horizon take for the newest row of every pool, handed over in one piece."""
    last = HISTORY_MINUTES // 5
    recent = [one.between(len(one) - last, len(one)) for one in pools]
    rows = np.concatenate([feature_rows(one, np.array([len(one) - 1])) for one in recent])
    begin = time.process_time()
    for models in model.changes.values():
        for one in models.values():
            one.law(rows)
    return (time.process_time() - begin) / max(1, len(model.changes))


if __name__ == "__main__":
    main()
