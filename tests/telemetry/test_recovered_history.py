"""History read through real servers equals the truth of the worlds they scraped."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from advisor.domain.ingest import JobBatch
from advisor.domain.jobs import Job
from advisor.settings import PrometheusOptions, TelemetrySettings
from advisor.telemetry.prometheus.client import PrometheusClient
from advisor.telemetry.prometheus.source import PrometheusSource
from tests.servers.prometheus import MetricsServers
from tests.telemetry_world.dialects import DIALECTS
from tests.telemetry_world.exposition import Telemetry
from tests.telemetry_world.observer import Expected, expected
from tests.telemetry_world.world import WorldSpec, a_world

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


@pytest.mark.parametrize("name", DIALECTS)
def test_a_small_world_comes_back_as_it_was(name: str, prometheus_servers: MetricsServers, tmp_path: Path) -> None:
    dialect = DIALECTS[name]
    telemetry = Telemetry(a_world(WorldSpec(**SMALL, seed=3, sharing=dialect.sharing)), dialect)
    compared = read(prometheus_servers, telemetry, tmp_path)
    assert differences(compared) == []
