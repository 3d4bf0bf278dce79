"""Results on standard output, as a table for people or as one JSON or YAML document for machines."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from textwrap import wrap
from typing import Any, Protocol

import yaml
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

__all__ = [
    "Output",
    "Report",
    "Stages",
    "Step",
    "kept_in",
    "minute",
    "note",
    "origin",
    "phase",
    "printer",
    "progress_bar",
    "render",
    "show",
    "stages",
    "table",
]


_PLAIN_WIDTH = 100
_PROSE_WIDTH = 80
_BULLET = re.compile(r" *(?:- )?")
_COMMAND = re.compile(r"\bgsa [a-z]+")
_HELD = "\u00a0"
_STAGES = {
    "features": "reading the past of each job",
    "refits": "fitting and replaying",
    "scores": "scoring",
    "demand": "fitting the demand of each pool",
    "replays": "replaying policies",
}
"""What people are told of the stages of a training."""


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


class Stages(Protocol):
    """Reports how far long work of several stages has come."""

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Of ``stage``, ``done`` of ``total`` units are finished; 0 where nobody knows how many there are."""
        ...


def render(output: Output, document: Mapping[str, Any], tables: Report) -> None:
    """Print ``document`` as JSON or YAML, or else what ``tables`` makes; nothing else goes to standard output."""
    if output is Output.JSON:
        # allow_nan=False: a NaN would be no JSON at all, and means that a promise broke upstream.
        sys.stdout.write(json.dumps(document, indent=2, allow_nan=False, default=str) + "\n")
    elif output is Output.YAML:
        sys.stdout.write(yaml.safe_dump(json.loads(json.dumps(document, default=str)), sort_keys=False))
    else:
        show(tables())


def show(parts: Sequence[Table | str]) -> None:
    """Print what a command has to say to people."""
    console = printer()
    for part in parts:
        # Wrapped between words only: a path broken in two could not be copied.
        console.print(_wrapped(part, console.width), overflow="ignore", crop=False)


def _wrapped(part: Table | str, width: int) -> Table | str:
    """A line of prose in as many as it needs, those of a bullet under its text; what has lines already as it is."""
    if not isinstance(part, str) or "\n" in part:
        return part
    mark = _BULLET.match(part)
    indent = " " * (mark.end() if mark else 0)
    # The name of a command stays in one line: it may be copied.
    held = _COMMAND.sub(lambda found: found[0].replace(" ", _HELD), part)
    lines = wrap(held, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)
    return "\n".join(lines).replace(_HELD, " ")


def printer() -> Console:
    """Standard output for people: as wide as the terminal or ``COLUMNS``, else wide enough for long reasons."""
    plain = _console()
    return plain if plain.is_terminal or "COLUMNS" in os.environ else _console(width=_PLAIN_WIDTH)


def _console(*, stderr: bool = False, soft_wrap: bool = False, width: int | None = None) -> Console:
    """Prints what it is given as it stands: brackets and colons of other people's texts are no markup here."""
    return Console(stderr=stderr, soft_wrap=soft_wrap, width=width, highlight=False, markup=False, emoji=False)


def table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[object]], *, prose: Collection[str] = ()
) -> Table:
    """A table whose first column is a name and whose others are numbers, unknown shown as a hyphen.

    Columns of ``prose`` begin at the left and take no more of a wide terminal than can be read.
    """
    made = Table(title=Text(title), title_justify="left", header_style="bold")
    for at, column in enumerate(columns):
        text = column in prose
        made.add_column(
            Text(column),
            justify="left" if at == 0 or text else "right",
            overflow="fold",
            max_width=_PROSE_WIDTH if text else None,
        )
    for row in rows:
        made.add_row(*(Text(_cell(value)) for value in row))
    return made


def _cell(value: object) -> str:
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        if value == int(value):
            return f"{value:,.0f}"
        return f"{value:.3f}" if abs(value) < 100 else f"{value:,.0f}"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_cell, value)) or "-"
    return str(value)


def origin(*, synthetic: bool) -> str:
    """What data are called: generated ones by name, all others as they were given, for nobody can tell more."""
    return "SYNTHETIC" if synthetic else "as given"


def minute(moment: datetime | None) -> str:
    """A moment to the minute, a hyphen where there is none; the reader is told elsewhere that it is UTC."""
    return "-" if moment is None else f"{moment:%Y-%m-%d %H:%M}"


def kept_in(home: Path) -> str:
    """Where a command has kept things, and how to look at them."""
    shown = home.relative_to(Path.cwd()) if home.is_absolute() and home.is_relative_to(Path.cwd()) else home
    # A line of its own: a command in two could not be copied.
    return f"kept in {shown}; to look at it:\nGSA_STORAGE__HOME={shown} gsa history status (or any other command)"


def note(said: str) -> None:
    """One line on standard error, beside the result."""
    _console(stderr=True, soft_wrap=True).print(said)


@contextmanager
def phase(what: str, doing: str) -> Iterator[None]:
    """Say on standard error what takes a while: on a terminal for as long as it lasts, else in a line that stays."""
    console = _console(stderr=True, soft_wrap=True)
    if not console.is_terminal:
        console.print(f"{what}: {doing}")
        yield
        return
    with console.status(f"{what}: {doing}"):
        yield


@contextmanager
def stages(what: str) -> Iterator[Stages]:
    """Progress on standard error: one bar per stage on a terminal, else one line as each stage begins."""
    console = _console(stderr=True, soft_wrap=True)
    if not console.is_terminal:
        yield _Lines(what, console)
        return
    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as bar:
        task, last = bar.add_task(what, total=None), what

        def told(stage: str, done: int, total: int) -> None:
            nonlocal last
            if stage != last:
                bar.reset(task, description=f"{what}: {_STAGES.get(stage, stage)}")
                last = stage
            bar.update(task, completed=done, total=total or None)

        yield told


class _Lines:
    """Names each stage once, as it begins: what a log wants of a bar."""

    def __init__(self, what: str, console: Console) -> None:
        self._what = what
        self._console = console
        self._last: str | None = None

    def __call__(self, stage: str, done: int, total: int) -> None:
        """Say the stage where it is another than before."""
        del done
        if stage != self._last:
            self._last = stage
            amount = f", {total:,} in all" if total else ""
            self._console.print(f"{self._what}: {_STAGES.get(stage, stage)}{amount}")


@contextmanager
def progress_bar(what: str) -> Iterator[Step]:
    """The same for work of a single stage."""
    with stages(what) as told:

        def step(done: int, total: int) -> None:
            told("rows", done, total)

        yield step
