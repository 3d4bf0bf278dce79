"""``gsa history``: what is stored, what was dropped and why."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Any

import typer
from rich.table import Table

from advisor.history.status import HistoryStatus, SourceStatus
from advisor.history.store import HistoryStore
from advisor.settings import load_settings
from serving.cli.options import ConfigOption, DebugOption, OutputOption
from serving.cli.output import Output, render, table

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True, add_completion=False, help="What is stored, what was dropped and why.")


@app.callback()
def _group() -> None:
    """What is stored, what was dropped and why."""


@app.command("status")
def status(output: OutputOption = Output.TABLE, config: ConfigOption = None, debug: DebugOption = False) -> None:
    """What is stored, from where, and what was dropped and why."""
    del debug
    with HistoryStore.open(load_settings(config).storage.history) as store:
        found = store.status()
    render(output, _document(found), lambda: _tables(found))


def _document(found: HistoryStatus) -> dict[str, Any]:
    return {
        "jobs": found.jobs,
        "outcomes": found.outcomes,
        "first_submit": _iso(found.first_submit),
        "last_event": _iso(found.last_event),
        "synthetic": found.synthetic,
        "notes": list(found.notes),
        "rejections": [asdict(each) for each in found.rejections],
        "sources": [_source(each) for each in found.sources],
    }


def _source(each: SourceStatus) -> dict[str, Any]:
    return {key: _iso(value) if isinstance(value, datetime) else value for key, value in asdict(each).items()}


def _iso(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


def _tables(found: HistoryStatus) -> list[Table | str]:
    if not found.sources:
        return ["The store is empty. Fill it with gsa ingest trace PATH --format FORMAT."]
    sources = [
        (
            each.source,
            each.jobs,
            _minute(each.first_submit),
            _minute(each.last_event),
            " ".join(f"{outcome} {count}" for outcome, count in each.outcomes.items()),
            "SYNTHETIC" if each.synthetic else "real",
        )
        for each in found.sources
    ]
    columns = ("source", "jobs", "first submit (UTC)", "last event (UTC)", "outcomes", "data")
    parts: list[Table | str] = [table("history", columns, sources)]
    if found.rejections:
        rows = [(each.reason, each.count, each.example) for each in found.rejections]
        parts.append(table("left out", ("reason", "count", "first example"), rows))
    return [*parts, *(f"- {note}" for note in found.notes)]


def _minute(moment: datetime | None) -> str | None:
    return None if moment is None else f"{moment:%Y-%m-%d %H:%M}"
