"""The lower quantiles of demand, told what running jobs may release: fitted, and judged against not knowing it.

What was predicted of each job is known only for the last part of a history, so these models learn from that alone;
its first half fits the models that its second half judges.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from advisor.domain.jobs import pool_of
from advisor.features.demand import DemandSeries
from advisor.forecast.demand import model_quantiles
from advisor.forecast.demand_baselines import LEVELS
from advisor.forecast.demand_gate import LowerVerdict, judged_lower
from advisor.forecast.demand_model import ChangeModel
from training.backtest import Predicted
from training.demand_boosters import fit_change
from training.demand_replay import daily_means, pinball
from training.demand_rows import DemandFitSettings, PoolRows
from training.release_rows import ReleaseRows, release_rows

__all__ = ["KnownReleases", "LowerFit", "fit_lower", "known_releases"]

Floats = NDArray[np.float64]

_DAY = 86_400
_JUDGED_LEVELS = (0.05, 0.1, 0.25)
_JUDGED = np.array([LEVELS.index(level) for level in _JUDGED_LEVELS])


@dataclass(frozen=True, slots=True, kw_only=True)
class KnownReleases:
    """Releases by pool and horizon, as predicted durations foresaw them from ``since`` (Unix seconds) on."""

    since: float
    pools: Mapping[str, Mapping[int, ReleaseRows]]


def known_releases(
    predicted: Predicted, series: Sequence[DemandSeries], horizons_minutes: Sequence[int]
) -> KnownReleases:
    """What ``predicted`` durations foresaw of the releases in every pool of ``series``, made of the same jobs."""
    places: dict[str, list[int]] = {}
    for place, job in enumerate(predicted.jobs):
        places.setdefault(pool_of(job), []).append(place)
    found = {}
    for one in series:
        mine = places.get(one.pool, [])
        laws = {at: predicted.laws[place] for at, place in enumerate(mine) if place in predicted.laws}
        jobs = [predicted.jobs[place] for place in mine]
        found[one.pool] = release_rows(jobs, laws, one, horizons_minutes)
    return KnownReleases(since=predicted.since, pools=found)


@dataclass(frozen=True, slots=True)
class LowerFit:
    """Models by group and horizon, and whether each pool is better off with them at each horizon."""

    models: dict[str, dict[int, ChangeModel]] = field(default_factory=dict)
    verdicts: dict[tuple[str, int], LowerVerdict] = field(default_factory=dict)


def fit_lower(
    pools: Sequence[PoolRows],
    groups: Mapping[str, str],
    known: KnownReleases | None,
    until_unix: float,
    settings: DemandFitSettings,
) -> LowerFit:
    """Models that know releases, for every group and horizon where that can be learnt; none without ``known``."""
    found = LowerFit()
    if known is None:
        return found
    since = [_since(rows, known.since) for rows in pools if rows.pool in groups and rows.pool in known.pools]
    middle = (known.since + until_unix) / 2.0
    for group in sorted({groups[rows.pool] for rows in since}):
        members = [rows for rows in since if groups[rows.pool] == group]
        for horizon in settings.horizons_minutes:
            told = [_told(rows, known.pools[rows.pool][horizon]) for rows in members]
            model = fit_change(told, horizon, settings, until_unix)
            with_them, without = (fit_change(rows, horizon, settings, middle) for rows in (told, members))
            if model is None or with_them is None or without is None:
                continue
            found.models.setdefault(group, {})[horizon] = model
            for rows, plain in zip(told, members, strict=True):
                losses = (_daily(with_them, rows, horizon, middle), _daily(without, plain, horizon, middle))
                found.verdicts[rows.pool, horizon] = judged_lower(*losses)
    return found


def _since(rows: PoolRows, since: float) -> PoolRows:
    kept = np.flatnonzero(rows.unix >= since)
    return replace(rows, at=rows.at[kept], unix=rows.unix[kept], features=rows.features[kept])


def _told(rows: PoolRows, releases: ReleaseRows) -> PoolRows:
    """The rows with the columns of releases behind all others."""
    columns = releases.foreseen(rows.at, rows.series.node_gpus)
    return replace(rows, features=np.hstack([rows.features, columns]))


def _daily(model: ChangeModel, rows: PoolRows, horizon: int, since: float) -> Floats:
    """Mean loss at the lower levels on each day from ``since`` on."""
    changes = rows.changes(horizon)
    asked = np.flatnonzero((rows.unix >= since) & ~np.isnan(changes))
    if not asked.size:
        return np.zeros(0)
    now = rows.series.demand[rows.at[asked]]
    law, node = model.law(rows.features[asked]), rows.series.node_gpus
    quantiles = model_quantiles(law, now, node, np.array(LEVELS))[:, _JUDGED]
    losses = pinball(now + changes[asked] * node, quantiles, _JUDGED_LEVELS).mean(axis=1)
    return daily_means(losses, rows.unix[asked] // _DAY)
