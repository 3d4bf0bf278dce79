"""What predicted durations are worth to a demand forecast: its lower quantiles without them, with them, and with truth.

Three models of the change are refitted side by side on the same rows. The first knows the pool's past, the second also
the releases that predicted durations foresee, the third the releases that really came, which nobody can know: the gain
of the third is the most that any prediction of durations could give.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from advisor.domain.reports import ReleaseScores
from advisor.forecast.demand import model_quantiles
from advisor.forecast.demand_baselines import LEVELS
from training.demand_boosters import fit_change
from training.demand_replay import pinball
from training.demand_rows import DemandFitSettings, PoolRows
from training.release_rows import ReleaseRows

__all__ = ["RELEASE_LEVELS", "ReleaseStudy"]

Floats = NDArray[np.float64]

RELEASE_LEVELS = (0.05, 0.1, 0.25, 0.5)
"""Releases decide how far demand may fall; what it rises by are arrivals."""

_PLACES = np.array([LEVELS.index(level) for level in RELEASE_LEVELS])
_VARIANTS = ("without", "predicted", "true")


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseStudy:
    """Compares the three models on the rows after ``split``, refitted at each of ``cuts`` (Unix seconds, end last).

    Rows before ``since`` are left out: then nothing had been predicted of most jobs.
    """

    cuts: tuple[float, ...]
    since: float
    settings: DemandFitSettings

    def scores(self, rows: PoolRows, releases: Mapping[int, ReleaseRows]) -> dict[int, ReleaseScores]:
        """The scores of one pool at every horizon that could be fitted."""
        kept = np.flatnonzero(rows.unix >= self.since)
        pool = replace(rows, at=rows.at[kept], unix=rows.unix[kept], features=rows.features[kept])
        found = {horizon: self._horizon(pool, horizon, one) for horizon, one in releases.items()}
        return {horizon: scores for horizon, scores in found.items() if scores is not None}

    def _horizon(self, pool: PoolRows, horizon: int, releases: ReleaseRows) -> ReleaseScores | None:
        node = pool.series.node_gpus
        columns = {
            "without": np.zeros((len(pool.at), 0)),
            "predicted": releases.foreseen(pool.at, node),
            "true": releases.known(pool.at, node),
        }
        variants = {n: replace(pool, features=np.hstack([pool.features, columns[n]])) for n in _VARIANTS}
        losses: dict[str, list[Floats]] = {name: [] for name in _VARIANTS}
        for cut, end in pairwise(self.cuts):
            one = {name: self._losses(rows, horizon, cut, end) for name, rows in variants.items()}
            for name, loss in one.items():
                if loss is not None:
                    losses[name].append(loss)
        if not losses["without"]:
            return None
        means = {name: np.concatenate(parts).mean(axis=0) for name, parts in losses.items()}
        seen = releases.true[pool.at]
        return ReleaseScores(
            n=sum(len(part) for part in losses["without"]),
            pinball={
                name: dict(zip(map(str, RELEASE_LEVELS), map(float, m), strict=True)) for name, m in means.items()
            },
            correlation=_correlation(releases.expected[pool.at], seen),
        )

    def _losses(self, rows: PoolRows, horizon: int, cut: float, end: float) -> Floats | None:
        model = fit_change([rows], horizon, self.settings, cut)
        changes = rows.changes(horizon)
        asked = np.flatnonzero((rows.unix >= cut) & (rows.unix < end) & ~np.isnan(changes))
        if model is None or not asked.size:
            return None
        now = rows.series.demand[rows.at[asked]]
        law = model.law(rows.features[asked])
        quantiles = model_quantiles(law, now, rows.series.node_gpus, np.array(LEVELS))
        return pinball(now + changes[asked] * rows.series.node_gpus, quantiles[:, _PLACES], RELEASE_LEVELS)


def _correlation(expected: Floats, true: Floats) -> float | None:
    if expected.std() == 0 or true.std() == 0:
        return None
    return float(np.corrcoef(expected, true)[0, 1])
