"""``gsa doctor``: what works, what is missing, what that costs and how to mend it."""

from __future__ import annotations

from dataclasses import asdict
from typing import Annotated

import typer
from rich.table import Table

from advisor.clock import SystemClock
from advisor.settings import load_settings
from advisor.telemetry.dcgm.scales import Pins
from advisor.telemetry.prometheus.client import PrometheusClient
from advisor.telemetry.prometheus.doctor import Finding, Health, examine
from serving.cli.options import ConfigOption, DebugOption, OutputOption, addressed, metrics_options
from serving.cli.output import Output, phase, render, table
from serving.cli.root import ExitCode

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True, add_completion=False, help="What works, what is missing, how to mend it.")

UrlOption = Annotated[
    str | None,
    typer.Option(
        "--url", help="Address of the server with its path prefix; else [prometheus] url.", show_default=False
    ),
]
ClusterOption = Annotated[
    str | None,
    typer.Option("--cluster", help="Only series whose cluster label has this value.", show_default=False),
]


@app.callback()
def _group() -> None:
    """What works, what is missing, how to mend it."""


@app.command("prometheus")
def prometheus(
    *,
    url: UrlOption = None,
    cluster: ClusterOption = None,
    output: OutputOption = Output.TABLE,
    config: ConfigOption = None,
    debug: DebugOption = False,
) -> None:
    """What a metrics server has of what history needs; leaves with 5 where no history can be read at all."""
    del debug
    settings = load_settings(config)
    options = addressed(metrics_options(settings, "--url", url=url, cluster=cluster))
    pins = Pins.of(settings.dcgm)
    with phase("doctor", "looking at the last hour"), PrometheusClient(options) as client:
        found = examine(client, SystemClock().now(), settings.telemetry.user_labels, options.step_seconds, pins)
        notes = client.notes
    render(output, {"findings": [asdict(each) for each in found], "notes": list(notes)}, lambda: _tables(found, notes))
    if any(each.health is Health.FATAL for each in found):
        raise typer.Exit(ExitCode.GATE)


def _tables(found: tuple[Finding, ...], notes: tuple[str, ...]) -> list[Table | str]:
    rows = [(each.health, _said(each)) for each in found]
    parts: list[Table | str] = [table("metrics of the last hour", ("health", _FOUND), rows, prose=[_FOUND])]
    remedies: dict[str, list[str]] = {}
    for each in found:
        if each.remedy:
            remedies.setdefault(each.remedy, []).append(each.what)
    parts += ["how to mend it:"] if remedies else []
    parts += [f"- {', '.join(whats)}: {remedy}" for remedy, whats in remedies.items()]
    return [*parts, *(f"- {note}" for note in notes)]


_FOUND = "what was found, and what its absence costs"


def _said(finding: Finding) -> str:
    """In one cell, since names of metrics are long and must stay whole."""
    said = f"{finding.what}: {finding.found}"
    return f"{said}\n  {finding.costs}" if finding.costs else said
