"""``gsa ingest``: job history into the store."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from advisor.clock import SystemClock
from advisor.history.store import HistoryStore
from advisor.settings import load_settings
from advisor.telemetry.collector import Collected, collect
from advisor.telemetry.mapping import read_mapping
from advisor.telemetry.slurm import SlurmFile
from advisor.telemetry.source import Source
from advisor.telemetry.traces import TraceFile, TraceFormat
from serving.cli.options import ConfigOption, DebugOption, OutputOption
from serving.cli.output import Output, Stages, Step, render, stages, table

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True, add_completion=False, help="History from a file.")

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
SacctArgument = Annotated[Path, typer.Argument(help="What sacct --parsable2 wrote (also gzipped).", show_default=False)]
ClusterOption = Annotated[
    str | None,
    typer.Option(
        "--source", help="Name of the cluster; slurm by default. Each cluster needs its own.", show_default=False
    ),
]
ZoneOption = Annotated[
    str | None,
    typer.Option("--zone", help="Time zone of the file's times, for instance Europe/Berlin; UTC by default.",
                 show_default=False),
]  # fmt: skip


@app.callback()
def _group() -> None:
    """History from a file."""


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
    with stages("ingest") as told:
        file = TraceFile(path, trace_format, columns, source=source, progress=_of(told, "reading rows"))
        done = _collected(file, config, told)
    render(output, _document(done), lambda: _tables(done))


@app.command("slurm")
def slurm(
    path: SacctArgument,
    *,
    source: ClusterOption = None,
    zone: ZoneOption = None,
    output: OutputOption = Output.TABLE,
    config: ConfigOption = None,
    debug: DebugOption = False,
) -> None:
    """Read Slurm's accounting into the store; doing it again with a newer file adds what is new."""
    del debug
    with stages("ingest") as told:
        file = SlurmFile(path, zone=zone, source=source, progress=_of(told, "reading rows"))
        done = _collected(file, config, told)
    render(output, _document(done), lambda: _tables(done))


def _collected(source: Source, config: Path | None, told: Stages) -> Collected:
    """What came of reading ``source`` into the configured store."""
    with HistoryStore.open(load_settings(config).storage.history) as store:
        return collect(source, store, SystemClock().now(), _of(told, "storing jobs"))


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
