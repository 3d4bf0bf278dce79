"""Cells of a row that only describe its job: one that cannot be read is unknown, and counted, and costs no job."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from advisor.domain.units import counted
from advisor.domain.usage import ComputeSource, GpuUsage
from advisor.telemetry.mapping import TableMapping
from advisor.telemetry.times import TimeReader, number

__all__ = ["NO_TIME", "DetailReader"]

NO_TIME = frozenset({"", "nan", "nat", "none", "null", "unknown", "n/a"})
"""Words, in lower case, for a moment or a number that is not known."""

_NO_LIMIT = frozenset({"unlimited", "infinite", "infinity", "inf", "none", "no limit"})
# No cluster has more; a number beyond it is a slip that would drown every sum it enters.
_MOST_COUNT = 1e6
# Whole numbers up to here are exact as the floats that cells are read as.
_MOST_PRIORITY = 2.0**53
_MOST_SECONDS = 1e10
_MOST_BYTES = 1e15
_FEW_PERCENT = 1.0


class _Odd(Exception):
    """A cell that is not taken: why."""


class DetailReader:
    """Reads what only describes a job; it remembers what it did not take, and why."""

    def __init__(self, mapping: TableMapping, times: TimeReader, now: datetime) -> None:
        """Read by ``mapping``; a moment after ``now`` is none."""
        self._mapping = mapping
        self._times = times
        self._now = now
        self._odd: dict[tuple[str, str], tuple[int, str]] = {}
        self._most_used: float | None = None

    def read(self, at: int, row: Mapping[str, str], told: Mapping[str, Any]) -> dict[str, Any]:
        """Fields of the job of row number ``at``, whose times are ``told`` already; None where nothing is known."""

        def cell(ours: str, meaning: Callable[[str], Any]) -> Any:  # noqa: ANN401 - whatever the field holds
            text = row.get(ours, "")
            if text.lower() in NO_TIME:
                return None
            try:
                return meaning(text)
            except (ValueError, OverflowError):
                self._count(ours, "it cannot be read", at, text)
            except _Odd as odd:
                self._count(ours, str(odd), at, text)
            return None

        return {
            "cpus": cell("cpus", lambda text: _within(text, 0.0, _MOST_COUNT)),
            "nodes": cell("nodes", lambda text: int(_within(text, 0.0, _MOST_COUNT))),
            "priority": cell("priority", lambda text: _whole(text, -_MOST_PRIORITY, _MOST_PRIORITY)),
            "restarts": cell("restarts", lambda text: _whole(text, 0.0, _MOST_COUNT)),
            "created_by": row.get("created_by") or None,
            "time_limit_seconds": cell("time_limit", self._time_limit),
            "scheduled": cell("scheduled", lambda text: self._scheduled(text, told)),
            "usage": _usage(cell("gpu_utilisation", self._utilisation), cell("gpu_memory_peak", self._memory)),
        }

    def notes(self) -> tuple[str, ...]:
        """What was assumed and what was not taken, as sentences."""
        mapping, said = self._mapping, []
        if "gpu_utilisation" in mapping.columns and not mapping.gpu_utilisation_stated:
            said.append("gpu_utilisation is read as percent")
        if "gpu_memory_peak" in mapping.columns and not mapping.gpu_memory_stated:
            said.append("gpu_memory_peak is read as MiB")
        most = self._most_used
        if most is not None and 0.0 < most <= _FEW_PERCENT and mapping.gpu_utilisation_full > 1.0:
            said.append('no gpu_utilisation is above 1 %: if they are ratios, set units.gpu_utilisation = "ratio"')
        for (ours, why), (count, example) in self._odd.items():
            said.append(f"{counted(count, 'cell')} of {ours} left out, {why}; the first: {example}")
        return tuple(said)

    def _count(self, ours: str, why: str, at: int, text: str) -> None:
        count, example = self._odd.get((ours, why), (0, f"row {at}, {text[:40]!r}"))
        self._odd[ours, why] = (count + 1, example)

    def _time_limit(self, text: str) -> float | None:
        if text.lower() in _NO_LIMIT:
            return None
        seconds = number(text) * self._mapping.time_limit_unit.total_seconds()
        if not 0.0 < seconds <= _MOST_SECONDS:
            raise _Odd("a limit is above 0 and less than centuries")
        return seconds

    def _scheduled(self, text: str, told: Mapping[str, Any]) -> datetime:
        moment = self._times.moment(text)
        later = [told[name] for name in ("start", "end", "last_seen") if told[name] is not None]
        if moment < told["submit"] or moment > min([self._now, *later]):
            raise _Odd("a job is given a node between its submission and its start")
        return moment

    def _utilisation(self, text: str) -> float:
        full = self._mapping.gpu_utilisation_full
        value = number(text)
        if not 0.0 <= value <= full:
            hint = "" if full > 1.0 else ' (if it is percent, set units.gpu_utilisation = "percent")'
            raise _Odd(f"it is not between 0 and {full:g}{hint}")
        self._most_used = value if self._most_used is None else max(value, self._most_used)
        return value / full

    def _memory(self, text: str) -> float:
        size = number(text) * self._mapping.gpu_memory_unit
        if not 0.0 <= size <= _MOST_BYTES:
            raise _Odd("no GPU has so much memory")
        return size


def _within(text: str, least: float, most: float) -> float:
    value = number(text)
    if not least <= value <= most:
        raise _Odd("it is out of any range")
    return value


def _whole(text: str, least: float, most: float) -> int:
    value = _within(text, least, most)
    if value != math.floor(value):
        raise _Odd("it is no whole number")
    return int(value)


def _usage(utilisation: float | None, memory: float | None) -> GpuUsage | None:
    if utilisation is None and memory is None:
        return None
    source = None if utilisation is None else ComputeSource.GIVEN
    return GpuUsage(compute_mean=utilisation, compute_source=source, memory_peak_bytes=memory)
