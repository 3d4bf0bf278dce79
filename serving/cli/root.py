"""The root command, its lazily imported children, and errors turned into exit codes."""

from __future__ import annotations

import sys
from difflib import get_close_matches
from importlib import import_module
from importlib.metadata import version
from typing import Annotated, Any, NamedTuple

import typer
from pydantic import ValidationError
from rich.console import Console
from typer.core import TyperCommand, TyperGroup

from advisor.errors import AdvisorError, Refused, Stale, Transient
from serving.logs import set_up_logs

__all__ = ["COMMANDS", "ExitCode", "app", "main"]


class ExitCode:
    """What the shell is told; documented in the command reference."""

    DONE = 0
    DEFECT = 1
    USAGE = 2
    REFUSED = 3
    UNAVAILABLE = 4
    GATE = 5


class Entry(NamedTuple):
    """Where a command lives and what it answers, known without importing it."""

    module: str
    help: str


COMMANDS: dict[str, Entry] = {
    "ingest": Entry("serving.cli.ingest", "History from a file or a live system."),
    "collect": Entry("serving.cli.collect", "History from live systems, kept current."),
    "history": Entry("serving.cli.history", "What is stored, what was dropped and why."),
    "doctor": Entry("serving.cli.doctor", "What works, what is missing, how to mend it."),
    "train": Entry("serving.cli.train", "Fit, calibrate, evaluate, register."),
    "models": Entry("serving.cli.models", "The model registry."),
    "evaluate": Entry("serving.cli.evaluate", "The measured quality on a trace or on the store."),
    "backtest": Entry("serving.cli.backtest", "What-if on a history, every policy side by side."),
    "advise": Entry("serving.cli.advise", "One cycle, printed."),
    "demo": Entry("serving.cli.demo", "The whole product in one command: learn from a trace, advise, serve."),
    "serve": Entry("serving.cli.serve", "API and dashboard."),
}


class LazyGroup(TyperGroup):
    """A group whose children are imported when they run, not when they are listed."""

    def list_commands(self, ctx: typer.Context) -> list[str]:  # type: ignore[override]  # typer's own context class
        """Every command, in the order of the table."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: typer.Context, cmd_name: str) -> TyperCommand | None:  # type: ignore[override]
        """A stand-in with name and summary: all that listing and spelling suggestions need."""
        del ctx
        entry = COMMANDS.get(cmd_name)
        return None if entry is None else TyperCommand(cmd_name, help=entry.help)

    def resolve_command(  # type: ignore[override]
        self, ctx: typer.Context, args: list[str]
    ) -> tuple[str | None, Any, list[str]]:
        """The command about to run, imported now."""
        entry = COMMANDS.get(args[0])
        if entry is None:
            near = get_close_matches(args[0], COMMANDS, n=1)
            ctx.fail(f"No such command '{args[0]}'." + (f" Did you mean '{near[0]}'?" if near else ""))
        command = typer.main.get_command(import_module(entry.module).app)
        command.name = args[0]
        return args[0], command, args[1:]

    def invoke(self, ctx: typer.Context) -> Any:  # type: ignore[override]  # noqa: ANN401 - as a command answers
        """Run the command; a value that an option refuses is named beside the reason."""
        try:
            return super().invoke(ctx)
        except typer.BadParameter as error:
            cause = error.__cause__
            given = repr(cause.errors()[0]["input"]) if isinstance(cause, ValidationError) else ""
            if given not in error.message:
                error.message = f"{error.message} ({given} was given)"
            raise


app = typer.Typer(
    cls=LazyGroup,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Predictive autoscaling advice for GPU clusters: durations, demand, slice lengths, warm capacity.",
)


def _say_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"gpu-slice-advisor {version('gpu-slice-advisor')}")
        raise typer.Exit


VersionOption = Annotated[
    bool, typer.Option("--version", callback=_say_version, is_eager=True, help="Print the version and leave.")
]


@app.callback()
def _root(asked_version: VersionOption = False) -> None:
    """Predictive autoscaling advice for GPU clusters: durations, demand, slice lengths, warm capacity."""
    del asked_version


def main() -> None:
    """Run a command; every error of ours becomes one sentence on standard error and an exit code."""
    # Before any command: left to itself the logger writes to standard output, into the document of a machine.
    set_up_logs()
    try:
        app(prog_name=sys.argv[0].rsplit("/", 1)[-1])
    except AdvisorError as error:
        if "--debug" in sys.argv:
            raise
        _say(str(error))
        raise SystemExit(_exit_code(error)) from None
    except Exception as error:
        if "--debug" in sys.argv:
            raise
        # Nobody but the author is helped by a traceback nobody asked for.
        _say(f"this is a defect of the program ({type(error).__name__}: {error}); run it with --debug and report it")
        raise SystemExit(ExitCode.DEFECT) from None


def _exit_code(error: AdvisorError) -> int:
    if isinstance(error, Refused):
        return ExitCode.REFUSED
    if isinstance(error, Transient | Stale):
        return ExitCode.UNAVAILABLE
    return ExitCode.DEFECT


def _say(message: str) -> None:
    Console(stderr=True, highlight=False, soft_wrap=True, emoji=False).print(message, style="red", markup=False)
