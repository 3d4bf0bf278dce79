"""All samples of a chunk as flat columns: cleaned, in our units, one value per quantity, device and moment.

A chunk has many short series or few long ones; either way every step here runs once over all samples, never
once per series.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from advisor.domain.units import shown_moment
from advisor.telemetry.dcgm.lines import Device, Line, Pod
from advisor.telemetry.dcgm.names import COUNTERS, Quantity
from advisor.telemetry.dcgm.scales import Evidence, Pool
from advisor.telemetry.prometheus.samples import Series
from advisor.telemetry.tally import RejectionTally

__all__ = [
    "MOST_WATTS",
    "Columns",
    "Grouped",
    "Reading",
    "cleaned",
    "columns_of",
    "evidence_in",
    "grouped",
    "moments_of",
    "scaled",
]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

MOST_WATTS = 5_000.0
"""No card draws more; a counter that says so has jumped."""

# 2^63 as Prometheus keeps it: near there its numbers are 1,024 apart, so the four blank values fall together.
_INT64_BLANK = 2.0**63 - 2.0**11
_FP64_BLANK = 140_737_488_355_328.0
_INT32_BLANK = 2_147_483_632.0
_BLANK_CODES = 4
# A profiling counter may pass 1 by its own noise; what lies within is taken as 1.
_RATIO_NOISE = 0.01
_LARGEST_MIB = 2.0**20
_MOST_BYTES = 2.0**42
_MOST_CODE = 10_000.0
_MOST = {
    Quantity.SM_ACTIVE: 1.0 + _RATIO_NOISE,
    Quantity.ENGINE_ACTIVE: 1.0 + _RATIO_NOISE,
    Quantity.UTILISATION: 1.0 + _RATIO_NOISE,
    Quantity.MEMORY_USED: _MOST_BYTES,
    Quantity.MEMORY_FREE: _MOST_BYTES,
    Quantity.MEMORY_RESERVED: _MOST_BYTES,
    Quantity.MEMORY_TOTAL: _MOST_BYTES,
    Quantity.POWER: MOST_WATTS,
    Quantity.ENERGY: np.inf,
    Quantity.XID: _MOST_CODE,
}
_SHARES = frozenset({Quantity.SM_ACTIVE, Quantity.ENGINE_ACTIVE, Quantity.UTILISATION})
_MEMORY = frozenset(
    {Quantity.MEMORY_USED, Quantity.MEMORY_FREE, Quantity.MEMORY_RESERVED, Quantity.MEMORY_TOTAL},
)
# An H100 at rest draws 60 W, which is 60,000 mJ/s; the largest card 1,400 W, which is 1,400 J/s.
_FASTEST_JOULES = 3_500.0


@dataclass(frozen=True, slots=True)
class Reading:
    """The lines of a chunk with their series, and the devices, pods and pools they speak of, each in order.

    ``device``, ``pod`` (-1: none), ``pool`` and ``quantity`` are one index a line.
    """

    lines: Sequence[Line]
    series: Sequence[Series]
    devices: Sequence[Device]
    pods: Sequence[Pod]
    pools: Sequence[Pool]
    device: Integers
    pod: Integers
    pool: Integers
    quantity: Integers


@dataclass(frozen=True, slots=True)
class Columns:
    """One row a sample: its ``line``, its time in ``milliseconds`` since ``epoch`` (ms) and its ``value``."""

    epoch: int
    line: Integers
    milliseconds: Integers
    value: Floats

    def only(self, rows: Flags) -> Columns:
        """Some of the rows."""
        return Columns(self.epoch, self.line[rows], self.milliseconds[rows], self.value[rows])

    def seconds(self, milliseconds: Integers) -> Floats:
        """Unix seconds."""
        return (milliseconds + self.epoch) / 1000.0


def columns_of(reading: Reading) -> Columns:
    """The samples of every line, one after another."""
    if not reading.series:
        nothing = np.zeros(0, dtype=np.int64)
        return Columns(0, nothing, nothing, np.zeros(0))
    lengths = np.array([one.times.size for one in reading.series], dtype=np.int64)
    times = np.concatenate([one.times for one in reading.series])
    milliseconds = np.rint(times * 1000.0).astype(np.int64)
    epoch = int(milliseconds.min()) if milliseconds.size else 0
    line = np.repeat(np.arange(lengths.size, dtype=np.int64), lengths)
    value = np.concatenate([one.values for one in reading.series]).astype(np.float64, copy=False)
    return Columns(epoch, line, milliseconds - epoch, value)


def cleaned(columns: Columns, reading: Reading, tally: RejectionTally) -> Columns:
    """Without what is no number, what means "no value", and what is below nothing; each counted.

    Blank values of 32 bits are ordinary on counters: energy in mJ passes them after an hour and a half.
    """
    value = columns.value
    counter = np.isin(reading.quantity, [int(quantity) for quantity in COUNTERS])[columns.line]
    finite = np.isfinite(value)
    blank = value >= _INT64_BLANK
    blank |= (value >= _FP64_BLANK) & (value < _FP64_BLANK + _BLANK_CODES)
    blank |= (value >= _INT32_BLANK) & (value < _INT32_BLANK + _BLANK_CODES) & ~counter
    below = value < 0.0
    bad = ~finite | blank | below
    if not bad.any():
        return columns
    _count(tally, "not_a_number", np.isnan(value), columns, reading)
    _count(tally, "infinite", np.isinf(value), columns, reading)
    _count(tally, "blank", blank & finite, columns, reading)
    _count(tally, "out_of_range", below & finite, columns, reading)
    return columns.only(~bad)


def scaled(columns: Columns, reading: Reading, factors: Mapping[Pool, float | None], tally: RejectionTally) -> Columns:
    """In shares, bytes, watts, joules and codes; what no device can show is counted and left out.

    A pool whose unit is open (None) keeps only lines that are 0 throughout, which is 0 in any unit.
    """
    by_pool = np.array([factors[pool] or np.nan for pool in reading.pools] or [1.0])
    factor = by_pool[reading.pool]
    if np.isnan(factor).any():
        nonzero = np.zeros(len(reading.lines), dtype=bool)
        nonzero[columns.line[columns.value != 0.0]] = True
        withheld = (np.isnan(factor) & nonzero)[columns.line]
        _count(tally, "scale_undecided", withheld, columns, reading)
        columns = columns.only(~withheld)
        factor = np.nan_to_num(factor, nan=1.0)
    value = columns.value * factor[columns.line]
    most = np.array([_MOST[Quantity(quantity)] for quantity in range(len(Quantity))])[reading.quantity]
    above = value > most[columns.line]
    if above.any():
        _count(tally, "out_of_range", above, columns, reading)
        columns, value = columns.only(~above), value[~above]
    share = np.isin(reading.quantity, [int(quantity) for quantity in _SHARES])
    value = np.where(share[columns.line], np.minimum(value, 1.0), value)
    return Columns(columns.epoch, columns.line, columns.milliseconds, value)


def _count(tally: RejectionTally, reason: str, rows: Flags, columns: Columns, reading: Reading) -> None:
    count = int(np.count_nonzero(rows))
    if count:
        first = int(np.argmax(rows))
        line = reading.lines[int(columns.line[first])]
        moment = (int(columns.milliseconds[first]) + columns.epoch) / 1000.0
        shown = f"{line.pool.name} of {line.device.uuid} at {shown_moment(moment)}: {float(columns.value[first])!r}"
        tally.add(reason, shown, count)


def evidence_in(columns: Columns, reading: Reading) -> dict[Pool, Evidence]:
    """What the values of each pool say of its unit; ``columns`` are clean and still as they were stored."""
    kinds = [_evidence_kind(Quantity(quantity)) for quantity in range(len(Quantity))]
    kind = np.array(kinds, dtype=np.int64)[reading.quantity][columns.line]
    value = columns.value
    larger = (kind == 0) & (value > 1.0 + _RATIO_NOISE) & (value <= 100.0)
    smaller = (kind == 0) & (value > 0.0) & (value < 1.0)
    larger |= (kind == 1) & (value >= _LARGEST_MIB)
    smaller |= (kind == 1) & (value > 0.0) & (value < _LARGEST_MIB)
    watts = _growth(columns)
    larger |= (kind == 2) & (watts > _FASTEST_JOULES)
    smaller |= (kind == 2) & (watts > 0.0) & (watts <= _FASTEST_JOULES)
    pool, pools = reading.pool[columns.line], len(reading.pools)
    most = np.bincount(pool[larger], minlength=pools)
    least = np.bincount(pool[smaller], minlength=pools)
    return {each: Evidence(int(most[at]), int(least[at])) for at, each in enumerate(reading.pools)}


def _evidence_kind(quantity: Quantity) -> int:
    if quantity in _SHARES:
        return 0
    if quantity in _MEMORY:
        return 1
    return 2 if quantity is Quantity.ENERGY else 3


def _growth(columns: Columns) -> Floats:
    """By how much each value grew a second since the one before of its line; 0 where there is none."""
    growth = np.zeros(columns.value.size)
    if columns.value.size > 1:
        seconds = np.diff(columns.milliseconds) / 1000.0
        same = (np.diff(columns.line) == 0) & (seconds > 0.0)
        growth[1:] = np.where(same, np.diff(columns.value) / np.where(same, seconds, 1.0), 0.0)
    return growth


@dataclass(frozen=True, slots=True)
class Grouped:
    """One row per quantity, device and moment, in that order.

    ``whole`` says that a line without a pod was among those the ``value`` was made from.
    """

    quantity: Integers
    device: Integers
    milliseconds: Integers
    value: Floats
    whole: Flags

    def of(self, quantity: Quantity) -> Grouped:
        """The rows of one quantity."""
        low, high = np.searchsorted(self.quantity, [int(quantity), int(quantity) + 1])
        rows = slice(int(low), int(high))
        return Grouped(
            self.quantity[rows], self.device[rows], self.milliseconds[rows], self.value[rows], self.whole[rows]
        )


def moments_of(milliseconds: Integers) -> int:
    """By what an index is multiplied so that index and moment make one number."""
    return int(milliseconds.max()) + 1 if milliseconds.size else 1


def grouped(columns: Columns, reading: Reading) -> Grouped:
    """One value per quantity, device and moment: a line without a pod if there is one, else the largest.

    Several lines are several scrapes, exporters or pods that all show one device: never a sum.
    """
    moments = moments_of(columns.milliseconds)
    by_line = (reading.quantity * len(reading.devices) + reading.device) * moments
    key = by_line[columns.line] + columns.milliseconds
    value, whole = columns.value, (reading.pod < 0)[columns.line]
    if not np.all(key[1:] > key[:-1]):
        order = np.argsort(key, kind="stable")
        key, value, whole = key[order], value[order], whole[order]
        first = np.flatnonzero(np.concatenate([[True], key[1:] != key[:-1]]))
        if first.size < key.size:
            largest = np.maximum.reduceat(value, first)
            unlabelled = np.maximum.reduceat(np.where(whole, value, -1.0), first)
            key, whole = key[first], unlabelled >= 0.0
            value = np.where(whole, unlabelled, largest)
    place, at = np.divmod(key, moments)
    quantity, device = np.divmod(place, max(len(reading.devices), 1))
    return Grouped(quantity, device, at, value, whole)
