"""What training commands share: a plan from settings, a bar, and how a run is shown."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from datetime import datetime
from typing import Any

from rich.table import Table

from advisor.domain.reports import DurationReport, DurationScores
from advisor.domain.units import shown_duration
from advisor.errors import Refused
from advisor.history.store import HistoryStore
from advisor.settings import Settings
from serving.cli.alone import training_alone
from serving.cli.output import progress_bar, table
from serving.wiring import open_registry
from training.backtest import BacktestSettings
from training.demand import DemandFitSettings
from training.forests import DurationSettings
from training.pipeline import Progress, TrainingJob, TrainingPlan, TrainingRun

__all__ = ["backtest_settings", "duration_tables", "run_document", "run_tables", "stages", "train_on"]


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
        raise Refused("history", 0, "training needs jobs", "Ingest a history first: gsa ingest trace ...")
    plan = TrainingPlan(
        snapshots=settings.storage.snapshot_folder,
        durations=backtest_settings(settings, split),
        demand=replace(
            DemandFitSettings(), horizons_minutes=settings.demand.horizons_minutes, seed=settings.demand.seed
        ),
        zone=settings.demand.timezone,
    )
    with training_alone(settings.storage.home), stages("train") as progress:
        registry = open_registry(settings)
        if settings.storage.tracking_uri is None:
            # Nobody else registers in a registry of this home's own while its lock is held.
            registry.discard_unfinished()
        job = TrainingJob(registry=registry, plan=plan, now=now, synthetic=store.is_synthetic(), progress=progress)
        return job.run(store.jobs(now))


@contextmanager
def stages(what: str) -> Iterator[Progress]:
    """A bar for work of several stages, each counted by itself."""
    with progress_bar(what) as step:

        def told(stage: str, done: int, total: int) -> None:
            del stage
            step(done, total)

        yield told


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
                "reasons": list(one.decision.reasons),
                "measures": one.decision.measures,
            }
            for one in run.runs
        ],
        "durations": None if run.durations is None else run.durations.to_json(),
    }


def run_tables(run: TrainingRun) -> list[Table | str]:
    """The same for a person."""
    rows = [(one.name, one.version, "champion" if one.decision.promoted else "not promoted") for one in run.runs]
    parts: list[Table | str] = [
        table(f"trained on {run.snapshot.rows:,} jobs", ("model", "version", "decision"), rows),
        *(f"- {one.name}: {reason}" for one in run.runs for reason in one.decision.reasons),
    ]
    return parts if run.durations is None else [*parts, *duration_tables(run.durations)]


_COLUMNS = (
    "predictor",
    "jobs",
    "log MAE",
    "in 25 %",
    "in 2x",
    "typical 2x",
    "CRPS",
    "q50",
    "q90",
    "q95",
    "cov 80",
    "cov 90",
    "cov 95",
)


def duration_tables(report: DurationReport) -> list[Table | str]:
    """Every predictor over all jobs, then over groups of them, then over those that already ran."""
    protocol = report.protocol
    groups = {
        "by history": report.by_history,
        "by the key that carried the baseline": report.by_key,
        "by GPUs": report.by_gpus,
        "by actual duration, from so many seconds up to ten times as many": report.by_decade,
    }
    origin = f"{protocol.rows:,} jobs, split at {protocol.split_time}, {protocol.refits} fits"
    return [
        table("durations, held-out part (ln seconds)", _COLUMNS, [_row(n, s) for n, s in report.scores.items()]),
        *(table(title, _COLUMNS, _group_rows(groups[title])) for title in groups),
        table("jobs that already run: the rest within its quantiles", _RUNNING_COLUMNS, _running_rows(report)),
        f"served: {report.served}. {origin}, seed {protocol.seed}, data {protocol.data_digest}",
        *(f"- assumed: {assumption}" for assumption in protocol.assumed),
    ]


def _group_rows(groups: dict[str, dict[str, DurationScores]]) -> list[tuple[object, ...]]:
    return [_row(f"{name}, {group}", scores) for name, by in groups.items() for group, scores in by.items()]


_RUNNING_COLUMNS = ("predictor, has run", "jobs", "cov 50", "cov 80", "cov 90", "cov 95")


def _running_rows(report: DurationReport) -> list[tuple[object, ...]]:
    levels = ("0.5", "0.8", "0.9", "0.95")
    return [
        (f"{name}, {shown_duration(float(age))}", scores.n, *(scores.coverage.get(level) for level in levels))
        for name, by in report.running.items()
        for age, scores in by.items()
    ]


def _row(name: str, scores: DurationScores) -> tuple[object, ...]:
    return (
        name,
        scores.n,
        scores.log_mae,
        scores.within_25_percent,
        scores.within_2x,
        scores.typical_within_2x,
        scores.crps_log,
        *(scores.pinball_log.get(level) for level in ("0.5", "0.9", "0.95")),
        *(scores.coverage.get(level) for level in ("0.8", "0.9", "0.95")),
    )
