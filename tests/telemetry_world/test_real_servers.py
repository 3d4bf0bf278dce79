"""The oracle's answers to range queries against those of a real Prometheus that holds the same text."""

from __future__ import annotations

import httpx
import numpy as np
import pytest

from tests.servers.prometheus import MetricsServers
from tests.telemetry_world.dialects import DIALECTS
from tests.telemetry_world.exposition import Telemetry
from tests.telemetry_world.faults import Outage, ha_pair
from tests.telemetry_world.world import WorldSpec, a_world

pytestmark = pytest.mark.prometheus


@pytest.mark.parametrize("name", ["exporter-3.3-relabelled", "exporter-4.8-per-process", "exporter-4.5-mig"])
def test_a_real_server_answers_as_the_oracle_does(name, prometheus_servers: MetricsServers, tmp_path):
    dialect = DIALECTS[name]
    world = a_world(WorldSpec(days=1, gpus=6, jobs=50, sharing=dialect.sharing))
    telemetry = Telemetry(world, dialect, faults=(Outage(world.start + 30_000, world.start + 37_200),))
    telemetry = ha_pair(telemetry)
    telemetry.write(tmp_path / "world.om")
    server = prometheus_servers.load(tmp_path / "world.om")
    times = {"start": world.start + 60, "end": world.end, "step": 60}
    compared = 0
    with httpx.Client(base_url=server.url, trust_env=False, timeout=60) as client:
        for metric in telemetry.names:
            asked = client.post("/api/v1/query_range", data={"query": f"last_over_time({metric}[60s])", **times})
            answered = {frozenset(one["metric"].items()): one["values"] for one in asked.json()["data"]["result"]}
            series = telemetry.as_series(metric, world.start + 60, world.end, 60)
            assert answered.keys() == {frozenset(one.labels.items()) for one in series}
            for one in series:
                stamps, values = zip(*answered[frozenset(one.labels.items())], strict=True)
                np.testing.assert_array_equal(np.array(stamps, dtype=float), one.times)
                np.testing.assert_array_equal(np.array(values, dtype=float), one.values)
                compared += 1
    assert compared > 1000
