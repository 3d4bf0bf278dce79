"""When to ask a server again, and after how long."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime

__all__ = ["LONGEST_PAUSE_SECONDS", "RETRIED", "Again", "asked_pause", "pause"]

RETRIED = frozenset({429, 502, 503, 504})
"""Statuses after which the same request may succeed."""
LONGEST_PAUSE_SECONDS = 120.0
"""A server that asks for a longer pause is taken to be out for now."""

_FIRST = 0.5
_LONGEST_OWN = 30.0


@dataclass(frozen=True, slots=True)
class Again:
    """A try that failed in a way that may pass: what happened, and the pause the server asked for (seconds).

    ``remedy`` is what to look at where no try has ever succeeded.
    """

    why: str
    pause: float | None = None
    remedy: str = ""


def pause(attempt: int, share: float, asked: float | None) -> float:
    """Seconds before try ``attempt`` + 1 (from 0): doubled each time up to half a minute, and at least ``asked``.

    ``share`` in [0, 1) is drawn by the caller. It moves the pause between half and whole, so that many who failed
    together do not come back together.

    >>> [pause(attempt, 0.5, None) for attempt in range(3)], pause(0, 0.0, 7.0), pause(30, 0.0, None)
    ([0.375, 0.75, 1.5], 7.0, 15.0)
    """
    own = min(_LONGEST_OWN, _FIRST * 2.0 ** min(attempt, 16))
    return max(own * (0.5 + share / 2), asked or 0.0)


def asked_pause(headers: Mapping[str, str]) -> float | None:
    """Seconds that ``Retry-After`` asks for; None where there is none that can be read.

    A date is taken relative to the server's own ``Date``, whatever our clock says.
    """
    asked = headers.get("retry-after", "").strip()
    if asked.isascii() and asked.isdigit():
        return float(asked)
    try:
        seconds = (parsedate_to_datetime(asked) - parsedate_to_datetime(headers.get("date", ""))).total_seconds()
    except (TypeError, ValueError):
        return None
    return max(seconds, 0.0)
