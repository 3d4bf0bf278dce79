"""One chunk of series as one value per device and moment."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType

import numpy as np

from advisor.telemetry.dcgm.assembly import Assembly
from advisor.telemetry.dcgm.columns import Reading, cleaned, columns_of, evidence_in, grouped, scaled
from advisor.telemetry.dcgm.holdings import own_values, shown_times
from advisor.telemetry.dcgm.lines import Device, Line, line_of, renaming_targets
from advisor.telemetry.dcgm.names import QUANTITIES, Quantity
from advisor.telemetry.dcgm.scales import Pins, Pool, Scale
from advisor.telemetry.dcgm.tracks import Carried, Chunk, DeviceMemory
from advisor.telemetry.prometheus.samples import Series
from advisor.telemetry.tally import RejectionTally

__all__ = ["normalise"]

_NOTHING_CARRIED = Carried()
_NOTHING_PINNED = Pins()
_FORGOTTEN_AFTER_SECONDS = 86_400.0


def normalise(
    series: Iterable[Series],
    carried: Carried = _NOTHING_CARRIED,
    pins: Pins = _NOTHING_PINNED,
    nodes: Mapping[str, str] = MappingProxyType({}),
) -> Chunk:
    """Reduce all series of one chunk of time, in any order, to one value per device, quantity and moment.

    ``series`` may hold any metrics; those that are not in the table of names are passed over. ``carried`` is that of
    the chunk before, whose times must all be earlier. ``nodes`` are node names by exporter pod or by address (of
    ``instance``), for exporters that do not name their node. What cannot be used is counted under one of these reasons:

    ================================  ======================================================================
    ``no_device``                     the line names no GPU
    ``not_a_number``, ``infinite``    as stored
    ``blank``                         one of DCGM's marks for "no value"
    ``out_of_range``                  no device can show that
    ``scale_undecided``               the unit is open (see :mod:`.scales`)
    ``utilisation_under_mig``         it is 0 whatever the instances do
    ``counter_jumped``                energy grew by more than a card can draw, or fell and was not reset
    ================================  ======================================================================
    """
    tally = RejectionTally()
    wanted = [one for one in series if one.labels.get("__name__") in QUANTITIES]
    renaming = carried.renaming | renaming_targets(wanted)
    lines, kept = _lines(wanted, carried, renaming, nodes, tally)
    reading = _reading(lines, kept)
    columns = cleaned(columns_of(reading), reading, tally)
    book = carried.scales.learnt(evidence_in(columns, reading))
    scales = {pool: book.scale(pool, pins) for pool in reading.pools}
    columns = scaled(columns, reading, _factors(scales), tally)
    devices = grouped(columns, reading)
    remembered = [carried.devices.get(device) for device in reading.devices]
    own = own_values(columns, reading, devices, _believed(remembered))
    assembly = Assembly(reading, columns, devices, remembered, tally)
    tracks, memories = assembly.tracks(shown_times(reading), own)
    return Chunk(
        tracks=tracks,
        scales=MappingProxyType(scales),
        rejections=tally.rejections(),
        carried=Carried(book, renaming, _remembered(carried.devices, memories)),
    )


def _lines(
    wanted: Sequence[Series],
    carried: Carried,
    renaming: frozenset[tuple[str, str]],
    nodes: Mapping[str, str],
    tally: RejectionTally,
) -> tuple[list[Line], list[Series]]:
    lines, kept = [], []
    for one in wanted:
        line = line_of(one.labels, renaming, nodes)
        if line is None:
            tally.add("no_device", f"{one.labels['__name__']} of gpu {one.labels.get('gpu', '?')}", one.times.size)
        elif one.times.size:
            lines.append(line)
            kept.append(one)
    sliced = {line.device.uuid for line in lines if line.device.instance is not None}
    sliced |= {device.uuid for device in carried.devices if device.instance is not None}
    if not sliced:
        return lines, kept
    rows = []
    for line, one in zip(lines, kept, strict=True):
        if line.quantity is Quantity.UTILISATION and line.device.uuid in sliced:
            tally.add("utilisation_under_mig", f"{line.pool.name} of {line.device.uuid}", one.times.size)
        else:
            rows.append((line, one))
    return [line for line, _ in rows], [one for _, one in rows]


def _reading(lines: Sequence[Line], series: Sequence[Series]) -> Reading:
    """The lines by device, so that most columns come out in order; the rest of the order is the labels' own."""
    devices = sorted({line.device for line in lines}, key=lambda device: (device.uuid, device.instance or ""))
    pods = sorted({line.pod for line in lines if line.pod}, key=lambda pod: (pod.namespace, pod.name, pod.uid or ""))
    pools = sorted({line.pool for line in lines})
    by_device = {device: at for at, device in enumerate(devices)}
    by_pod = {pod: at for at, pod in enumerate(pods)}
    by_pool = {pool: at for at, pool in enumerate(pools)}
    order = sorted(range(len(lines)), key=lambda at: (lines[at].quantity, by_device[lines[at].device]))
    ordered = [lines[at] for at in order]
    return Reading(
        lines=ordered,
        series=[series[at] for at in order],
        devices=devices,
        pods=pods,
        pools=pools,
        device=np.array([by_device[line.device] for line in ordered], dtype=np.int64),
        pod=np.array([-1 if line.pod is None else by_pod[line.pod] for line in ordered], dtype=np.int64),
        pool=np.array([by_pool[line.pool] for line in ordered], dtype=np.int64),
        quantity=np.array([int(line.quantity) for line in ordered], dtype=np.int64),
    )


def _factors(scales: Mapping[Pool, Scale]) -> dict[Pool, float | None]:
    return {pool: None if scale.unit is None else scale.unit.factor for pool, scale in scales.items()}


def _believed(remembered: Sequence[DeviceMemory | None]) -> frozenset[tuple[int, Quantity]]:
    return frozenset(
        (at, quantity) for at, memory in enumerate(remembered) if memory for quantity in memory.per_process
    )


def _remembered(
    before: Mapping[Device, DeviceMemory], now: Mapping[Device, DeviceMemory]
) -> Mapping[Device, DeviceMemory]:
    """Both, the newer winning, without devices that nobody has seen for a day: nodes come and go for ever."""
    both = {**before, **now}
    newest = max((memory.seen for memory in both.values()), default=0.0)
    kept = {device: memory for device, memory in both.items() if newest - memory.seen <= _FORGOTTEN_AFTER_SECONDS}
    return MappingProxyType(kept)
