from datetime import UTC, datetime

import numpy as np
import pytest

from advisor.features.demand import KNOWN_STATE
from advisor.features.demand_table import demand_schema, feature_rows
from tests.builders import a_demand_series
from tests.oracles.demand_rows import slow_row


def a_series(kind: str):
    rng = np.random.default_rng(11)
    size = 2600
    running = np.maximum(np.cumsum(rng.choice([-8, -2, 0, 0, 0, 0, 0, 2, 8], size=size)), 0.0).astype(float)
    running[rng.random(size) < 0.03] = np.nan
    pending = rng.choice([0.0, 0.0, 0.0, 4.0], size=size)
    more = {
        "bare": {},
        "pending": {"pending": pending, "idle": rng.integers(0, 9, size).astype(float)},
        "capacity": {"capacity": np.full(size, 64.0) + running * 0, "calendar_known": False},
        "jobs": {"pending": pending, "state": {n: rng.integers(0, 4, size).astype(float) for n in KNOWN_STATE}},
        "summer time": {"start": datetime(2025, 10, 20, tzinfo=UTC), "zone": "Europe/Berlin", "node_gpus": 4},
    }[kind]
    return a_demand_series(running, **more)


@pytest.mark.parametrize("kind", ["bare", "pending", "capacity", "jobs", "summer time"])
def test_rows_agree_with_an_obvious_loop(kind):
    series = a_series(kind)
    asked = np.array([0, 1, 2, 30, 299, 1000, 2015, 2016, 2017, 2400, 2599])

    rows = feature_rows(series, asked)

    for place, at in enumerate(asked):
        slow = slow_row(series, int(at))
        expected = [slow[name] for name in demand_schema().names]
        np.testing.assert_allclose(rows[place], expected, rtol=1e-9, atol=1e-9, err_msg=f"{kind} {at}")
