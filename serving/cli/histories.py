"""The history that a command measures on: a trace by its options, or the store."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, NamedTuple

import typer

from advisor.domain.jobs import Job
from advisor.errors import Refused
from advisor.history.store import HistoryStore
from advisor.settings import Settings
from advisor.telemetry.mapping import read_mapping
from advisor.telemetry.traces import TraceFile, TraceFormat
from serving.cli.output import progress_bar

__all__ = [
    "FormatOption",
    "KnownHistory",
    "MappingOption",
    "SplitOption",
    "TraceOption",
    "jobs_of_trace",
    "known_history",
]

TraceOption = Annotated[
    Path | None, typer.Option("--trace", help="Trace file; without one, the store.", show_default=False)
]
FormatOption = Annotated[TraceFormat | None, typer.Option("--format", help="Layout of the trace.", show_default=False)]
MappingOption = Annotated[
    Path | None, typer.Option("--mapping", help="TOML file naming the columns; for --format table.", show_default=False)
]
SplitOption = Annotated[
    float, typer.Option("--split", min=0.05, max=0.95, help="Share of the jobs, in time, before the held-out part.")
]


class KnownHistory(NamedTuple):
    """The jobs to measure on, and whether they were generated."""

    jobs: list[Job]
    synthetic: bool


def known_history(
    settings: Settings, trace: Path | None, trace_format: TraceFormat | None, mapping: Path | None
) -> KnownHistory:
    """The jobs of the trace, or of the store where none is named.

    Raises:
        Refused: a trace without format, or one that cannot be read; an empty store.
    """
    return _stored(settings) if trace is None else jobs_of_trace(trace, trace_format, mapping)


def _stored(settings: Settings) -> KnownHistory:
    with HistoryStore.open(settings.storage.history) as store:
        last = store.last_event()
        if last is None:
            raise Refused("history", None, "an evaluation needs jobs", "Ingest some (gsa ingest), or name a --trace.")
        return KnownHistory(store.jobs(last), store.is_synthetic())


def jobs_of_trace(path: Path, trace_format: TraceFormat | None, mapping: Path | None) -> KnownHistory:
    """The jobs in the file at ``path``.

    Raises:
        Refused: no format was named, or file and mapping cannot be read together.
    """
    if trace_format is None:
        known = ", ".join(TraceFormat)
        raise Refused("--format", None, f"a trace has one of the formats {known}", "Name it with --format.")
    columns = None if mapping is None else read_mapping(mapping)
    with progress_bar("read") as step:
        batch = TraceFile(path, trace_format, columns, progress=step).read(None, datetime.now(UTC))
    # As the store would hold them, so that the same jobs have the same digest wherever they are read from.
    return KnownHistory([replace(job, source=batch.source) for job in batch.jobs], batch.synthetic)
