"""What utilisation and memory of earlier jobs add to duration predictions, on history read through a real Prometheus.

The history is a generated world (``tests/telemetry_world``), written as metrics, loaded into a Prometheus and read by
``gsa ingest prometheus``'s own source. It is evaluated as it was read, and once more without what its jobs used.
"""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from advisor.domain.jobs import Job
from advisor.settings import PrometheusOptions
from advisor.telemetry.prometheus.client import PrometheusClient
from advisor.telemetry.prometheus.source import PrometheusSource
from tests.servers.prometheus import PrometheusServers
from tests.telemetry_world.dialects import DIALECTS
from tests.telemetry_world.exposition import Telemetry
from tests.telemetry_world.world import WorldSpec, a_world
from training.backtest import BacktestSettings, evaluate_durations

SEEDS = (1, 2, 3)
DIALECT = "exporter-3.3-relabelled"


def main() -> None:
    """Measure, and print one table."""
    print(f"{'world':>6} {'jobs':>6} {'with usage':>11}  log_mae (with / without)   crps (with / without)")
    for seed in SEEDS:
        jobs = _read(seed)
        used = sum(job.usage is not None for job in jobs)
        with_usage, without = _scores(jobs), _scores([replace(job, usage=None) for job in jobs])
        print(
            f"{seed:>6} {len(jobs):>6,} {used:>11,}  {with_usage[0]:.3f} / {without[0]:.3f}"
            f"              {with_usage[1]:.3f} / {without[1]:.3f}"
        )


def _read(seed: int) -> Sequence[Job]:
    spec = WorldSpec(days=14, gpus=50, jobs=2000, seed=seed)
    telemetry = Telemetry(a_world(spec), DIALECTS[DIALECT])
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "world.om"
        telemetry.write(file)
        servers = PrometheusServers(Path(folder))
        try:
            options = PrometheusOptions(url=servers.load(file).url, days=14.0)
            with PrometheusClient(options) as client:
                now = datetime.fromtimestamp(spec.end, UTC)
                return PrometheusSource(client, options).read(None, now).jobs
        finally:
            servers.stop()


def _scores(jobs: Sequence[Job]) -> tuple[float, float]:
    found = evaluate_durations(jobs, BacktestSettings()).scores["model"]
    return found.log_mae, found.crps_log


if __name__ == "__main__":
    main()
