"""The jobs of the trace that a command names."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from advisor.domain.jobs import Job
from advisor.errors import Refused
from advisor.telemetry.mapping import read_mapping
from advisor.telemetry.traces import TraceFile, TraceFormat
from serving.cli.output import progress_bar

__all__ = ["TracedJobs", "jobs_of_trace"]


class TracedJobs(NamedTuple):
    """The jobs to evaluate on, and whether they were generated."""

    jobs: list[Job]
    synthetic: bool


def jobs_of_trace(path: Path, trace_format: TraceFormat | None, mapping: Path | None) -> TracedJobs:
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
    return TracedJobs(list(batch.jobs), batch.synthetic)
