"""The training job: snapshot, evaluate, fit, register, promote. Killed at any step it leaves no half model.

Training reads nothing but the snapshot it has just written, so that what a model was made from can
always be read again.
"""

from __future__ import annotations

import platform
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

import lightgbm
import numpy as np
import structlog

from advisor.domain.jobs import Job
from advisor.domain.reports import DurationReport, PromotionDecision
from advisor.domain.units import SECONDS_PER_MINUTE, counted, shown_duration
from advisor.errors import Refused
from advisor.features.demand import SeriesGrid, series_by_pool
from advisor.forecast.demand_gate import MODEL
from advisor.forecast.demand_model import DemandModel
from advisor.forecast.duration_model import DurationModel
from advisor.forecast.registry import CHAMPION, DEMAND, DURATIONS, ModelCard, ModelRegistry
from advisor.history.snapshot import Snapshot, read_snapshot, write_snapshot
from training.backtest import BacktestSettings, Predicted, evaluate_and_fit
from training.demand import DemandFitSettings, fit_demand
from training.demand_lower import known_releases
from training.quality import may_be_served
from training.warm_trial import WarmTrial

__all__ = ["ModelRun", "TrainingJob", "TrainingPlan", "TrainingRun", "demand_decision", "registered_durations"]

Progress = Callable[[str, int, int], None]

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingPlan:
    """What to fit and how to measure it.

    ``snapshots`` is the folder of the immutable inputs. Demand is sampled every ``demand_grid_minutes``,
    counted in nodes of ``node_gpus``, its calendar read in ``zone``. ``warm`` says how rules of warm capacity are
    weighed.
    """

    snapshots: Path
    durations: BacktestSettings
    demand: DemandFitSettings
    demand_grid_minutes: int = 5
    node_gpus: int = 8
    zone: str = "UTC"
    warm: WarmTrial = field(default_factory=WarmTrial)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelRun:
    """What came of one model: the version registered (None: nothing could be fitted) and the gate's decision."""

    name: str
    version: str | None
    decision: PromotionDecision


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingRun:
    """What came of one training job."""

    snapshot: Snapshot
    until: datetime
    runs: tuple[ModelRun, ...]
    durations: DurationReport | None
    demand: DemandModel | None

    @property
    def refused(self) -> bool:
        """Whether a duration model was fitted and the gate would not let it be served.

        A champion that stays for want of new jobs to judge by is no refusal.
        """
        return any(
            run.name == DURATIONS and run.version is not None and not (run.decision.promoted or run.decision.kept)
            for run in self.runs
        )


