from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest

from advisor.domain.plans import PoolWithoutAdvice
from advisor.domain.slices import CurvePoint
from serving.advice_json import advice_document, pool_document
from tests.serving.fake_service import FakeService
from tests.serving.fake_values import a_pool, a_slice_class, an_advice
from tests.serving.http import an_app, get, post

PROMISED = {"time", "mode", "models", "pools"}
PROMISED_OF_A_POOL = {
    "pool",
    "slice_lengths",
    "sharing_factor",
    "warm_gpus",
    "keep_alive_seconds",
    "gpu_limit",
    "changes",
    "reasons",
}
PROMISED_OF_A_CLASS = {"class", "minutes", "current_minutes", "rule_of_thumb_minutes", "reasons"}
PROMISED_OF_A_CHANGE = {"object", "field", "from", "to", "allowed", "reasons"}


def test_the_document_has_every_promised_field():
    """The field names that scripts rely on; fields may be added, never taken away."""
    document = advice_document(an_advice())

    assert document.keys() >= PROMISED
    assert document["models"] == {"durations": "4", "demand": "3"}
    for pool in document["pools"]:
        assert pool.keys() >= PROMISED_OF_A_POOL
        assert all(one.keys() >= PROMISED_OF_A_CLASS for one in pool["slice_lengths"])
        assert all(change.keys() >= PROMISED_OF_A_CHANGE for change in pool["changes"])


def test_the_document_says_what_the_advice_says():
    document = advice_document(an_advice(a_pool()))

    assert (document["time"], document["mode"], document["synthetic"]) == ("2026-03-02T12:00:00Z", "Recommend", True)
    (pool,) = document["pools"]
    assert (pool["pool"], pool["warm_gpus"], pool["keep_alive_seconds"], pool["gpu_limit"]) == ("a100", 16, 600, 256)
    (one,) = pool["slice_lengths"]
    assert (one["class"], one["minutes"], one["current_minutes"], one["rule_of_thumb_minutes"]) == ("all", 15, 30, 51)
    assert pool["changes"][0]["from"] == "180s"
    assert pool["changes"][0]["to"] == "600s"
    assert [change["allowed"] for change in pool["changes"]] == [True, False]
    assert pool["patch"]["spec"] == {"disruption": {"consolidateAfter": "600s"}}


def test_a_pool_that_could_not_be_advised_on_is_named_with_the_reason():
    advice = replace(an_advice(a_pool("a100")), without_advice=(PoolWithoutAdvice("h100", "of another step"),))
    service = FakeService(advice_now=advice)

    whole, one = (get(an_app(service), f"/v1/recommendations{path}") for path in ("", "/h100"))

    assert whole.json()["without_advice"] == [{"pool": "h100", "reason": "of another step"}]
    assert [pool["pool"] for pool in whole.json()["pools"]] == ["a100"]
    assert one.status_code == 503
    assert "no advice for pool h100: of another step" in one.json()["detail"]


def test_a_class_better_left_unsliced_says_so_and_still_names_its_best_length():
    exclusive = replace(a_slice_class("long", minutes=None), if_sliced_minutes=45.0)
    document = advice_document(an_advice(a_pool(classes=(a_slice_class("short"), exclusive))))

    (pool,) = document["pools"]
    assert [(one["class"], one["sliced"]) for one in pool["slice_lengths"]] == [("short", True), ("long", False)]
    assert pool["slice_lengths"][1]["minutes"] == 45.0


def test_a_forbidden_length_of_unbounded_cost_is_left_out_of_the_curve():
    unstable = CurvePoint(5.0, math.inf, feasible=False)
    one = replace(a_slice_class(), curve=(unstable, CurvePoint(15.0, 0.2)))

    document = advice_document(an_advice(a_pool(classes=(one,))))

    assert [p["minutes"] for p in document["pools"][0]["slice_lengths"][0]["curve"]] == [15.0]
    json.dumps(document, allow_nan=False)


def test_the_api_answers_what_the_command_prints():
    advice = an_advice()

    answer = get(an_app(FakeService(advice_now=advice)), "/v1/recommendations")

    assert answer.status_code == 200
    assert answer.json() == advice_document(advice)


