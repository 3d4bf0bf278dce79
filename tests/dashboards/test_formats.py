from __future__ import annotations

from datetime import UTC, datetime

import pytest

from dashboards import formats


@pytest.mark.parametrize(
    "write, value, text",
    [
        (formats.minutes, 15.0, "15 min"),
        (formats.minutes, 12.65, "12.7 min"),
        (formats.minutes, 240, "4 h"),
        (formats.minutes, None, "\u2013"),
        (formats.seconds, 600, "10 min"),
        (formats.seconds, None, "\u2013"),
        (formats.gpus, 1, "1 GPU"),
        (formats.gpus, 0.25, "0.25 GPU"),
        (formats.gpus, 0, "0 GPUs"),
        (formats.gpus, 148.4, "148 GPUs"),
        (formats.gpus, 12_345.0, "12,345 GPUs"),
        (formats.gpus, 25.39, "25.4 GPUs"),
        (formats.percent, 0.185, "18.5 %"),
        (formats.percent, 0.4142, "41 %"),
        (formats.percent, 1, "100 %"),
        (formats.lost, 0.2222, "22.2 %"),
        (formats.lost, None, "\u2013"),
        (formats.signed, -0.21, "\u221221 %"),
        (formats.signed, 0.04, "+4 %"),
        (formats.signed, 0.0001, "±0 %"),
        (formats.count, 82_310, "82,310"),
        (formats.age, 30, "just now"),
        (formats.age, 720, "12 min ago"),
        (formats.moment, datetime(2026, 3, 2, 12, 5, tzinfo=UTC), "2 Mar 2026, 12:05 UTC"),
        (formats.moment, None, "\u2013"),
        (formats.short, "synthetic-1-739950-401", "synthetic-1-739950-401"),
        (formats.short, "0f6c1d2e-7a4b-4c1f-9b7e-5d1a9c41d2e0", "0f6c1d2e-7a4b\u20269c41d2e0"),
        (formats.words, "SliceView", "Slice"),
        (formats.words, "RemainingView", "Remaining"),
    ],
)
def test_a_number_is_written_with_its_unit_and_no_false_digit(write, value, text):
    assert write(value) == text


def test_money_carries_its_currency():
    assert formats.money(1234.5, "EUR") == "1,234.50 EUR"
    assert formats.money(None, "EUR") == "\u2013"
