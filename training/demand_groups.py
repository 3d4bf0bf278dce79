"""Which pools are fitted together, and the fitting of all groups side by side."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TypeVar

import numpy as np

from training.demand_rows import DemandFitSettings, PoolRows

__all__ = ["GroupFit", "groups_at", "in_groups"]

Fitted = TypeVar("Fitted")

GroupFit = Callable[[Sequence[PoolRows], int, DemandFitSettings], Fitted | None]
"""Fits one horizon (minutes) of the pools of one group; None where that cannot be done."""

_SIZED_BY_MINUTES = 60
_SMALLEST_SIZE = 0.25
_OCTAVES = 2.0
_FEWEST_ROWS = 4_000


def groups_at(pools: Sequence[PoolRows], until_unix: float, settings: DemandFitSettings) -> dict[str, str]:
    """The group of every pool that has the least history at a moment.

    Pools whose large changes within an hour are of like size are fitted together: the size is the 99th
    percentile of a pool's absolute changes by then, and a group spans a factor of four.
    """
    return {
        rows.pool: f"size{_size_class(rows, until_unix)}"
        for rows in pools
        if rows.known_days(until_unix) >= settings.least_history_days
    }


def in_groups(
    pools: Sequence[PoolRows],
    groups: dict[str, str],
    horizons: Sequence[int],
    settings: DemandFitSettings,
    fit: GroupFit[Fitted],
) -> dict[str, dict[int, Fitted]]:
    """What ``fit`` made of every group and horizon, several at a time; the result does not depend on how many.

    Groups share the most rows of a horizon in proportion to what they have.
    """
    members: dict[str, list[PoolRows]] = {}
    for rows in pools:
        if rows.pool in groups:
            members.setdefault(groups[rows.pool], []).append(rows)
    total = sum(len(rows.at) for rows in pools if rows.pool in groups)
    tasks = [(group, horizon) for group in sorted(members) for horizon in horizons]

    def run(task: tuple[str, int]) -> Fitted | None:
        group, horizon = task
        share = sum(len(rows.at) for rows in members[group]) / max(total, 1)
        most = max(_FEWEST_ROWS, int(settings.most_rows * share))
        return fit(members[group], horizon, replace(settings, most_rows=most))

    with ThreadPoolExecutor(max_workers=max(1, settings.threads)) as workers:
        results = list(workers.map(run, tasks))
    found: dict[str, dict[int, Fitted]] = {group: {} for group in sorted(members)}
    for (group, horizon), result in zip(tasks, results, strict=True):
        if result is not None:
            found[group][horizon] = result
    return found


def _size_class(rows: PoolRows, until_unix: float) -> int:
    step = rows.series.step_minutes
    minutes = max(step, _SIZED_BY_MINUTES // step * step)
    ended = np.abs(rows.changes(minutes)[rows.unix + minutes * 60 <= until_unix])
    known = ended[~np.isnan(ended)]
    size = float(np.quantile(known, 0.99)) if known.size else 0.0
    return round(float(np.log2(max(size, _SMALLEST_SIZE))) / _OCTAVES)
