"""What the jobs of one key did with their GPUs, as telemetry told once they had ended."""

from __future__ import annotations

import math
from collections.abc import Sequence

from advisor.domain.usage import GpuUsage
from advisor.features.recent import kept, median_of
from advisor.features.table import Feature, KnownWhen

__all__ = ["KEY_USAGE", "UsageHistory", "usage_values"]

_WINDOW = 5

KEY_USAGE = (
    Feature("last_compute", "compute of the latest that ended", "share of a GPU", KnownWhen.TELEMETRY),
    Feature("median_5_compute", "median compute of the last five that ended", "share of a GPU", KnownWhen.TELEMETRY),
    Feature("last_memory", "most GPU memory of the latest that ended", "ln bytes", KnownWhen.TELEMETRY),
    Feature("median_5_memory", "median of that of the last five that ended", "ln bytes", KnownWhen.TELEMETRY),
)
"""What is asked of one key beside its times; only jobs that were measured count."""

_NOTHING = (math.nan, math.nan)


class UsageHistory:
    """The latest usages of one key: of most keys of most clusters there are none, so it is made with the first."""

    __slots__ = ("_compute", "_memory")

    def __init__(self) -> None:
        self._compute: list[float] = []
        self._memory: list[float] = []

    def add(self, usage: GpuUsage) -> None:
        """A job of this key has ended, and this is what it used."""
        if usage.compute_mean is not None:
            kept(self._compute, usage.compute_mean, _WINDOW)
        if usage.memory_peak_bytes is not None:
            kept(self._memory, math.log(max(usage.memory_peak_bytes, 1.0)), _WINDOW)

    def values(self) -> tuple[float, ...]:
        """The features of :data:`KEY_USAGE`, in that order; NaN where nothing was measured."""
        return (*_last_and_median(self._compute), *_last_and_median(self._memory))


def _last_and_median(values: Sequence[float]) -> tuple[float, float]:
    return (values[-1], median_of(sorted(values))) if values else _NOTHING


_UNMEASURED = _NOTHING + _NOTHING


def usage_values(history: UsageHistory | None) -> tuple[float, ...]:
    """The features of :data:`KEY_USAGE` of a key that may never have been measured."""
    return _UNMEASURED if history is None else history.values()
