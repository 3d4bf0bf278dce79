"""How start latency is shown to people."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table

from advisor.domain.start_latency import Spread, StartLatency, StartPart
from advisor.domain.units import shown_duration
from serving.cli.output import table

__all__ = ["start_tables"]

_WORDS = {
    StartPart.LAUNCHED: "launched",
    StartPart.REGISTERED: "registered",
    StartPart.DEVICES: "of the next: GPUs allocatable",
    StartPart.INITIALISED: "initialised",
    StartPart.PREPARED: "pod prepared",
    StartPart.STARTED: "image pulled and started",
}


def start_tables(latencies: Sequence[StartLatency]) -> list[Table]:
    """One table per NodePool: its parts in order, then the sums."""
    return [_table(each) for each in latencies]


def _table(latency: StartLatency) -> Table:
    rows = [(words, *_cells(latency.parts.get(part))) for part, words in _WORDS.items()]
    rows += [("a usable GPU, in all", *_cells(latency.to_gpu)), ("running work, in all", *_cells(latency.to_work))]
    return table(f"start latency of NodePool {latency.pool}", ("until", "nodes", "P50", "P90"), rows)


def _cells(spread: Spread | None) -> tuple[object, ...]:
    return (0, None, None) if spread is None else (spread.count, shown_duration(spread.p50), shown_duration(spread.p90))
