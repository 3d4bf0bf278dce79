"""Reading an object that came as JSON without trusting its shape."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime

from advisor.cluster.objects import Json
from advisor.domain.units import utc
from advisor.errors import Refused

__all__ = ["moment_in", "part", "parts", "text", "whole"]

_MOST = 2**53


def part(document: Json, key: str) -> Json:
    """The object under ``key``, empty where there is none."""
    found = document.get(key)
    return found if isinstance(found, Mapping) else {}


def parts(document: Json, key: str) -> Iterator[Json]:
    """The objects of the list under ``key``."""
    found = document.get(key)
    yield from (each for each in (found if isinstance(found, list) else ()) if isinstance(each, Mapping))


def text(document: Json, key: str) -> str | None:
    """The text under ``key``, None where there is none or an empty one."""
    found = document.get(key)
    return found if isinstance(found, str) and found else None


def whole(document: Json, key: str) -> int | None:
    """The whole number under ``key``, None where there is none or one beyond any count or span of seconds."""
    found = document.get(key)
    return found if isinstance(found, int) and not isinstance(found, bool) and abs(found) < _MOST else None


def moment_in(value: object, field: str) -> datetime:
    """The moment that a field holds.

    Raises:
        Refused: it is no moment.
    """
    try:
        return utc(datetime.fromisoformat(str(value)), field)
    except ValueError as error:
        raise Refused(field, value, "it is no moment", "Look at the object.") from error
