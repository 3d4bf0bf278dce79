"""Time as an argument: whoever needs "now" is handed a clock, and tests step it instead of sleeping."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Protocol

from advisor.domain.units import utc

__all__ = ["Clock", "ManualClock", "SystemClock"]


class Clock(Protocol):
    """Answers one question: what time is it, in UTC."""

    def now(self) -> datetime:
        """The current moment, UTC-aware."""
        ...


class SystemClock:
    """The machine's own clock."""

    def now(self) -> datetime:
        """The current moment, UTC-aware."""
        return datetime.now(UTC)


class ManualClock:
    """A clock that stands still until it is moved; never backwards."""

    def __init__(self, start: datetime) -> None:
        """Start at ``start`` (aware)."""
        self._now = utc(start, "start")

    def now(self) -> datetime:
        """Where the clock was last set."""
        return self._now

    def advance(self, step: timedelta) -> datetime:
        """Move forward by ``step`` and return the new time; a negative step is a programming error."""
        if step < timedelta(0):
            raise ValueError(f"a clock does not run backwards: step {step}")
        self._now += step
        return self._now
