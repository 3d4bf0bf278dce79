"""``gsa ingest prometheus``: history from a metrics server."""

from __future__ import annotations

from typing import Annotated

import typer

from advisor.settings import load_settings
from advisor.telemetry.dcgm.scales import Pins
from advisor.telemetry.prometheus.client import PrometheusClient
from advisor.telemetry.prometheus.source import PrometheusSource
from serving.cli.collected import collected, document, tables
from serving.cli.options import ConfigOption, DebugOption, OutputOption, addressed, metrics_options
from serving.cli.output import Output, render, stages

__all__ = ["prometheus"]

UrlOption = Annotated[
    str | None,
    typer.Option(
        "--url", help="Address of the server with its path prefix; else [prometheus] url.", show_default=False
    ),
]
DaysOption = Annotated[
    float | None, typer.Option("--days", help="How far back to read; else [prometheus] days.", show_default=False)
]
ClusterOption = Annotated[
    str | None,
    typer.Option("--cluster", help="Only series whose cluster label has this value.", show_default=False),
]


def prometheus(
    *,
    url: UrlOption = None,
    days: DaysOption = None,
    cluster: ClusterOption = None,
    output: OutputOption = Output.TABLE,
    config: ConfigOption = None,
    debug: DebugOption = False,
) -> None:
    """Read jobs from kube-state-metrics and what they used from dcgm-exporter, through Prometheus or its like."""
    del debug
    settings = load_settings(config)
    options = addressed(metrics_options(settings, "--url", url=url, days=days, cluster=cluster))
    pins = Pins.of(settings.dcgm)
    with stages("ingest") as told, PrometheusClient(options) as client:
        source = PrometheusSource(client, options, settings.telemetry.user_labels, pins, progress=told)
        done = collected(source, config, told)
    render(output, document(done), lambda: tables(done))
