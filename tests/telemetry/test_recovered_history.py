"""History read through real servers equals the truth of the worlds they scraped."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from advisor.domain.ingest import JobBatch
from advisor.domain.jobs import Job
from advisor.settings import PrometheusOptions, TelemetrySettings
from advisor.telemetry.prometheus.client import PrometheusClient
from advisor.telemetry.prometheus.source import PrometheusSource
from tests.servers.prometheus import MetricsServers
from tests.telemetry_world.dialects import DIALECTS
from tests.telemetry_world.exposition import Telemetry
from tests.telemetry_world.faults import ClockSkew, KubeStateRestart, Outage, ha_pair, relabelled_halfway
from tests.telemetry_world.observer import Expected, expected
from tests.telemetry_world.usage import usage_of
from tests.telemetry_world.world import World, WorldSpec, a_world

pytestmark = pytest.mark.prometheus

SMALL = {"days": 2, "gpus": 10, "jobs": 150}
WHOLE = {"days": 14, "gpus": 50, "jobs": 2000}


@dataclass(frozen=True)
class Compared:
    """What came of reading one telemetry, beside the truth."""

    truth: tuple[Expected, ...]
    batch: JobBatch

    @property
    def jobs(self) -> dict[str, Job]:
        return {job.id: job for job in self.batch.jobs}


def read(servers: MetricsServers, telemetry: Telemetry, folder: Path) -> Compared:
    file = folder / "metrics.om"
    telemetry.write(file)
    server = servers.load(file)
    try:
        options = PrometheusOptions(
            url=server.url, days=telemetry.world.spec.days, step_seconds=round(telemetry.interval)
        )
        with PrometheusClient(options) as client:
            now = datetime.fromtimestamp(telemetry.world.end, UTC)
            batch = PrometheusSource(client, options, TelemetrySettings().user_labels).read(None, now)
    finally:
        server.stop()
    return Compared(expected(telemetry), batch)


def differences(compared: Compared) -> list[str]:
    """Everything in which what was read differs from the truth."""
    found, jobs = [], compared.jobs
    for each in compared.truth:
        if each.job is None:
            continue
        job = jobs.pop(each.job.id, None)
        if job is None:
            found.append(f"lost {each.work.name}: {each.job}")
            continue
        found += [f"{each.job.id} {line}" for line in _of_job(each, each.job, job)]
    found += [f"invented {job}" for job in jobs.values()]
    return found


SAME = ("submit", "namespace", "name", "pool", "gpu_kind", "user", "created_by", "time_limit_seconds")


def _of_job(each: Expected, true: Job, job: Job) -> Iterator[str]:
    for name in SAME:
        if getattr(true, name) != getattr(job, name):
            yield f"{name}: {getattr(true, name)} read as {getattr(job, name)}"
    if each.gpus_known and abs(true.gpus - job.gpus) > 1e-6:
        yield f"gpus: {true.gpus} read as {job.gpus}"
    if not each.in_doubt:
        yield from _of_its_life(each, true, job)


def _of_its_life(each: Expected, true: Job, job: Job) -> Iterator[str]:
    if true.outcome is not job.outcome:
        yield f"outcome: {true.outcome} read as {job.outcome} ({each.work})"
    for name, within in (("scheduled", 0.0), ("start", each.start_within), ("gone_at", each.end_within)):
        one, other = getattr(true, name), getattr(job, name)
        apart = None if one is None or other is None else abs((one - other).total_seconds())
        if (one is None) != (other is None) or (apart is not None and apart > within + 1.0):
            yield f"{name}: {one} read as {other}, {within} s allowed"
    if abs(true.paused_seconds - job.paused_seconds) > each.paused_within + 1.0:
        yield f"paused: {true.paused_seconds} read as {job.paused_seconds}"
    for name in ("restarts", "evictions"):
        if (getattr(true, name) or 0) != (getattr(job, name) or 0):
            yield f"{name}: {getattr(true, name)} read as {getattr(job, name)}"


def a_telemetry(name: str, **spec: Any) -> Telemetry:
    dialect = DIALECTS[name]
    return Telemetry(a_world(WorldSpec(**{**SMALL, "seed": 3, "sharing": dialect.sharing, **spec})), dialect)


@pytest.mark.parametrize("name", DIALECTS)
def test_a_small_world_comes_back_as_it_was(name: str, prometheus_servers: MetricsServers, tmp_path: Path) -> None:
    compared = read(prometheus_servers, a_telemetry(name), tmp_path)
    assert differences(compared) == []
    if DIALECTS[name].metrics:
        assert usage_is_true(a_telemetry(name).world, compared)


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
    """Whether what jobs did is what they truly did, within what a sample a minute can show of at least an hour."""
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
            memories.append(abs(usage.memory_peak_bytes / true.memory_peak_bytes - 1.0))
    # The mean of a whole cluster is what recommendations are made of.
    return not errors or (float(np.mean(errors)) < 0.01 and max(errors) < 0.05 and max(memories) < 0.01)
