"""Events run by time, then priority, then the order in which they were scheduled; moments settle once."""

from __future__ import annotations

from datetime import timedelta
from functools import partial

import pytest

from advisor.errors import Defect
from advisor.simulator.engine import Engine, SimulatedClock
from tests.builders import NOON


def an_engine() -> Engine:
    return Engine(SimulatedClock(NOON))


def test_events_run_by_time_then_priority_then_scheduling():
    engine, ran = an_engine(), []
    for at, priority, name in [(2, 0, "late"), (1, 5, "low"), (1, 0, "first"), (1, 0, "second")]:
        engine.schedule(at, priority, partial(ran.append, name))
    engine.run(lambda: None)
    assert ran == ["first", "second", "low", "late"]


def test_a_moment_settles_once_after_all_its_events_and_again_for_what_settling_adds():
    engine, ran = an_engine(), []

    def settle() -> None:
        ran.append(f"settled at {engine.now:g}")
        if len(ran) == 3:
            engine.schedule(engine.now, 0, partial(ran.append, "more"))

    engine.schedule(1, 0, partial(ran.append, "a"))
    engine.schedule(1, 1, partial(ran.append, "b"))
    engine.run(settle)
    assert ran == ["a", "b", "settled at 1", "more", "settled at 1"]


def test_an_event_may_schedule_another_of_the_same_moment_which_is_not_settled_in_between():
    engine, ran = an_engine(), []
    engine.schedule(1, 0, lambda: engine.schedule(1, 0, partial(ran.append, "child")))
    engine.run(lambda: ran.append("settled"))
    assert ran == ["child", "settled"]


def test_the_past_cannot_be_changed():
    engine = an_engine()
    engine.schedule(5, 0, lambda: engine.schedule(4, 0, lambda: None))
    with pytest.raises(Defect, match="4"):
        engine.run(lambda: None)


def test_the_clock_tells_seconds_and_moments():
    clock = SimulatedClock(NOON, 90.0)
    assert clock.now() == NOON + timedelta(seconds=90)
