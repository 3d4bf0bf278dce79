"""Several tiny tasks in one slice, one after the other.

A task joins as long as the sum of the means plus z standard deviations of the sum stays within the slice.
What is left of a slice is never granted by itself: it belongs to the tiny tasks that still fit, and
otherwise to what follows on that share, which is expected to start when the last task ends and not
when its slice does. No task is ever held back to fill a batch.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from advisor.domain.slices import Slice
from advisor.planning.eligibility import PoolFit
from advisor.planning.fleet import Fleet
from advisor.planning.grants import Task

__all__ = ["Batch", "BatchBook", "shown_members"]

_FULL = 0.95


@dataclass(slots=True)
class Batch:
    """One slice (on all the shares of its first task) that tiny tasks use in order, with their moments summed."""

    fleet: Fleet
    slices: tuple[Slice, ...]
    limit_seconds: float
    mean_seconds: float = 0.0
    variance: float = 0.0
    members: list[str] = field(default_factory=list)

    def bound_with(self, task: Task) -> float:
        """By when the batch would be done with this task last, at z standard deviations; seconds from its start."""
        mean, deviation = task.moments
        return self.mean_seconds + mean + task.terms.batch_z * math.sqrt(self.variance + deviation**2)

    def add(self, task: Task) -> None:
        """Put the task last."""
        mean, deviation = task.moments
        self.mean_seconds += mean
        self.variance += deviation**2
        self.members.append(task.request.id)
        row = self.fleet.row_of(self.slices[0].share.node)
        self.fleet.hold(row, [one.share for one in self.slices], self.mean_seconds)


@dataclass(slots=True)
class BatchBook:
    """The slices that still have room, in the order they were opened."""

    now: datetime
    batches: list[Batch] = field(default_factory=list)

    def open(self, task: Task, fleet: Fleet, slices: tuple[Slice, ...]) -> None:
        """Offer the single slice of a tiny task to others; a task that needs all of it opens nothing."""
        batch = Batch(fleet, slices, slices[0].length.seconds)
        if batch.bound_with(task) < _FULL * batch.limit_seconds:
            batch.add(task)
            self.batches.append(batch)

    def join(self, task: Task, fits: Iterable[PoolFit]) -> tuple[Batch, float] | None:
        """The first slice with room for the task, and after how many seconds it is expected to run in it."""
        longest = max((batch.limit_seconds for batch in self.batches), default=0.0)
        if task.request.gpus > 1 or task.moments[0] > longest:
            return None
        pools = {fit.pool: fit for fit in fits}
        for batch in self.batches:
            fit = pools.get(batch.fleet.pool.name)
            if fit is None or not self._suits(task, fit, batch):
                continue
            start = batch.mean_seconds
            batch.add(task)
            if batch.mean_seconds >= _FULL * batch.limit_seconds:
                self.batches.remove(batch)
            return batch, start
        return None

    def _suits(self, task: Task, fit: PoolFit, batch: Batch) -> bool:
        """True if size, kind, length and deadline agree with the batch."""
        if batch.bound_with(task) > batch.limit_seconds or len(batch.slices) != _share_count(fit, batch.fleet):
            return False
        kind = task.request.gpu_kind
        if kind is not None and batch.fleet.kind_of(batch.slices[0].share.node) != kind:
            return False
        deadline = task.request.deadline
        end = self.now + timedelta(seconds=batch.mean_seconds + task.seconds)
        return deadline is None or end <= deadline


def _share_count(fit: PoolFit, fleet: Fleet) -> int:
    return sum(fit.parts) * fleet.replicas if fit.parts else fit.shares


def shown_members(members: Sequence[str]) -> str:
    """The tasks ahead in a slice, for a person to read."""
    return ", ".join(members[:3]) + (f" and {len(members) - 3} more" if len(members) > 3 else "")
