"""The commands page: every command of ``gsa`` with its arguments and options, read from the program."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from enum import Enum
from functools import cache
from importlib import import_module
from typing import NamedTuple, TypeAlias

import typer
from typer.core import TyperArgument, TyperCommand, TyperGroup, TyperOption

from docs.generators.markdown import code, document, plain, table
from serving.cli.root import COMMANDS, ExitCode

__all__ = ["Command", "commands", "commands_page"]

Parameter: TypeAlias = TyperArgument | TyperOption

_INTRODUCTION = """# Commands

`gpu-slice-advisor`, or `gsa` for short. Results go to standard output, progress and logs to standard
error. With `--output json` standard output is one JSON document and nothing else; the shapes are described
under [JSON documents](json.md)."""

_EXIT_CODES = {
    ExitCode.DONE: "done",
    ExitCode.DEFECT: "a defect of the program; `--debug` shows where",
    ExitCode.USAGE: "wrong usage: an unknown command or option",
    ExitCode.REFUSED: "refused input; the message names the field, the value, the limit and the remedy",
    ExitCode.UNAVAILABLE: "something needed is unavailable or stale; the same command may succeed later",
    ExitCode.GATE: "a check or a gate said no",
}

_KINDS = {"str": "text", "int": "whole number", "float": "number", "bool": "yes or no", "Path": "path"}

_EVERYWHERE = ("output", "config", "debug")
# What the framework adds to a command that stands alone.
_OF_THE_SHELL = ("install_completion", "show_completion")


class Command(NamedTuple):
    """One runnable command: the words that call it, what it answers, its arguments and options."""

    words: tuple[str, ...]
    help: str
    parameters: tuple[Parameter, ...]

    @property
    def option_names(self) -> set[str]:
        """Every spelling of every option."""
        return {name for p in self.parameters for name in (*p.opts, *p.secondary_opts) if name.startswith("-")}


@cache
def commands() -> tuple[Command, ...]:
    """Every command, groups unfolded, in the order of the root's table."""
    found: list[Command] = []
    for name, entry in COMMANDS.items():
        found += _unfolded((name,), typer.main.get_command(import_module(entry.module).app))
    return tuple(found)


def commands_page() -> str:
    """The page, in the order of ``gsa --help``."""
    known = commands()
    summary = [(code(" ".join(("gsa", *c.words))), _first_sentence(c.help)) for c in known]
    exits = [(str(number), meaning) for number, meaning in _EXIT_CODES.items()]
    mute = [code(" ".join(("gsa", *c.words))) for c in known if "--output" not in c.option_names]
    options = (p for c in known for p in c.parameters if isinstance(p, TyperOption))
    shared = {p.name: p for p in options if p.name in _EVERYWHERE}
    return document(
        _INTRODUCTION,
        table(("command", "does"), summary),
        "## Exit codes",
        table(("code", "meaning"), exits),
        "## Options that most commands share",
        table(_COLUMNS, [_option(shared[name]) for name in _EVERYWHERE if name in shared]),
        f"{' and '.join(mute)} print for people only." if mute else "",
        *(_section(command) for command in known),
    )


_COLUMNS = ("option", "value", "default", "meaning")


def _unfolded(words: tuple[str, ...], command: object) -> Iterator[Command]:
    if isinstance(command, TyperGroup):
        for name, child in command.commands.items():
            yield from _unfolded((*words, name), child)
    elif isinstance(command, TyperCommand):
        kept = (p for p in command.params if isinstance(p, TyperArgument | TyperOption))
        yield Command(words, command.help or "", tuple(p for p in kept if not (p.hidden or p.name in _OF_THE_SHELL)))


def _section(command: Command) -> str:
    arguments = [p for p in command.parameters if isinstance(p, TyperArgument)]
    options = [p for p in command.parameters if isinstance(p, TyperOption) and p.name not in _EVERYWHERE]
    usage = " ".join(("gsa", *command.words, *(_placeholder(p) for p in arguments), "[OPTIONS]"))
    return document(
        f"## `gsa {' '.join(command.words)}`",
        plain(command.help),
        f"```text\n{usage}\n```",
        table(("argument", "value", "meaning"), [_argument(p) for p in arguments]) if arguments else "",
        table(_COLUMNS, [_option(p) for p in options]) if options else "",
    )


def _placeholder(argument: TyperArgument) -> str:
    name = argument.metavar or str(argument.name).upper()
    return name if argument.required else f"[{name}]"


def _argument(argument: TyperArgument) -> tuple[str, ...]:
    return code(argument.metavar or str(argument.name).upper()), _kind(argument), argument.help or ""


def _option(option: TyperOption) -> tuple[str, ...]:
    names = ", ".join(code(name) for name in (*option.opts, *option.secondary_opts))
    variable = f" Also from {code(str(option.envvar))}." if option.envvar else ""
    return names, "" if option.is_flag else _kind(option), _default(option), f"{option.help or ''}{variable}"


def _kind(parameter: Parameter) -> str:
    annotation = parameter.type_descriptor.annotation
    inner = next(iter(getattr(annotation, "__args__", ())), annotation)
    if inspect.isclass(inner) and issubclass(inner, Enum):
        return " or ".join(code(str(member.value)) for member in inner)
    kind = _KINDS.get(getattr(inner, "__name__", ""), str(inner))
    bounds = (("from", parameter.min), ("to", parameter.max))
    limits = [f"{word} {bound:g}" for word, bound in bounds if bound is not None]
    repeated = "; may be repeated" if parameter.multiple else ""
    return " ".join((kind, *limits)) + repeated


def _default(option: TyperOption) -> str:
    if option.required:
        return "required"
    if option.is_flag:
        return "on" if option.default else "off"
    value = option.default.value if isinstance(option.default, Enum) else option.default
    return "" if value is None or value in ([], ()) else code(str(value))


def _first_sentence(help_text: str) -> str:
    return plain(help_text).split("\n\n", 1)[0]
