"""Which pods were shown on a device and when, and which of their values are really theirs.

With virtual GPUs an exporter before 4.8.2 copies the device's value to every pod; a later one gives utilisation
and memory by process beside a line of the whole device; and where it may not see processes it gives 0 to
every pod. They are told apart by their values, per device and quantity:

- pods that differ, or that add up to the device's line, show that the lines are per process; from that moment
  on they are believed;
- all at the device's own value are copies, and all at 0 on a busy device are not seen: neither is ever believed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from advisor.telemetry.dcgm.columns import Columns, Grouped, Reading, moments_of
from advisor.telemetry.dcgm.names import Quantity
from advisor.telemetry.dcgm.tracks import Samples

__all__ = ["OwnValues", "own_values", "shown_times"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

_PER_PROCESS = (Quantity.UTILISATION, Quantity.MEMORY_USED)
# By how much two values must differ to be two: half a percent, half a MiB.
_APART = {Quantity.UTILISATION: 0.005, Quantity.MEMORY_USED: 524_288.0}
# From where on a device is at work, so that all its pods at 0 were not seen: 5 %, 1 GiB.
_AT_WORK = {Quantity.UTILISATION: 0.05, Quantity.MEMORY_USED: 1_073_741_824.0}
_SUM_TOLERANCE = 0.05


def shown_times(reading: Reading) -> dict[tuple[int, int], Floats]:
    """The moments (Unix seconds, ascending, none twice) at which each (device, pod) was shown, by index."""
    found: defaultdict[tuple[int, int], list[Floats]] = defaultdict(list)
    for at in np.flatnonzero(reading.pod >= 0).tolist():
        times = reading.series[at].times
        known = found[int(reading.device[at]), int(reading.pod[at])]
        # The metrics of one scrape share their times, so mostly the first of them says it all.
        if times.size and not any(_same(times, other) for other in known):
            known.append(times)
    return {pair: _milliseconds(arrays) for pair, arrays in found.items() if arrays}


def _same(one: Floats, other: Floats) -> bool:
    return one is other or (one.size == other.size and bool((one == other).all()))


def _milliseconds(arrays: list[Floats]) -> Floats:
    times = arrays[0] if len(arrays) == 1 else np.unique(np.concatenate(arrays))
    return np.rint(times * 1000.0) / 1000.0


@dataclass(frozen=True, slots=True)
class OwnValues:
    """``samples`` by index of (device, pod, quantity); ``per_process``: the (device, quantity) believed from now on."""

    samples: Mapping[tuple[int, int, Quantity], Samples]
    per_process: frozenset[tuple[int, Quantity]]


def own_values(
    columns: Columns, reading: Reading, devices: Grouped, believed: frozenset[tuple[int, Quantity]]
) -> OwnValues:
    """The per-pod values that are believed; ``believed`` are the (device, quantity) that already were before."""
    samples: dict[tuple[int, int, Quantity], Samples] = {}
    now = set(believed)
    for quantity in _PER_PROCESS:
        rows = _rows(columns, reading, quantity, believed)
        if rows.device.size:
            valid, since = _judged(rows, devices.of(quantity), quantity, {d for d, q in believed if q is quantity})
            now |= {(device, quantity) for device in since}
            for place, own in _by_pod(columns, rows, valid).items():
                samples[(*place, quantity)] = own
    return OwnValues(samples, frozenset(now))


@dataclass(frozen=True, slots=True)
class _Rows:
    """Per-pod values of one quantity, ordered by device, moment and pod; one a pod."""

    device: Integers
    milliseconds: Integers
    pod: Integers
    value: Floats

    @property
    def firsts(self) -> Integers:
        """Where each device and moment begins."""
        new = (np.diff(self.device) != 0) | (np.diff(self.milliseconds) != 0)
        return np.flatnonzero(np.concatenate([[True], new]))


def _rows(columns: Columns, reading: Reading, quantity: Quantity, believed: frozenset[tuple[int, Quantity]]) -> _Rows:
    labelled = (reading.quantity == quantity) & (reading.pod >= 0)
    pairs = {(int(d), int(p)) for d, p in zip(reading.device[labelled], reading.pod[labelled], strict=True)}
    counts = np.bincount([device for device, _ in pairs], minlength=len(reading.devices))
    worth = counts > 1
    worth[[device for device, which in believed if which is quantity]] = True
    taken = (labelled & worth[reading.device])[columns.line]
    line, at, value = columns.line[taken], columns.milliseconds[taken], columns.value[taken]
    device, pod = reading.device[line], reading.pod[line]
    order = np.lexsort((value, pod, at, device))
    device, at, pod, value = device[order], at[order], pod[order], value[order]
    # Replicas of one pod and doubled scrapes show the same: the largest, which stands last.
    last = np.ones(device.size, dtype=bool)
    last[:-1] = (np.diff(device) != 0) | (np.diff(at) != 0) | (np.diff(pod) != 0)
    return _Rows(device[last], at[last], pod[last], value[last])


def _judged(rows: _Rows, whole: Grouped, quantity: Quantity, believed: set[int]) -> tuple[Flags, set[int]]:
    """Which rows are believed, and the devices that are believed at the end."""
    firsts = rows.firsts
    counts = np.diff(np.append(firsts, rows.device.size))
    device, at = rows.device[firsts], rows.milliseconds[firsts]
    least, most = np.minimum.reduceat(rows.value, firsts), np.maximum.reduceat(rows.value, firsts)
    total = np.add.reduceat(rows.value, firsts)
    moments = max(moments_of(at), moments_of(whole.milliseconds))
    place = np.searchsorted(whole.device * moments + whole.milliseconds, device * moments + at)
    full, has_line = whole.value[place], whole.whole[place]
    apart = _APART[quantity]
    differ = most - least > apart
    adds_up = has_line & (most > apart) & (np.abs(total - full) <= _SUM_TOLERANCE * full + apart)
    evident = (counts > 1) & (differ | adds_up)
    since = np.full(int(device.max()) + 1, np.iinfo(np.int64).max)
    np.minimum.at(since, device[evident], at[evident])
    since[[each for each in believed if each < since.size]] = 0
    copies = (counts > 1) & ~differ & (np.abs(most - full) <= apart) & (most > apart)
    unseen = (most == 0.0) & (full > _AT_WORK[quantity])
    valid = (at >= since[device]) & ~copies & ~unseen
    return np.repeat(valid, counts), believed | set(np.unique(device[evident]).tolist())


def _by_pod(columns: Columns, rows: _Rows, valid: Flags) -> dict[tuple[int, int], Samples]:
    order = np.lexsort((rows.milliseconds[valid], rows.pod[valid], rows.device[valid]))
    device, pod = rows.device[valid][order], rows.pod[valid][order]
    times, values = columns.seconds(rows.milliseconds[valid][order]), rows.value[valid][order]
    if not device.size:
        return {}
    edges = np.flatnonzero((np.diff(device) != 0) | (np.diff(pod) != 0)) + 1
    starts = [0, *edges.tolist()]
    ends = [*edges.tolist(), device.size]
    return {(int(device[a]), int(pod[a])): Samples(times[a:b], values[a:b]) for a, b in zip(starts, ends, strict=True)}
