"""Fits the two forests of a duration model. The trees only decide who is alike; the leaves tell how long."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any

import lightgbm
import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from advisor.domain.forecasts import DurationDistribution
from advisor.domain.units import SECONDS_PER_DAY
from advisor.errors import Refused
from advisor.features.duration import schema_of
from advisor.features.table import FeatureSchema, KnownWhen
from advisor.forecast.blend import BlendSettings
from advisor.forecast.calibration import CalibrationSettings
from advisor.forecast.duration_model import DurationModel
from advisor.forecast.grid import LogGrid
from advisor.forecast.questions import Question
from training.duration_table import DurationTable
from training.hazards import HazardSettings, fit_hazard

__all__ = ["DurationSettings", "fit_forests"]

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, kw_only=True)
class DurationSettings:
    """How a duration model is fitted.

    ``trees`` for each of the two forests, of ``leaves`` leaves holding at least ``least_in_leaf`` jobs;
    the ``newest_jobs`` are fitted on, the newest
    ``leaf_jobs`` fill the leaves, a job's weight falling to 1/e in ``decay_days``; running jobs enter from
    ``running_from_seconds`` of age on, taken to end ``running_adds`` of ln seconds later. Below
    ``least_jobs`` ended jobs nothing is fitted.
    """

    trees: int = 15
    leaves: int = 1023
    least_in_leaf: int = 2
    bagging: float = 0.7
    columns_extra: float = 0.5
    columns_plain: float = 0.35
    bins: int = 127
    newest_jobs: int = 30_000
    leaf_jobs: int = 100_000
    decay_days: float = 7.0
    running_from_seconds: float = 600.0
    running_adds: float = 0.7
    least_jobs: int = 200
    seed: int = 1
    threads: int = 1
    grid: LogGrid = field(default_factory=LogGrid)
    calibration: CalibrationSettings = field(default_factory=CalibrationSettings)
    blend: BlendSettings = field(default_factory=BlendSettings)
    hazard: HazardSettings = field(default_factory=HazardSettings)

    @property
    def jobs_needed(self) -> int:
        """How many of the newest jobs are ever looked at as such, those asked about for calibration included."""
        return max(self.newest_jobs, self.leaf_jobs, self.hazard.newest_jobs) + self.calibration.window

    def to_json(self) -> dict[str, Any]:
        """As kept with the model."""
        return asdict(self)


def fit_forests(
    table: DurationTable, now: float, settings: DurationSettings, questions: tuple[Question, ...] = ()
) -> DurationModel | None:
    """A model fitted on what was known at ``now`` (Unix seconds), None where too few jobs had ended.

    The trees are fitted by squared error on 4 rank / n + 0.5 z-score of ln seconds, which gives the bulk
    its order and the tails their distance.

    Raises:
        Refused: settings that LightGBM does not take.
    """
    seconds, ended, ran = table.known_at(now)
    if int((ended & ran).sum()) < settings.least_jobs:
        return None
    usable = table.kept(np.flatnonzero(ran & (ended | (seconds > settings.running_from_seconds))))
    usable = usable[np.argsort(table.submit[usable], kind="stable")][-settings.newest_jobs :]
    logs = np.log(seconds[usable]) + np.where(ended[usable], 0.0, settings.running_adds)
    weights = np.exp((table.submit[usable] - table.submit[usable[-1]]) / (settings.decay_days * SECONDS_PER_DAY))
    table = table.telling(usable)
    schema = schema_of(table.names)
    rows, _ = table.asked(usable)
    never = np.array(~np.isnan(rows).any(axis=0))
    # LightGBM works outside the interpreter's lock, so the second core fits the second opinion.
    with ThreadPoolExecutor(1) as beside:
        hazard = beside.submit(fit_hazard, table, now, settings.grid, settings.hazard, settings.seed, settings.threads)
        forests = _two_forests(rows, _target(logs), weights, settings)
    return DurationModel(
        forests=forests,
        trees=(settings.trees, settings.trees),
        leaves=settings.leaves,
        fitted_at=datetime.fromtimestamp(now, UTC),
        leaves_since=datetime.fromtimestamp(_oldest(table.submit, now, settings.leaf_jobs), UTC),
        jobs=usable.size,
        columns=schema.names,
        fingerprint=schema.fingerprint,
        never_missing=tuple(np.array(schema.names)[never].tolist()),
        usual=_usual(rows, never, schema),
        prior=_overall(np.log(seconds[ended & ran]), settings.grid),
        decay_days=settings.decay_days,
        grid=settings.grid,
        calibration=settings.calibration,
        blend=settings.blend,
        hazard=hazard.result(),
        questions=questions,
        settings=settings.to_json(),
    )


def _oldest(submit: Floats, now: float, jobs: int) -> float:
    """When the oldest of the newest ``jobs`` known at ``now`` was submitted."""
    return float(np.sort(submit[submit <= now])[-jobs:][0])


def _target(logs: Floats) -> Floats:
    spread = float(logs.std())
    scores = (logs - logs.mean()) / spread if spread > 0 else np.zeros_like(logs)
    target: Floats = 4.0 * rankdata(logs) / logs.size + 0.5 * scores
    return target


def _two_forests(rows: Floats, target: Floats, weights: Floats, settings: DurationSettings) -> tuple[str, ...]:
    """One forest with random thresholds and one with the best, which err differently."""
    shared: Mapping[str, Any] = {
        "boosting": "rf",
        "objective": "regression",
        "num_leaves": settings.leaves,
        "min_data_in_leaf": settings.least_in_leaf,
        "bagging_fraction": settings.bagging,
        "bagging_freq": 1,
        "max_bin": settings.bins,
        "deterministic": True,
        "force_row_wise": True,
        "num_threads": settings.threads,
        "verbosity": -1,
    }
    forests = []
    for extra, share, seed in ((True, settings.columns_extra, 0), (False, settings.columns_plain, 1)):
        own = {"extra_trees": extra, "feature_fraction": share, "seed": 2 * settings.seed + seed}
        try:
            data = lightgbm.Dataset(rows, target, weight=weights, params=dict(shared))
            booster = lightgbm.train({**shared, **own}, data, num_boost_round=settings.trees)
        except lightgbm.basic.LightGBMError as error:
            raise Refused(
                "settings", settings.to_json(), f"LightGBM refuses them ({error})", "Correct them."
            ) from error
        forests.append(booster.model_to_string())
    return tuple(forests)


def _usual(rows: Floats, never_missing: Bools, schema: FeatureSchema) -> dict[str, float]:
    """Medians of what may be unknown of a job with a history, where it was known of every job of the fit."""
    return {
        feature.name: float(np.median(rows[:, column]))
        for column, feature in enumerate(schema.features)
        if feature.known_when is not KnownWhen.HISTORY and never_missing[column]
    }


def _overall(logs: Floats, grid: LogGrid) -> DurationDistribution:
    """How long any job ran: what is answered where nothing at all is known of a job."""
    shares = np.bincount(grid.cells_of(logs), minlength=grid.cells) / logs.size
    last = np.flatnonzero(shares)[-1:]
    survival = np.clip(1.0 - np.cumsum(shares), 0.0, 1.0)
    survival[last] = 0.0
    return DurationDistribution(grid.log_edges, grid.survivors_spread(survival[np.newaxis], last)[0])
