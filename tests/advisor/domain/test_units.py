from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from advisor.domain.units import counted, parse_duration, shown_duration, shown_moment, utc
from advisor.errors import Refused


@pytest.mark.parametrize(
    "text,seconds",
    [
        ("90s", 90.0),
        ("5m", 300.0),
        ("1h30m", 5400.0),
        ("2d", 172800.0),
        ("250ms", 0.25),
        ("1.5h", 5400.0),
        (" 5M ", 300.0),
    ],
)
def test_durations_are_read_as_people_write_them(text: str, seconds: float) -> None:
    assert parse_duration(text, "start_latency") == seconds


@pytest.mark.parametrize("text", ["", "5", "m5", "5 minutes", "-5m", "1h x", "nan", "5m5"])
def test_anything_else_is_refused_with_field_and_remedy(text: str) -> None:
    with pytest.raises(Refused, match=r"start_latency: .*Write 90s, 5m or 1h30m"):
        parse_duration(text, "start_latency")


def test_a_time_without_zone_is_refused() -> None:
    with pytest.raises(Refused, match=r"submit: '2026-03-02T12:00:00' is refused; a time needs a zone"):
        utc(datetime(2026, 3, 2, 12), "submit")  # noqa: DTZ001 - the naive time is the case


def test_other_zones_become_utc() -> None:
    berlin = timezone(timedelta(hours=1))

    assert utc(datetime(2026, 3, 2, 13, tzinfo=berlin), "t") == datetime(2026, 3, 2, 12, tzinfo=UTC)
    assert utc(datetime(2026, 3, 2, 13, tzinfo=berlin), "t").tzinfo is UTC


@pytest.mark.parametrize("seconds,shown", [(45, "45 s"), (750, "12.5 min"), (11520, "3.2 h"), (345600, "4 d")])
def test_durations_are_shown_in_the_unit_a_person_would_use(seconds: float, shown: str) -> None:
    assert shown_duration(seconds) == shown


def test_a_time_beyond_the_calendar_is_refused() -> None:
    with pytest.raises(Refused, match="years 1 to 9999"):
        utc(datetime(1, 1, 1, tzinfo=timezone(timedelta(hours=14))), "--as-of")


@pytest.mark.parametrize(
    "seconds,shown",
    [(1_772_452_800.0, "2026-03-02T12:00:00Z"), (0.0, "1970-01-01T00:00:00Z"), (1e15, "1e+15"), (float("nan"), "nan")],
)
def test_moments_are_shown_in_utc_and_what_no_calendar_holds_as_its_number(seconds: float, shown: str) -> None:
    assert shown_moment(seconds) == shown


def test_one_of_a_thing_is_not_many() -> None:
    assert [counted(number, "job") for number in (0, 1, 2_000)] == ["0 jobs", "1 job", "2,000 jobs"]
