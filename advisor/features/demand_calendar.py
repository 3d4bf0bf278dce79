"""Local time for demand: which hour and weekday a moment is in a zone, and where "the same time yesterday" lies.

Everything is kept in UTC seconds; the zone only ever adds an offset. So a day on which clocks change
simply has 23 or 25 hours, and no hour is dropped or counted twice.
"""

from __future__ import annotations

from datetime import UTC, datetime, tzinfo
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from advisor.errors import Refused

__all__ = ["LocalStamps", "hour_and_weekday", "same_local_time", "seconds_from_local", "utc_offsets", "zone_named"]

Seconds = NDArray[np.int64]

_DAY = 86_400
_QUARTER = 900


def zone_named(name: str) -> tzinfo:
    """The time zone called ``name`` in the IANA database, for instance ``Europe/Berlin``.

    Raises:
        Refused: there is no such zone.
    """
    try:
        return ZoneInfo(name)
    except (KeyError, ValueError, OSError) as error:
        raise Refused("zone", name, "no such time zone", "Use an IANA name such as Europe/Berlin or UTC.") from error


def utc_offsets(unix: Seconds, zone: tzinfo) -> Seconds:
    """Seconds that local clocks in ``zone`` are ahead of UTC at each moment.

    Clocks change at most once a day and only on a quarter of an hour: so a day whose two ends agree needs
    no second look, and any other one look a quarter.
    """
    days, day_of = np.unique(unix // _DAY, return_inverse=True)
    at_start = _looked_up(days * _DAY, zone)
    changing = at_start != _looked_up((days + 1) * _DAY, zone)
    offsets = at_start[day_of]
    inside = changing[day_of]
    if inside.any():
        quarters, quarter_of = np.unique(unix[inside] // _QUARTER, return_inverse=True)
        offsets[inside] = _looked_up(quarters * _QUARTER, zone)[quarter_of]
    return offsets


def hour_and_weekday(unix: Seconds, zone: tzinfo) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Hour of the local day with its fraction (0 to 24) and weekday (Monday 0) of each moment."""
    local = unix + utc_offsets(unix, zone)
    # The first of January 1970 was a Thursday, day 3.
    return (local % _DAY) / 3600.0, (local // _DAY + 3) % 7


def same_local_time(unix: Seconds, days: Seconds, zone: tzinfo) -> Seconds:
    """The moments at which local clocks showed the same time ``days`` days before.

    Across a change of clocks that is 23 or 25 hours a day. A time that did not exist that day is
    taken as if clocks had not yet changed.
    """
    earlier = unix - days * _DAY
    return earlier + utc_offsets(unix, zone) - utc_offsets(earlier, zone)


class LocalStamps:
    """UTC seconds read from local stamps, and how many of them were not plain.

    ``ambiguous`` counts stamps of the hour that clocks show twice, ``missing`` those of the hour that
    they skip.
    """

    __slots__ = ("ambiguous", "missing", "unix")

    def __init__(self, unix: Seconds, ambiguous: int, missing: int) -> None:
        self.unix = unix
        self.ambiguous = ambiguous
        self.missing = missing


def seconds_from_local(local: Seconds, zone: tzinfo) -> LocalStamps:
    """UTC seconds of wall-clock stamps (given as seconds, as if they were UTC) in their order.

    The rule: a stamp that clocks show twice is the earlier moment, unless the row before already lies
    there, then the later one; a stamp that clocks skip counts as if they had not yet been moved.
    """
    stamps, where = np.unique(local, return_inverse=True)
    first = np.array([_from_wall(int(s), zone, fold=0) for s in stamps], dtype=np.int64)
    second = np.array([_from_wall(int(s), zone, fold=1) for s in stamps], dtype=np.int64)
    # In the repeated hour the second reading is later; in the skipped hour it is earlier.
    repeated, skipped = (second > first)[where], (second < first)[where]
    unix = first[where]
    later = second[where]
    for at in np.flatnonzero(repeated):
        if at > 0 and unix[at] <= unix[at - 1]:
            unix[at] = later[at]
    return LocalStamps(unix, int(repeated.sum()), int(skipped.sum()))


def _looked_up(moments: Seconds, zone: tzinfo) -> Seconds:
    found = [_offset(datetime.fromtimestamp(int(moment), UTC).astimezone(zone)) for moment in moments]
    return np.array(found, dtype=np.int64)


def _offset(moment: datetime) -> int:
    shift = moment.utcoffset()
    return 0 if shift is None else int(shift.total_seconds())


def _from_wall(seconds: int, zone: tzinfo, fold: int) -> int:
    wall = datetime.fromtimestamp(seconds, UTC).replace(tzinfo=zone, fold=fold)
    return int(seconds - _offset(wall))
