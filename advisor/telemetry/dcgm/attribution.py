"""Who had a device at a moment, and with how many others.

Labels are what the exporter shows, and it shows too little (the last pod listed owns the whole device, labels
blink) and too much (a finished pod is listed until it is cleaned up). What jobs say of their pods mends both: a
pod never gives back a device while it runs, and holds none once it has ended.

- A job *has* a device while one of its pods runs and its label was shown at most two intervals ago.
- A job *shares* it with every other job that was ever shown there and still runs, and with every pod of no known
  job that is shown right then.
- Where one job is shown alone, and at the next look another alone although the first still runs, the exporter
  shows only one of those who share the device. How many they are nobody knows: the device is *hidden* from both jobs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["CARRIED_INTERVALS", "Holder", "Holdings", "Owner"]

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

CARRIED_INTERVALS = 2.0
"""For how many intervals a label that is not shown is still believed."""
_AT_ONCE_INTERVALS = 0.5
# Times are kept to the millisecond.
_HALF_A_MILLISECOND = 0.0005

Owner = str | tuple[str, str]
"""A known job by its key, or a pod of no known job by namespace and name."""


@dataclass(frozen=True, slots=True)
class Holder:
    """A pod on a device: whose it is, and the times it was ``shown`` in this chunk (Unix seconds, ascending).

    It was shown ``last`` before the chunk (minus infinity: never) and ``first`` of all; its run has its ``end``
    (infinite while it runs).
    """

    owner: Owner
    shown: Floats
    last: float
    first: float
    end: float

    @property
    def known(self) -> bool:
        """Whether its job is known."""
        return isinstance(self.owner, str)

    def shown_within(self, times: Floats, seconds: float) -> Flags:
        """At which of ``times`` the label was shown at most ``seconds`` before."""
        latest = np.concatenate([[self.last], self.shown])[
            np.searchsorted(self.shown, times + _HALF_A_MILLISECOND, side="right")
        ]
        lately: Flags = times - latest <= seconds + _HALF_A_MILLISECOND
        return lately


@dataclass(frozen=True, slots=True)
class Holdings:
    """All holders of one device over a chunk; ``alone`` is who was shown alone at the last look of the chunk before."""

    holders: Sequence[Holder]
    interval_seconds: float
    alone: Owner | None = None

    def had_by(self, owner: str, times: Floats) -> Flags:
        """At which of ``times`` the job had the device."""
        had = np.zeros(times.size, dtype=bool)
        for holder in self.holders:
            if holder.owner == owner:
                carried = holder.shown_within(times, CARRIED_INTERVALS * self.interval_seconds)
                had |= carried & (times < holder.end)
        return had

    def sharers(self, times: Floats) -> NDArray[np.int64]:
        """How many had the device at each of ``times``."""
        active: dict[Owner, Flags] = {}
        for holder in self.holders:
            if holder.known:
                here = (times >= holder.first) & (times < holder.end)
            else:
                here = holder.shown_within(times, _AT_ONCE_INTERVALS * self.interval_seconds)
            before = active.get(holder.owner)
            active[holder.owner] = here if before is None else before | here
        return np.sum(list(active.values()), axis=0, dtype=np.int64) if active else np.zeros(times.size, dtype=np.int64)

    def hidden(self) -> tuple[set[str], Owner | None]:
        """Jobs from which the device is hidden, and who is shown alone at the last look (None: several or nobody)."""
        moments, owners, seen = self._looks()
        if not moments.size:
            return set(), self.alone
        who = np.where(seen.sum(axis=0) == 1, seen.argmax(axis=0), -1)
        before = np.concatenate([[owners.index(self.alone) if self.alone in owners else -1], who[:-1]])
        changes = np.flatnonzero((who >= 0) & (before >= 0) & (who != before))
        # Backwards, so that of several changes between the same two the earliest stays.
        pairs = {(int(before[at]), int(who[at])): float(moments[at]) for at in changes[::-1]}
        found: set[str] = set()
        for (gone, come), moment in pairs.items():
            if any(one.known and one.owner == owners[gone] and moment < one.end for one in self.holders):
                found |= {owner for owner in (owners[gone], owners[come]) if isinstance(owner, str)}
        return found, owners[int(who[-1])] if who[-1] >= 0 else None

    def _looks(self) -> tuple[Floats, list[Owner], Flags]:
        """The moments at which any label was shown, the owners, and who was shown when (owners, moments)."""
        owners = list(dict.fromkeys(holder.owner for holder in self.holders))
        every = [holder.shown for holder in self.holders]
        moments = np.unique(np.concatenate(every)) if every else np.zeros(0)
        seen = np.zeros((len(owners), moments.size), dtype=bool)
        for holder in self.holders:
            seen[owners.index(holder.owner), np.searchsorted(moments, holder.shown)] = True
        return moments, owners, seen
