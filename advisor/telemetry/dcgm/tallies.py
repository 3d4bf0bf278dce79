"""What one job did with one device, added up so that no sample is kept."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from advisor.domain.usage import ComputeSource, GpuUsage

__all__ = ["ComputeTally", "DeviceTally", "usage_of"]

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

_BINS = 400
_P95 = 0.95
# Below this a load is nothing once it is rounded to whole percent.
_IDLE_BELOW = 0.005
# A source that was there for less than half of what the best covered says too little of the whole run.
_COVERED = 0.5
_WHOLE = (ComputeSource.SM_ACTIVE, ComputeSource.ENGINE_ACTIVE, ComputeSource.UTILISATION)
_SLICED = (ComputeSource.ENGINE_ACTIVE, ComputeSource.SM_ACTIVE, ComputeSource.UTILISATION)


class ComputeTally:
    """Shares (0 to 1) of one source: how many, their sum and peak, and how they are spread in bins of 0.25 %."""

    def __init__(self) -> None:
        """Start with nothing."""
        self.count = 0
        self.estimated = 0
        self.idle = 0
        self.total = 0.0
        self.peak = 0.0
        self.bins = np.zeros(_BINS + 1, dtype=np.int64)

    def join(self, other: ComputeTally) -> None:
        """Add everything ``other`` has been given."""
        self.count += other.count
        self.estimated += other.estimated
        self.idle += other.idle
        self.total += other.total
        self.peak = max(self.peak, other.peak)
        self.bins += other.bins

    def add(self, shares: Floats, estimated: int) -> None:
        """Add ``shares``, at least one, of which so many are estimated."""
        self.count += shares.size
        self.estimated += estimated
        self.idle += int(np.count_nonzero(shares < _IDLE_BELOW))
        self.total += float(shares.sum())
        self.peak = max(self.peak, float(shares.max()))
        self.bins += np.bincount(np.rint(shares * _BINS).astype(np.int64), minlength=_BINS + 1)

    @property
    def mean(self) -> float:
        """The mean of all shares."""
        return self.total / self.count

    @property
    def p95(self) -> float:
        """The 95th percentile, to the nearest bin and never above the peak."""
        return min(float(np.searchsorted(self.bins.cumsum(), _P95 * self.count)) / _BINS, self.peak)


class Part(NamedTuple):
    """What is a job's of one quantity: its ``own`` values, and those of all ``other`` moments, so many ``estimated``.

    A moment is in one of the two. Others are the device's where the job had it to itself, else an equal part of them.
    """

    own: Floats
    other: Floats
    estimated: int


def _counts(own: int, other: int) -> bool:
    """Whether own values are there for most of the time, so that nothing else is asked.

    What the device shows beside them may be somebody else's, who has just gone or is not named.
    """
    return own > 0 and own >= _COVERED * (own + other)


class SourceTally:
    """Compute of one source: the job's own shares, and all others."""

    def __init__(self) -> None:
        """Start with nothing."""
        self._own = ComputeTally()
        self._other = ComputeTally()

    def add(self, part: Part) -> None:
        """Add what a chunk has of it."""
        for tally, shares, estimated in ((self._own, part.own, 0), (self._other, part.other, part.estimated)):
            if shares.size:
                tally.add(shares, estimated)

    def tally(self) -> ComputeTally:
        """What counts of it."""
        if _counts(self._own.count, self._other.count):
            return self._own
        both = ComputeTally()
        both.join(self._own)
        both.join(self._other)
        return both


