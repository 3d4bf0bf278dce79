"""What each job did with its GPUs, from one chunk of telemetry after another.

A value is a job's own where the job had the device to itself, or where the exporter counts by process. Of a device that
a known number shared it gets an equal part, marked as estimated. Where the number is not known it gets nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from advisor.domain.usage import ComputeSource, GpuUsage
from advisor.telemetry.dcgm.attribution import Holder, Holdings, Owner
from advisor.telemetry.dcgm.lines import Device
from advisor.telemetry.dcgm.names import Quantity
from advisor.telemetry.dcgm.tallies import DeviceTally, Part, usage_of
from advisor.telemetry.dcgm.tracks import Chunk, DeviceTrack, PodTrack, Samples

__all__ = ["JobPods", "PodSpan", "UsageMeter"]

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

# Kubelet lists the devices of a finished pod for half an hour and more; until then its label is no stranger's.
_LINGERING_SECONDS = 7_200.0
# An increment over a longer gap belongs to nobody in particular.
_LONGEST_INCREMENT_INTERVALS = 3.0


class PodSpan(NamedTuple):
    """A pod of a job: it ran from ``start`` to ``end`` (Unix seconds; None: it still runs)."""

    namespace: str
    name: str
    uid: str | None
    start: float
    end: float | None = None


@dataclass(frozen=True, slots=True)
class JobPods:
    """A job by its key, the pods it ran in, and the physical GPUs it asked for (None: not known)."""

    job: str
    pods: tuple[PodSpan, ...]
    gpus: float | None = None


class _Held(NamedTuple):
    """One run of a pod, told from others of the same name. ``owner`` is its job where that is known."""

    owner: Owner
    namespace: str
    name: str
    uid: str | None
    start: float


@dataclass(slots=True)
class _DeviceState:
    """First and last moment at which each pod was shown on a device, and who was shown alone at the last look."""

    shown: dict[_Held, tuple[float, float]] = field(default_factory=dict)
    alone: Owner | None = None


class _Seen(NamedTuple):
    """What a chunk shows of the pods on one device: the times of each run, and the values that are its own."""

    times: dict[_Held, Floats]
    own: dict[Quantity, dict[Owner, list[Samples]]]


class UsageMeter:
    """Fed chunk after chunk; keeps sums per running job and device, never samples.

    Before each chunk, ``know`` the jobs that ran in it, with the ends that are known by then; after the chunk in
    which a job ended, ``take`` its usage. Chunks follow each other in time; how time is cut into them changes nothing.
    """

    def __init__(self, interval_seconds: float) -> None:
        """``interval_seconds`` is the time between two samples, the step of the query."""
        self._interval = interval_seconds
        self._jobs: dict[str, JobPods] = {}
        self._runs: dict[tuple[str, str], list[_Held]] = {}
        self._ends: dict[_Held, float] = {}
        self._tallies: dict[str, dict[Device, DeviceTally]] = {}
        self._taken: set[str] = set()
        self._devices: dict[Device, _DeviceState] = {}

    def know(self, jobs: Iterable[JobPods]) -> None:
        """Add jobs, or replace what was known of them."""
        for job in jobs:
            self._forget(job.job)
            self._jobs[job.job] = job
            for held, end in _runs(job):
                self._runs.setdefault((held.namespace, held.name), []).append(held)
                self._ends[held] = end

    def feed(self, chunk: Chunk) -> None:
        """Add one chunk."""
        for track in chunk.tracks:
            state, seen = self._devices.get(track.device, _DeviceState()), self._seen(track)
            if seen.times or state.shown:
                self._devices[track.device] = state
                self._add(track, state, seen)
        newest = max((_newest(track) for track in chunk.tracks), default=-np.inf)
        self._forget_holders(newest)
        self._forget_ended(newest - _LINGERING_SECONDS)

    def take(self, job: str) -> GpuUsage | None:
        """The usage of an ended job, which is not added up again; None where it was never shown to have a device."""
        tallies = self._tallies.pop(job, {})
        known = self._jobs.get(job)
        if known is not None:
            self._taken.add(job)
        return usage_of(tuple(tallies.values()), known.gpus if known else None) if tallies else None

    def usage(self, job: str) -> GpuUsage | None:
        """The usage of a job so far; None where it was not shown to have a device."""
        tallies, known = self._tallies.get(job), self._jobs.get(job)
        return usage_of(tuple(tallies.values()), known.gpus if known else None) if tallies else None

    def forget(self, job: str) -> None:
        """Drop all that is known of a job."""
        self._forget(job)
        self._tallies.pop(job, None)
        self._taken.discard(job)

    @property
    def open_tallies(self) -> int:
        """How many pairs of job and device are being added up: what memory grows with."""
        return sum(len(tallies) for tallies in self._tallies.values())

    @property
    def remembered_runs(self) -> int:
        """How many runs of pods are known, those that ended lately included."""
        return len(self._ends)

    def _seen(self, track: DeviceTrack) -> _Seen:
        times: dict[_Held, Floats] = {}
        own: dict[Quantity, dict[Owner, list[Samples]]] = {}
        for pod in track.pods:
            for held, begin, end in self._spans(pod):
                shown = _between(pod.times, begin, end)
                if not shown.size:
                    continue
                times[held] = np.union1d(times[held], shown) if held in times else shown
                for quantity, samples in pod.own.items():
                    own.setdefault(quantity, {}).setdefault(held.owner, []).append(_cut(samples, begin, end))
        return _Seen(times, own)

    def _spans(self, track: PodTrack) -> Iterable[tuple[_Held, float, float]]:
        """The runs a pod's label may mean, each with when it holds. Outside of them a known pod holds nothing."""
        pod = track.pod
        runs = self._runs.get((pod.namespace, pod.name))
        if runs is None:
            return [(_Held((pod.namespace, pod.name), pod.namespace, pod.name, None, 0.0), -np.inf, np.inf)]
        return [(held, held.start, self._ends[held]) for held in runs if _may_be(held.uid, pod.uid)]

    def _add(self, track: DeviceTrack, state: _DeviceState, seen: _Seen) -> None:
        holdings = self._holdings(state, seen)
        hidden, alone = holdings.hidden()
        all_shown = holdings.in_company or any(pod.virtual for pod in track.pods)
        jobs = dict.fromkeys(holder.owner for holder in holdings.holders if isinstance(holder.owner, str))
        for job in jobs.keys() - self._taken:
            tally = self._tallies.setdefault(job, {}).setdefault(
                track.device, DeviceTally(sliced=track.device.instance is not None)
            )
            tally.hidden |= job in hidden
            tally.all_shown |= all_shown
            own = {quantity: _summed(by_owner[job]) for quantity, by_owner in seen.own.items() if job in by_owner}
            _Share(track, holdings, job, own, self._interval).add_to(tally)
        for held, times in seen.times.items():
            first = state.shown.get(held, (float(times[0]), 0.0))[0]
            state.shown[held] = first, float(times[-1])
        state.alone = alone

    def _holdings(self, state: _DeviceState, seen: _Seen) -> Holdings:
        holders = []
        for held in dict.fromkeys([*state.shown, *seen.times]):
            times = seen.times.get(held, _NONE)
            first, last = state.shown.get(held) or (float(times[0]), -np.inf)
            end = np.inf if isinstance(held.owner, tuple) else self._ends.get(held, -np.inf)
            holders.append(Holder(held.owner, times, last, first, end))
        return Holdings(holders, self._interval, state.alone)

    def _forget(self, job: str) -> None:
        known = self._jobs.pop(job, None)
        for held, _ in _runs(known) if known else ():
            self._ends.pop(held, None)
            runs = self._runs[held.namespace, held.name]
            runs.remove(held)
            if not runs:
                del self._runs[held.namespace, held.name]

    def _forget_holders(self, newest: float) -> None:
        """Forget on each device the pods that have ended; later chunks cannot show them there."""
        for device, state in list(self._devices.items()):
            for held, (_, last) in list(state.shown.items()):
                if newest >= self._ends.get(held, last + self._interval):
                    del state.shown[held]
            if not state.shown:
                del self._devices[device]

    def _forget_ended(self, before: float) -> None:
        """Forget jobs that ended long ago and were taken: until now their labels may have lingered."""
        ended = [
            job
            for job, known in self._jobs.items()
            if job not in self._tallies and all(end < before for _, end in _runs(known))
        ]
        for job in ended:
            self._forget(job)
            self._taken.discard(job)


