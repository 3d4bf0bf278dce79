"""Flat columns of one value per device and moment, taken apart into one track a device."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from advisor.domain.units import shown_moment
from advisor.domain.usage import ComputeSource
from advisor.telemetry.dcgm.columns import Columns, Grouped, Reading, moments_of
from advisor.telemetry.dcgm.counters import events, increments
from advisor.telemetry.dcgm.holdings import OwnValues
from advisor.telemetry.dcgm.lines import Device
from advisor.telemetry.dcgm.names import Quantity
from advisor.telemetry.dcgm.tracks import DeviceMemory, DeviceTrack, Energy, PodTrack, Samples, Xid
from advisor.telemetry.tally import RejectionTally

__all__ = ["Assembly"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Shown = Mapping[tuple[int, int], Floats]
Tracks = tuple[tuple[DeviceTrack, ...], dict[Device, DeviceMemory]]

_SOURCES = {
    ComputeSource.SM_ACTIVE: Quantity.SM_ACTIVE,
    ComputeSource.ENGINE_ACTIVE: Quantity.ENGINE_ACTIVE,
    ComputeSource.UTILISATION: Quantity.UTILISATION,
}
_NONE = np.zeros(0)
# Rounded to whole MiB thrice, free, used and reserved may miss the total by a little.
_MEMORY_SLACK = 1.02


@dataclass(frozen=True, slots=True)
class Assembly:
    """What the tracks of a chunk are made from; ``remembered`` is one a device of ``reading``, or None."""

    reading: Reading
    columns: Columns
    devices: Grouped
    remembered: Sequence[DeviceMemory | None]
    tally: RejectionTally

    def tracks(self, shown: Shown, own: OwnValues) -> Tracks:
        """One track a device, and what to remember of it."""
        parts = {quantity: self._samples(quantity) for quantity in (*_SOURCES.values(), Quantity.POWER)}
        totals = self._totals()
        used = self._memory_used(totals)
        energy, counters = self._energy()
        xids, codes = self._xids()
        pods = self._pods(shown, own)
        nodes, models = self._names()
        tracks, memories = [], {}
        per_process: defaultdict[int, list[Quantity]] = defaultdict(list)
        for at, quantity in own.per_process:
            per_process[at].append(quantity)
        seen = self._seen()
        for at, device in enumerate(self.reading.devices):
            track = DeviceTrack(
                device=device,
                node=nodes[at],
                model=models[at],
                compute={source: parts[q][at] for source, q in _SOURCES.items() if parts[q][at].times.size},
                memory_used=used[at],
                memory_total_bytes=totals[at],
                power=parts[Quantity.POWER][at],
                energy=energy[at],
                xids=xids[at],
                pods=pods[at],
            )
            tracks.append(track)
            believed = per_process.get(at, ())
            memories[device] = DeviceMemory(seen[at], counters[at], codes[at], totals[at], frozenset(believed))
        return tuple(tracks), memories

    def _bounds(self, rows: Grouped) -> list[int]:
        """Where the rows of each device begin, and where the last end."""
        found: list[int] = np.searchsorted(rows.device, np.arange(len(self.reading.devices) + 1)).tolist()
        return found

    def _samples(self, quantity: Quantity) -> list[Samples]:
        rows = self.devices.of(quantity)
        return self._parted(rows, rows.value)

    def _parted(self, rows: Grouped, values: Floats) -> list[Samples]:
        times, bounds = self.columns.seconds(rows.milliseconds), self._bounds(rows)
        return [Samples(times[a:b], values[a:b]) for a, b in pairwise(bounds)]

    def _totals(self) -> list[float | None]:
        """Memory in all: as shown, else as remembered, else the median of free, used and reserved together."""
        shown = [float(part.values[-1]) if part.times.size else None for part in self._samples(Quantity.MEMORY_TOTAL)]
        known = [
            total if memory is None else total or memory.memory_total_bytes for total, memory in self._beside(shown)
        ]
        if all(total is not None for total in known):
            return known
        used, free, reserved = (
            self.devices.of(quantity)
            for quantity in (Quantity.MEMORY_USED, Quantity.MEMORY_FREE, Quantity.MEMORY_RESERVED)
        )
        moments = max(moments_of(each.milliseconds) for each in (used, free, reserved))
        spared, both = _looked_up(used, free, moments)
        held, _ = _looked_up(used, reserved, moments)
        together = used.value + spared + held
        bounds = self._bounds(used)
        for at, (a, b) in enumerate(pairwise(bounds)):
            if known[at] is None and both[a:b].any():
                known[at] = float(np.median(together[a:b][both[a:b]]))
        return known

    def _beside(self, values: Sequence[float | None]) -> list[tuple[float | None, DeviceMemory | None]]:
        return list(zip(values, self.remembered, strict=True))

    def _memory_used(self, totals: Sequence[float | None]) -> list[Samples]:
        rows = self.devices.of(Quantity.MEMORY_USED)
        most = np.array([np.inf if total is None else total * _MEMORY_SLACK for total in totals] or [np.inf])
        fits = rows.value <= most[rows.device]
        if fits.all():
            return self._parted(rows, rows.value)
        self._count("out_of_range", rows, ~fits)
        kept = Grouped(
            rows.quantity[fits], rows.device[fits], rows.milliseconds[fits], rows.value[fits], rows.whole[fits]
        )
        return self._parted(kept, kept.value)

    def _energy(self) -> tuple[list[Energy], list[tuple[float, float] | None]]:
        rows = self.devices.of(Quantity.ENERGY)
        before = [(np.nan, np.nan) if one is None or one.energy is None else one.energy for one in self.remembered]
        times = self.columns.seconds(rows.milliseconds)
        grown = increments(rows.device, times, rows.value, np.array(before).reshape(-1, 2))
        self._count("counter_jumped", rows, grown.jumped)
        bounds, energies, counters = self._bounds(rows), [], []
        for at, (a, b) in enumerate(pairwise(bounds)):
            known = grown.known[a:b]
            energies.append(Energy(times[a:b][known], grown.joules[a:b][known], grown.seconds[a:b][known]))
            memory = self.remembered[at]
            last = None if memory is None else memory.energy
            counters.append((float(times[b - 1]), float(rows.value[b - 1])) if b > a else last)
        return energies, counters

    def _xids(self) -> tuple[list[tuple[Xid, ...]], list[int | None]]:
        rows = self.devices.of(Quantity.XID)
        before = [np.nan if one is None or one.xid is None else float(one.xid) for one in self.remembered]
        happened = np.flatnonzero(events(rows.device, rows.value, np.array(before)))
        times = self.columns.seconds(rows.milliseconds)
        found: defaultdict[int, list[Xid]] = defaultdict(list)
        for row in happened.tolist():
            found[int(rows.device[row])].append(Xid(float(times[row]), int(rows.value[row])))
        bounds, codes = self._bounds(rows), []
        for at, (a, b) in enumerate(pairwise(bounds)):
            memory = self.remembered[at]
            codes.append(int(rows.value[b - 1]) if b > a else None if memory is None else memory.xid)
        return [tuple(found[at]) for at in range(len(self.reading.devices))], codes

    def _pods(self, shown: Shown, own: OwnValues) -> list[tuple[PodTrack, ...]]:
        containers: dict[tuple[int, int], str] = {}
        virtual: set[tuple[int, int]] = set()
        for line, device, pod in zip(
            self.reading.lines, self.reading.device.tolist(), self.reading.pod.tolist(), strict=True
        ):
            containers[device, pod] = min(containers.get((device, pod), line.container), line.container)
            if line.virtual:
                virtual.add((device, pod))
        theirs: defaultdict[tuple[int, int], dict[Quantity, Samples]] = defaultdict(dict)
        for (device, pod, quantity), samples in own.samples.items():
            theirs[device, pod][quantity] = samples
        tracks: list[list[PodTrack]] = [[] for _ in self.reading.devices]
        for device, pod in sorted(shown):
            values = MappingProxyType(theirs.get((device, pod), {}))
            pair = device, pod
            tracks[device].append(
                PodTrack(self.reading.pods[pod], containers[pair], shown[pair], pair in virtual, values)
            )
        return [tuple(each) for each in tracks]

    def _names(self) -> tuple[list[str], list[str]]:
        """Node and model of each device: the most trusted name, of equals the one seen last."""
        best: dict[int, tuple[int, float, str]] = {}
        models: dict[int, tuple[float, str]] = {}
        for line, one, device in zip(
            self.reading.lines, self.reading.series, self.reading.device.tolist(), strict=True
        ):
            last = float(one.times[-1])
            node = (line.node[0], last, line.node[1])
            if device not in best or node > best[device]:
                best[device] = node
            model = (last, line.model)
            if line.model and (device not in models or model > models[device]):
                models[device] = model
        count = range(len(self.reading.devices))
        return [best[at][2] for at in count], [models.get(at, (0.0, ""))[1] for at in count]

    def _seen(self) -> list[float]:
        seen = [-np.inf] * len(self.reading.devices)
        for one, device in zip(self.reading.series, self.reading.device.tolist(), strict=True):
            seen[device] = max(seen[device], float(one.times[-1]))
        return seen

    def _count(self, reason: str, rows: Grouped, bad: NDArray[np.bool_]) -> None:
        count = int(np.count_nonzero(bad))
        if count:
            row = int(np.argmax(bad))
            device = self.reading.devices[int(rows.device[row])]
            moment = (int(rows.milliseconds[row]) + self.columns.epoch) / 1000.0
            quantity = Quantity(int(rows.quantity[row])).name.lower()
            self.tally.add(
                reason, f"{quantity} of {device.uuid} at {shown_moment(moment)}: {float(rows.value[row])!r}", count
            )


def _looked_up(rows: Grouped, others: Grouped, moments: int) -> tuple[Floats, NDArray[np.bool_]]:
    """The value of ``others`` at the device and moment of each of ``rows``, 0 and false where there is none."""
    key, known = rows.device * moments + rows.milliseconds, others.device * moments + others.milliseconds
    if not known.size:
        return np.zeros(key.size), np.zeros(key.size, dtype=bool)
    place = np.minimum(np.searchsorted(known, key), known.size - 1)
    found = known[place] == key
    return np.where(found, others.value[place], 0.0), found
