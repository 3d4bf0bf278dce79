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
    """Runs ``cycle`` in a thread of its own until stopped; ``retry_seconds`` after one that failed.

    However soon a cycle wants the next one, ``least_wait_seconds`` lie between them.
    """

    def __init__(
        self,
        cycle: Callable[[], float],
        retry_seconds: float = 30.0,
        *,
        name: str = "advice-cycles",
        least_wait_seconds: float = _LEAST_WAIT_SECONDS,
    ) -> None:
        self._cycle = cycle
        self._retry_seconds = retry_seconds
        self._least_wait_seconds = least_wait_seconds
        self._stopping = threading.Event()
        self._woken = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Begin; the first cycle runs at once."""
        self._thread.start()

    def stop(self, within_seconds: float = 10.0) -> bool:
        """Ask the loop to end and wait for the cycle under way; whether it has ended."""
        self._stopping.set()
        self._woken.set()
        self._thread.join(within_seconds)
        return not self._thread.is_alive()

    def hurry(self) -> None:
        """Let the next cycle come as soon as it may; one under way is finished first and another one follows."""
        self._woken.set()

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._woken.clear()
            wait = self._once()
            if not self._stopping.wait(self._least_wait_seconds):
                self._woken.wait(max(0.0, wait - self._least_wait_seconds))

    def _once(self) -> float:
        try:
            return self._cycle()
        except AdvisorError as error:
            _log.warning("cycle_failed", reason=str(error))
            return self._retry_seconds
        except Exception:  # noqa: BLE001 - a defect must not silence the loop for good: logged whole, tried again
            _log.exception("cycle_broke")
            return self._retry_seconds