def test_one_pool_is_its_entry_beside_the_terms_of_the_cycle():
    advice = an_advice()

    answer = get(an_app(FakeService(advice_now=advice)), "/v1/recommendations/l4-shared")

    assert answer.json() == pool_document(advice, advice.pools[1])
    assert answer.json()["mode"] == "Recommend"


@pytest.mark.parametrize("pool", ["team/a100", "a100.json", "ä 100 %", "..."])
def test_a_pool_is_found_whatever_its_name_holds(pool):
    app = an_app(FakeService(advice_now=an_advice(a_pool(pool))))

    assert get(app, f"/v1/recommendations/{pool.replace('%', '%25')}").json()["pool"] == pool


def test_an_unknown_pool_is_not_found_and_the_known_ones_are_named():
    answer = get(an_app(), "/v1/recommendations/h100")

    assert answer.status_code == 404
    assert "a100, l4-shared" in answer.json()["detail"]


def test_before_the_first_cycle_the_caller_is_told_when_to_come_back():
    app = an_app(FakeService(advice_now=None))

    for path in ("/v1/recommendations", "/v1/recommendations/a100", "/v1/forecasts/demand"):
        answer = get(app, path)
        assert answer.status_code == 503
        assert int(answer.headers["retry-after"]) > 0
        assert "no advice cycle" in answer.json()["detail"]


def test_demand_is_answered_for_every_pool_or_for_one():
    both = get(an_app(), "/v1/forecasts/demand").json()
    one = get(an_app(), "/v1/forecasts/demand?pool=l4-shared").json()

    assert [f["pool"] for f in both["forecasts"]] == ["a100", "l4-shared"]
    assert [f["pool"] for f in one["forecasts"]] == ["l4-shared"]
    horizon = one["forecasts"][0]["horizons"][0]
    assert horizon["horizon_minutes"] == 5
    assert list(horizon["quantiles"]) == ["0.1", "0.25", "0.5", "0.75", "0.9", "0.95", "0.99"]
    assert horizon["skill"] == 0.12


def test_demand_of_an_unknown_pool_is_not_found():
    assert get(an_app(), "/v1/forecasts/demand?pool=h100").status_code == 404


def test_an_allocation_is_placed_deferred_or_refused_with_reasons():
    asked = [{"id": "now", "gpus": 1}, {"id": "later", "gpus": 1, "deadline": "2026-03-02T14:00:00+02:00"}]
    asked.append({"id": "never", "gpus": 10_000})

    answer = post(an_app(), "/v1/allocations", json={"jobs": asked}).json()

    placed, deferred, refused = answer["allocations"]
    assert [a["decision"] for a in (placed, deferred, refused)] == ["placed", "deferred", "refused"]
    assert placed["slices"] == [
        {
            "start": "2026-03-02T12:00:00Z",
            "end": "2026-03-02T12:30:00Z",
            "minutes": 30.0,
            "node": "a100-1",
            "gpu": 0,
            "share": 0,
            "replicas": 1,
        }
    ]
    assert placed["predicted_end"] == "2026-03-02T12:30:00Z"
    assert deferred["deferred_until"] == "2026-03-02T12:20:00Z"
    assert deferred["predicted_end"] is None
    assert all(a["reasons"] for a in answer["allocations"])


def test_a_slice_length_may_be_asked_for():
    answer = post(an_app(), "/v1/allocations", json={"jobs": [{"gpus": 1, "slice_minutes": 7.5}]}).json()

    assert answer["allocations"][0]["slices"][0]["minutes"] == 7.5


@pytest.mark.parametrize("gpus, status", [(0.25, 200), (1, 200), (2.0, 200), (1.5, 422), (2.0001, 422)])
def test_slices_are_shares_of_one_gpu_or_of_whole_ones(gpus, status):
    answer = post(an_app(), "/v1/allocations", json={"jobs": [{"gpus": gpus}]})

    assert answer.status_code == status
    assert status == 200 or answer.json()["errors"][0]["field"] == "jobs.0.gpus"


def test_the_registered_models_are_listed():
    (model,) = get(an_app(), "/v1/models").json()["models"]

    assert (model["name"], model["version"], model["aliases"]) == ("durations", "4", ["champion"])
    assert model["measures"] == {"log_mae": 0.96}
