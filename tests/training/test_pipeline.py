"""The training job: what it registers, what it promotes, and that it reads nothing but its snapshot."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from advisor.domain.jobs import Job
from advisor.errors import Refused
from advisor.forecast.demand import DemandForecaster
from advisor.forecast.demand_model import DemandModel
from advisor.forecast.duration_model import DurationModel
from advisor.forecast.registry import DEMAND, DURATIONS, ModelRegistry
from advisor.history.snapshot import read_snapshot
from advisor.telemetry.synthetic import synthetic_workload
from tests.builders import NOON, a_job
from training.backtest import BacktestSettings
from training.demand import DemandFitSettings
from training.forests import DurationSettings
from training.pipeline import TrainingJob, TrainingPlan, TrainingRun

FEW = BacktestSettings(fit=replace(DurationSettings(), trees=3))


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("training")


@pytest.fixture(scope="module")
def registry(home: Path) -> ModelRegistry:
    return ModelRegistry.open(f"sqlite:///{home}/registry.db", (home / "artifacts").as_uri())


def a_job_of_training(registry: ModelRegistry, home: Path) -> TrainingJob:
    plan = TrainingPlan(
        snapshots=home / "snapshots",
        durations=FEW,
        demand=DemandFitSettings(horizons_minutes=(15, 60), row_minutes=30, rounds=10, rises=False),
    )
    return TrainingJob(registry=registry, plan=plan, now=NOON, synthetic=True)


@pytest.fixture(scope="module")
def workload() -> list[Job]:
    return list(synthetic_workload(3, NOON, days=6).jobs)


@pytest.fixture(scope="module")
def run(registry: ModelRegistry, home: Path, workload: list[Job]) -> TrainingRun:
    return a_job_of_training(registry, home).run(workload)


def test_both_models_are_registered_with_their_evidence(run: TrainingRun, registry: ModelRegistry) -> None:
    assert [one.name for one in run.runs] == [DURATIONS, DEMAND]
    for one in run.runs:
        assert one.version is not None
        card = registry.load(one.name, one.version).card
        assert card.data_digest == run.snapshot.digest
        assert card.rows == run.snapshot.rows
        assert card.synthetic
        assert card.reasons == one.decision.reasons
    why = [reason.split(" ahead: ")[1] for reason in run.runs[1].decision.reasons[1:]]
    assert len(why) == len(set(why)), "each reason once, after all the horizons it holds for"
    assert run.durations is not None
    assert len(run.durations.protocol.data_digest) == 16
    assert run.snapshot.digest.startswith(run.durations.protocol.data_digest)


def test_the_champion_is_the_one_that_beat_the_baseline_and_it_can_be_served(
    run: TrainingRun, registry: ModelRegistry
) -> None:
    durations, demand = run.runs
    assert durations.decision.promoted
    champion = registry.champion(DURATIONS)
    assert champion is not None
    assert champion.version == durations.version
    assert durations.decision.measures["model.log_mae"] < durations.decision.measures["median_of_5.log_mae"]
    assert DurationModel.load(champion.folder).fitted_at == NOON

    assert demand.version is not None
    model = DemandModel.load(registry.load(DEMAND, demand.version).folder)
    assert demand.decision.promoted == any(
        horizon.verdict.served == "model" for pool in model.pools.values() for horizon in pool.horizons.values()
    )
    DemandForecaster(model)


def test_the_snapshot_is_what_was_trained_on(run: TrainingRun, workload: list[Job]) -> None:
    assert sorted(job.id for job in read_snapshot(run.snapshot.path)) == sorted(job.id for job in workload)


def test_one_job_trains_nothing_and_says_so(registry: ModelRegistry, home: Path) -> None:
    run = a_job_of_training(registry, home).run([a_job(submit=NOON - timedelta(hours=1))])

    assert run.runs[0].version is None
    assert "no history to evaluate on" in run.runs[0].decision.reasons[0]
    assert not run.refused


def test_no_jobs_at_all_are_refused(registry: ModelRegistry, home: Path) -> None:
    with pytest.raises(Refused, match="gsa ingest"):
        a_job_of_training(registry, home).run([])


def test_identical_jobs_do_not_make_a_champion_of_what_is_no_better(registry: ModelRegistry, home: Path) -> None:
    """All jobs alike: the median of the last five is right every time, and nothing can be better."""
    before = registry.champion(DURATIONS)
    jobs = [a_job(f"job-{n}", submit=NOON - timedelta(minutes=2000 - 5 * n), seconds=120.0) for n in range(400)]

    run = a_job_of_training(registry, home).run(jobs)

    after = registry.champion(DURATIONS)
    assert not run.runs[0].decision.promoted
    assert run.refused == (run.runs[0].version is not None)
    assert (before and before.version) == (after and after.version)
