"""Reads a source into the configured store, and tells what came of it."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.table import Table

from advisor.clock import SystemClock
from advisor.history.store import HistoryStore
from advisor.settings import load_settings
from advisor.telemetry.collector import Collected, collect
from advisor.telemetry.source import Source
from serving.cli.output import Stages, Step, table

__all__ = ["collected", "document", "stage_of", "tables"]


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
    return {**asdict(done), "watermark": None if done.watermark is None else done.watermark.isoformat()}


def tables(done: Collected) -> list[Table | str]:
    """What was added, what was left out and why, and what had to be assumed."""
    counts = (("added", done.added), ("changed", done.changed), ("unchanged", done.unchanged))
    dropped = sum(each.count for each in done.rejections)
    parts: list[Table | str] = [table(f"source {done.source}", ("jobs", "count"), (*counts, ("left out", dropped)))]
    if done.rejections:
        rows = [(each.reason, each.count, each.example) for each in done.rejections]
        parts.append(table("left out", ("reason", "count", "first example"), rows))
    return [*parts, *(f"- {note}" for note in done.notes)]
