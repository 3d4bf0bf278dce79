"""How good demand forecasts would have been: a replay over the last part of each series, refitted as in service."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from advisor.domain.reports import DemandFan, DemandReport, HorizonScores, RunProtocol
from advisor.errors import Refused
from advisor.features.demand import DemandSeries
from advisor.forecast.demand import median_held
from advisor.forecast.demand_baselines import BASELINES, LEVELS
from advisor.forecast.demand_gate import MODEL
from training.demand_replay import DemandReplay, Scored, pinball
from training.demand_rows import DemandFitSettings, rows_of

__all__ = ["SERVED", "DemandEvaluation", "Progress", "cuts_and_split", "evaluate_demand"]

Floats = NDArray[np.float64]

Progress = Callable[[int, int], None]
"""Called with refits done and refits in all."""

SERVED = "served"
"""Name under which the losses of what the gate would have served are reported."""

_DAY = 86_400
_SHOWN_LEVELS = (0.5, 0.8, 0.9, 0.95, 0.99)
_SHOWN = [LEVELS.index(level) for level in _SHOWN_LEVELS]
_CAPACITY = [_SHOWN_LEVELS.index(level) for level in (0.8, 0.9, 0.95, 0.99)]
_DAILY_UP_TO_DAYS = 45.0
_DRAWN_DAYS, _DRAWN_MOMENTS = 3, 300


@dataclass(frozen=True, slots=True, kw_only=True)
class DemandEvaluation:
    """How a replay is run: scored after ``split`` of the time, refitted every ``refit_days``.

    None refits daily, or weekly where the series are longer than 45 days. The gate and the calibration
    warm up on the two weeks before the split (what lies beyond two days of history in shorter series).
    """

    split: float = 0.7
    refit_days: float | None = None
    fit: DemandFitSettings = field(default_factory=DemandFitSettings)

    def __post_init__(self) -> None:
        """Check the split.

        Raises:
            Refused: it does not lie strictly between 0 and 1.
        """
        if not 0.0 < self.split < 1.0:
            raise Refused("split", self.split, "it lies strictly between 0 and 1", "Use 0.7.")


def evaluate_demand(
    series: Sequence[DemandSeries],
    horizons_minutes: Sequence[int],
    evaluation: DemandEvaluation | None = None,
    progress: Progress | None = None,
) -> DemandReport:
    """Losses and coverage of the model and of every baseline on the last part of each series.

    Each day's forecasts come from what had come to pass by its beginning. ``served`` names what the gate
    served most often; its losses stand beside the others. Quantile losses are in GPUs.

    Raises:
        Refused: no series, too short ones, or a horizon that is no multiple of the step.
    """
    plan = evaluation or DemandEvaluation()
    settings = replace(plan.fit, horizons_minutes=tuple(horizons_minutes))
    pools, _ = rows_of(series, settings.row_minutes)
    for horizon in settings.horizons_minutes:
        pools[0].series.steps(horizon)
    cuts, split = cuts_and_split(series, plan)
    replay = DemandReplay(pools, settings)
    found: dict[tuple[str, int], list[Scored]] = {}
    for done, (cut, following) in enumerate(pairwise(cuts)):
        for scored in replay.advance(cut, following):
            if cut >= split:
                found.setdefault((scored.pool, scored.horizon_minutes), []).append(scored)
        if progress is not None:
            progress(done + 1, len(cuts) - 1)
    by_pool: dict[str, dict[int, HorizonScores]] = {one.pool: {} for one in series}
    for (pool, horizon), parts in found.items():
        by_pool[pool][horizon] = _scores(parts)
    rows = sum(len(rows.at) for rows in pools)
    return DemandReport(
        protocol=_protocol(series, rows, split, len(cuts) - 1, settings),
        pools=by_pool,
        fans=tuple(_fan(parts) for parts in found.values()),
    )


def cuts_and_split(series: Sequence[DemandSeries], plan: DemandEvaluation) -> tuple[list[float], float]:
    """Moments of refits in Unix seconds, the end last, and the split, which is one of them.

    Raises:
        Refused: no sample at all, or too little history before the split.
    """
    filled = [one for one in series if len(one)]
    if not filled:
        raise Refused("series", 0, "no sample of demand was given", "Check the file and its mapping.")
    first = float(min(one.unix[0] for one in filled))
    end = float(max(one.unix[-1] + one.step_minutes * 60 for one in filled))
    days = (end - first) / _DAY
    split = first + plan.split * (end - first)
    refit = plan.refit_days or (1.0 if days <= _DAILY_UP_TO_DAYS else 7.0)
    learnt = plan.fit.least_history_days * _DAY
    if split - first < learnt:
        limit = f"{plan.fit.least_history_days:g} days of history must lie before the split"
        raise Refused("series", f"{days:.3g} days", limit, "Give a longer series, or a later split.")
    warm_up = max(split - plan.fit.replay_days * _DAY, first + learnt)
    before = np.arange(split, warm_up - 1.0, -refit * _DAY)[::-1]
    after = np.arange(split + refit * _DAY, end, refit * _DAY)
    return [*before.tolist(), *after.tolist(), end], split


def _scores(parts: Sequence[Scored]) -> HorizonScores:
    outcome = np.concatenate([part.outcome for part in parts])
    quantiles = {
        name: np.concatenate([part.quantiles[name] for part in parts])[:, _SHOWN] for name in (MODEL, *BASELINES)
    }
    # Where a baseline had nothing to say (the hour yesterday was a gap) persistence speaks for it, as in
    # service; so all are scored on the same moments.
    spoke = {name: np.where(np.isnan(found), quantiles["persistence"], found) for name, found in quantiles.items()}
    spoke[SERVED] = np.concatenate([_served_quantiles(part) for part in parts])[:, _SHOWN]
    losses = {name: pinball(outcome, found, _SHOWN_LEVELS).mean(axis=0) for name, found in spoke.items()}
    best = min(float(losses[name][_CAPACITY].mean()) for name in losses if name in BASELINES)
    model = float(losses[MODEL][_CAPACITY].mean())
    median = _SHOWN_LEVELS.index(0.5)
    return HorizonScores(
        n=int(outcome.size),
        pinball={name: _by_level(loss) for name, loss in losses.items()},
        mae={name: float(np.abs(outcome - found[:, median]).mean()) for name, found in spoke.items()},
        coverage={
            str(level): _bracket(outcome, spoke[MODEL][:, place])
            for place, level in enumerate(_SHOWN_LEVELS)
            if level != 0.5
        },
        skill=1.0 - model / best if best > 0 else None,
        served=Counter(part.served for part in parts for _ in part.outcome).most_common(1)[0][0],
    )


def _fan(parts: Sequence[Scored]) -> DemandFan:
    """The last three days that were scored, thinned to what a chart can show."""
    outcome = np.concatenate([part.outcome for part in parts])
    moments = np.concatenate([part.unix for part in parts]) + parts[0].horizon_minutes * 60
    quantiles = np.concatenate([_served_quantiles(part) for part in parts])
    last = np.flatnonzero(moments > moments[-1] - _DRAWN_DAYS * _DAY)
    last = last[:: max(1, last.size // _DRAWN_MOMENTS)]
    return DemandFan(
        pool=parts[0].pool,
        horizon_minutes=parts[0].horizon_minutes,
        times=tuple(datetime.fromtimestamp(int(moment), UTC) for moment in moments[last]),
        levels=LEVELS,
        gpus=tuple(tuple(float(g) for g in row) for row in quantiles[last]),
        came=tuple(float(g) for g in outcome[last]),
    )


def _served_quantiles(part: Scored) -> Floats:
    found = part.quantiles[part.served]
    # A baseline that lost its voice since the verdict falls back as it does in service.
    for name in ("constant", "persistence"):
        found = np.where(np.isnan(found), part.quantiles[name], found)
    return median_held(found, part.now) if part.holds_median else found


def _by_level(losses: Floats) -> dict[str, float]:
    return {str(level): float(loss) for level, loss in zip(_SHOWN_LEVELS, losses, strict=True)}


def _bracket(outcome: Floats, quantile: Floats) -> tuple[float, float]:
    return float((outcome < quantile).mean()), float((outcome <= quantile).mean())


def _protocol(
    series: Sequence[DemandSeries], rows: int, split: float, refits: int, settings: DemandFitSettings
) -> RunProtocol:
    digest = hashlib.sha256()
    for one in series:
        digest.update(one.pool.encode())
        digest.update(one.unix.tobytes())
        digest.update(one.demand.tobytes())
    gaps = sum(int(np.isnan(one.demand).sum()) for one in series)
    assumed = [note for one in series for note in one.notes]
    assumed += [
        f"{one.pool}: times are relative, hours and weekdays unknown" for one in series if not one.calendar_known
    ]
    assumed += [f"samples that are gaps, neither learnt from nor scored: {gaps}"] if gaps else []
    return RunProtocol(
        data_digest=digest.hexdigest()[:16],
        rows=rows,
        split_time=datetime.fromtimestamp(split, UTC),
        refits=refits,
        seed=settings.seed,
        versions={name: version(name) for name in ("lightgbm", "numpy")},
        assumed=tuple(assumed),
    )
