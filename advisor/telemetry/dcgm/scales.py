"""Which unit a metric is in: decided, remembered from chunk to chunk, and able to say how it was decided.

A name does not fix its unit. Version 4.9 of the exporter divides percentages by a hundred and counts bytes and joules
where it counted MiB and millijoules, DCGM 4.6 has the new name with the old numbers, and some relabel the
old name over new numbers. A *pool* is one metric name of one generation of the exporter; all its devices count in
the same unit, so what one busy device shows settles it for the idle ones, whose 0 and 1 mean nothing by themselves.

What is claimed, the first that says anything: the user's pin, the exporter's version, the name of the label with the
driver's version (4.9 renamed it), the metric's name. Then the values: a claim, other than a pin, is overturned where
more values are impossible under it than under the other unit:

=====================  ===================================  ==========================================
unit claimed           impossible under it                  impossible under the other
=====================  ===================================  ==========================================
ratio, for percent     above 1.01, up to 100                strictly between 0 and 1 (percentages of
                                                            utilisation are whole numbers)
bytes, for MiB         below 1 MiB and not 0                from 2^20 MiB = 1 TiB
joules, for mJ         growing at over 3,500 W              growing at over 0 and up to 3,500 mJ/s
=====================  ===================================  ==========================================

Percent is never overturned: values that all are at most 1 prove nothing against other evidence. Where they have
fractions it is said as a doubt, and a pin is the remedy. One case stays open: a ``_RATIO`` name without version and
label, of which only 0 and 1 were seen, may be either. A series that is not 0 throughout is then withheld until
something settles it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import NamedTuple

from advisor.errors import Refused
from advisor.settings import DcgmSettings
from advisor.telemetry.dcgm.names import QUANTITIES, Quantity

__all__ = ["DecidedBy", "Evidence", "Generation", "Pins", "Pool", "Scale", "ScaleBook", "Unit"]


class Unit(StrEnum):
    """What a stored number counts."""

    RATIO = "ratio"
    PERCENT = "percent"
    BYTES = "bytes"
    MIB = "mib"
    JOULES = "joules"
    MILLIJOULES = "millijoules"
    PLAIN = "plain"

    @property
    def factor(self) -> float:
        """What a stored number is multiplied by to be a share, bytes, joules, watts or a code."""
        return _FACTORS[self]


_FACTORS = {
    Unit.RATIO: 1.0,
    Unit.PERCENT: 0.01,
    Unit.BYTES: 1.0,
    Unit.MIB: 1_048_576.0,
    Unit.JOULES: 1.0,
    Unit.MILLIJOULES: 0.001,
    Unit.PLAIN: 1.0,
}


class Generation(StrEnum):
    """Which side of version 4.9 an exporter is on, as its driver label says."""

    OLD = "old"
    NEW = "new"
    UNSAID = "unsaid"


class DecidedBy(StrEnum):
    """What settled a unit."""

    PIN = "pinned in the settings"
    VERSION = "the exporter's version"
    LABEL = "the name of the driver label"
    NAME = "the metric's name"
    VALUES = "values that are impossible otherwise"
    NOTHING = "nothing yet"


class Pool(NamedTuple):
    """One metric name of one generation: all its devices count in the same unit."""

    name: str
    generation: Generation


class Evidence(NamedTuple):
    """How many values speak for the larger numbers (percent, bytes, mJ) and for the smaller (ratio, MiB, J)."""

    larger: int = 0
    smaller: int = 0

    def plus(self, other: Evidence) -> Evidence:
        """Both together."""
        return Evidence(self.larger + other.larger, self.smaller + other.smaller)


@dataclass(frozen=True, slots=True)
class Scale:
    """The unit of a pool (None: open), what decided it, and what speaks against it."""

    unit: Unit | None
    by: DecidedBy
    doubt: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pins:
    """What the user knows better; None leaves it to the evidence.

    ``exporter_version`` such as "4.8.2" stands for all exporters.
    """

    utilisation: Unit | None = None
    profiling: Unit | None = None
    memory: Unit | None = None
    energy: Unit | None = None
    exporter_version: str | None = None

    def __post_init__(self) -> None:
        """Check that each pin is a unit of its quantity.

        Raises:
            Refused: naming the pin, its value, the limit and the remedy.
        """
        for name, units in _CHOICES.items():
            pin = getattr(self, name)
            if pin is not None and pin not in units:
                raise Refused(name, str(pin), f"it is {' or '.join(units)}", "Correct the value.")
        if self.exporter_version is not None and _release(self.exporter_version) is None:
            raise Refused("exporter_version", self.exporter_version, "it is like 4.8.2", "Correct the value.")

    @classmethod
    def of(cls, settings: DcgmSettings) -> Pins:
        """What the settings say.

        Raises:
            Refused: the version of the exporter is none.
        """
        units = {name: None if (given := getattr(settings, name)) is None else Unit(given) for name in _CHOICES}
        return cls(exporter_version=settings.exporter_version, **units)

    @property
    def generation(self) -> Generation:
        """The generation of ``exporter_version``."""
        release = None if self.exporter_version is None else _release(self.exporter_version)
        if release is None:
            return Generation.UNSAID
        return Generation.NEW if release >= (4, 9) else Generation.OLD


_CHOICES = {
    "utilisation": (Unit.RATIO, Unit.PERCENT),
    "profiling": (Unit.RATIO, Unit.PERCENT),
    "memory": (Unit.BYTES, Unit.MIB),
    "energy": (Unit.JOULES, Unit.MILLIJOULES),
}


def _release(version: str) -> tuple[int, int] | None:
    """Major and minor of a version; its image tag may add more ("4.5.0-4.8.2" is DCGM, then exporter)."""
    parts = version.rsplit("-ubuntu", 1)[0].rsplit("-distroless", 1)[0].rpartition("-")[2].lstrip("v").split(".")
    if len(parts) < 2 or not (parts[0].isdecimal() and parts[1].isdecimal()):
        return None
    return int(parts[0]), int(parts[1])


_KINDS = {
    Quantity.SM_ACTIVE: "profiling",
    Quantity.ENGINE_ACTIVE: "profiling",
    Quantity.UTILISATION: "utilisation",
    Quantity.MEMORY_USED: "memory",
    Quantity.MEMORY_FREE: "memory",
    Quantity.MEMORY_RESERVED: "memory",
    Quantity.MEMORY_TOTAL: "memory",
    Quantity.ENERGY: "energy",
}
_OLD_UNITS = {"profiling": Unit.RATIO, "utilisation": Unit.PERCENT, "memory": Unit.MIB, "energy": Unit.MILLIJOULES}
_NEW_UNITS = {"profiling": Unit.RATIO, "utilisation": Unit.RATIO, "memory": Unit.BYTES, "energy": Unit.JOULES}
_UNITS = {Generation.OLD: _OLD_UNITS, Generation.NEW: _NEW_UNITS}
_NEW_NAME_PARTS = ("_RATIO", "_BYTES", "_JOULES")
_LARGER = {Unit.RATIO: Unit.PERCENT, Unit.MIB: Unit.BYTES, Unit.JOULES: Unit.MILLIJOULES}
_SMALLER = {Unit.BYTES: Unit.MIB, Unit.MILLIJOULES: Unit.JOULES}
_FRACTIONS = "values have fractions below 1, as ratios have; pin the unit if they are"


@dataclass(frozen=True, slots=True)
class ScaleBook:
    """What was seen of every pool so far. Carry it from chunk to chunk: evidence adds up, in any order."""

    evidence: Mapping[Pool, Evidence] = field(default_factory=lambda: MappingProxyType({}))

    def learnt(self, seen: Mapping[Pool, Evidence]) -> ScaleBook:
        """This book with ``seen`` added."""
        added = dict(self.evidence)
        for pool, evidence in seen.items():
            added[pool] = added.get(pool, Evidence()).plus(evidence)
        return ScaleBook(MappingProxyType(added))

    def scale(self, pool: Pool, pins: Pins) -> Scale:
        """The unit of ``pool``, as the head of this module says."""
        kind = _KINDS.get(QUANTITIES[pool.name])
        if kind is None:
            return Scale(Unit.PLAIN, DecidedBy.NAME)
        pin: Unit | None = getattr(pins, kind)
        if pin is not None:
            return Scale(pin, DecidedBy.PIN)
        unit, by = _claim(kind, pool, pins)
        seen = self.evidence.get(pool, Evidence())
        larger, smaller = _LARGER.get(unit), _SMALLER.get(unit)
        if larger is not None and seen.larger > seen.smaller:
            return Scale(larger, DecidedBy.VALUES)
        if smaller is not None and seen.smaller > seen.larger:
            return Scale(smaller, DecidedBy.VALUES)
        if unit is Unit.PERCENT and seen.smaller:
            return Scale(unit, by, _FRACTIONS)
        if kind == "utilisation" and unit is Unit.RATIO and by is DecidedBy.NAME and not seen.smaller:
            return Scale(None, DecidedBy.NOTHING, "only 0 and 1 were seen, which either unit may mean")
        return Scale(unit, by)


def _claim(kind: str, pool: Pool, pins: Pins) -> tuple[Unit, DecidedBy]:
    if pins.generation is not Generation.UNSAID:
        return _UNITS[pins.generation][kind], DecidedBy.VERSION
    if pool.generation is not Generation.UNSAID:
        return _UNITS[pool.generation][kind], DecidedBy.LABEL
    units = _NEW_UNITS if any(part in pool.name for part in _NEW_NAME_PARTS) else _OLD_UNITS
    return units[kind], DecidedBy.NAME
