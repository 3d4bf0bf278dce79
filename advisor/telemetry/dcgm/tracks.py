"""What a chunk of telemetry says, device by device, once it has been normalised."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from advisor.domain.ingest import Rejection
from advisor.domain.usage import ComputeSource
from advisor.telemetry.dcgm.lines import Device, Pod, Target
from advisor.telemetry.dcgm.names import Quantity
from advisor.telemetry.dcgm.scales import Pool, Scale, ScaleBook

__all__ = [
    "NOT_ATTRIBUTABLE",
    "Carried",
    "Chunk",
    "DeviceMemory",
    "DeviceTrack",
    "Energy",
    "PodShare",
    "PodTrack",
    "Samples",
    "Xid",
]

Floats = NDArray[np.float64]

NOT_ATTRIBUTABLE = "not attributable"
"""Why a pod has no value of its own: the device was shared, and its figures count all of it."""

_WHOLE = (ComputeSource.SM_ACTIVE, ComputeSource.ENGINE_ACTIVE, ComputeSource.UTILISATION)
# Whether SM activity of an instance is relative to the instance differs between drivers; the engine's is.
_SLICED = (ComputeSource.ENGINE_ACTIVE, ComputeSource.SM_ACTIVE)


class Samples(NamedTuple):
    """``times`` (Unix seconds, ascending) and the ``values`` then, both (n,)."""

    times: Floats
    values: Floats


class Energy(NamedTuple):
    """Energy by increments: ``joules`` used in the ``seconds`` before each of ``times``, all (n,)."""

    times: Floats
    joules: Floats
    seconds: Floats


class Xid(NamedTuple):
    """An error: the moment (Unix seconds) at which the last code was first seen to be this one."""

    time: float
    code: int


class PodShare(NamedTuple):
    """A pod's mean compute (0 to 1), or None and the reason."""

    compute: float | None
    reason: str | None


@dataclass(frozen=True, slots=True, eq=False)
class PodTrack:
    """A pod on a device: the ``times`` its label was shown, and the values that are its own.

    ``own`` has rows only of times at which the exporter's per-process values are believed, which it has for
    utilisation and memory used, from version 4.8.2 on, if it may see processes.
    """

    pod: Pod
    container: str
    times: Floats
    own: Mapping[Quantity, Samples] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True, eq=False)
class DeviceTrack:
    """One device over a chunk: one value per moment of each quantity, whoever used it.

    ``compute`` holds each source by itself (shares, 0 to 1), so that nobody mixes them; ``compute_source`` is the one
    to read. Power, energy and errors of a MIG instance are those of the card, which has a track of its own.
    ``memory_total_bytes`` is as given, or free, used and reserved together.
    """

    device: Device
    node: str
    model: str
    compute: Mapping[ComputeSource, Samples]
    memory_used: Samples
    memory_total_bytes: float | None
    power: Samples
    energy: Energy
    xids: tuple[Xid, ...]
    pods: tuple[PodTrack, ...]

    @property
    def compute_source(self) -> ComputeSource | None:
        """The most telling source there is; for a MIG instance the engine's, and never utilisation."""
        order = _WHOLE if self.device.instance is None else _SLICED
        return next((source for source in order if source in self.compute), None)

    @property
    def mean_compute(self) -> float | None:
        """Mean share (0 to 1) of the device in ``compute_source``: what advice about sharing goes by."""
        source = self.compute_source
        return None if source is None else float(self.compute[source].values.mean())

    def share_of(self, track: PodTrack) -> PodShare:
        """The mean compute of one of ``pods`` over the times it was shown, where that is really its own.

        A pod whose first and last time enclose none of another pod had the device to itself.
        """
        source = self.compute_source
        if source is None or not track.times.size:
            return PodShare(None, "no compute was measured")
        if any(_overlap(track, other) for other in self.pods if _differ(track, other)):
            own = track.own.get(Quantity.UTILISATION)
            if own is None or not own.times.size:
                return PodShare(None, NOT_ATTRIBUTABLE)
            return PodShare(float(own.values.mean()), None)
        times, values = self.compute[source]
        during = (times >= track.times[0]) & (times <= track.times[-1])
        return PodShare(float(values[during].mean()), None) if during.any() else PodShare(None, NOT_ATTRIBUTABLE)


def _differ(one: PodTrack, other: PodTrack) -> bool:
    return (one.pod.namespace, one.pod.name) != (other.pod.namespace, other.pod.name)


def _overlap(one: PodTrack, other: PodTrack) -> bool:
    return bool(other.times.size and one.times[0] <= other.times[-1] and other.times[0] <= one.times[-1])


@dataclass(frozen=True, slots=True)
class DeviceMemory:
    """What the next chunk must know of a device: when it was ``seen`` (Unix seconds) and how it stood then."""

    seen: float
    energy: tuple[float, float] | None = None
    """Time (Unix seconds) and joules of the energy counter."""
    xid: int | None = None
    memory_total_bytes: float | None = None
    per_process: frozenset[Quantity] = frozenset()
    """Quantities whose per-pod lines have shown to be per process."""


@dataclass(frozen=True, slots=True)
class Carried:
    """What is carried from chunk to chunk: evidence of units, targets that rename labels, devices of the last day."""

    scales: ScaleBook = field(default_factory=ScaleBook)
    renaming: frozenset[Target] = frozenset()
    devices: Mapping[Device, DeviceMemory] = field(default_factory=lambda: MappingProxyType({}))


@dataclass(frozen=True, slots=True, eq=False)
class Chunk:
    """One chunk of time, normalised: ``tracks`` by device, how units were decided, what was dropped, what to carry."""

    tracks: tuple[DeviceTrack, ...]
    scales: Mapping[Pool, Scale]
    rejections: tuple[Rejection, ...]
    carried: Carried
