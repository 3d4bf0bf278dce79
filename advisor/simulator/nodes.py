"""A simulated node: whole GPUs and GPUs in shares, who holds them, and what its time was spent on."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import NamedTuple

from advisor.errors import Defect
from advisor.simulator.tasks import Task

__all__ = ["SimulatedNode"]

_WHOLE = 1000


class _Hold(NamedTuple):
    """What one task has of a node: whole GPUs, and a share (thousandths) of the GPU ``slot``; ``used`` of them count.

    A gang holds whole nodes, so it may hold more than it uses.
    """

    whole: int
    slot: int | None
    milli: int
    used: float

    @property
    def gpus(self) -> float:
        """GPUs that nobody else can have meanwhile."""
        return self.whole + self.milli / _WHOLE


@dataclass(slots=True, eq=False)
class SimulatedNode:
    """A node from its request on. GPU-seconds are summed as time goes by: ``used``, ``idle`` and ``booting``.

    ``held`` sums what nobody else could have because of tasks: more than ``used`` where they have nodes of their own.
    """

    number: int
    size: int
    asked: float
    static: bool = False
    running_at: float | None = None
    ready_at: float | None = None
    empty_since: float | None = None
    whole: int = 0
    holds: dict[Task, _Hold] = field(default_factory=dict)
    shares: dict[int, int] = field(default_factory=dict)
    in_use: float = 0.0
    in_hold: float = 0.0
    used: float = 0.0
    held: float = 0.0
    idle: float = 0.0
    booting: float = 0.0
    _until: float = 0.0
    _slots: int = 0

    @property
    def empty(self) -> bool:
        """True if nothing runs on it."""
        return not self.holds

    @property
    def free(self) -> float:
        """GPUs nobody holds, shares included."""
        return self.size - self.in_hold

    def become_ready(self, now: float) -> None:
        """The GPUs can be allocated from ``now`` on; the node is empty."""
        running = self.running_at
        if running is None:
            raise Defect("a node is ready only once its machine runs")
        self.booting = (now - running) * self.size
        self.ready_at = self._until = self.empty_since = now
        self.whole = self.size

    def settle(self, now: float) -> None:
        """Book the time since the last change."""
        if self.ready_at is None:
            return
        span = now - self._until
        self.used += span * self.in_use
        self.held += span * self.in_hold
        self.idle += span * (self.size - self.in_use)
        self._until = now

    def fits(self, gpus: float) -> bool:
        """Whether so many GPUs, or such a share of one, are free."""
        if gpus >= 1:
            return self.whole >= gpus
        return self.whole >= 1 or any(free >= _milli(gpus) for free in self.shares.values())

    def room_without(self, gone: Iterable[Task]) -> float:
        """Whole GPUs free if the tasks ``gone`` were not there; where there would be none, the largest share."""
        whole, shares = self.whole, dict(self.shares)
        for task in gone:
            hold = self.holds[task]
            whole += hold.whole
            if hold.slot is not None:
                shares[hold.slot] += hold.milli
                if shares[hold.slot] == _WHOLE:
                    del shares[hold.slot]
                    whole += 1
        return float(whole) if whole else max(shares.values(), default=0) / _WHOLE

    def take(self, task: Task, used: float, now: float, *, all_of_it: bool) -> None:
        """Give ``task`` what it uses here, or the whole empty node.

        Raises:
            Defect: there is not as much.
        """
        self.settle(now)
        if all_of_it:
            hold = _Hold(self.size, None, 0, used)
        elif used >= 1:
            hold = _Hold(int(used), None, 0, used)
        else:
            hold = self._share(used)
        if hold.whole > self.whole or task in self.holds:
            raise Defect(f"node {self.number} has {self.whole} whole GPUs free, {hold.whole} were taken")
        self.whole -= hold.whole
        self.holds[task] = hold
        self.in_use += used
        self.in_hold += hold.gpus
        self.empty_since = None

    def _share(self, used: float) -> _Hold:
        """A share of the fullest GPU that still has as much, or of a fresh one."""
        milli = _milli(used)
        open_slots = [(free, slot) for slot, free in self.shares.items() if free >= milli]
        if open_slots:
            free, slot = min(open_slots)
        else:
            if self.whole < 1:
                raise Defect(f"node {self.number} has no share of {used} GPUs free")
            self.whole -= 1
            self._slots += 1
            free, slot = _WHOLE, self._slots
        self.shares[slot] = free - milli
        return _Hold(0, slot, milli, used)

    def release(self, task: Task, now: float) -> None:
        """Take back what ``task`` held."""
        self.settle(now)
        hold = self.holds.pop(task)
        self.whole += hold.whole
        if hold.slot is not None:
            self.shares[hold.slot] += hold.milli
            if self.shares[hold.slot] == _WHOLE:
                del self.shares[hold.slot]
                self.whole += 1
        self.in_use -= hold.used
        self.in_hold -= hold.gpus
        if not self.holds:
            # Sums of shares leave a rounding error behind, an empty node does not.
            self.in_use = self.in_hold = 0.0
            self.empty_since = now

    def paid(self, now: float) -> float:
        """GPU-seconds billed so far: from its machine's start on, none while it is pending."""
        if self.running_at is None or self.running_at > now:
            return 0.0
        return (now - self.running_at) * self.size

    def close(self, now: float, least_billed_seconds: float) -> float:
        """End its accounts and return all GPU-seconds billed; what the least bill adds counts as idle."""
        self.settle(now)
        billed = self.paid(now)
        if self.running_at is None:
            return 0.0
        least = least_billed_seconds * self.size
        self.idle += max(0.0, least - billed)
        return max(billed, least)


def _milli(share: float) -> int:
    return round(share * _WHOLE)
