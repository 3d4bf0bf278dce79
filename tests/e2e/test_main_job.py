"""History in, models fitted and registered, forecasts and advice served: the real parts, joined as in production."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI

from advisor.clock import ManualClock
from advisor.domain.ingest import JobBatch
from advisor.errors import Transient
from advisor.forecast.registry import DURATIONS
from advisor.history.store import HistoryStore
from advisor.settings import Settings, load_settings
from advisor.telemetry.synthetic import synthetic_workload
from serving.app import create_app
from serving.live import LiveAdvisor, LiveParts
from serving.wiring import ClusterChoice, open_registry
from tests.builders import NOON, a_job
from tests.serving.http import get, post
from training.backtest import BacktestSettings
from training.demand import DemandFitSettings
from training.forests import DurationSettings
from training.pipeline import TrainingJob, TrainingPlan

CLUSTER = """
time = "history"
[[pools]]
name = "t4"
node_gpus = [8]
consolidate_after = "600s"
limits = { "nvidia.com/gpu" = "64" }
slice_minutes = 45
nodes = 4
"""


def settings_at(home: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("GSA_STORAGE__HOME", str(home))
    return load_settings()


def live_on(settings: Settings, store: HistoryStore, choice: ClusterChoice | None = None) -> LiveAdvisor:
    parts = LiveParts(
        settings=settings,
        history=store,
        registry=open_registry(settings),
        clock=ManualClock(NOON),
        cluster=choice or ClusterChoice(),
    )
    return LiveAdvisor(parts)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Settings, HistoryStore]]:
    home = tmp_path_factory.mktemp("main-job")
    with pytest.MonkeyPatch.context() as patch:
        settings = settings_at(home, patch)
    with HistoryStore.open(settings.storage.history) as store:
        store.append(synthetic_workload(5, NOON, days=6), NOON)
        plan = TrainingPlan(
            snapshots=settings.storage.snapshot_folder,
            durations=BacktestSettings(fit=replace(DurationSettings(), trees=4)),
            demand=DemandFitSettings(horizons_minutes=(15, 60), row_minutes=30, rounds=10),
        )
        now = store.last_submit()
        assert now is not None
        TrainingJob(registry=open_registry(settings), plan=plan, now=now, synthetic=True).run(store.jobs(now))
        yield settings, store


@pytest.fixture(scope="module")
def live(trained: tuple[Settings, HistoryStore]) -> LiveAdvisor:
    advisor = live_on(*trained)
    advisor.refresh()
    return advisor


@pytest.fixture(scope="module")
def app(live: LiveAdvisor, trained: tuple[Settings, HistoryStore]) -> FastAPI:
    return create_app(live, live, trained[0].server)


def numbers_in(document: Any) -> Iterator[float]:
    if isinstance(document, dict):
        for value in document.values():
            yield from numbers_in(value)
    elif isinstance(document, list):
        for value in document:
            yield from numbers_in(value)
    elif isinstance(document, float):
        yield document


@pytest.mark.parametrize(
    "path",
    ["/healthz", "/readyz", "/v1/recommendations", "/v1/recommendations/t4", "/v1/forecasts/demand", "/v1/models"],
)
def test_every_endpoint_answers_with_real_finite_numbers(app: FastAPI, path: str) -> None:
    answer = get(app, path)

    assert answer.status_code == 200, answer.text
    assert all(math.isfinite(number) for number in numbers_in(answer.json()))


def test_advice_names_pools_models_and_that_the_workload_is_synthetic(app: FastAPI) -> None:
    advice = get(app, "/v1/recommendations").json()

    assert sorted(pool["pool"] for pool in advice["pools"]) == ["a100", "t4"]
    assert advice["mode"] == "Recommend"
    assert advice["models"]["durations"] == "1"
    assert advice["synthetic"] is True
    for pool in advice["pools"]:
        assert pool["slice_lengths"]
        assert pool["keep_alive_seconds"] >= 60
        assert pool["reasons"]


def test_a_duration_is_predicted_with_its_evidence(app: FastAPI, live: LiveAdvisor) -> None:
    known = live.jobs(None, 1)[0].job
    asked = {"id": "x", "gpus": known.gpus, "user": known.user, "gpu_kind": known.gpu_kind}

    answer = post(app, "/v1/predictions/durations", json={"jobs": [asked, {"id": "y", "gpus": 10_000}]})

    assert answer.status_code == 200, answer.text
    first, giant = answer.json()["predictions"]
    for one in (first, giant):
        levels = list(one["quantiles_seconds"].values())
        assert levels == sorted(levels)
        assert levels[0] > 0
    assert first["served"] == "model"
    assert first["key_count"] > 0


def test_an_impossible_gang_is_refused_and_a_small_task_is_not(app: FastAPI) -> None:
    tasks = [{"id": "small", "gpus": 1, "gpu_kind": "t4"}, {"id": "giant", "gpus": 10_000}]

    answer = post(app, "/v1/allocations", json={"jobs": tasks})

    assert answer.status_code == 200, answer.text
    small, giant = answer.json()["allocations"]
    assert small["decision"] in {"placed", "deferred"}
    assert giant["decision"] == "refused"
    assert giant["reasons"]


@pytest.mark.parametrize("path", ["/", "/pools/t4", "/jobs"])
def test_every_page_opens_and_says_synthetic(app: FastAPI, path: str) -> None:
    page = get(app, path)

    assert page.status_code == 200
    assert "synthetic" in page.text.lower()


def test_a_job_page_shows_what_was_promised_and_what_came(app: FastAPI, live: LiveAdvisor) -> None:
    ended = next(view for view in live.jobs(None, 200) if view.job.duration_seconds is not None)

    page = get(app, f"/jobs/{ended.job.id}")

    assert page.status_code == 200
    assert live.job("no such job") is None


def test_a_promise_is_what_would_have_been_said_at_submission(
    live: LiveAdvisor, trained: tuple[Settings, HistoryStore]
) -> None:
    """Oracle: a predictor that has seen nothing later gives the same answer."""
    from advisor.forecast.duration import DurationPredictor  # noqa: PLC0415 - only this oracle needs them
    from advisor.forecast.duration_model import DurationModel  # noqa: PLC0415

    settings, store = trained
    champion = open_registry(settings).champion(DURATIONS)
    assert champion is not None
    job = next(view.job for view in live.jobs(None, 100) if view.job.duration_seconds is not None)
    before = job.submit - timedelta(microseconds=1)
    fresh = DurationPredictor(DurationModel.load(champion.folder))
    # Jobs of the same instant that came before it are known to it too; this workload has none.
    assert sum(other.submit == job.submit for other in store.jobs(NOON)) == 1
    fresh.replay(store.jobs(before), before)

    asked = job.as_of(job.submit)
    assert asked is not None
    expected = fresh.forecast([asked], job.submit)[0].distribution
    promised = live.job(job.id)
    assert promised is not None
    assert promised.forecast.distribution.median == pytest.approx(expected.median, rel=1e-9)
    assert promised.forecast.distribution.quantile(0.9) == pytest.approx(expected.quantile(0.9), rel=1e-9)


def test_a_described_cluster_gets_its_own_changes_and_patch(
    trained: tuple[Settings, HistoryStore], tmp_path: Path
) -> None:
    file = tmp_path / "cluster.toml"
    file.write_text(CLUSTER, encoding="utf-8")
    advisor = live_on(*trained, ClusterChoice(file=file))

    advisor.refresh()

    [pool] = advisor.advice().pools
    assert pool.pool == "t4"
    fields = {change.field for change in pool.changes}
    assert "spec.disruption.consolidateAfter" in fields
    for change in pool.changes:
        assert change.reasons
        assert not change.field.startswith("spec.template")
    if pool.patch is not None:
        assert set(pool.patch) == {"apiVersion", "kind", "metadata", "spec"}
        assert set(pool.patch["spec"]) <= {"disruption", "limits", "weight"}


def test_nothing_new_means_nothing_rebuilt_and_the_same_advice(live: LiveAdvisor) -> None:
    """What was recommended but not done is still recommended: the pool's own setting is what is in use."""
    foresight, before = live._current().foresight, live.advice()

    live.refresh()

    assert live._current().foresight is foresight
    assert [pool.slice_plan for pool in live.advice().pools] == [pool.slice_plan for pool in before.pools]
    assert [pool.changes for pool in live.advice().pools] == [pool.changes for pool in before.pools]


def test_an_empty_history_is_told_and_not_invented(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = settings_at(tmp_path, monkeypatch)
    with HistoryStore.open(settings.storage.history) as store:
        advisor = live_on(settings, store)
        with pytest.raises(Transient, match="gsa ingest"):
            advisor.refresh()
        assert not advisor.readiness().ready
        app = create_app(advisor, advisor, settings.server)
        assert get(app, "/healthz").status_code == 200
        assert get(app, "/readyz").status_code == 503
        assert get(app, "/v1/recommendations").status_code == 503


def test_one_job_and_no_model_are_answered_by_stated_baselines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = settings_at(tmp_path, monkeypatch)
    with HistoryStore.open(settings.storage.history) as store:
        store.append(JobBatch(source="test", jobs=(a_job(),)), NOON + timedelta(hours=1))
        advisor = live_on(settings, store)
        advisor.refresh()

        advice = advisor.advice()

    assert advice.models == {"durations": None, "demand": None}
    assert any("no version of durations has been promoted" in reason for reason in advice.reasons)
    [pool] = advice.pools
    assert any("two seasons" in reason for reason in pool.demand.reasons)
    assert not any(change.allowed for change in pool.changes)
