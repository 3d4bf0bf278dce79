"""``gsa history``: what is stored, what was dropped and why."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Any

import typer
from rich.table import Table

from advisor.history.status import HistoryStatus, SourceStatus
from advisor.history.store import HistoryStore
from advisor.settings import StorageSettings, load_settings
from serving.cli.options import ConfigOption, DebugOption, OutputOption
from serving.cli.output import Output, kept_in, minute, origin, render, table

__all__ = ["app", "history_tables"]

app = typer.Typer(no_args_is_help=True, add_completion=False, help="What is stored, what was dropped and why.")


@app.callback()
def _group() -> None:
    """What is stored, what was dropped and why."""


@app.command("status")
def status(output: OutputOption = Output.TABLE, config: ConfigOption = None, debug: DebugOption = False) -> None:
    """What is stored, from where, and what was dropped and why."""
    del debug
    storage = load_settings(config).storage
    with HistoryStore.open(storage.history) as store:
        found = store.status()
    render(output, _document(found), lambda: history_tables(found) if found.sources else [_empty(storage)])


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


def _empty(storage: StorageSettings) -> str:
    lines = ["The store is empty. Fill it with gsa ingest trace PATH --format FORMAT."]
    demos = sorted(path.parent for path in (storage.home / "demo").glob("*/history.db"))
    # Whoever has just run the demo looks here first.
    lines += [f"A demo is {kept_in(home)}" for home in demos]
    return "\n".join(lines)


def history_tables(found: HistoryStatus) -> list[Table | str]:
    """What is stored, source by source, and what was left out and why."""
    sources = [
        (
            each.source,
            each.jobs,
            minute(each.first_submit),
            minute(each.last_event),
            origin(synthetic=each.synthetic),
        )
        for each in found.sources
    ]
    columns = ("source", "jobs", "first submit", "last event", "data")
    parts: list[Table | str] = [table("history (times in UTC)", columns, sources)]
    for each in found.sources:
        ends = ", ".join(f"{count:,} {outcome}" for outcome, count in each.outcomes.items())
        parts.append(f"- {each.source}: {ends}")
    if found.rejections:
        rows = [(each.reason, each.count, each.example) for each in found.rejections]
        parts.append(table("left out", ("reason", "count", "first example"), rows))
    return [*parts, *(f"- {note}" for note in found.notes)]
