"""The errors of this project, named for what the caller should do.

::

    AdvisorError
    ├── Refused        the input is wrong: tell the user, do not retry     (exit code 3)
    ├── Transient      something needed is unavailable: retry later        (exit code 4)
    ├── Stale          what was read has aged: refresh, then retry         (exit code 4)
    └── Defect         a promise inside this program broke: report a bug   (exit code 1)

Library exceptions never cross a package boundary: they are translated into one of these and chained.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

__all__ = ["AdvisorError", "Defect", "Refused", "Stale", "Transient", "limit_and_remedy", "sentences"]

_ASKED = ("?", "!", "…")
_CLOSING = re.compile(r"[\s.,;:]+$")


def sentences(*parts: str) -> str:
    """``parts`` as sentences in a row, each closed once, whatever mark it came with; empty ones are left out.

    >>> sentences("it cannot be listened on; is it taken?", "no such file.", "Check the path")
    'it cannot be listened on; is it taken? no such file. Check the path.'
    """
    return " ".join(closed for part in parts if (closed := _closed(part)))


def _closed(part: str) -> str:
    text = part.strip()
    if text.endswith("..."):
        return text
    bare = _CLOSING.sub("", text)
    return bare if not bare or bare.endswith(_ASKED) else f"{bare}."


_BOUNDS = {
    "greater_than_equal": ("ge", "at least"),
    "greater_than": ("gt", "above"),
    "less_than_equal": ("le", "at most"),
    "less_than": ("lt", "below"),
    "multiple_of": ("multiple_of", "a multiple of"),
}
_LENGTHS = {
    "string_too_short": ("min_length", "at least", "character"),
    "string_too_long": ("max_length", "at most", "character"),
    "too_short": ("min_length", "at least", "entry", "entries"),
    "too_long": ("max_length", "at most", "entry", "entries"),
}
_KINDS = {
    "int": "a whole number",
    "float": "a number",
    "string": "text",
    "bool": "true or false",
    "list": "a list",
    "tuple": "a list",
    "dict": "an object with named fields",
    "model": "an object with named fields",
    "path": "a path",
    "datetime": "a time such as 2026-03-02T12:00:00Z",
    "timezone": "a time with an offset, such as 2026-03-02T12:00:00Z",
}
_PLAIN = {
    "missing": ("it is required", "Add it."),
    "extra_forbidden": ("nothing of that name is known here", "Remove it, or correct its name."),
    "finite_number": ("it must be a finite number", "Leave an unknown value out instead."),
    "string_pattern_mismatch": ("it holds characters that are not allowed there", "Leave them out."),
}
_CORRECT = "Correct the value."


def limit_and_remedy(finding: Mapping[str, Any]) -> tuple[str, str]:
    """What a schema found wrong, in words that know nothing of the library that found it: limit and remedy.

    ``finding`` is one of pydantic's errors: its ``type``, its ``msg`` and, where there is one, its ``ctx``.

    >>> limit_and_remedy({"type": "greater_than_equal", "msg": "Input should be ...", "ctx": {"ge": 0.001}})
    ('it must be at least 0.001', 'Correct the value.')
    """
    kind, context = str(finding["type"]), finding.get("ctx") or {}
    if kind in _PLAIN:
        return _PLAIN[kind]
    if kind in _BOUNDS:
        key, words = _BOUNDS[kind]
        return f"it must be {words} {_plain(context.get(key))}", _CORRECT
    if kind in _LENGTHS:
        key, words, one, *more = _LENGTHS[kind]
        count = context.get(key)
        return f"it must have {words} {count} {one if count == 1 else (more or [one + 's'])[0]}", _CORRECT
    if kind in {"enum", "literal_error"}:
        return f"it must be {context.get('expected')}", "Use one of them."
    if kind == "value_error":
        return str(finding["msg"]).removeprefix("Value error, "), _CORRECT
    wanted = _KINDS.get(kind.split("_", 1)[0])
    return (str(finding["msg"]) if wanted is None else f"it must be {wanted}"), _CORRECT


def _plain(bound: object) -> object:
    """A bound as people write it: 0 rather than 0.0."""
    return int(bound) if isinstance(bound, float) and bound.is_integer() else bound


class AdvisorError(Exception):
    """Root of the tree; catch it only at the outermost edge."""


class Refused(AdvisorError):
    """Input that cannot be accepted, with everything a person needs to mend it.

    The message names the field, the value (None: nothing was given), the limit it broke and the remedy.
    """

    def __init__(self, field: str, value: object, limit: str, remedy: str) -> None:
        """Compose the message from its four parts."""
        self.field = field
        self.value = value
        self.limit = limit
        self.remedy = remedy
        given = "nothing was given" if value is None else f"{_shown(value)} is refused"
        super().__init__(f"{field}: {given}; {sentences(limit, remedy)}")


class Transient(AdvisorError):
    """Something outside is unavailable now; the same call may succeed later."""


class Stale(AdvisorError):
    """What was read is older than the decision allows; refresh it first."""


class Defect(AdvisorError):
    """An invariant of this program broke; retrying will not help."""


_LONGEST_SHOWN = 120


def _shown(value: object) -> str:
    """The value as a person would recognise it, cut so that a whole file never lands in a message."""
    text = repr(value)
    return text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 1] + "…"
