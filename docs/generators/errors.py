"""The errors page: the tree, what each branch asks of the caller, and how shell and HTTP are told."""

from __future__ import annotations

import inspect

import advisor.errors
from advisor.errors import AdvisorError, Refused
from docs.generators.markdown import code, document, plain, table
from serving.api.problems import WrongField, from_error
from serving.cli.root import _exit_code  # the shell is told by this very function, so the page asks it

__all__ = ["errors_page"]

_INTRODUCTION = """# Errors and exit codes

Errors are named for what the caller should do about them. The same tree serves the shell (one sentence on
standard error and an exit code), the API (a problem document, RFC 9457) and Python."""

_SHELL = """## In the shell

One sentence with the remedy. `--debug` shows the traceback instead. All exit codes are listed with the
[commands](commands.md#exit-codes)."""

_HTTP = """## Over HTTP

Every failure is `application/problem+json`. Match on `type`, which stays the same, not on the words."""


def errors_page() -> str:
    """The page, in the order of the tree."""
    named = [getattr(advisor.errors, name) for name in advisor.errors.__all__]
    rows = [_row(each) for each in named if isinstance(each, type) and each is not AdvisorError]
    fields = [(code(name), field.description or "") for name, field in WrongField.model_fields.items()]
    return document(
        _INTRODUCTION,
        f"```text\n{_tree()}\n```",
        table(("error", "what happened", "exit code", "HTTP", "problem type"), rows),
        _SHELL,
        _HTTP,
        "Where it is about fields, `errors` holds one entry for each:",
        table(("field", "meaning"), fields),
    )


def _row(kind: type[AdvisorError]) -> tuple[str, ...]:
    error = kind("jobs", 0, "", "") if issubclass(kind, Refused) else kind("")
    problem = from_error(error)
    kind_of_problem = problem.document("")["type"]
    meaning = plain(kind.__doc__).split("\n\n", 1)[0]
    return code(kind.__name__), meaning, str(_exit_code(error)), str(problem.status), code(kind_of_problem)


def _tree() -> str:
    """The drawing at the top of the module."""
    drawing = inspect.cleandoc(advisor.errors.__doc__ or "").split("::\n", 1)[1]
    lines = [line for line in drawing.splitlines() if line.startswith("    ")]
    return "\n".join(line[4:] for line in lines)
