"""Reads a source into the configured store, and tells what came of it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.table import Table

from advisor.clock import SystemClock
from advisor.domain.ingest import Rejection, left_out
from advisor.history.store import HistoryStore
from advisor.settings import load_settings
from advisor.telemetry.collector import Collected, collect
from advisor.telemetry.source import Source
from serving.cli.output import Stages, Step, table

__all__ = ["collected", "document", "rejection_documents", "rejection_tables", "stage_of", "tables"]


def collected(source: Source, config: Path | None, told: Stages) -> Collected:
    """What came of reading ``source`` into the configured store."""
    with HistoryStore.open(load_settings(config).storage.history) as store:
        return collect(source, store, SystemClock().now(), stage_of(told, "storing jobs"))


def stage_of(told: Stages, stage: str) -> Step:
    """The progress of one stage."""

    def shown(done: int, total: int) -> None:
        told(stage, done, total)

    return shown


def document(done: Collected) -> dict[str, Any]:
    """The same as :func:`tables` for machines."""
    watermark = None if done.watermark is None else done.watermark.isoformat()
    return {**asdict(done), "rejections": rejection_documents(done.rejections), "watermark": watermark}


def rejection_documents(rejections: Sequence[Rejection]) -> list[dict[str, Any]]:
    """What was left out, each reason with what its count counts."""
    return [{**asdict(each), "of": each.of.value} for each in rejections]


def tables(done: Collected) -> list[Table | str]:
    """What was added, what was left out and why, and what had to be assumed."""
    counts = [("jobs added", done.added), ("jobs changed", done.changed), ("jobs unchanged", done.unchanged)]
    counts += [(f"{of} left out", count) for of, count in left_out(done.rejections).items()]
    made = table(f"source {done.source}", ("what", "count"), counts)
    return [made, *rejection_tables(done.rejections), *(f"- {note}" for note in done.notes)]


def rejection_tables(rejections: Sequence[Rejection]) -> list[Table]:
    """Each reason with what and how much was left out for it; none where nothing was."""
    rows = [(each.reason, each.of, each.count, each.example) for each in rejections]
    columns = ("reason", "what", "count", "first example")
    return [table("left out", columns, rows, prose=("what", "first example"))] if rows else []
