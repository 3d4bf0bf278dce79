"""What warm capacity would have been worth: policies replayed on the last part of demand series, side by side.

The advisor is one of its candidates: the one that a replay of the time just before the split speaks for. Where several
pools are given, they are replayed apart, and as one pool whose chances of a rise are those of all put together.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from advisor.domain.warm_reports import WarmComparison, WarmPoint, WarmReport
from advisor.errors import Refused
from advisor.features.demand import DemandSeries
from training.demand_rows import DemandFitSettings
from training.warm_choice import chosen, comparison
from training.warm_forecast import RiseForecasts, rolling_rises
from training.warm_index_schedule import foresight, index_table
from training.warm_points import points
from training.warm_policies import CANDIDATES, families
from training.warm_pools import on_one_grid, summed, warm_protocol
from training.warm_replay import WarmRun, WarmWorld, replay_series
from training.warm_schedule import WarmSchedule

__all__ = ["SHARED", "Progress", "Steps", "WarmEvaluation", "evaluate_warm", "refits_in", "schedules_of", "spans"]

Floats = NDArray[np.float64]

Progress = Callable[[int, int], None]
"""Called with steps done and steps in all."""

SHARED = "shared"
_DAY_MINUTES = 1440
_LEAST_TRIAL_DAYS = 2.0


_FIT = DemandFitSettings(row_minutes=2, most_rows=80_000, rounds=60, threads=1)


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmEvaluation:
    """How a replay is run: scored after ``split`` of the time, forecasts refitted every ``refit_days``.

    The candidates are tried on up to ``trial_days`` before the split, refitted every ``trial_refit_days``; of a short
    history half is left to learn from.
    """

    split: float = 0.7
    world: WarmWorld = field(default_factory=WarmWorld)
    refit_days: float = 2.0
    trial_days: float = 8.0
    trial_refit_days: float = 4.0
    fit: DemandFitSettings = _FIT

    def __post_init__(self) -> None:
        """Check the split.

        Raises:
            Refused: it does not lie strictly between 0 and 1.
        """
        if not 0.0 < self.split < 1.0:
            raise Refused("split", self.split, "it lies strictly between 0 and 1", "Use 0.7.")


@dataclass(frozen=True, eq=False)
class _Replayed:
    """One span of every pool: schedules and what came of them, by pool and family."""

    schedules: Mapping[str, Mapping[str, Sequence[WarmSchedule]]]
    runs: Mapping[str, Mapping[str, WarmRun]]
    refits: int

    def curves(self, names: Sequence[str]) -> dict[str, tuple[WarmPoint, ...]]:
        """Every family's curve over the pools ``names`` summed up."""
        return {
            family: points(schedules, [self.runs[name][family] for name in names])
            for family, schedules in self.schedules[names[0]].items()
        }


def evaluate_warm(
    series: Sequence[DemandSeries], evaluation: WarmEvaluation | None = None, progress: Progress | None = None
) -> WarmReport:
    """Cost and wait of every policy at every setting on the last part of each series.

    Raises:
        Refused: no series, series of different steps or nodes, or too short ones.
    """
    plan = evaluation or WarmEvaluation()
    pools = on_one_grid(series)
    trial, scored = spans(pools, plan)
    step = pools[0].step_minutes
    steps = Steps(progress, refits_in(trial, plan.trial_refit_days, step) + refits_in(scored, plan.refit_days, step))
    tried = _replayed(pools, trial, plan.trial_refit_days, (plan, steps))
    found = _replayed(pools, scored, plan.refit_days, (plan, steps))
    compared = {name: _compared([name], tried, found) for name in found.runs}
    alone = [one.pool for one in pools]
    return WarmReport(
        protocol=warm_protocol(pools, scored, tried.refits + found.refits, plan.fit.seed, plan.world),
        pools=compared,
        apart=_compared(alone, tried, found) if len(alone) > 1 else None,
    )


def _compared(names: Sequence[str], tried: _Replayed, found: _Replayed) -> WarmComparison:
    """Pools summed up, setting by setting; the choice among candidates comes from the trial."""
    trial, curves = tried.curves(names), found.curves(names)
    choice = chosen(trial, tuple(CANDIDATES))
    return comparison(curves, choice)


def _replayed(
    pools: Sequence[DemandSeries], span: tuple[int, int], refit_days: float, how: tuple[WarmEvaluation, Steps]
) -> _Replayed:
    plan, steps = how
    forecasts = rolling_rises(pools, span, refit_days, plan.fit, steps.done)
    schedules, runs = {}, {}
    for one, members in _worlds(pools):
        schedules[one.pool] = schedules_of(one, members, forecasts, plan.world)
        window = one.demand[span[0] : span[1]]
        runs[one.pool] = {
            family: replay_series(window, one.step_minutes, found, plan.world)
            for family, found in schedules[one.pool].items()
        }
    return _Replayed(schedules, runs, forecasts.refits)


def _worlds(pools: Sequence[DemandSeries]) -> list[tuple[DemandSeries, tuple[str, ...]]]:
    """Each pool on its own, and all of them as one where there are several, with the pools that each is made of."""
    alone: list[tuple[DemandSeries, tuple[str, ...]]] = [(one, (one.pool,)) for one in pools]
    return alone if len(pools) == 1 else [*alone, (summed(pools, SHARED), tuple(one.pool for one in pools))]


def schedules_of(
    one: DemandSeries, members: Sequence[str], forecasts: RiseForecasts, world: WarmWorld
) -> dict[str, list[WarmSchedule]]:
    """Every family for ``one``, whose rises are those of its ``members`` put together."""
    span = (forecasts.first, forecasts.stop)
    foreseen = index_table(
        forecasts.horizons_minutes, [forecasts.by_pool[name] for name in members], one.node_gpus, world
    )
    horizons, came = foresight(one, np.arange(*span))
    return families(one, span, foreseen, index_table(horizons, [came], one.node_gpus, world), world)


def spans(pools: Sequence[DemandSeries], plan: WarmEvaluation) -> tuple[tuple[int, int], tuple[int, int]]:
    """Samples of the trial and of what is scored."""
    size, step = len(pools[0]), pools[0].step_minutes
    split = int(size * plan.split)
    per_day = _DAY_MINUTES // step
    learnt = max(split // 2, int(plan.fit.least_history_days * per_day))
    begin = max(split - int(plan.trial_days * per_day), learnt)
    if split - begin < _LEAST_TRIAL_DAYS * per_day:
        days = plan.fit.least_history_days + _LEAST_TRIAL_DAYS
        limit = f"at least {days:g} days must lie before the split"
        raise Refused("series", f"{size / per_day:.3g} days", limit, "Give a longer series, or a later split.")
    return (begin, split), (split, size)


def refits_in(span: tuple[int, int], days: float, step_minutes: int) -> int:
    """How often a forecast is refitted within ``span``."""
    every = max(1, round(days * _DAY_MINUTES / step_minutes))
    return -(-(span[1] - span[0]) // every)


@dataclass(slots=True)
class Steps:
    """Tells how far an evaluation is."""

    progress: Progress | None
    total: int
    count: int = 0

    def done(self) -> None:
        """One step more."""
        self.count += 1
        if self.progress is not None:
            self.progress(self.count, self.total)
