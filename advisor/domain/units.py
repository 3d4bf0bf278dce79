"""Times and durations as people write them, turned into what the code computes with."""

from __future__ import annotations

import math
import re
from datetime import UTC, datetime

from advisor.errors import Refused

__all__ = [
    "SECONDS_PER_DAY",
    "SECONDS_PER_HOUR",
    "SECONDS_PER_MINUTE",
    "counted",
    "finite",
    "parse_duration",
    "positive",
    "shown_duration",
    "shown_moment",
    "utc",
]

SECONDS_PER_MINUTE = 60.0
SECONDS_PER_HOUR = 3600.0
SECONDS_PER_DAY = 86400.0

_UNIT_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")


def utc(moment: datetime, field: str) -> datetime:
    """The same moment in UTC.

    Raises:
        Refused: ``moment`` carries no time zone, so which moment it means is not known.
    """
    if moment.tzinfo is None:
        raise Refused(field, moment.isoformat(), "a time needs a zone", "Write it with an offset, for instance ...Z.")
    try:
        return moment if moment.tzinfo is UTC else moment.astimezone(UTC)
    except OverflowError as error:
        limit = "in UTC it lies outside the years 1 to 9999"
        raise Refused(field, moment.isoformat(), limit, "Correct the year.") from error


def finite(value: float, field: str) -> float:
    """``value`` if it is a finite number.

    Raises:
        Refused: it is NaN or infinite.
    """
    if not math.isfinite(value):
        raise Refused(field, value, "a finite number is needed", "Leave an unknown value out instead.")
    return value


def positive(value: float, field: str, unit: str) -> float:
    """``value`` if it is finite and above zero.

    Raises:
        Refused: it is not.
    """
    if not (math.isfinite(value) and value > 0):
        raise Refused(field, value, f"it must be above 0 {unit}", f"Give a positive number of {unit}.")
    return value


def parse_duration(text: str, field: str) -> float:
    """Seconds in ``text``, written as ``90s``, ``5m``, ``1h30m``, ``2d`` or ``250ms``.

    Raises:
        Refused: the text is not such a duration.
    """
    compact = text.strip().lower()
    parts = _PART.findall(compact)
    if not parts or "".join(f"{number}{unit}" for number, unit in parts) != compact:
        raise Refused(field, text, "a duration is a number and a unit of ms, s, m, h or d", "Write 90s, 5m or 1h30m.")
    return float(sum(float(number) * _UNIT_SECONDS[unit] for number, unit in parts))


def shown_duration(seconds: float) -> str:
    """``seconds`` for a person to read: ``45 s``, ``12.5 min``, ``3.2 h`` or ``4.0 d``."""
    for limit, size, unit in ((90.0, 1.0, "s"), (5400.0, 60.0, "min"), (172800.0, 3600.0, "h")):
        if abs(seconds) < limit:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds / SECONDS_PER_DAY:.3g} d"


def shown_moment(unix_seconds: float) -> str:
    """Unix seconds as people read a moment, in UTC; the number itself where it lies outside the years 1 to 9999.

    >>> shown_moment(1_772_452_800.25), shown_moment(1e30)
    ('2026-03-02T12:00:00Z', '1e+30')
    """
    try:
        moment = datetime.fromtimestamp(unix_seconds, UTC)
    except (OverflowError, ValueError, OSError):
        return f"{unix_seconds:g}"
    return moment.isoformat(timespec="seconds").replace("+00:00", "Z")


def counted(number: float, one: str) -> str:
    """``number`` of something as people write it; a whole one without its fraction.

    >>> counted(1, "job"), counted(2000, "job"), counted(1.0, "day"), counted(0.5, "day")
    ('1 job', '2,000 jobs', '1 day', '0.5 days')
    """
    shown = f"{number:,}" if isinstance(number, int) else f"{number:,.12g}"
    return f"{shown} {one}" if number == 1 else f"{shown} {one}s"
