"""The loop comes back whatever a cycle does, and ends when asked."""

from __future__ import annotations

import threading

import pytest
import structlog.testing

from advisor.errors import Transient
from serving.controller import ControllerLoop

WITHIN_SECONDS = 10.0


class Cycle:
    """Counts its runs, ends each as told, and lets the test wait for the n-th."""

    def __init__(self, *outcomes: Exception | float) -> None:
        self.outcomes = list(outcomes)
        self.runs = 0
        self.enough = threading.Event()

    def __call__(self) -> float:
        outcome = self.outcomes[min(self.runs, len(self.outcomes) - 1)]
        self.runs += 1
        if self.runs == len(self.outcomes):
            self.enough.set()
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


def a_loop(cycle: Cycle, retry_seconds: float = 30.0) -> ControllerLoop:
    return ControllerLoop(cycle, retry_seconds, least_wait_seconds=0.0)


@pytest.mark.parametrize("failure", [Transient("away"), ZeroDivisionError("a defect")])
def test_a_failed_cycle_is_tried_again(failure: Exception) -> None:
    cycle = Cycle(failure, 3600.0)
    loop = a_loop(cycle, 0.0)

    loop.start()

    assert cycle.enough.wait(WITHIN_SECONDS)
    assert loop.stop()
    assert cycle.runs == 2


def test_stopping_does_not_wait_for_the_next_look() -> None:
    cycle = Cycle(3600.0)
    loop = a_loop(cycle)
    loop.start()
    assert cycle.enough.wait(WITHIN_SECONDS)

    assert loop.stop(WITHIN_SECONDS)


@pytest.mark.parametrize(
    "failure, event", [(Transient("the cluster is away"), "cycle_failed"), (ZeroDivisionError("x"), "cycle_broke")]
)
def test_a_failed_cycle_is_told_once(failure: Exception, event: str) -> None:
    cycle = Cycle(failure, 3600.0)
    loop = a_loop(cycle, 0.0)

    with structlog.testing.capture_logs() as told:
        loop.start()
        assert cycle.enough.wait(WITHIN_SECONDS)
        assert loop.stop()

    assert [one["event"] for one in told] == [event]
    assert told[0].get("reason", "the cluster is away") == "the cluster is away"


def test_a_cycle_that_is_asked_for_does_not_wait_for_its_time() -> None:
    first, cycle = threading.Event(), Cycle(3600.0, 3600.0)

    def counted() -> float:
        wait = cycle()
        first.set()
        return wait

    loop = ControllerLoop(counted, least_wait_seconds=0.0)
    loop.start()
    assert first.wait(WITHIN_SECONDS)

    while not cycle.enough.wait(0.01):
        # Asked for until it comes: what is asked for while a cycle begins is answered by that one.
        loop.hurry()

    assert loop.stop()
    assert cycle.runs >= 2
