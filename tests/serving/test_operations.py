from __future__ import annotations

import re
from dataclasses import replace

from advisor.domain.plans import PoolWithoutAdvice
from serving.metrics import GAUGES, REQUEST_SECONDS, REQUESTS
from tests.serving.fake_service import FakePages, FakeService
from tests.serving.fake_values import a_pool, an_advice
from tests.serving.http import an_app, call, get

SAMPLE = re.compile(r"^([a-z_]+)(?:\{(.*)\})? (\S+)$", re.MULTILINE)
OUR_OWN = {*GAUGES, f"{REQUESTS[0]}_total", f"{REQUESTS[0]}_created"} | {
    f"{REQUEST_SECONDS[0]}{end}" for end in ("_bucket", "_count", "_sum", "_created")
}


def samples(app) -> dict[tuple[str, str], float]:
    return {(name, labels): float(value) for name, labels, value in SAMPLE.findall(get(app, "/metrics").text)}


def test_a_live_process_says_so_even_when_nothing_else_works():
    app = an_app(FakeService(trouble=RuntimeError("broken"), not_ready=("no model",)))

    assert get(app, "/healthz").json() == {"status": "ok"}


def test_readiness_is_a_plain_yes():
    answer = get(an_app(), "/readyz")

    assert answer.status_code == 200
    assert answer.json() == {"ready": True}


def test_a_service_that_is_not_ready_says_what_is_missing():
    answer = get(an_app(FakeService(not_ready=("no duration model", "no history"))), "/readyz")

    assert answer.status_code == 503
    assert answer.json()["reasons"] == ["no duration model", "no history"]
    assert int(answer.headers["retry-after"]) > 0


def test_every_metric_is_declared_and_every_declared_one_appears():
    without = (PoolWithoutAdvice("h100", "its samples are of another step"),)
    app = an_app(FakeService(advice_now=replace(an_advice(), without_advice=without)))
    get(app, "/healthz")

    names = {name for name, _ in samples(app)}

    assert names == OUR_OWN


def test_the_gauges_of_a_pool_are_those_of_the_newest_advice():
    service = FakeService(advice_now=an_advice(a_pool()))
    app = an_app(service)

    seen = samples(app)
    service.advice_now = an_advice(a_pool("b100"))

    assert seen["gsa_warm_gpus", 'pool="a100"'] == 16
    assert seen["gsa_keep_alive_seconds", 'pool="a100"'] == 600
    assert seen["gsa_slice_minutes", 'class="all",pool="a100"'] == 15
    assert seen["gsa_demand_gpus", 'horizon_minutes="60",pool="a100",quantile="0.5"'] == 148
    assert seen["gsa_changes", 'allowed="false",pool="a100"'] == 1
    assert seen["gsa_model_info", 'model="durations",version="4"'] == 1
    assert seen["gsa_synthetic", ""] == 1
    pools = {labels for name, labels in samples(app) if name == "gsa_warm_gpus"}
    assert pools == {'pool="b100"'}, "a pool that is gone leaves no gauge behind"


def test_the_age_of_the_data_and_the_rows_left_out_are_exported():
    seen = samples(an_app())

    assert seen["gsa_history_age_seconds", ""] == 120
    assert seen["gsa_history_dropped_rows", ""] == 17
    assert seen["gsa_history_jobs", ""] == 82_310


def test_metrics_are_scraped_even_before_the_first_cycle_and_without_a_history():
    app = an_app(
        FakeService(advice_now=None, not_ready=("no advice",)), FakePages(history_trouble="the database is locked")
    )

    seen = samples(app)

    assert seen["gsa_ready", ""] == 0
    assert ("gsa_history_jobs", "") not in seen


def test_requests_are_counted_by_route_and_status():
    app = an_app()
    for path in ("/v1/recommendations/a100", "/v1/recommendations/l4-shared", "/v1/recommendations/none"):
        get(app, path)
    call(app, "DELETE", "/v1/models")
    for made_up in range(20):
        get(app, f"/no/{made_up}")

    counted = {labels: value for (name, labels), value in samples(app).items() if name == f"{REQUESTS[0]}_total"}

    one_pool = 'method="GET",route="/v1/recommendations/{pool:path}"'
    assert counted[f'{one_pool},status="200"'] == 2
    assert counted[f'{one_pool},status="404"'] == 1
    assert counted['method="DELETE",route="/v1/models",status="405"'] == 1
    assert counted['method="GET",route="unmatched",status="404"'] == 20, "made-up paths share one label"
