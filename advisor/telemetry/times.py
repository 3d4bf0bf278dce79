"""Text as moments in UTC, under one rule for a whole file, remembering what had to be assumed."""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta

from advisor.telemetry.mapping import TimeKind, TimeRule

__all__ = ["ANCHOR", "TimeReader", "number"]

ANCHOR = datetime(1970, 1, 1, tzinfo=UTC)
"""Where relative times without an origin are put; such jobs say that their calendar is not known."""

_EARLIEST = datetime(2000, 1, 1, tzinfo=UTC)
_MOST_SECONDS = 1e11


def number(text: str) -> float:
    """The finite number in ``text``.

    Raises:
        ValueError: it holds none; NaN and infinity are none.
    """
    # Python reads 1_000 as a thousand; in a file it is a mistake.
    value = math.nan if "_" in text else float(text)
    if not math.isfinite(value):
        raise ValueError(f"{text!r} is no finite number")
    return value


class TimeReader:
    """Reads the times of one file.

    A local time that happens twice (clocks set back) is taken as the first of the two; one that never
    happens (clocks set forward) is read with the offset in force before the change. Both are counted.
    """

    def __init__(self, rule: TimeRule) -> None:
        """Read by ``rule``."""
        self._rule = rule
        self._origin = rule.origin if rule.origin is not None else ANCHOR
        self._is_utc = rule.zone.key == "UTC"
        self._elapsed = timedelta(0)
        self._repeated = self._skipped = self._unzoned = self._unread_gaps = 0

    def submission(self, text: str) -> datetime:
        """The submission in ``text``; call it once per row, in the file's order, since intervals add up.

        Raises:
            ValueError: the text is no such time, with the reason in words.
        """
        if self._rule.kind is not TimeKind.INTERVAL:
            return self.moment(text)
        self._unread_gaps += 1
        gap = self._seconds(text)
        if gap < timedelta(0):
            raise ValueError("a gap to the row above cannot be negative")
        moment = self._origin + (self._elapsed + gap)
        self._elapsed += gap
        self._unread_gaps -= 1
        return moment

    def moment(self, text: str) -> datetime:
        """The moment in ``text``, in UTC.

        Raises:
            ValueError: the text is no such time, with the reason in words.
        """
        if self._rule.kind is TimeKind.TIMESTAMP:
            moment = self._timestamp(text)
        elif self._rule.kind is TimeKind.UNIX:
            moment = ANCHOR + self._seconds(text)
        else:
            return self._origin + self._seconds(text)
        if moment < _EARLIEST:
            raise ValueError('a time before 2000; if times count from a start, set time.kind = "relative"')
        return moment

    def notes(self) -> tuple[str, ...]:
        """What had to be assumed, as sentences."""
        rule = self._rule
        said = []
        if not rule.calendar_known:
            said.append("times are relative to an unknown moment: calendar features stay off until an origin is given")
        if self._unzoned and not rule.zone_stated:
            said.append("times without a zone are read as UTC")
        if self._unread_gaps:
            said.append(f"gaps between submissions that could not be read and count as none: {self._unread_gaps}")
        if self._repeated:
            said.append(
                f"times in {rule.zone.key} that happen twice as clocks go back, the first taken: {self._repeated}"
            )
        if self._skipped:
            said.append(
                f"times in {rule.zone.key} that never happen as clocks go forward, "
                f"read with the offset before the change: {self._skipped}"
            )
        return tuple(said)

    def _seconds(self, text: str) -> timedelta:
        seconds = number(text) * self._rule.unit_seconds
        if abs(seconds) > _MOST_SECONDS:
            raise ValueError("a time thousands of years away; check units.time")
        return timedelta(seconds=seconds)

    def _timestamp(self, text: str) -> datetime:
        layout = self._rule.format
        moment = datetime.fromisoformat(text) if layout is None else datetime.strptime(text, layout)  # noqa: DTZ007 - the zone is added below
        if moment.tzinfo is None:
            self._unzoned += 1
            if not self._is_utc:
                return self._localised(moment)
            return moment.replace(tzinfo=UTC)
        return moment.astimezone(UTC)

    def _localised(self, naive: datetime) -> datetime:
        zone = self._rule.zone
        first = naive.replace(tzinfo=zone)
        moment = first.astimezone(UTC)
        if first.utcoffset() != first.replace(fold=1).utcoffset():
            if moment.astimezone(zone).replace(tzinfo=None) == naive:
                self._repeated += 1
            else:
                self._skipped += 1
        return moment