@dataclass(frozen=True, slots=True)
class _Share:
    """The part of one job in one device over a chunk; ``own`` are its own values where they are believed."""

    track: DeviceTrack
    holdings: Holdings
    job: str
    own: Mapping[Quantity, Samples]
    interval_seconds: float

    def add_to(self, tally: DeviceTally) -> None:
        """Add every quantity."""
        for source, samples in self.track.compute.items():
            own = self.own.get(Quantity.UTILISATION) if source is ComputeSource.UTILISATION else None
            part = self._of(samples.times, samples.values, own)
            # Each process is sampled at a moment of its own, so that two of them may come to more than all.
            tally.add_compute(source, part._replace(own=np.minimum(part.own, 1.0)))
        used = self.track.memory_used
        tally.add_memory(self._of(used.times, used.values, self.own.get(Quantity.MEMORY_USED)))
        power = self.track.power
        tally.add_power(self._of(power.times, power.values * self.interval_seconds, None))
        energy = self.track.energy
        close = energy.seconds <= _LONGEST_INCREMENT_INTERVALS * self.interval_seconds
        tally.add_energy(self._of(energy.times[close], energy.joules[close], None))

    def _of(self, times: Floats, values: Floats, own: Samples | None) -> Part:
        """The job's part of ``values`` at the times it had the device."""
        had = self.holdings.had_by(self.job, times)
        times, values = times[had], values[had]
        if not times.size:
            return Part(_NONE, _NONE, 0)
        sharers = self.holdings.sharers(times)
        guessed = sharers > 1
        part = values / np.maximum(sharers, 1)
        if own is None or not own.times.size:
            return Part(_NONE, part, int(np.count_nonzero(guessed)))
        place = np.minimum(np.searchsorted(own.times, times), own.times.size - 1)
        its_own = own.times[place] == times
        return Part(own.values[place][its_own], part[~its_own], int(np.count_nonzero(guessed & ~its_own)))


