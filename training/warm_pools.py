"""Demand series side by side on one grid, several as one, and how their replay was measured."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from importlib.metadata import version

import numpy as np
from numpy.typing import NDArray

from advisor.domain.reports import RunProtocol
from advisor.errors import Refused
from advisor.features.demand import DemandSeries
from training.warm_replay import WarmWorld

__all__ = ["on_one_grid", "summed", "warm_protocol"]

Floats = NDArray[np.float64]


def on_one_grid(series: Sequence[DemandSeries]) -> list[DemandSeries]:
    """The series from the first start to the last end of any, gaps where one has nothing.

    Raises:
        Refused: no sample at all, two series of one pool, or different steps or nodes.
    """
    known = [one for one in series if len(one)]
    if not known:
        raise Refused("series", 0, "no sample of demand was given", "Check the file and its mapping.")
    names = [one.pool for one in known]
    if len(set(names)) < len(names):
        raise Refused("pool", names, "every series needs a pool of its own", "Rename one of them in its mapping.")
    for what in ("step_minutes", "node_gpus"):
        values = sorted({int(getattr(one, what)) for one in known})
        if len(values) > 1:
            raise Refused(what, values, "pools that are compared need the same", "Evaluate them one by one.")
    step = known[0].step_minutes * 60
    first = min(int(one.unix[0]) for one in known)
    last = max(int(one.unix[-1]) for one in known)
    return [_padded(one, first, (last - first) // step + 1) for one in known]


def summed(pools: Sequence[DemandSeries], name: str) -> DemandSeries:
    """Several pools as one; a sample that any of them lacks is a gap."""
    running = np.sum([one.demand for one in pools], axis=0)
    return DemandSeries(
        pool=name,
        start=pools[0].start,
        step_minutes=pools[0].step_minutes,
        running=running,
        node_gpus=pools[0].node_gpus,
        zone=pools[0].zone,
        calendar_known=all(one.calendar_known for one in pools),
    )


def warm_protocol(
    pools: Sequence[DemandSeries], scored: tuple[int, int], refits: int, seed: int, world: WarmWorld
) -> RunProtocol:
    """How the figures of ``pools`` came about."""
    digest = hashlib.sha256()
    for one in pools:
        digest.update(one.pool.encode())
        digest.update(one.unix.tobytes())
        digest.update(one.demand.tobytes())
    gaps = sum(int(np.isnan(one.demand).sum()) for one in pools)
    held = [f"{gaps} samples are gaps: the last known demand was held through them"] if gaps else []
    return RunProtocol(
        data_digest=digest.hexdigest()[:16],
        rows=sum(len(one) for one in pools),
        split_time=datetime.fromtimestamp(int(pools[0].unix[scored[0]]), UTC),
        refits=refits,
        seed=seed,
        versions={name: version(name) for name in ("lightgbm", "numpy")},
        assumed=(
            *(note for one in pools for note in one.notes),
            *held,
            f"nodes of {pools[0].node_gpus} GPUs, perfectly packed, ready {world.latency_minutes:g} min after ordered",
            "nothing limits how many nodes there are",
            *_lag(pools[0].step_minutes, world),
        ),
    )


def _lag(step_minutes: int, world: WarmWorld) -> list[str]:
    steps = world.latency_minutes / step_minutes
    if steps == int(steps):
        return []
    return [f"samples are {step_minutes} min apart: a start latency ends at the next one"]


def _padded(one: DemandSeries, first: int, size: int) -> DemandSeries:
    before = (int(one.unix[0]) - first) // (one.step_minutes * 60)
    if not before and len(one) == size:
        return one

    def placed(row: Floats) -> Floats:
        wide = np.full(size, np.nan)
        wide[before : before + row.size] = row
        return wide

    def perhaps(row: Floats | None) -> Floats | None:
        return None if row is None else placed(row)

    return replace(
        one,
        start=datetime.fromtimestamp(first, UTC),
        running=placed(one.running),
        pending=perhaps(one.pending),
        idle=perhaps(one.idle),
        capacity=perhaps(one.capacity),
        state={name: placed(row) for name, row in one.state.items()},
    )
