"""A month of a cluster read from a metrics server: seconds and peak memory of the process that reads.

``GSA_BENCH_DAYS`` (default 30) of ``GSA_BENCH_GPUS`` (200) GPUs and ``GSA_BENCH_JOBS`` (5,000) jobs, scraped every
60 s by kube-state-metrics and dcgm-exporter, are generated into a VictoriaMetrics on loopback, which takes series
whole and needs no gigabytes of text. The reader is a process of its own; the server works on the same cores meanwhile.
Limits: ``LIMIT_SECONDS`` and ``LIMIT_BYTES``; beyond them the exit code is 1.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import numpy as np

from advisor.settings import PrometheusOptions, TelemetrySettings
from advisor.telemetry.prometheus.client import PrometheusClient
from advisor.telemetry.prometheus.samples import Series
from advisor.telemetry.prometheus.source import PrometheusSource
from tests.servers.prometheus import VictoriaServers
from tests.telemetry_world.dialects import DIALECTS
from tests.telemetry_world.exposition import Telemetry
from tests.telemetry_world.things import Sharing
from tests.telemetry_world.world import WorldSpec, a_world

LIMIT_SECONDS = 120.0
LIMIT_BYTES = 1 << 30
_BLOCK_BYTES = 8 << 20
_DIALECT = next(dialect for dialect in DIALECTS.values() if dialect.sharing is Sharing.WHOLE)


def main() -> int:
    """Generate, load, read in a process of its own, and print one line."""
    if sys.argv[1:2] == ["read"]:
        return _read(sys.argv[2], float(sys.argv[3]), float(sys.argv[4]))
    days, gpus, jobs = (_size("DAYS", 30.0), int(_size("GPUS", 200)), int(_size("JOBS", 5_000)))
    telemetry = Telemetry(a_world(WorldSpec(days=days, gpus=gpus, jobs=jobs, seed=1)), _DIALECT)
    with tempfile.TemporaryDirectory(prefix="gsa-bench-") as folder:
        servers = VictoriaServers(Path(folder))
        try:
            url = servers.load(()).url
            samples, seconds = _load(telemetry, url)
            print(
                f"{samples:,} samples of {days:g} days, {gpus} GPUs, {jobs:,} jobs loaded in {seconds:.0f} s",
                flush=True,
            )
            words = [
                sys.executable,
                "-m",
                "benchmarks.bench_telemetry",
                "read",
                url,
                str(telemetry.world.end),
                str(days),
            ]
            return subprocess.run(words, check=False).returncode
        finally:
            servers.stop()


def _size(name: str, default: float) -> float:
    return float(os.environ.get(f"GSA_BENCH_{name}", default))


def _load(telemetry: Telemetry, url: str) -> tuple[int, float]:
    """How many samples were sent, and how long that took."""
    began, sent = time.monotonic(), 0

    def counted() -> Iterator[Series]:
        nonlocal sent
        for name in telemetry.names:
            for series in telemetry.family(name):
                sent += series.times.size
                yield series

    with httpx.Client(base_url=url, trust_env=False, timeout=600.0) as client:
        for block in _blocks(counted()):
            client.post("/api/v1/import", content=block).raise_for_status()
        client.get("/internal/force_flush").raise_for_status()
    return sent, time.monotonic() - began


def _blocks(found: Iterable[Series]) -> Iterator[bytes]:
    lines: list[str] = []
    size = 0
    for series in found:
        stamps = np.rint(series.times * 1000.0).astype(np.int64).tolist()
        lines.append(json.dumps({"metric": series.labels, "values": series.values.tolist(), "timestamps": stamps}))
        size += len(lines[-1])
        if size > _BLOCK_BYTES:
            yield "\n".join(lines).encode()
            lines, size = [], 0
    yield "\n".join(lines).encode()


def _read(url: str, end: float, days: float) -> int:
    """Read everything, then what a turn of ``gsa collect`` reads five minutes after another; say what each took."""
    options = PrometheusOptions(url=url, days=days, step_seconds=60)
    now = datetime.fromtimestamp(end, UTC)
    seconds = _timed("everything", options, None, now)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(
        f"limits: {LIMIT_SECONDS:.0f} s, {LIMIT_BYTES / 2**20:,.0f} MiB; peak {peak / 2**20:,.0f} MiB, "
        f"{time.process_time():.1f} s of our processor"
    )
    _timed("a turn", options, now - timedelta(minutes=5), now)
    return int(seconds > LIMIT_SECONDS or peak > LIMIT_BYTES)


def _timed(what: str, options: PrometheusOptions, since: datetime | None, now: datetime) -> float:
    """Seconds of one reading."""
    began, devices = time.monotonic(), 0.0

    def told(stage: str, done: int, of: int) -> None:
        nonlocal devices
        del stage, done, of
        devices = devices or time.monotonic()

    with PrometheusClient(options) as client:
        batch = PrometheusSource(client, options, TelemetrySettings().user_labels, progress=told).read(since, now)
    seconds = time.monotonic() - began
    used = sum(job.usage is not None for job in batch.jobs)
    pods = f", {devices - began:.1f} s of it up to the first samples of devices" if devices else ""
    print(f"{what}: {len(batch.jobs):,} jobs, {used:,} with their use, in {seconds:.1f} s{pods}")
    return seconds


if __name__ == "__main__":
    sys.exit(main())
