"""The engine: a queue of (time, priority, sequence, event) and a clock that jumps from one event to the next.

It knows nothing of GPUs. Times are seconds since the beginning of the simulated world. Events of one
moment run by priority, those of one priority in the order in which they were scheduled; when all of a
moment have run, the moment is *settled* once. So the same events give the same run, to the bit.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import TypeAlias

from advisor.domain.units import utc
from advisor.errors import Defect

__all__ = ["Engine", "Event", "SimulatedClock"]

Event: TypeAlias = Callable[[], None]
"""What happens at a moment."""


class SimulatedClock:
    """A clock that only the engine moves; ``seconds`` since ``origin``, or the same as a moment in UTC."""

    def __init__(self, origin: datetime, seconds: float = 0.0) -> None:
        self._origin = utc(origin, "origin")
        self.seconds = seconds

    def now(self) -> datetime:
        """The current moment, UTC-aware: what code written for a real clock asks for."""
        return self._origin + timedelta(seconds=self.seconds)


class Engine:
    """Runs events in order of time, priority and scheduling."""

    def __init__(self, clock: SimulatedClock) -> None:
        self.clock = clock
        self._queue: list[tuple[float, int, int, Event]] = []
        self._sequence = 0

    @property
    def now(self) -> float:
        """Seconds since the beginning of the world."""
        return self.clock.seconds

    def schedule(self, at: float, priority: int, event: Event) -> None:
        """Let ``event`` happen at ``at`` (seconds); of one moment, lower ``priority`` first.

        Raises:
            Defect: the moment has passed.
        """
        if at < self.clock.seconds:
            raise Defect(f"an event cannot happen at {at}, it is {self.clock.seconds} already")
        self._sequence += 1
        heapq.heappush(self._queue, (at, priority, self._sequence, event))

    def run(self, settle: Event) -> None:
        """Run until nothing is left to happen; ``settle`` ends every moment and may schedule more, even for the same.

        What ``settle`` schedules for the same moment runs, and is settled again.
        """
        queue = self._queue
        while queue:
            at = queue[0][0]
            self.clock.seconds = at
            while queue and queue[0][0] == at:
                heapq.heappop(queue)[3]()
            settle()
