from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest

from advisor.domain.explanations import DurationExplanation, FeatureEffect
from advisor.domain.forecasts import DurationDistribution, DurationForecast
from serving.api.service import DurationAnswer, DurationAsk
from tests.builders import NOON
from tests.serving.fake_service import FakeService
from tests.serving.fake_values import a_forecast
from tests.serving.http import an_app, post

PATH = "/v1/predictions/durations"
LEVELS = ("0.1", "0.5", "0.8", "0.9", "0.95")


class RoughService(FakeService):
    """Answers the n-th ask with the n-th of some very irregular laws."""

    def durations(self, asks, **_how):
        return tuple(
            DurationAnswer(id=ask.id, as_of=NOON, forecast=replace(a_forecast(), distribution=a_rough_law(n)))
            for n, ask in enumerate(asks)
        )


def a_rough_law(seed: int) -> DurationDistribution:
    """Any climb from 0 to 1: long flat stretches, cliffs, a few or many edges, milliseconds to years."""
    rng = np.random.default_rng(seed)
    edges = np.sort(rng.uniform(-5.0, 18.0, rng.integers(2, 60)))
    mass = rng.pareto(0.4, edges.size - 1) * (rng.random(edges.size - 1) < 0.6)
    mass[rng.integers(mass.size)] += 1.0
    cdf = np.concatenate([[0.0], np.cumsum(mass) / mass.sum()])
    cdf[-1] = 1.0
    return DurationDistribution(edges + np.arange(edges.size) * 1e-6, np.minimum(cdf, 1.0))


def test_a_prediction_carries_its_numbers_its_model_and_its_evidence():
    answer = post(an_app(), PATH, json={"jobs": [{"id": "j", "gpus": 1, "user": "ada"}]})

    assert answer.status_code == 200
    body = answer.json()
    assert body["as_of"] == "2026-03-02T12:00:00Z"
    assert body["synthetic"] is True
    assert body["model_version"] == "4"
    (one,) = body["predictions"]
    assert one["id"] == "j"
    assert one["median_seconds"] == one["quantiles_seconds"]["0.5"] == pytest.approx(1510)
    assert one["mean_seconds"] > one["median_seconds"]
    assert one["typical_seconds"] > 0
    assert (one["served"], one["key"], one["key_count"], one["reasons"]) == ("model", "user+gpus", 214, [])
    assert one["elapsed_seconds"] is None
    assert one["remaining"] is None


def test_what_a_caller_knows_of_a_job_reaches_the_service():
    service = FakeService()
    known = {"user": "ada", "namespace": "vc1", "name": "bert", "image": "pt", "gpu_kind": "a100", "pool": "a100"}

    post(an_app(service), PATH, json={"jobs": [{"id": "j", "gpus": 8, "cpus": 32.5, "nodes": 2, **known}]})

    assert service.asked == [DurationAsk(id="j", gpus=8, cpus=32.5, nodes=2, **known)]


def test_answers_come_in_the_order_asked_and_a_missing_id_is_the_position():
    jobs = [{"id": "b", "gpus": 1}, {"gpus": 1}, {"id": "a", "gpus": 1}]

    answer = post(an_app(), PATH, json={"jobs": jobs}).json()

    assert [p["id"] for p in answer["predictions"]] == ["b", "1", "a"]


def test_a_running_job_is_told_what_remains():
    answer = post(an_app(), PATH, json={"jobs": [{"gpus": 1, "elapsed_seconds": 3600}]}).json()

    (one,) = answer["predictions"]
    expected = a_forecast().distribution.given_age(3600)
    assert one["elapsed_seconds"] == 3600
    assert one["remaining"]["median_seconds"] == pytest.approx(expected.median)
    assert one["remaining"]["quantiles_seconds"]["0.9"] == pytest.approx(expected.quantile(0.9))
    assert one["median_seconds"] == pytest.approx(1510), "the whole duration is still answered beside it"


def test_a_baseline_answers_without_a_version_and_says_why():
    service = FakeService(forecast=a_forecast(version=None))

    answer = post(an_app(service), PATH, json={"jobs": [{"gpus": 1}]}).json()

    assert answer["model_version"] is None
    assert answer["predictions"][0]["served"] == "median_of_5"
    assert answer["predictions"][0]["reasons"] == ["no model has been promoted yet"]


