from datetime import UTC, datetime

import numpy as np
import pytest

from advisor.errors import Refused
from advisor.features.demand_calendar import (
    hour_and_weekday,
    same_local_time,
    seconds_from_local,
    utc_offsets,
    zone_named,
)

BERLIN = zone_named("Europe/Berlin")


def unix(*parts: int) -> int:
    return int(datetime(*parts, tzinfo=UTC).timestamp())


def local_day_hours(year: int, month: int, day: int) -> list[int]:
    """Local hours of the UTC hours around one day in Berlin that fall on it."""
    around = unix(year, month, day) + np.arange(-3, 30) * 3600
    local = around + utc_offsets(around, BERLIN)
    return [int(s % 86_400 // 3600) for s in local if s // 86_400 == unix(year, month, day) // 86_400]


def test_day_on_which_clocks_go_back_has_25_hours():
    """Field report A15."""
    hours = local_day_hours(2025, 10, 26)

    assert len(hours) == 25
    assert hours.count(2) == 2


def test_day_on_which_clocks_go_forward_has_23_hours():
    """Field report A15."""
    hours = local_day_hours(2025, 3, 30)

    assert len(hours) == 23
    assert 2 not in hours


def test_offsets_agree_with_the_zone_database_at_every_quarter_of_a_year():
    moments = unix(2025, 1, 1) + np.arange(0, 365 * 96) * 900

    offsets = utc_offsets(moments, BERLIN)

    expected = [datetime.fromtimestamp(int(m), BERLIN).utcoffset().total_seconds() for m in moments]
    assert offsets.tolist() == expected


@pytest.mark.parametrize(
    "now, yesterday",
    [
        ((2025, 10, 26, 11), (2025, 10, 25, 10)),  # 25 hours back to noon
        ((2025, 3, 30, 10), (2025, 3, 29, 11)),  # 23 hours back to noon
        ((2025, 6, 2, 10), (2025, 6, 1, 10)),
    ],
)
def test_same_local_time_yesterday_is_23_24_or_25_hours_ago(now, yesterday):
    """Field report A15: a lag in local time neither drops nor doubles an hour."""
    found = same_local_time(np.array([unix(*now)]), np.array([1]), BERLIN)

    assert found.tolist() == [unix(*yesterday)]


def test_repeated_local_stamps_are_told_apart_by_their_order():
    """Field report A15: 02:30 of 26 October 2025 exists twice."""
    stamps = np.array([unix(2025, 10, 26, 2, 0), unix(2025, 10, 26, 2, 30), unix(2025, 10, 26, 2, 0)])

    read = seconds_from_local(stamps, BERLIN)

    assert read.unix.tolist() == [unix(2025, 10, 26, 0, 0), unix(2025, 10, 26, 0, 30), unix(2025, 10, 26, 1, 0)]
    assert (read.ambiguous, read.missing) == (3, 0)


def test_skipped_local_stamp_is_read_with_the_offset_before():
    """Field report A15: 02:30 of 30 March 2025 never existed."""
    read = seconds_from_local(np.array([unix(2025, 3, 30, 2, 30)]), BERLIN)

    assert read.unix.tolist() == [unix(2025, 3, 30, 1, 30)]
    assert (read.ambiguous, read.missing) == (0, 1)


def test_hour_and_weekday_are_local():
    hours, weekdays = hour_and_weekday(np.array([unix(2026, 3, 1, 23, 30)]), BERLIN)

    assert hours.tolist() == [0.5]
    assert weekdays.tolist() == [0]


def test_unknown_zone_is_refused():
    with pytest.raises(Refused, match="Mars"):
        zone_named("Mars/Olympus")
