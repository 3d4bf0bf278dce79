"""Text to UTC moments: kinds, units, zones, and the two hours a year that are not what they seem."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from advisor.telemetry.mapping import TimeKind, TimeRule
from advisor.telemetry.times import ANCHOR, TimeReader, number

BERLIN = ZoneInfo("Europe/Berlin")
NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    [
        "2026-03-02 13:00:00",
        "2026-03-02T13:00",
        "2026-03-02T12:00:00Z",
        "2026-03-02T12:00:00.000000Z",
        "2026-03-02 07:00:00-05:00",
        "2026-03-02 12:00:00+0000",
        "20260302T130000",
    ],
)
def test_a_timestamp_is_read_in_its_own_zone_or_else_the_tables(text):
    assert TimeReader(TimeRule(zone=BERLIN)).moment(text) == NOON


def test_a_layout_of_ones_own_is_followed():
    rule = TimeRule(zone=BERLIN, format="%d.%m.%Y %H:%M")
    assert TimeReader(rule).moment("02.03.2026 13:00") == NOON


@pytest.mark.parametrize(
    "unit, text",
    [(1.0, "1772452800"), (1e-3, "1772452800000"), (1e-6, "1772452800000000"), (1e-9, "1772452800000000000")],
)
def test_unix_times_have_a_unit(unit, text):
    assert TimeReader(TimeRule(kind=TimeKind.UNIX, unit_seconds=unit)).moment(text) == NOON


def test_relative_times_keep_their_distances_and_claim_no_calendar():
    """Field report A26: start_time 500000 and no origin is neither 1970 nor any other date."""
    reader = TimeReader(TimeRule(kind=TimeKind.RELATIVE))
    assert reader.moment("503600") - reader.moment("500000") == timedelta(hours=1)
    assert any("calendar features stay off" in note for note in reader.notes())


def test_relative_times_read_as_unix_are_refused_with_the_remedy():
    """Field report A26: a trace that counts from its own start must not land in January 1970."""
    with pytest.raises(ValueError, match=r'time\.kind = "relative"'):
        TimeReader(TimeRule(kind=TimeKind.UNIX)).moment("500000")


def test_relative_times_count_from_the_origin_where_there_is_one():
    reader = TimeReader(TimeRule(kind=TimeKind.RELATIVE, origin=NOON, unit_seconds=60.0))
    assert reader.moment("30") == NOON + timedelta(minutes=30)
    assert reader.notes() == ()


def test_intervals_add_up_and_survive_a_gap_that_cannot_be_read():
    reader = TimeReader(TimeRule(kind=TimeKind.INTERVAL, origin=NOON))
    assert [reader.submission(text) for text in ("0", "10", "2.5")] == [
        NOON,
        NOON + timedelta(seconds=10),
        NOON + timedelta(seconds=12.5),
    ]
    for bad in ("x", "-5", "nan", "1e12"):
        with pytest.raises(ValueError, match=r"."):
            reader.submission(bad)
    assert reader.submission("1") == NOON + timedelta(seconds=13.5)
    assert reader.notes() == ("gaps between submissions that could not be read and count as none: 4",)


@pytest.mark.parametrize(
    "local, expected, said",
    [
        ("2025-10-26 02:30", datetime(2025, 10, 26, 0, 30, tzinfo=UTC), "happen twice"),
        ("2025-03-30 02:30", datetime(2025, 3, 30, 1, 30, tzinfo=UTC), "never happen"),
    ],
)
def test_a_local_time_the_clocks_repeat_or_skip_follows_the_stated_rule(local, expected, said):
    """Field report A15: ambiguous and missing local times are resolved by a rule and flagged, never raised."""
    reader = TimeReader(TimeRule(zone=BERLIN, zone_stated=True))
    assert reader.moment(local) == expected
    [note] = reader.notes()
    assert note.startswith("times in Europe/Berlin that ")
    assert note.endswith(": 1")
    assert said in note


@pytest.mark.parametrize("day, hours", [("2025-10-26", 25), ("2025-03-30", 23), ("2025-06-01", 24)])
def test_a_local_day_has_as_many_hours_as_it_has(day, hours):
    """Field report A15: 25 and 23 hours on the days the clocks change."""
    reader = TimeReader(TimeRule(zone=BERLIN))
    morning = reader.moment(f"{day} 00:00")
    next_day = datetime.fromisoformat(day) + timedelta(days=1)
    assert reader.moment(next_day.isoformat()) - morning == timedelta(hours=hours)


def test_an_assumed_zone_is_said_and_a_stated_one_is_not():
    for stated, notes in ((False, ("times without a zone are read as UTC",)), (True, ())):
        reader = TimeReader(TimeRule(zone_stated=stated))
        reader.moment("2026-03-02 12:00")
        assert reader.notes() == notes
    aware = TimeReader(TimeRule())
    aware.moment("2026-03-02 12:00Z")
    assert aware.notes() == ()


@pytest.mark.parametrize("text", ["", "soon", "2026-13-01", "1772452800", "0001-01-01", "9999-12-31T23:59:59-14:00"])
def test_what_is_no_timestamp_raises_one_kind_of_error(text):
    with pytest.raises((ValueError, OverflowError)):
        TimeReader(TimeRule()).moment(text)


@pytest.mark.parametrize("text", ["", "nan", "inf", "-inf", "1_000", "1,5", "0x10", "ten"])
def test_what_is_no_number_is_none(text):
    with pytest.raises(ValueError, match=r"."):
        number(text)


def test_the_anchor_of_relative_times_is_the_epoch():
    assert TimeReader(TimeRule(kind=TimeKind.RELATIVE)).moment("0") == ANCHOR == datetime(1970, 1, 1, tzinfo=UTC)
