"""Field report A19: no NaN, no null in a field typed number; a documented 503 instead."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import pytest

from advisor.domain.forecasts import HorizonForecast
from serving.api.service import DurationAnswer
from tests.builders import NOON
from tests.serving.fake_service import FakePages, FakeService
from tests.serving.fake_values import a_demand, a_forecast, a_pool, a_slice_class, an_advice
from tests.serving.http import an_app, get, post

DURATIONS = "/v1/predictions/durations"


class NanDistribution:
    """What a predictor would be that lost a number on its way: everything finite but the P90."""

    def __init__(self, broken: float) -> None:
        self.mean = 100.0
        self.typical = 100.0
        self._broken = broken

    def quantile(self, level: float) -> float:
        return self._broken if level == 0.9 else 100.0 * (1 + level)


class NanService(FakeService):
    broken = math.nan

    def durations(self, asks, **_how):
        distribution: Any = NanDistribution(self.broken)
        forecast = replace(a_forecast(), distribution=distribution)
        return tuple(DurationAnswer(id=ask.id, as_of=NOON, forecast=forecast) for ask in asks)


@pytest.mark.parametrize("broken", [math.nan, math.inf, -math.inf])
def test_a_prediction_that_is_not_finite_is_withheld(broken):
    """Field report A19: the predictor returns NaN for p90."""
    service = NanService()
    service.broken = broken

    answer = post(an_app(service), DURATIONS, json={"jobs": [{"gpus": 1}]})

    assert answer.status_code == 503
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["type"].endswith(":no-answer")
    assert int(answer.headers["retry-after"]) > 0
    assert "NaN" not in answer.text


def test_a_negative_prediction_is_withheld_too():
    """Field report A17: negative seconds never leave."""
    service = NanService()
    service.broken = -3.0

    assert post(an_app(service), DURATIONS, json={"jobs": [{"gpus": 1}]}).status_code == 503


def test_a_demand_that_is_not_finite_is_withheld_and_everything_else_still_answers():
    """Field report A19, for demand."""
    broken = HorizonForecast(horizon_minutes=30, levels=(0.5, 0.9), gpus=(1.0, math.nan), skill=None, served="model")
    pool = replace(a_pool(), demand=replace(a_demand(), horizons=(broken,)))
    app = an_app(FakeService(advice_now=an_advice(pool)))

    assert get(app, "/v1/forecasts/demand").status_code == 503
    assert get(app, "/v1/recommendations").status_code == 503
    assert post(app, DURATIONS, json={"jobs": [{"gpus": 1}]}).status_code == 200


@pytest.mark.parametrize("path", ["/v1/recommendations", "/v1/recommendations/a100"])
def test_a_cost_that_is_not_finite_is_withheld(path):
    """Field report A19, for recommendations."""
    one = replace(a_slice_class(), cost=math.nan)
    app = an_app(FakeService(advice_now=an_advice(a_pool(classes=(one,)))))

    assert get(app, path).status_code == 503


def test_a_page_never_carries_a_number_that_is_not_finite():
    """Field report A19, for pages: the JSON twin would be no JSON, and the chart would not draw."""
    pool = replace(a_pool(), warm=replace(a_pool().warm, start_latency_seconds=math.nan))
    app = an_app(pages=FakePages(advice_now=an_advice(pool)))

    assert get(app, "/pools/a100.json").status_code == 500


@pytest.mark.parametrize("literal", ["NaN", "Infinity", "-Infinity", "1e999", "null", '"1"', "true", "[]", "-1", "0"])
def test_a_request_with_something_else_than_a_number_of_gpus_is_refused(literal):
    """Field report A19, on the way in."""
    body = f'{{"jobs": [{{"gpus": {literal}}}]}}'

    answer = post(an_app(), DURATIONS, content=body, headers={"content-type": "application/json"})

    assert answer.status_code == 422
    (wrong,) = answer.json()["errors"]
    assert wrong["field"] == "jobs.0.gpus"
    assert wrong["limit"]
    assert wrong["remedy"]
    json.dumps(answer.json(), allow_nan=False)
