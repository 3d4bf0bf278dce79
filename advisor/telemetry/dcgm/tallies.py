"""What one job did with one device, added up so that no sample is kept."""

from __future__ import annotations

from collections.abc import Sequence

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
        self._sum = 0.0
        self.peak = 0.0
        self._bins = np.zeros(_BINS + 1, dtype=np.int64)

    def add(self, shares: Floats, estimated: int) -> None:
        """Add ``shares``, of which so many are estimated."""
        if shares.size:
            self.count += shares.size
            self.estimated += estimated
            self.idle += int(np.count_nonzero(shares < _IDLE_BELOW))
            self._sum += float(shares.sum())
            self.peak = max(self.peak, float(shares.max()))
            self._bins += np.bincount(np.rint(shares * _BINS).astype(np.int64), minlength=_BINS + 1)

    @property
    def mean(self) -> float:
        """The mean of all shares."""
        return self._sum / self.count

    @property
    def p95(self) -> float:
        """The 95th percentile, to the nearest bin and never above the peak."""
        return min(float(np.searchsorted(self._bins.cumsum(), _P95 * self.count)) / _BINS, self.peak)


class DeviceTally:
    """What one job did with one device. ``hidden``: it was shared with nobody knows how many, so nothing counts."""

    def __init__(self, *, sliced: bool) -> None:
        """Start with nothing; ``sliced`` is a MIG instance."""
        self.sliced = sliced
        self.hidden = False
        self.compute: dict[ComputeSource, ComputeTally] = {}
        self.memory_peak_bytes: float | None = None
        self.memory_estimated = False
        self.counted_joules = 0.0
        self.counted = 0
        self.drawn_joules = 0.0
        self.drawn = 0
        self.energy_estimated = False

    def add_compute(self, source: ComputeSource, shares: Floats, estimated: int) -> None:
        """Add shares (0 to 1) of one source, of which so many are estimated."""
        self.compute.setdefault(source, ComputeTally()).add(shares, estimated)

    def add_memory(self, used: Floats, estimated: int) -> None:
        """Take note of bytes in use."""
        if used.size:
            self.memory_peak_bytes = max(self.memory_peak_bytes or 0.0, float(used.max()))
            self.memory_estimated |= estimated > 0

    def add_energy(self, joules: Floats, estimated: int) -> None:
        """Add increments of the energy counter."""
        self.counted_joules += float(joules.sum())
        self.counted += joules.size
        self.energy_estimated |= estimated > 0

    def add_power(self, joules: Floats, estimated: int) -> None:
        """Add what power times interval gives."""
        self.drawn_joules += float(joules.sum())
        self.drawn += joules.size
        self.energy_estimated |= estimated > 0

    @property
    def energy_joules(self) -> float | None:
        """By the counter, or from power where the counter was there for less than half of the time."""
        if self.counted and self.counted >= _COVERED * self.drawn:
            return self.counted_joules
        return self.drawn_joules if self.drawn else None


def usage_of(tallies: Sequence[DeviceTally], gpus: float | None) -> GpuUsage:
    """The usage of a job that had these devices and asked for so many ``gpus`` (None: not known).

    Compute is that of one source: of those that covered at least half of what the best did, one without estimates
    before one with, then the most telling. Mean, 95th percentile and peak are each device's own, averaged over
    devices. Energy is given only where every GPU asked for was measured. A device that is hidden from the job adds
    nothing, and what the others say of the job is an estimate; with none left, nothing is known.
    """
    clear = [tally for tally in tallies if not tally.hidden]
    source = _source(clear)
    computes = [tally.compute[source] for tally in clear if source in tally.compute] if source else []
    peaks = [tally.memory_peak_bytes for tally in clear if tally.memory_peak_bytes is not None]
    energies = [joules for tally in clear if (joules := tally.energy_joules) is not None]
    complete = bool(energies) and len(energies) == len(tallies) and len(energies) >= (gpus or 0.0)
    count = sum(compute.count for compute in computes)
    estimated = any(compute.estimated for compute in computes) or any(tally.memory_estimated for tally in clear)
    estimated |= complete and any(tally.energy_estimated for tally in clear)
    return GpuUsage(
        compute_mean=_mean([compute.mean for compute in computes]),
        compute_p95=_mean([compute.p95 for compute in computes]),
        compute_peak=_mean([compute.peak for compute in computes]),
        compute_source=source,
        memory_peak_bytes=max(peaks) if peaks else None,
        energy_joules=sum(energies) if complete else None,
        idle_share=sum(compute.idle for compute in computes) / count if count else None,
        estimated=estimated or (bool(clear) and len(clear) < len(tallies)),
    )


def _source(tallies: Sequence[DeviceTally]) -> ComputeSource | None:
    counts: dict[ComputeSource, int] = {}
    guessed: set[ComputeSource] = set()
    for tally in tallies:
        for source, compute in tally.compute.items():
            counts[source] = counts.get(source, 0) + compute.count
            if compute.estimated:
                guessed.add(source)
    best = max(counts.values(), default=0)
    order = _SLICED if any(tally.sliced for tally in tallies) else _WHOLE
    enough = [source for source in order if best and counts.get(source, 0) >= _COVERED * best]
    return min(enough, key=lambda source: source in guessed, default=None)


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
