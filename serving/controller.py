"""The controller loop: one advice cycle after another, at the pace the reconciler asks for.

The loop owns no decision: a cycle says itself when to look again, and a cycle that fails leaves the last
good state in place and is tried again.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

import structlog

from advisor.errors import AdvisorError

__all__ = ["ControllerLoop"]

_log = structlog.get_logger(__name__)

_LEAST_WAIT_SECONDS = 1.0


class ControllerLoop:
    """Runs ``cycle`` in a thread of its own until stopped; ``retry_seconds`` after one that failed."""

    def __init__(self, cycle: Callable[[], float], retry_seconds: float = 30.0) -> None:
        self._cycle = cycle
        self._retry_seconds = retry_seconds
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="advice-cycles", daemon=True)

    def start(self) -> None:
        """Begin; the first cycle runs at once."""
        self._thread.start()

    def stop(self, within_seconds: float = 10.0) -> bool:
        """Ask the loop to end and wait for the cycle under way; whether it has ended."""
        self._stopping.set()
        self._thread.join(within_seconds)
        return not self._thread.is_alive()

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._stopping.wait(max(_LEAST_WAIT_SECONDS, self._once()))

    def _once(self) -> float:
        try:
            return self._cycle()
        except AdvisorError as error:
            _log.warning("cycle_failed", reason=str(error))
            return self._retry_seconds
        except Exception:  # noqa: BLE001 - a defect must not silence the loop for good: logged whole, tried again
            _log.exception("cycle_broke")
            return self._retry_seconds
