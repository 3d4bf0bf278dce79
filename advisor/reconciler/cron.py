"""Schedules of disruption budgets, by the rules of the parser that Karpenter uses.

Karpenter reads a schedule with robfig/cron's standard parser, in UTC. The CRD's own pattern is far
looser, and a schedule that passes it and fails the parser makes Karpenter count the budget as 0: all
disruption it covers stops, with nothing in the NodePool's status. So the same rules are kept here:
five fields; numbers and names within their range; a range never runs backwards; Sunday is 0 and not 7.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from advisor.errors import Refused

__all__ = ["check_schedule"]

_MACROS = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")
_MONTH_NAMES = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAY_NAMES = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_MONTHS = {name: number for number, name in enumerate(_MONTH_NAMES, start=1)}
_DAYS = {name: number for number, name in enumerate(_DAY_NAMES)}
_NUMBER = re.compile(r"[0-9]{1,9}")


@dataclass(frozen=True, slots=True)
class _Field:
    """One of the five: its bounds, its names, and its place in words."""

    word: str
    least: int
    most: int
    names: dict[str, int]

    def read(self, text: str) -> int | None:
        named = self.names.get(text.lower())
        if named is not None:
            return named
        return int(text) if _NUMBER.fullmatch(text) else None

    def shown(self, value: int, like: str) -> str:
        if like.lower() in self.names:
            return next(name for name, number in self.names.items() if number == value)
        return str(value)


_FIELDS = (
    _Field("minute", 0, 59, {}),
    _Field("hour", 0, 23, {}),
    _Field("day of month", 1, 31, {}),
    _Field("month", 1, 12, _MONTHS),
    _Field("day of week", 0, 6, _DAYS),
)


def check_schedule(schedule: str, where: str = "schedule") -> None:
    """Nothing where Karpenter can parse the schedule.

    Raises:
        Refused: it cannot; the remedy offers what was probably meant.
    """
    if schedule in _MACROS:
        return
    if schedule.startswith("@"):
        raise Refused(where, schedule, f"macros are {', '.join(_MACROS)}", "Use one of them or five fields.")
    if schedule.startswith(("TZ=", "CRON_TZ=")):
        raise Refused(where, schedule, "schedules are in UTC and take no time zone", "Write it in UTC.")
    parts = schedule.split()
    if len(parts) != len(_FIELDS):
        raise Refused(
            where, schedule, f"a schedule has 5 fields, this has {len(parts)}", "Write minute hour day month weekday."
        )
    for field, part in zip(_FIELDS, parts, strict=True):
        for expression in part.split(","):
            _check_expression(field, expression, schedule, where)


def _check_expression(field: _Field, expression: str, schedule: str, where: str) -> None:
    body, slash, step = expression.partition("/")
    if slash and (not _NUMBER.fullmatch(step) or int(step) == 0):
        raise Refused(where, schedule, f"the step in {field.word} {expression!r} must be 1 or more", "Write */15.")
    ends = body.split("-")
    if ends[0] in ("*", "?") and len(ends) == 1:
        return
    numbers = [field.read(end) for end in ends]
    if len(ends) > 2 or None in numbers:
        raise Refused(
            where, schedule, f"{field.word} {expression!r} is no number, name or range of them", "Write 1-5 or mon-fri."
        )
    low, high = numbers[0], numbers[-1]
    if low is not None and high is not None:
        _check_range(field, ends, (low, high), schedule, where)


def _check_range(field: _Field, ends: list[str], numbers: tuple[int, int], schedule: str, where: str) -> None:
    low, high = numbers
    text = "-".join(ends)
    if field.least <= low <= high <= field.most:
        return
    if low < field.least:
        limit = f"{field.word} {text!r} begins below {field.least}"
    elif high > field.most:
        limit = f"{field.word} {text!r} ends above {field.most}"
    else:
        limit = f"{field.word} {text!r} runs backwards, which this parser does not wrap around"
    meant = _meant(field, ends, low, high)
    raise Refused(where, schedule, limit, f"Write {meant}." if meant else f"Stay within {field.least}-{field.most}.")


def _meant(field: _Field, ends: list[str], low: int, high: int) -> str | None:
    """What was probably meant: a wrapped range spelled out, or Sunday as 0."""
    span = field.most - field.least + 1
    weekday = field.names is _DAYS
    if not (field.least <= low <= field.most + weekday and field.least <= high <= field.most + weekday):
        return None
    values = list(range(low, high + 1 if low <= high else high + span + 1))
    wrapped = list(dict.fromkeys((value - field.least) % span + field.least for value in values))
    if len(wrapped) == span:
        return "*"
    return ",".join(field.shown(value, ends[0]) for value in wrapped)
