"""A collector hears a signal whichever of its threads the system hands it to."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator

import pytest

from serving.cli import collect


@pytest.fixture(autouse=True)
def own_handlers() -> Iterator[None]:
    before = {each: signal.getsignal(each) for each in (signal.SIGTERM, signal.SIGINT)}
    yield
    for each, handler in before.items():
        signal.signal(each, handler)


class Waiting:
    """A loop that runs until it is asked to stop, and hands itself the signal that asks."""

    def __init__(self, stopping: threading.Event) -> None:
        self._stopping = stopping
        self.heard = False

    def run(self) -> None:
        # By then the main thread waits for this one.
        self._stopping.wait(0.5)
        signal.pthread_kill(threading.get_ident(), signal.SIGTERM)
        self.heard = self._stopping.wait(10.0)


def test_a_signal_taken_by_another_thread_is_heard() -> None:
    stopping = collect._asked_to_stop()
    loop = Waiting(stopping)
    collect._run([loop])  # type: ignore[list-item]
    assert loop.heard