def test_quantiles_never_cross_and_are_positive_on_400_rough_laws():
    """Field report A17: p50 <= p90 <= p95 and above 0 s on every row, through the API too."""
    answer = post(an_app(RoughService()), PATH, json={"jobs": [{"gpus": 1}] * 400}).json()

    for one in answer["predictions"]:
        quantiles = [one["quantiles_seconds"][level] for level in LEVELS]
        assert quantiles == sorted(quantiles)
        assert quantiles[0] > 0
        assert all(math.isfinite(q) for q in (*quantiles, one["mean_seconds"], one["typical_seconds"]))


def test_a_full_batch_is_answered_and_one_job_more_is_refused_with_the_remedy():
    app = an_app()

    full = post(app, PATH, json={"jobs": [{"gpus": 1}] * 1000})
    over = post(app, PATH, json={"jobs": [{"gpus": 1}] * 1001})

    assert len(full.json()["predictions"]) == 1000
    assert over.status_code == 422
    assert over.json()["errors"] == [
        {
            "field": "jobs",
            "value": 1001,
            "limit": "at most 1000 jobs a request",
            "remedy": "Split them over several requests.",
        }
    ]


def test_no_job_at_all_is_refused():
    answer = post(an_app(), PATH, json={"jobs": []})

    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == "jobs"


def test_ten_thousand_gpus_are_predicted_like_any_other_job():
    assert post(an_app(), PATH, json={"jobs": [{"gpus": 10_000}]}).status_code == 200


class MixedService(FakeService):
    """Serves every second job from another version, as during a careless reload."""

    def durations(self, asks, **_how):
        versions = ("4", "5")
        return tuple(
            DurationAnswer(id=ask.id, as_of=NOON, forecast=a_forecast(version=versions[n % 2]))
            for n, ask in enumerate(asks)
        )


def test_two_model_versions_are_never_mixed_in_one_answer():
    answer = post(an_app(MixedService()), PATH, json={"jobs": [{"gpus": 1}] * 2})

    assert answer.status_code == 500
    assert answer.json()["type"].endswith(":defect")


def test_a_baseline_may_stand_beside_the_model():
    class Partly(FakeService):
        def durations(self, asks, **_how):
            forecasts: list[DurationForecast] = [a_forecast(), a_forecast(version=None)]
            return tuple(
                DurationAnswer(id=ask.id, as_of=NOON, forecast=forecast)
                for ask, forecast in zip(asks, forecasts, strict=True)
            )

    answer = post(an_app(Partly()), PATH, json={"jobs": [{"gpus": 1}] * 2}).json()

    assert answer["model_version"] == "4"
    assert [p["model_version"] for p in answer["predictions"]] == ["4", None]


class ExplainingService(FakeService):
    """Answers with an explanation where one is asked for."""

    def durations(self, asks, *, explain=False):
        why = DurationExplanation(
            key="user+gpus",
            key_count=3,
            last_end=datetime(2026, 3, 2, tzinfo=UTC),
            weights={"forest": 0.7, "hazard": 0.2, "median_of_5": 0.1},
            effects=(FeatureEffect(name="og_last", meaning="latest", unit="s", value=None, longer=False, share=0.4),),
            narrower=("name the user",),
        )
        return tuple(replace(answer, explanation=why if explain else None) for answer in super().durations(asks))


def test_an_explanation_comes_where_it_is_asked_for_and_only_there():
    app = an_app(ExplainingService())
    (told,) = post(app, PATH, json={"jobs": [{"gpus": 1}], "explain": True}).json()["predictions"]
    assert told["explanation"]["key_count"] == 3
    assert (told["explanation"]["effects"][0]["direction"], told["explanation"]["effects"][0]["value"]) == (
        "shorter",
        None,
    )
    (plain,) = post(app, PATH, json={"jobs": [{"gpus": 1}]}).json()["predictions"]
    assert plain["explanation"] is None


def test_more_jobs_than_can_be_explained_are_refused_by_name():
    answer = post(an_app(ExplainingService()), PATH, json={"jobs": [{"gpus": 1}] * 51, "explain": True})
    assert answer.status_code == 422
    assert "at most 50 jobs can be explained" in answer.json()["detail"]
