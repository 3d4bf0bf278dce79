"""The start latency that a pool is planned with: measured where there is enough of it, else as it was set."""

from __future__ import annotations

from dataclasses import replace

from advisor.domain.start_latency import StartLatency
from advisor.domain.units import counted, shown_duration
from advisor.planning.warm_capacity import WarmTerms

__all__ = ["LEAST_STARTS", "measured_start"]

LEAST_STARTS = 5
"""Fewer whole starts say too little of how long nine in ten take at most."""

_SHORTEST_SECONDS = 1.0
"""Moments of conditions are whole seconds."""


def measured_start(terms: WarmTerms, measured: StartLatency | None) -> WarmTerms:
    """``terms`` with the P90 of what was measured until a GPU was usable, where at least five whole starts were.

    Where there are fewer, but some, the latency stays and its reason names them.
    """
    spread = None if measured is None else measured.to_gpu
    if measured is None or (spread is None and measured.nodes == 0):
        return terms
    if spread is None or spread.count < LEAST_STARTS:
        return replace(terms, start_latency_reason=_too_few(terms, 0 if spread is None else spread.count))
    seconds = max(spread.p90, _SHORTEST_SECONDS)
    reason = (
        f"start latency {shown_duration(seconds)}: P90 of the last {counted(spread.count, 'node')} "
        f"from being asked for to a usable GPU, half within {shown_duration(spread.p50)}"
    )
    return replace(terms, start_latency_seconds=seconds, start_latency_reason=reason)


def _too_few(terms: WarmTerms, starts: int) -> str:
    origin = "assumed" if terms.start_latency_seconds is None else "as it was set"
    return (
        f"start latency {shown_duration(terms.latency_minutes * 60.0)}, {origin}: "
        f"{counted(starts, 'whole start')} measured, and {LEAST_STARTS} are needed"
    )
