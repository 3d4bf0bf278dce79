"""Results on standard output, as a table for people or as one JSON or YAML document for machines."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import StrEnum
from typing import Any, Protocol

import yaml
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

__all__ = ["Output", "Report", "Step", "printer", "progress_bar", "render", "table"]


_PLAIN_WIDTH = 140


class Output(StrEnum):
    """How a result is printed."""

    TABLE = "table"
    JSON = "json"
    YAML = "yaml"


class Report(Protocol):
    """Anything that prints as tables."""

    def __call__(self) -> Sequence[Table | str]:
        """The tables and lines, in order."""
        ...


class Step(Protocol):
    """Reports how far long work has come."""

    def __call__(self, done: int, total: int) -> None:
        """``done`` of ``total`` units are finished."""
        ...


def render(output: Output, document: Mapping[str, Any], tables: Report) -> None:
    """Print ``document`` as JSON or YAML, or else what ``tables`` makes; nothing else goes to standard output."""
    if output is Output.JSON:
        # allow_nan=False: a NaN would be no JSON at all, and means that a promise broke upstream.
        sys.stdout.write(json.dumps(document, indent=2, allow_nan=False, default=str) + "\n")
    elif output is Output.YAML:
        sys.stdout.write(yaml.safe_dump(json.loads(json.dumps(document, default=str)), sort_keys=False))
    else:
        console = printer()
        for part in tables():
            console.print(part)


def printer() -> Console:
    """Standard output for people; as wide as the terminal, or wide enough for tables where it is none."""
    plain = Console(highlight=False)
    return plain if plain.is_terminal else Console(highlight=False, width=_PLAIN_WIDTH)


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> Table:
    """A table whose first column is a name and whose others are numbers, unknown shown as a hyphen."""
    made = Table(title=title, title_justify="left", header_style="bold")
    for at, column in enumerate(columns):
        made.add_column(column, justify="left" if at == 0 else "right", overflow="fold")
    for row in rows:
        made.add_row(*(_cell(value) for value in row))
    return made


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, float):
        if value == int(value):
            return f"{value:,.0f}"
        return f"{value:.3f}" if abs(value) < 100 else f"{value:,.0f}"
    return str(value)


@contextmanager
def progress_bar(what: str) -> Iterator[Step]:
    """A progress bar on standard error; silent where that is no terminal."""
    console = Console(stderr=True)
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(what, total=None)

        def step(done: int, total: int) -> None:
            bar.update(task, completed=done, total=total)

        yield step
