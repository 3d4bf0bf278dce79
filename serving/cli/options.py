"""Options that many commands share, so that each is spelled and explained once."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from advisor.domain.units import utc
from advisor.errors import Refused
from serving.cli.output import Output

__all__ = ["AsOfOption", "ConfigOption", "DebugOption", "HtmlOption", "OutputOption", "moment_of"]

OutputOption = Annotated[
    Output, typer.Option("--output", "-o", case_sensitive=False, help="How the result is printed.")
]
ConfigOption = Annotated[
    Path | None, typer.Option("--config", envvar="GSA_CONFIG", help="Settings file (TOML).", show_default=False)
]
DebugOption = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
HtmlOption = Annotated[
    Path | None, typer.Option("--html", help="Also write the report as one page to this file.", show_default=False)
]
AsOfOption = Annotated[
    str | None,
    typer.Option("--as-of", help="Moment to look from, as 2026-03-02T12:00:00Z; what came later is not used."),
]


def moment_of(text: str | None) -> datetime | None:
    """The moment that ``--as-of`` names, None where it was not given.

    Raises:
        Refused: the text is no moment, or has no time zone.
    """
    if text is None:
        return None
    try:
        return utc(datetime.fromisoformat(text), "--as-of")
    except ValueError as error:
        raise Refused("--as-of", text, "it is no moment", "Write 2026-03-02T12:00:00Z.") from error
