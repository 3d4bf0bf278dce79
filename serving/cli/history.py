"""``gsa history``: what is stored, what was dropped and why."""

from __future__ import annotations

from dataclasses import asdict
from datetime import datetime
from typing import Any

import typer
from rich.table import Table

from advisor.domain.ingest import left_out
from advisor.history.status import OPEN, HistoryStatus, SourceStatus
from advisor.history.store import HistoryStore
from advisor.settings import StorageSettings, load_settings
from serving.cli.collected import rejection_documents, rejection_tables
from serving.cli.options import ConfigOption, DebugOption, OutputOption
from serving.cli.output import Output, kept_in, minute, origin, render, table

__all__ = ["app", "history_tables"]

_OTHER_MOMENT = (
    "gsa serve and gsa advise look from the last submission, unless at a Kubernetes cluster: a job that started or "
    "ended after it still waits or runs there."
)

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
        "rejections": rejection_documents(found.rejections),
        "sources": [_source(each) for each in found.sources],
    }


def _source(each: SourceStatus) -> dict[str, Any]:
    plain = {key: _iso(value) if isinstance(value, datetime) else value for key, value in asdict(each).items()}
    return {**plain, "rejections": rejection_documents(each.rejections)}


def _iso(moment: datetime | None) -> str | None:
    return None if moment is None else moment.isoformat()


def _empty(storage: StorageSettings) -> str:
    lines = ["The store is empty. Fill it with gsa ingest (prometheus, kubernetes, slurm or trace)."]
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
    parts: list[Table | str] = [table("history (times in UTC)", columns, sources, prose=["data"])]
    parts += [f"- {each.source}: {_states(each)}" for each in found.sources]
    if any(OPEN & set(each.outcomes) for each in found.sources):
        parts.append(_OTHER_MOMENT)
    dropped = ", ".join(of.counted(count) for of, count in left_out(found.rejections).items() if count)
    return [*parts, *rejection_tables(found.rejections), *([f"left out in all: {dropped}"] if dropped else []),
            *(f"- {note}" for note in found.notes)]  # fmt: skip


def _states(source: SourceStatus) -> str:
    """How its jobs ended, and how the others stood when it was last heard of."""
    ended = [f"{count:,} {state}" for state, count in source.outcomes.items() if state not in OPEN]
    still = [f"{count:,} {state}" for state, count in source.outcomes.items() if state in OPEN]
    said = [", ".join(ended)] if ended else []
    if still:
        said.append(f"at its last event {' and '.join(still)}")
    return "; ".join(said) or "no jobs"
