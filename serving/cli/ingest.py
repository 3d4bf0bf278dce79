"""``gsa ingest``: job history into the store."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from random import random
from time import sleep
from typing import Annotated, Any

import typer
from rich.table import Table

from advisor.clock import SystemClock
from advisor.cluster.reflector import Pace
from advisor.history.store import HistoryStore
from advisor.settings import load_settings
from advisor.telemetry.collector import Collected, collect
from advisor.telemetry.kubernetes.source import KubernetesSource
from advisor.telemetry.mapping import read_mapping
from advisor.telemetry.traces import TraceFile, TraceFormat
from serving.cli.ingest_tables import start_tables
from serving.cli.options import ConfigOption, DebugOption, OutputOption
from serving.cli.output import Output, Stages, Step, render, stages, table

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True, add_completion=False, help="History from a file or a cluster.")

PathArgument = Annotated[Path, typer.Argument(help="CSV (also gzipped) or Parquet file.", show_default=False)]
FormatOption = Annotated[TraceFormat, typer.Option("--format", help="How the file is laid out.", show_default=False)]
MappingOption = Annotated[
    Path | None,
    typer.Option("--mapping", help="TOML file that names the columns; for --format table.", show_default=False),
]
SourceOption = Annotated[
    str | None,
    typer.Option(
        "--source",
        help="Name of the stream of jobs; the format by default. Files of different clusters need different names.",
        show_default=False,
    ),
]
KubeconfigOption = Annotated[
    Path | None,
    typer.Option(
        "--kubeconfig",
        help="Kubeconfig file; without one the pod's service account, then kubectl's default.",
        show_default=False,
    ),
]
ContextOption = Annotated[
    str | None,
    typer.Option("--context", help="Context of the kubeconfig; its current one by default.", show_default=False),
]
NameOption = Annotated[
    str | None,
    typer.Option(
        "--name",
        help="What the cluster is called in the history; as in the kubeconfig by default. Never change it.",
        show_default=False,
    ),
]


@app.callback()
def _group() -> None:
    """History from a file or a cluster."""


@app.command("trace")
def trace(
    path: PathArgument,
    trace_format: FormatOption,
    *,
    mapping: MappingOption = None,
    source: SourceOption = None,
    output: OutputOption = Output.TABLE,
    config: ConfigOption = None,
    debug: DebugOption = False,
) -> None:
    """Read a trace file into the store; doing it again changes nothing."""
    del debug
    columns = None if mapping is None else read_mapping(mapping)
    url = load_settings(config).storage.history
    with stages("ingest") as told, HistoryStore.open(url) as store:
        file = TraceFile(path, trace_format, columns, source=source, progress=_of(told, "reading rows"))
        done = collect(file, store, SystemClock().now(), _of(told, "storing jobs"))
    render(output, _document(done), lambda: _tables(done))


@app.command("kubernetes")
def kubernetes(
    *,
    kubeconfig: KubeconfigOption = None,
    context: ContextOption = None,
    name: NameOption = None,
    output: OutputOption = Output.TABLE,
    config: ConfigOption = None,
    debug: DebugOption = False,
) -> None:
    """Read what a cluster's API server still knows of its pods and Jobs; also how long its nodes took to start."""
    from advisor.cluster.kubernetes import KubernetesObjects  # noqa: PLC0415 - the client alone loads longer than the rest

    del debug
    settings = load_settings(config)
    clock = SystemClock()
    reader = KubernetesObjects.connect(kubeconfig, context)
    pace = Pace(clock, sleep, random)
    with stages("ingest") as told, HistoryStore.open(settings.storage.history) as store:
        source = KubernetesSource(reader, pace, settings.telemetry.user_labels, name=name)
        done = collect(source, store, clock.now(), _of(told, "storing jobs"))
    starts = source.start_latencies()
    document = {**_document(done), "start_latency": [each.document() for each in starts]}
    render(output, document, lambda: [*_tables(done), *start_tables(starts)])


def _of(told: Stages, stage: str) -> Step:
    """The progress of one stage."""

    def shown(done: int, total: int) -> None:
        told(stage, done, total)

    return shown


def _document(done: Collected) -> dict[str, Any]:
    return {**asdict(done), "watermark": None if done.watermark is None else done.watermark.isoformat()}


def _tables(done: Collected) -> list[Table | str]:
    counts = (("added", done.added), ("changed", done.changed), ("unchanged", done.unchanged))
    dropped = sum(each.count for each in done.rejections)
    parts: list[Table | str] = [table(f"source {done.source}", ("jobs", "count"), (*counts, ("left out", dropped)))]
    if done.rejections:
        rows = [(each.reason, each.count, each.example) for each in done.rejections]
        parts.append(table("left out", ("reason", "count", "first example"), rows))
    return [*parts, *(f"- {note}" for note in done.notes)]
