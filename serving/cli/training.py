"""What training commands share: a plan from settings, a bar, and how a run is shown."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from rich.table import Table

from advisor.domain.reports import DurationReport, DurationScores, PromotionDecision
from advisor.domain.units import counted, shown_duration
from advisor.errors import Refused
from advisor.history.snapshot import DIGEST_SHOWN, Snapshot
from advisor.history.store import HistoryStore
from advisor.planning.costs import waiting_ratio
from advisor.planning.warm_capacity import UNKNOWN_START_LATENCY_SECONDS
from advisor.settings import Settings
from serving.cli.alone import training_alone
from serving.cli.output import minute, stages, table
from serving.wiring import open_registry, prices_of
from training.backtest import BacktestSettings
from training.demand import DemandFitSettings
from training.forests import DurationSettings
from training.pipeline import TrainingJob, TrainingPlan, TrainingRun
from training.warm_replay import WarmWorld
from training.warm_trial import WarmTrial

__all__ = ["backtest_settings", "duration_tables", "quality_tables", "run_document", "run_tables", "train_on"]


def backtest_settings(settings: Settings, split: float) -> BacktestSettings:
    """How durations are fitted and replayed."""
    durations = settings.durations
    fit = replace(
        DurationSettings(),
        trees=durations.trees,
        newest_jobs=durations.jobs,
        decay_days=durations.decay_days,
        seed=durations.seed,
    )
    return BacktestSettings(split=split, fit=fit)


def train_on(settings: Settings, store: HistoryStore, split: float, as_of: datetime | None = None) -> TrainingRun:
    """Train on what ``store`` knew at ``as_of``, by default when its last job was submitted.

    Raises:
        Refused: the store is empty.
        Transient: another process trains on the same home.
    """
    now = as_of or store.last_submit()
    if now is None:
        raise Refused("history", None, "training needs jobs", "Ingest a history first: gsa ingest.")
    plan = TrainingPlan(
        snapshots=settings.storage.snapshot_folder,
        durations=backtest_settings(settings, split),
        demand=replace(
            DemandFitSettings(), horizons_minutes=settings.demand.horizons_minutes, seed=settings.demand.seed
        ),
        zone=settings.demand.timezone,
        warm=_warm_trial(settings),
    )
    with training_alone(settings.storage.home), stages("train") as progress:
        registry = open_registry(settings)
        if settings.storage.tracking_uri is None:
            # Nobody else registers in a registry of this home's own while its lock is held.
            registry.discard_unfinished()
        job = TrainingJob(registry=registry, plan=plan, now=now, synthetic=store.is_synthetic(), progress=progress)
        return job.run(store.jobs(now))


def _warm_trial(settings: Settings) -> WarmTrial:
    """Rules of warm capacity are weighed at the user's prices and with the start latency that is set."""
    prices = prices_of(settings)
    seconds = settings.warm.start_latency_seconds or UNKNOWN_START_LATENCY_SECONDS
    world = WarmWorld(latency_minutes=seconds / 60.0, boot_billed=prices.boot_billed)
    return WarmTrial(world=world, waiting_ratio=waiting_ratio(prices))


def run_document(run: TrainingRun) -> dict[str, Any]:
    """What came of a training run."""
    return {
        "snapshot": {"digest": run.snapshot.digest, "rows": run.snapshot.rows},
        "until": run.until.isoformat(),
        "models": [
            {
                "name": one.name,
                "version": one.version,
                "promoted": one.decision.promoted,
                "kept": one.decision.kept,
                "reasons": list(one.decision.reasons),
                "measures": one.decision.measures,
            }
            for one in run.runs
        ],
        "durations": None if run.durations is None else run.durations.to_json(),
    }


def run_tables(run: TrainingRun) -> list[Table | str]:
    """The same for a person: who is served and why, and how good that was."""
    rows = [(one.name, one.version, _decided(one.decision)) for one in run.runs]
    parts: list[Table | str] = [
        table(_title(run.snapshot), ("model", "version", "decision"), rows, prose=["decision"]),
        *(f"- {one.name}: {reason}" for one in run.runs for reason in one.decision.reasons),
    ]
    if run.durations is None:
        return parts
    return [*parts, *quality_tables(run.durations), "by groups of jobs: gsa evaluate durations"]


def _title(snapshot: Snapshot) -> str:
    return f"trained on {counted(snapshot.rows, 'job')}, data {snapshot.digest[:DIGEST_SHOWN]}"


def _decided(decision: PromotionDecision) -> str:
    if decision.promoted:
        return "champion"
    return "not promoted: the champion stays" if decision.kept else "not promoted"


Measure = tuple[str, Callable[[DurationScores], float | None]]


def _loss(level: str) -> Measure:
    return f"P{float(level) * 100:g} loss", lambda scores: scores.pinball_log.get(level)


def _coverage(level: str) -> Measure:
    return f"P{float(level) * 100:g} coverage", lambda scores: scores.coverage.get(level)


