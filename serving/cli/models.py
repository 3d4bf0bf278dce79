"""``gsa models``: which versions exist, how they measured, and which one is served."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.table import Table

from advisor.errors import Refused
from advisor.forecast.registry import DEMAND, DURATIONS, ModelRegistry, Registered
from advisor.settings import load_settings
from serving.cli.options import ConfigOption, DebugOption, OutputOption
from serving.cli.output import Output, origin, render, table
from serving.logs import set_up_logs
from serving.wiring import open_registry

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True, add_completion=False, help="The model registry.")

NAMES = (DURATIONS, DEMAND)
_NONE = "No model has been fitted yet, so baselines answer. Ingest a history (gsa ingest trace), then run gsa train."
NameArgument = Annotated[str, typer.Argument(help="durations or demand.")]
VersionArgument = Annotated[str, typer.Argument(help="A version as `gsa models list` shows it.")]


@app.command("list")
def list_models(output: OutputOption = Output.TABLE, config: ConfigOption = None, debug: DebugOption = False) -> None:
    """Every version, newest first, with the alias it holds."""
    del debug
    # Again, now that the registry's library is imported: importing it sets its own loggers.
    set_up_logs()
    registry = open_registry(load_settings(config))
    found = [version for name in NAMES for version in registry.versions(name)]
    render(output, {"models": [_document(v) for v in found]}, lambda: [_listing(found) if found else _NONE])


@app.command("show")
def show(
    name: NameArgument,
    version: VersionArgument,
    output: OutputOption = Output.TABLE,
    config: ConfigOption = None,
    debug: DebugOption = False,
) -> None:
    """One version's card: data, measures, and why it was promoted or not."""
    del debug
    set_up_logs()
    found = open_registry(load_settings(config)).load(_known(name), version)
    document = _document(found)
    shown: list[Table | str] = [table(f"{name} {version}", ("what", "value"), _facts(document), prose=["value"])]
    render(output, document, lambda: [*shown, *_reasons(found)])


@app.command("promote")
def promote(
    name: NameArgument,
    version: VersionArgument,
    output: OutputOption = Output.TABLE,
    config: ConfigOption = None,
    debug: DebugOption = False,
) -> None:
    """Serve this version from now on, whatever the gate said."""
    del debug
    set_up_logs()
    registry = open_registry(load_settings(config))
    registry.promote(_known(name), version)
    _say_champion(output, registry, name)


@app.command("demote")
def demote(
    name: NameArgument, output: OutputOption = Output.TABLE, config: ConfigOption = None, debug: DebugOption = False
) -> None:
    """Serve no version: baselines answer until the next promotion."""
    del debug
    set_up_logs()
    registry = open_registry(load_settings(config))
    registry.demote(_known(name))
    _say_champion(output, registry, name)


def _known(name: str) -> str:
    if name not in NAMES:
        raise Refused("name", name, f"the models are {' and '.join(NAMES)}", "Use one of them.")
    return name


def _say_champion(output: Output, registry: ModelRegistry, name: str) -> None:
    champion = registry.champion(name)
    version = None if champion is None else champion.version
    served = f"{name}: version {version} is served" if version else f"{name}: baselines answer, no version is served"
    render(output, {"name": name, "champion": version}, lambda: [served])


def _document(found: Registered) -> dict[str, Any]:
    return {"version": found.version, "aliases": list(found.aliases), **found.card.to_json()}


def _listing(found: list[Registered]) -> Table:
    rows = [
        (
            v.name,
            v.version,
            " ".join(v.aliases) or None,
            f"{v.card.made_at:%Y-%m-%d %H:%M}",
            v.card.rows,
            origin(synthetic=v.card.synthetic),
        )
        for v in found
    ]
    return table("models", ("name", "version", "alias", "made (UTC)", "rows", "data"), rows, prose=["alias", "data"])


def _facts(document: dict[str, Any]) -> list[tuple[str, Any]]:
    plain = [(key, value) for key, value in document.items() if key not in {"measures", "reasons", "versions"}]
    return plain + [(f"measure {key}", value) for key, value in sorted(document["measures"].items())]


def _reasons(found: Registered) -> list[str]:
    return [f"- {reason}" for reason in found.card.reasons]
