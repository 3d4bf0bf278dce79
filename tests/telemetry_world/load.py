"""What pods do with their GPUs, minute by minute: loading, working, idling; and what the GPUs make of it.

Minutes are those of the world. A pod's compute is a share of the whole GPU for each of its slots (of the instance
under MIG), its memory is per slot too. Loads of pods that share a GPU add up to at most 1 by construction.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from tests.telemetry_world.things import Node, Pod, Slot

__all__ = ["MIB", "MINUTE", "DeviceUse", "Loads"]

MINUTE = 60
MIB = 1 << 20
_IDLE_WATTS, _BUSY_WATTS = 55.0, 345.0

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class DeviceUse:
    """What one pod did on one GPU or MIG instance between two moments: compute in hundredths of it, memory, energy.

    ``energy_joules`` is that of the whole GPU in that time, None where the pod had it not to itself.
    """

    uuid: str
    instance: int | None
    start: int
    end: int
    compute_mean: float
    compute_p95: float
    compute_peak: float
    idle_share: float
    memory_peak_bytes: float
    energy_joules: float | None


@dataclass(frozen=True, slots=True)
class _Profile:
    """Of one slot of a pod, by minute from ``first`` on: compute (0..1) and MiB."""

    first: int
    compute: Floats
    memory: Floats


@dataclass(frozen=True)
class Loads:
    """The loads of a world, by pod and by GPU."""

    span: tuple[int, int]
    profiles: Mapping[str, _Profile]
    tenants: Mapping[str, tuple[Pod, ...]]
    memory_mib: Mapping[str, int]
    _used: dict[str, Floats] = field(default_factory=dict, compare=False, repr=False)

    @classmethod
    def drawn(cls, nodes: Iterable[Node], pods: Iterable[Pod], span: tuple[int, int], seed: int) -> Loads:
        """Draw a profile for every pod that ran, each from its own seed."""
        memory = {device.uuid: device.memory_mib for node in nodes for device in node.devices}
        profiles: dict[str, _Profile] = {}
        tenants: dict[str, list[Pod]] = {uuid: [] for uuid in memory}
        for pod in pods:
            for uuid in dict.fromkeys(slot.uuid for slot in pod.slots):
                tenants[uuid].append(pod)
            if pod.slots and pod.started is not None:
                profiles[pod.uid] = _profile(pod, span, memory[pod.slots[0].uuid], seed)
        return cls(span, profiles, {uuid: tuple(found) for uuid, found in tenants.items()}, memory)

    def of_pod(self, pod: Pod, slots: Sequence[Slot], times: Floats) -> tuple[Floats, Floats]:
        """Compute and MiB of ``pod`` on ``slots`` (of one GPU or instance) at ``times``; 0 while it does not run."""
        compute, memory = np.zeros(len(times)), np.zeros(len(times))
        profile = self.profiles.get(pod.uid)
        if profile is None:
            return compute, memory
        minutes = (np.floor(times).astype(np.int64) - self.span[0]) // MINUTE - profile.first
        for begun, ended in self._lives(pod):
            runs = (times >= begun) & (times < ended)
            at = minutes[runs]
            for slot in slots:
                compute[runs] += profile.compute[at] * _slower(pod, slot)
                memory[runs] += profile.memory[at]
        return compute, memory

    def of_device(self, uuid: str, instance: int | None, times: Floats) -> tuple[Floats, Floats]:
        """Compute and MiB of a GPU, or of one of its instances, at ``times``."""
        compute, memory = np.zeros(len(times)), np.zeros(len(times))
        for pod in self.tenants[uuid]:
            slots = [slot for slot in pod.slots if slot.uuid == uuid and slot.instance == instance]
            if slots:
                lower, upper = np.searchsorted(times, [pod.scheduled or 0, pod.holds_until or self.span[1]])
                own = self.of_pod(pod, slots, times[lower:upper])
                compute[lower:upper] += own[0]
                memory[lower:upper] += own[1]
        return compute, memory

    def joules(self, uuid: str, times: Floats) -> Floats:
        """What a GPU has used since the world began, at ``times``: watts follow its load in each minute."""
        if uuid not in self._used:
            watts = _IDLE_WATTS + (_BUSY_WATTS - _IDLE_WATTS) * self._by_minute(uuid)
            self._used[uuid] = np.concatenate(([0.0], np.cumsum(watts * MINUTE)))
        used = self._used[uuid]
        return np.interp(times, self.span[0] + MINUTE * np.arange(len(used), dtype=np.float64), used)

    def _by_minute(self, uuid: str) -> Floats:
        """The mean load of a GPU in each minute; an instance's counts by the part of the GPU it is."""
        start, end = self.span
        begins = np.arange(start, end, MINUTE, dtype=np.float64)
        load = np.zeros(len(begins))
        for pod in self.tenants[uuid]:
            slots = [slot for slot in pod.slots if slot.uuid == uuid]
            for begun, ended in self._lives(pod):
                minutes = np.arange((begun - start) // MINUTE, (ended - 1 - start) // MINUTE + 1)
                # The part of each minute in which the pod ran.
                part = np.minimum(ended, begins[minutes] + MINUTE) - np.maximum(begun, begins[minutes])
                compute = self.profiles[pod.uid].compute[minutes - self.profiles[pod.uid].first]
                for slot in slots:
                    weight = 1.0 if slot.instance is None else slot.share
                    load[minutes] += compute * part / MINUTE * _slower(pod, slot) * weight
        return load

    def uses(self, pod: Pod) -> tuple[DeviceUse, ...]:
        """What ``pod`` did on each of its GPUs, from its first start to its end or the world's."""
        start = pod.started
        if start is None or pod.uid not in self.profiles:
            return ()
        end = pod.holds_until or self.span[1]
        places = dict.fromkeys((slot.uuid, slot.instance) for slot in pod.slots)
        return tuple(self._use(pod, place, start, end) for place in places)

    def alone(self, pod: Pod, uuid: str) -> bool:
        """Whether nobody else had the GPU while ``pod`` had it."""
        begun, ended = pod.scheduled or 0, pod.holds_until or self.span[1]
        return all(
            other is pod or (other.scheduled or 0) >= ended or (other.holds_until or self.span[1]) <= begun
            for other in self.tenants[uuid]
        )

    def _use(self, pod: Pod, place: tuple[str, int | None], start: int, end: int) -> DeviceUse:
        slots = [slot for slot in pod.slots if (slot.uuid, slot.instance) == place]
        times = np.arange(start, end, dtype=np.float64) if end - start < 7200 else np.arange(start, end, 30.0)
        compute, memory = self.of_pod(pod, slots, times)
        energy = None
        if place[1] is None and self.alone(pod, place[0]):
            energy = float(np.diff(self.joules(place[0], np.array([start, end], dtype=np.float64)))[0])
        return DeviceUse(
            uuid=place[0],
            instance=place[1],
            start=start,
            end=end,
            compute_mean=float(compute.mean()),
            compute_p95=float(np.quantile(compute, 0.95)),
            compute_peak=float(compute.max()),
            idle_share=float((compute == 0).mean()),
            memory_peak_bytes=float(memory.max() * MIB),
            energy_joules=energy,
        )

    def _lives(self, pod: Pod) -> list[tuple[int, int]]:
        """When its containers ran, cut at the end of the world."""
        last = pod.holds_until or self.span[1]
        return [
            (one.start, ended)
            for one in pod.attempts
            if (ended := min(last if one.end is None else one.end, self.span[1])) > one.start
        ]


def _slower(pod: Pod, slot: Slot) -> float:
    """The second and third GPU of a pod get a little less to do, so that averages over GPUs are not trivial."""
    places = list(dict.fromkeys(one.uuid for one in pod.slots))
    return 1.0 - 0.1 * (places.index(slot.uuid) % 3)


def _profile(pod: Pod, span: tuple[int, int], memory_mib: int, seed: int) -> _Profile:
    """Loading for some minutes, then work at a level with idle stretches; in whole percent of a slot."""
    rng = np.random.default_rng((seed, crc32(pod.uid.encode())))
    first = ((pod.started or span[0]) - span[0]) // MINUTE
    minutes = ((pod.holds_until or span[1]) - 1 - span[0]) // MINUTE - first + 1
    slot = pod.slots[0]
    room = 1.0 if slot.instance is not None else slot.share
    level = rng.choice([0.15, 0.4, 0.7, 0.9])
    percent = np.rint(100 * room * np.clip(level + rng.normal(0.0, 0.05, minutes), 0.02, 1.0))
    loading = int(rng.integers(1, 8))
    percent[:loading] = np.rint(5 * room)
    if rng.random() < 0.4:
        for at in rng.integers(0, minutes, 1 + minutes // 240):
            percent[at : at + int(rng.integers(3, 40))] = 0.0
    most = int(memory_mib * slot.share * rng.uniform(0.2, 0.9))
    memory = np.full(minutes, float(most))
    memory[:loading] = float(most // 5)
    return _Profile(int(first), percent / 100.0, memory)