_NONE = np.zeros(0)


def _runs(job: JobPods) -> list[tuple[_Held, float]]:
    """The runs of a job, each with its end."""
    return [
        (_Held(job.job, span.namespace, span.name, span.uid, span.start), np.inf if span.end is None else span.end)
        for span in dict.fromkeys(job.pods)
    ]


def _may_be(known: str | None, shown: str | None) -> bool:
    return known is None or shown is None or known == shown


def _between(times: Floats, begin: float, end: float) -> Floats:
    low, high = np.searchsorted(times, [begin, end])
    return times[low:high]


def _cut(samples: Samples, begin: float, end: float) -> Samples:
    low, high = np.searchsorted(samples.times, [begin, end])
    return Samples(samples.times[low:high], samples.values[low:high])


def _summed(parts: Sequence[Samples]) -> Samples:
    """What several pods of one job used together."""
    if len(parts) == 1:
        return parts[0]
    times, place = np.unique(np.concatenate([part.times for part in parts]), return_inverse=True)
    values = np.zeros(times.size)
    np.add.at(values, place, np.concatenate([part.values for part in parts]))
    return Samples(times, values)


def _newest(track: DeviceTrack) -> float:
    parts = [*track.compute.values(), track.memory_used, track.power]
    ends = [float(part.times[-1]) for part in parts if part.times.size]
    ends += [float(pod.times[-1]) for pod in track.pods if pod.times.size]
    return max(ends, default=-np.inf)