_EVERY_MEASURE: tuple[Measure, ...] = (
    ("jobs", lambda scores: scores.n),
    ("log MAE", lambda scores: scores.log_mae),
    ("in 25 %", lambda scores: scores.within_25_percent),
    ("in 2x", lambda scores: scores.within_2x),
    ("typical 25 %", lambda scores: scores.typical_within_25_percent),
    ("typical 2x", lambda scores: scores.typical_within_2x),
    ("CRPS", lambda scores: scores.crps_log),
    *(_loss(level) for level in ("0.5", "0.9", "0.95")),
    *(_coverage(level) for level in ("0.5", "0.8", "0.9", "0.95")),
)
_SHORT = {"jobs", "log MAE", "in 2x", "typical 2x", "CRPS", "P90 loss", "P90 coverage"}
_MEASURES = tuple(measure for measure in _EVERY_MEASURE if measure[0] in _SHORT)
_WORDS = (
    "log MAE: mean |ln(median / real)|, 0.69 is a factor of two. in 2x: share of medians within a factor of two, "
    "typical 2x: the same of typical durations. CRPS: error of the whole distribution. P90 loss: pinball loss of the "
    "90 % quantile. P90 coverage: share of jobs that ended by it, honest is 0.9. Losses and errors: smaller is better."
)

_ABREAST = 7
"""Groups beside each other in 80 columns."""

_HISTORY = "warm: a job of the same owner and GPU count had ended before, cold: none had."
_GROUPS = (
    "baseline's key: whose history the baseline took, the most specific that had an end. jobs already run: of those "
    "that ran so long, how often the rest came within its 90 % quantile."
)
_MORE = "every group with every measure, and coverage by week: --output json, or as a page: --html FILE"


def quality_tables(report: DurationReport, measures: Sequence[Measure] = _MEASURES) -> list[Table | str]:
    """Every predictor over all scored jobs, one measure a row, and how that was measured."""
    protocol = report.protocol
    rows = [(name, *(measure(scores) for scores in report.scores.values())) for name, measure in measures]
    history = f"{counted(protocol.rows, 'job')}, split at {minute(protocol.split_time)} UTC"
    fits = counted(protocol.refits, "fit")
    return [
        table("durations, held-out part", ("measure", *report.scores), rows),
        _WORDS,
        f"served: {report.served}. {history}, {fits}, seed {protocol.seed}, data {protocol.data_digest}",
    ]


def duration_tables(report: DurationReport, *, every_group: bool = False) -> list[Table | str]:
    """The quality over all jobs and over groups of them; of ``every_group`` there is."""
    return [
        *quality_tables(report, _EVERY_MEASURE),
        *_of_groups(report),
        _HISTORY,
        *(_more_groups(report) if every_group else ()),
        *_outcomes(report),
        *_versus(report),
        *(f"- assumed: {assumption}" for assumption in report.protocol.assumed),
        _MORE if every_group else f"more groups: --every-group. {_MORE}",
    ]


def _of_groups(report: DurationReport) -> list[Table]:
    """One table a predictor, measures down and groups across, as many groups in one as fit."""
    tables = []
    for predictor in report.scores:
        by_gpus = report.by_gpus.get(predictor, {})
        named = {f"{gpus}\n{'GPU' if float(gpus) <= 1 else 'GPUs'}": scores for gpus, scores in by_gpus.items()}
        groups = {**report.by_history.get(predictor, {}), **named}
        names = list(groups)
        for first in range(0, len(names), _ABREAST):
            shown = names[first : first + _ABREAST]
            rows = [(name, *(measure(groups[group]) for group in shown)) for name, measure in _EVERY_MEASURE]
            tables.append(table(f"{predictor}, by history and GPUs", ("measure", *shown), rows))
    return tables


def _more_groups(report: DurationReport) -> list[Table | str]:
    """Groups that tell more of how a prediction was made, and what was asked again of jobs that ran."""
    errors = {
        "by baseline's key": report.by_key,
        "by actual duration": {name: _decades(groups) for name, groups in report.by_decade.items()},
    }
    tables = [_by_group(f"log MAE {title}", groups) for title, groups in errors.items()]
    return [*tables, _running(report), _GROUPS]


def _by_group(title: str, groups: dict[str, dict[str, DurationScores]]) -> Table:
    first = next(iter(groups.values()), {})
    rows = [(group, scores.n, *(groups[name][group].log_mae for name in groups)) for group, scores in first.items()]
    return table(title, ("group", "jobs", *groups), rows)


def _decades(groups: dict[str, DurationScores]) -> dict[str, DurationScores]:
    """The groups under names that people read: from so long up to ten times as long."""
    return {
        f"{shown_duration(float(least))} to {shown_duration(10.0 * float(least))}": scores
        for least, scores in groups.items()
    }


def _outcomes(report: DurationReport) -> list[Table | str]:
    rows = [(name, s.rate, s.brier, s.brier_rate, s.brier_owner) for name, s in report.outcomes.items()]
    if not rows:
        return []
    columns = ("ends", "share", "model", "usual share", "owner's last 5")
    words = "Brier score: mean (chance - what came)^2, smaller is better; beside the model, who says the usual share."
    return [table("how jobs end: Brier score of the chances", columns, rows), words]


def _versus(report: DurationReport) -> list[Table | str]:
    """Registered models that have seen part of the scored jobs, on the others."""
    rows = [
        (name, minute(one.since), one.model.n, one.rival.log_mae, one.model.log_mae)
        for name, one in report.versus.items()
        if one.model.n
    ]
    columns = ("registered", "fitted (UTC)", "jobs since", "its log MAE", "model")
    return [table("log MAE on jobs submitted since its fit", columns, rows)] if rows else []


def _running(report: DurationReport) -> Table:
    first = next(iter(report.running.values()), {})
    rows = [
        (shown_duration(float(age)), scores.n, *(by[age].coverage.get("0.9") for by in report.running.values()))
        for age, scores in first.items()
    ]
    title = "P90 coverage, jobs already run"
    return table(title, ("has run", "jobs", *report.running), rows)
