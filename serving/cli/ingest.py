"""``gsa ingest``: job history into the store."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from advisor.telemetry.mapping import read_mapping
from advisor.telemetry.slurm import SlurmFile
from advisor.telemetry.traces import TraceFile, TraceFormat
from serving.cli.collected import collected, document, stage_of, tables
from serving.cli.ingest_kubernetes import kubernetes
from serving.cli.ingest_prometheus import prometheus
from serving.cli.options import ConfigOption, DebugOption, OutputOption
from serving.cli.output import Output, render, stages

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True, add_completion=False, help="History from a file or a live system.")

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
    """History from a file or a live system."""


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
        file = TraceFile(path, trace_format, columns, source=source, progress=stage_of(told, "reading rows"))
        done = collected(file, config, told)
    render(output, document(done), lambda: tables(done))


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
        file = SlurmFile(path, zone=zone, source=source, progress=stage_of(told, "reading rows"))
        done = collected(file, config, told)
    render(output, document(done), lambda: tables(done))


app.command("prometheus")(prometheus)
app.command("kubernetes")(kubernetes)
