from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.errors import Refused
from advisor.telemetry.prometheus.ranges import MOST_POINTS, Window

SEVEN_PAST = datetime(2026, 11, 1, 9, 30, 7, tzinfo=UTC)
DAYS = timedelta(days=8)

moments = st.floats(0, 4e9).map(lambda seconds: datetime.fromtimestamp(seconds, UTC))
windows = st.builds(
    lambda start, length, step: Window.over(start, start + timedelta(seconds=length), step),
    moments,
    st.floats(0, 30 * 86_400),
    st.integers(60, 3600),
)


def test_eight_days_at_a_minute_are_two_chunks_without_a_stamp_twice():
    """Field report A10: 11,521 stamps from a start off the grid, in chunks that a server answers."""
    window = Window.over(SEVEN_PAST, SEVEN_PAST + DAYS, 60)

    chunks = list(window.chunks())

    assert [chunk.points for chunk in chunks] == [11_001, 520]
    assert chunks[1].start == chunks[0].end + 60
    assert len(np.unique(np.concatenate([chunk.stamps() for chunk in chunks]))) == 11_521
    assert all((chunk.end - chunk.start) // chunk.step <= 11_000 for chunk in chunks)


def test_the_same_range_ten_seconds_later_asks_for_the_same_stamps():
    """Field report A10: what is read does not move with the moment of reading."""
    later = timedelta(seconds=10)

    assert Window.over(SEVEN_PAST, SEVEN_PAST + DAYS, 60) == Window.over(
        SEVEN_PAST + later, SEVEN_PAST + DAYS + later, 60
    )


@given(window=windows, most=st.integers(1, 12_000))
def test_chunks_together_are_exactly_the_grid(window, most):
    if window.points > 300 * most:
        most = window.points // 300 + 1
    chunks = list(window.chunks(most))

    stamps = np.concatenate([chunk.stamps() for chunk in chunks])

    np.testing.assert_array_equal(stamps, window.stamps())
    assert len(stamps) == window.points
    assert max(chunk.points for chunk in chunks) <= min(most, MOST_POINTS)


@given(start=moments, length=st.floats(0, 86_400), step=st.integers(1, 3600))
def test_a_window_begins_less_than_a_step_before_and_asks_for_nothing_after(start, length, step):
    end = start + timedelta(seconds=length)

    window = Window.over(start, end, step)

    assert 0 <= start.timestamp() - window.start < step
    assert 0 <= end.timestamp() - window.end < step


@pytest.mark.parametrize(
    "make",
    [
        lambda: Window.over(SEVEN_PAST, SEVEN_PAST - DAYS, 60),
        lambda: Window.over(SEVEN_PAST, SEVEN_PAST, 0),
        lambda: Window.over(SEVEN_PAST.replace(tzinfo=None), SEVEN_PAST, 60),
        lambda: Window(7, 67, 60),
        lambda: list(Window(0, 60, 60).chunks(0)),
    ],
    ids=["backwards", "no-step", "no-zone", "off-the-grid", "no-points"],
)
def test_what_is_no_grid_is_refused(make):
    with pytest.raises(Refused):
        make()
