"""Options that many commands share, so that each is spelled and explained once."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from serving.cli.output import Output

__all__ = ["ConfigOption", "DebugOption", "HtmlOption", "OutputOption"]

OutputOption = Annotated[Output, typer.Option("--output", "-o", help="How the result is printed.")]
ConfigOption = Annotated[
    Path | None, typer.Option("--config", envvar="GSA_CONFIG", help="Settings file (TOML).", show_default=False)
]
DebugOption = Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")]
HtmlOption = Annotated[
    Path | None, typer.Option("--html", help="Also write the report as one page to this file.", show_default=False)
]
