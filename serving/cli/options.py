"""Options that many commands share, so that each is spelled and explained once."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Annotated

import typer

from advisor.domain.units import utc
from advisor.errors import Refused
from advisor.settings import PrometheusOptions, Settings
from serving.cli.output import Output

__all__ = [
    "AsOfOption",
    "ConfigOption",
    "DebugOption",
    "HtmlOption",
    "OutputOption",
    "addressed",
    "metrics_options",
    "moment_of",
]

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


def metrics_options(
    settings: Settings, flag: str, *, url: str | None, days: float | None = None, cluster: str | None = None
) -> PrometheusOptions:
    """How the metrics server is read: the settings, and what options give instead; ``flag`` gives the address.

    Raises:
        Refused: a value that may not be, by the name of its option.
    """
    options = {"url": flag, "days": "--days", "cluster": "--cluster"}
    try:
        return settings.prometheus.replaced(url=url, days=days, cluster=cluster)
    except Refused as error:
        named = options.get(error.field, error.field)
        raise Refused(named, error.value, error.limit, error.remedy) from error


def addressed(options: PrometheusOptions) -> PrometheusOptions:
    """``options``, which must say where the server is.

    Raises:
        Refused: they do not.
    """
    if options.url is None:
        remedy = "Give --url http://HOST:9090, or set prometheus.url (GSA_PROMETHEUS__URL)."
        raise Refused("--url", None, "the address of the metrics server is needed", remedy)
    return options


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
