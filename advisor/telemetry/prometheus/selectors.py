"""Selectors of series, built from values and escaped; nobody edits the text of a query."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from advisor.errors import Refused

__all__ = ["Matcher", "Selector", "any_of", "narrowed"]

_LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_METRIC = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
# U+FFFD is what a server's lexer makes of bytes that are no UTF-8, so even a real one must be written as an escape.
_ESCAPED = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\ufffd": "\\ufffd"}


@dataclass(frozen=True, slots=True)
class Matcher:
    r"""One condition on a label. ``=~`` and ``!~`` match the whole value, as RE2.

    >>> str(Matcher("pod", "=", 'a"b'))
    'pod="a\\"b"'
    """

    label: str
    operator: Literal["=", "!=", "=~", "!~"]
    value: str

    def __post_init__(self) -> None:
        """Refuse what a query cannot hold.

        Raises:
            Refused: the label's name is no plain one, or the value is no text that UTF-8 can carry.
        """
        if not _LABEL.fullmatch(self.label):
            raise Refused("label", self.label, "a label's name has letters, digits and _", "Correct the name.")
        if any("\ud800" <= sign <= "\udfff" for sign in self.value):
            raise Refused(self.label, self.value, "half a surrogate pair is no text", "Correct the value.")

    def __str__(self) -> str:
        """As PromQL has it."""
        return f'{self.label}{self.operator}"{"".join(_ESCAPED.get(sign, sign) for sign in self.value)}"'


@dataclass(frozen=True, slots=True)
class Selector:
    """The series whose name matches ``metric`` as a whole (RE2; a plain name is itself) and all of ``matchers``.

    >>> str(Selector("up", (Matcher("job", "=~", ".*kube-state.*"),)))
    'up{job=~".*kube-state.*"}'
    >>> str(Selector("DCGM_FI_DEV_(FB_USED|FB_FREE)"))
    '{__name__=~"DCGM_FI_DEV_(FB_USED|FB_FREE)"}'
    """

    metric: str
    matchers: tuple[Matcher, ...] = ()

    def __str__(self) -> str:
        """As PromQL has it."""
        plain = _METRIC.fullmatch(self.metric) is not None
        named = () if plain else (Matcher("__name__", "=~", self.metric),)
        inner = ",".join(map(str, (*named, *self.matchers)))
        return (self.metric if plain else "") + (f"{{{inner}}}" if inner or not plain else "")


def narrowed(selector: Selector, matchers: Iterable[Matcher]) -> Selector:
    """``selector`` with ``matchers`` too; one that it has already is not said twice.

    >>> str(narrowed(Selector("up"), [Matcher("cluster", "=", "x")]))
    'up{cluster="x"}'
    """
    return Selector(selector.metric, tuple(dict.fromkeys((*selector.matchers, *matchers))))


def any_of(values: Iterable[str]) -> str:
    r"""A regular expression that matches each of ``values`` literally and nothing else.

    >>> any_of(["a.b", "c"])
    'a\\.b|c'
    """
    return "|".join(re.escape(value) for value in values)