def registered_durations(registry: ModelRegistry, *aliases: str) -> dict[str, DurationModel]:
    """The duration models that hold ``aliases``, by alias; one of another version of the program is passed over.

    Raises:
        Transient: the registry cannot be reached.
    """
    found = {}
    for alias in aliases:
        holder = registry.holder(DURATIONS, alias)
        if holder is None:
            continue
        try:
            found[alias] = DurationModel.load(holder.folder)
        except Refused as error:
            # It cannot compete, and must not stop its successor.
            _log.warning("version_passed_over", name=DURATIONS, version=holder.version, reason=str(error))
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainingJob:
    """One run of training on the jobs known at ``now``, into ``registry``."""

    registry: ModelRegistry
    plan: TrainingPlan
    now: datetime
    synthetic: bool = False
    progress: Progress | None = None

    def run(self, jobs: Sequence[Job]) -> TrainingRun:
        """Snapshot ``jobs``, then evaluate, fit, register and, where the gate allows it, promote each model.

        Raises:
            Refused: there is no job to learn from.
            Transient: snapshot folder or registry cannot be written.
        """
        if not jobs:
            raise Refused("history", None, "training needs jobs", "Ingest a history first: gsa ingest.")
        snapshot = write_snapshot(jobs, self.plan.snapshots)
        known = read_snapshot(snapshot.path)
        duration_run, duration_report, predicted = self._durations(known, snapshot)
        demand_run, demand_report = self._demand(known, snapshot, predicted)
        return TrainingRun(
            snapshot=snapshot,
            until=self.now,
            runs=(duration_run, demand_run),
            durations=duration_report,
            demand=demand_report,
        )

    def _durations(
        self, jobs: Sequence[Job], snapshot: Snapshot
    ) -> tuple[ModelRun, DurationReport | None, Predicted | None]:
        if len(jobs) < 2:
            return _nothing(DURATIONS, f"{len(jobs)} job is no history to evaluate on"), None, None
        incumbents = registered_durations(self.registry, CHAMPION)
        report, model, predicted = evaluate_and_fit(jobs, self.now, self.plan.durations, self.progress, incumbents)
        decision = may_be_served(report, None, CHAMPION)
        if model is None:
            return _nothing(DURATIONS, "too few jobs have ended to fit a model: the baseline is served"), report, None
        card = self._card(DURATIONS, snapshot, decision, self.plan.durations.fit.seed)
        return self._registered(model.save, card, decision), report, predicted

    def _demand(
        self, jobs: Sequence[Job], snapshot: Snapshot, predicted: Predicted | None
    ) -> tuple[ModelRun, DemandModel | None]:
        plan = self.plan
        first = min(job.submit for job in jobs)
        grid = SeriesGrid(
            start=first,
            end=self.now,
            step_minutes=plan.demand_grid_minutes,
            node_gpus=plan.node_gpus,
            zone=plan.zone,
        )
        series = list(series_by_pool(jobs, grid, self.now).values())
        if self.progress is not None:
            self.progress("demand", 0, 0)
        releases = None if predicted is None else known_releases(predicted, series, plan.demand.horizons_minutes)
        model = fit_demand(series, self.now, plan.demand, plan.warm, releases)
        decision = demand_decision(model)
        card = self._card(DEMAND, snapshot, decision, plan.demand.seed)
        return self._registered(model.save, card, decision), model

    def _card(self, name: str, snapshot: Snapshot, decision: PromotionDecision, seed: int) -> ModelCard:
        return ModelCard(
            name=name,
            made_at=self.now,
            data_digest=snapshot.digest,
            rows=snapshot.rows,
            fitted_until=self.now,
            seed=seed,
            versions={"lightgbm": lightgbm.__version__, "numpy": np.__version__, "python": platform.python_version()},
            measures=decision.measures,
            reasons=decision.reasons,
            synthetic=self.synthetic,
        )

    def _registered(self, save: Callable[[Path], None], card: ModelCard, decision: PromotionDecision) -> ModelRun:
        with tempfile.TemporaryDirectory(prefix="gsa-model-") as scratch:
            folder = Path(scratch) / card.name
            save(folder)
            version = self.registry.register(folder, card)
        if decision.promoted:
            self.registry.promote(card.name, version)
        return ModelRun(name=card.name, version=version, decision=replace(decision, version=version))


def demand_decision(model: DemandModel) -> PromotionDecision:
    """Whether a demand model is worth serving: it has earned the right for some pool at some horizon.

    Each pool and horizon is gated by itself when it is served; ``measures`` hold every skill by
    ``<pool>.<minutes>``.
    """
    verdicts = {(pool, h): one.verdict for pool, rec in model.pools.items() for h, one in rec.horizons.items()}
    served = [at for at, verdict in verdicts.items() if verdict.served == MODEL]
    measures = {f"skill.{pool}.{h}": v.skill for (pool, h), v in verdicts.items() if v.skill is not None}
    every = counted(len(verdicts), "horizon")
    reasons = [f"the model is served at {len(served)} of {every}, those of all pools taken together"]
    told: dict[tuple[str, str, str], list[str]] = {}
    for (pool, h), v in verdicts.items():
        if v.reason is not None:
            told.setdefault((pool, v.served, v.reason), []).append(shown_duration(h * SECONDS_PER_MINUTE))
    reasons += [f"pool {p}, {', '.join(ahead)} ahead: {who} is served, {why}" for (p, who, why), ahead in told.items()]
    return PromotionDecision(promoted=bool(served), version=None, reasons=tuple(reasons), measures=measures)


def _nothing(name: str, reason: str) -> ModelRun:
    decision = PromotionDecision(promoted=False, version=None, reasons=(reason,), measures={})
    return ModelRun(name=name, version=None, decision=decision)
