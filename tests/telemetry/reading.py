"""A world read through each source."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from advisor.cluster.reflector import Pace
from advisor.domain.ingest import JobBatch
from advisor.settings import PrometheusOptions, TelemetrySettings
from advisor.telemetry.kubernetes.source import KubernetesSource
from advisor.telemetry.prometheus.client import PrometheusClient
from advisor.telemetry.prometheus.source import PrometheusSource
from tests.servers.prometheus import MetricsServers
from tests.telemetry_world.api_server import WorldServer
from tests.telemetry_world.exposition import Telemetry
from tests.telemetry_world.world import World

__all__ = ["through_kubernetes", "through_prometheus"]


def through_prometheus(servers: MetricsServers, telemetry: Telemetry, folder: Path) -> JobBatch:
    """What a real server has told by the end of the world."""
    file = folder / "metrics.om"
    telemetry.write(file)
    server = servers.load(file)
    # A whole cluster's is of gigabytes, and the server has its own copy.
    file.unlink()
    try:
        options = PrometheusOptions(
            url=server.url, days=telemetry.world.spec.days, step_seconds=round(telemetry.interval)
        )
        with PrometheusClient(options) as client:
            now = datetime.fromtimestamp(telemetry.world.end, UTC)
            return PrometheusSource(client, options, TelemetrySettings().user_labels).read(None, now)
    finally:
        server.stop()


def through_kubernetes(world: World, *, follow: bool, last_phase: bool = True) -> JobBatch:
    """What an API server has told by the end of the world, followed from the start or only listed then."""
    server = WorldServer(world, last_phase=last_phase)
    pace = Pace(server.clock, server.clock.pause, lambda: 0.0)
    source = KubernetesSource(server, pace, TelemetrySettings().user_labels)
    if follow:
        source.follow(world.end - world.start)
    server.clock.everywhere(world.end)
    return source.read(None, datetime.fromtimestamp(world.end, UTC))
