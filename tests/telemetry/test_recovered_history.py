"""History read through real servers equals the truth of the worlds they scraped."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from advisor.telemetry.prometheus.samples import Series
from tests.servers.prometheus import MetricsServers
from tests.telemetry.reading import through_prometheus
from tests.telemetry_world.comparing import Compared, differences
from tests.telemetry_world.dialects import DIALECTS
from tests.telemetry_world.exposition import Telemetry
from tests.telemetry_world.faults import ClockSkew, KubeStateRestart, Outage, ha_pair, relabelled_halfway
from tests.telemetry_world.observer import expected
from tests.telemetry_world.usage import usage_of
from tests.telemetry_world.world import World, WorldSpec, a_world

pytestmark = pytest.mark.prometheus

SMALL = {"days": 2, "gpus": 10, "jobs": 150}
WHOLE = {"days": 14, "gpus": 50, "jobs": 2000}


def read(servers: MetricsServers, telemetry: Telemetry, folder: Path) -> Compared:
    return Compared(expected(telemetry), through_prometheus(servers, telemetry, folder))


def a_telemetry(name: str, **spec: Any) -> Telemetry:
    dialect = DIALECTS[name]
    return Telemetry(a_world(WorldSpec(**{**SMALL, "seed": 3, "sharing": dialect.sharing, **spec})), dialect)


@pytest.mark.parametrize("name", DIALECTS)
def test_a_small_world_comes_back_as_it_was(name: str, prometheus_servers: MetricsServers, tmp_path: Path) -> None:
    compared = read(prometheus_servers, a_telemetry(name), tmp_path)
    assert differences(compared) == []
    if DIALECTS[name].metrics:
        assert usage_is_true(a_telemetry(name).world, compared)


@pytest.mark.parametrize("name", DIALECTS)
def test_a_fortnight_of_a_whole_cluster_comes_back_as_it_was(
    name: str, prometheus_servers: MetricsServers, tmp_path: Path
) -> None:
    telemetry = a_telemetry(name, **WHOLE)
    compared = read(prometheus_servers, telemetry, tmp_path)
    assert differences(compared) == []
    assert sum(each.job is not None and not each.in_doubt for each in compared.truth) > 2000
    assert usage_is_true(telemetry.world, compared)


@pytest.mark.parametrize("name", ["exporter-3.3-relabelled", "exporter-4.8-per-process"])
def test_victoria_metrics_tells_the_same(name: str, victoria_servers: MetricsServers, tmp_path: Path) -> None:
    compared = read(victoria_servers, a_telemetry(name), tmp_path)
    assert differences(compared) == []


def outage(telemetry: Telemetry) -> Telemetry:
    middle = telemetry.world.start + 86_400
    return replace(telemetry, faults=(Outage(middle, middle + 7200),))


def restart(telemetry: Telemetry) -> Telemetry:
    return replace(telemetry, faults=(KubeStateRestart(telemetry.world.start + 50_000),))


def skewed(telemetry: Telemetry) -> Telemetry:
    return replace(telemetry, faults=(ClockSkew(),))


@pytest.mark.parametrize("fault", [outage, restart, ha_pair, skewed, relabelled_halfway])
def test_history_is_true_beside_what_went_wrong(
    fault: Callable[[Telemetry], Telemetry], prometheus_servers: MetricsServers, tmp_path: Path
) -> None:
    telemetry = fault(a_telemetry("exporter-3.3-relabelled"))
    compared = read(prometheus_servers, telemetry, tmp_path)
    assert differences(compared) == []
    assert usage_is_true(telemetry.world, compared)


def usage_is_true(world: World, compared: Compared) -> bool:
    """Whether what jobs did is what they truly did, within what a sample a minute can show of at least an hour.

    What memory was held for less than two samples may not have been seen.
    """
    errors, memories = [], []
    for each in compared.truth:
        usage = compared.jobs[each.job.id].usage if each.job is not None else None
        if each.job is None or each.in_doubt or usage is None or (each.job.run_seconds or 0.0) < 3600.0:
            continue
        true = usage_of(world, each.work)
        if usage.estimated or true is None or true.compute_mean is None or usage.compute_mean is None:
            continue
        errors.append(abs(usage.compute_mean - true.compute_mean))
        if usage.memory_peak_bytes is not None and true.memory_peak_bytes:
            held = usage_of(world, each.work, held_seconds=120.0)
            least = held.memory_peak_bytes if held is not None else None
            memories.append(not 0.99 * (least or 0.0) <= usage.memory_peak_bytes <= 1.01 * true.memory_peak_bytes)
    # The mean of a whole cluster is what recommendations are made of.
    return not errors or (float(np.mean(errors)) < 0.01 and max(errors) < 0.05 and not any(memories))


def test_shares_are_known_without_labels_of_nodes(prometheus_servers: MetricsServers, tmp_path: Path) -> None:
    """kube-state-metrics exports no labels unless told to: shares are what is allocatable over what is there."""
    telemetry = replace(a_telemetry("exporter-4.5-time-sliced"), faults=(NoNodeLabels(),))
    compared = read(prometheus_servers, telemetry, tmp_path)
    told = [line for line in differences(compared) if " pool: " not in line and " gpu_kind: " not in line]
    assert told == []


class NoNodeLabels:
    """kube-state-metrics without ``--metric-labels-allowlist`` for nodes."""

    def changed(self, series: Series) -> Iterable[Series]:
        if series.labels["__name__"] == "kube_node_labels":
            kept = {key: value for key, value in series.labels.items() if not key.startswith("label_")}
            series = series._replace(labels=kept)
        yield series