class DeviceTally:
    """What one job did with one device.

    ``hidden``: it was shared with nobody knows how many, so nothing counts. ``all_shown``: the exporter has given proof
    that it names every pod on the device.
    """

    def __init__(self, *, sliced: bool) -> None:
        """Start with nothing; ``sliced`` is a MIG instance."""
        self.sliced = sliced
        self.hidden = False
        self.all_shown = False
        self._compute: dict[ComputeSource, SourceTally] = {}
        self._own_memory = self._other_memory = 0
        self._own_peak = self._other_peak = 0.0
        self._memory_estimated = False
        self.counted_joules = 0.0
        self.counted = 0
        self.drawn_joules = 0.0
        self.drawn = 0
        self.energy_estimated = False

    def add_compute(self, source: ComputeSource, shares: Part) -> None:
        """Add shares (0 to 1) of one source."""
        if shares.own.size or shares.other.size:
            self._compute.setdefault(source, SourceTally()).add(shares)

    @property
    def compute(self) -> dict[ComputeSource, ComputeTally]:
        """What counts of each source."""
        return {source: tally.tally() for source, tally in self._compute.items()}

    def add_memory(self, used: Part) -> None:
        """Take note of bytes in use."""
        self._own_memory += used.own.size
        self._other_memory += used.other.size
        self._own_peak = max(self._own_peak, float(used.own.max(initial=0.0)))
        self._other_peak = max(self._other_peak, float(used.other.max(initial=0.0)))
        self._memory_estimated |= used.estimated > 0

    @property
    def memory_peak_bytes(self) -> float | None:
        """The most bytes in use; None where nothing was told."""
        if _counts(self._own_memory, self._other_memory):
            return self._own_peak
        return max(self._own_peak, self._other_peak) if self._own_memory or self._other_memory else None

    @property
    def memory_estimated(self) -> bool:
        """Whether that may be more or less."""
        return self._memory_estimated and not _counts(self._own_memory, self._other_memory)

    def add_energy(self, joules: Part) -> None:
        """Add increments of the energy counter."""
        self.counted_joules += float(joules.other.sum())
        self.counted += joules.other.size
        self.energy_estimated |= joules.estimated > 0

    def add_power(self, joules: Part) -> None:
        """Add what power times interval gives."""
        self.drawn_joules += float(joules.other.sum())
        self.drawn += joules.other.size
        self.energy_estimated |= joules.estimated > 0

    @property
    def energy_joules(self) -> float | None:
        """By the counter, or from power where the counter was there for less than half of the time."""
        if self.counted and self.counted >= _COVERED * self.drawn:
            return self.counted_joules
        return self.drawn_joules if self.drawn else None


def usage_of(tallies: Sequence[DeviceTally], gpus: float | None) -> GpuUsage:
    """The usage of a job that had these devices and asked for so many ``gpus`` (None: not known).

    Compute is that of one source: of those that covered at least half of what the best did, one without estimates
    before one with, then the most telling. Mean, 95th percentile and peak are over all samples of all devices, so
    that runs one after the other count by how long they were. Energy is given only where every GPU asked for was
    measured. A device that is hidden from the job adds nothing, and what the others say of the job is an estimate;
    with none left, nothing is known. So it is an estimate where the job asked for part of a GPU and nothing shows
    that the exporter names more than the last pod on it.
    """
    clear = [tally for tally in tallies if not tally.hidden]
    of_devices = [tally.compute for tally in clear]
    source = _source(of_devices, sliced=any(tally.sliced for tally in clear))
    computes = [each[source] for each in of_devices if source in each] if source else []
    peaks = [tally.memory_peak_bytes for tally in clear if tally.memory_peak_bytes is not None]
    energies = [joules for tally in clear if (joules := tally.energy_joules) is not None]
    complete = bool(energies) and len(energies) == len(tallies) and len(energies) >= (gpus or 0.0)
    compute = ComputeTally()
    for each in computes:
        compute.join(each)
    estimated = compute.estimated > 0 or any(tally.memory_estimated for tally in clear)
    if not estimated and any(tally.energy_estimated for tally in clear):
        # Compute and memory are the job's own: better no energy than to call them guesses for its sake.
        complete = False
    estimated |= complete and any(tally.energy_estimated for tally in clear)
    if gpus is not None and not float(gpus).is_integer():
        estimated |= any(not (tally.all_shown or tally.sliced) for tally in clear)
    return GpuUsage(
        compute_mean=compute.mean if compute.count else None,
        compute_p95=compute.p95 if compute.count else None,
        compute_peak=compute.peak if compute.count else None,
        compute_source=source,
        memory_peak_bytes=max(peaks) if peaks else None,
        energy_joules=sum(energies) if complete else None,
        idle_share=compute.idle / compute.count if compute.count else None,
        estimated=estimated or (bool(clear) and len(clear) < len(tallies)),
    )


def _source(of_devices: Sequence[Mapping[ComputeSource, ComputeTally]], *, sliced: bool) -> ComputeSource | None:
    counts: dict[ComputeSource, int] = {}
    guessed: set[ComputeSource] = set()
    for of_device in of_devices:
        for source, compute in of_device.items():
            counts[source] = counts.get(source, 0) + compute.count
            if compute.estimated:
                guessed.add(source)
    best = max(counts.values(), default=0)
    order = _SLICED if sliced else _WHOLE
    enough = [source for source in order if best and counts.get(source, 0) >= _COVERED * best]
    return min(enough, key=lambda source: source in guessed, default=None)
