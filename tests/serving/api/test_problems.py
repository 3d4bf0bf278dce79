from __future__ import annotations

import json
import re

import pytest

from advisor.errors import AdvisorError, Defect, Refused, Stale, Transient
from serving.api.problems import ProblemBody
from tests.serving.fake_service import FakeService
from tests.serving.http import an_app, call, get, post

DURATIONS = "/v1/predictions/durations"
JSON = {"content-type": "application/json"}
ONE_JOB = {"jobs": [{"gpus": 1}]}
SECRET = "postgresql://ada:hunter2@db/gsa"


def is_problem(answer, status: int, kind: str) -> dict:
    assert answer.status_code == status
    assert answer.headers["content-type"] == "application/problem+json"
    body = answer.json()
    ProblemBody.model_validate(body)
    assert body["status"] == status
    assert body["type"] == f"urn:problem-type:gpu-slice-advisor:{kind}"
    assert body["request_id"] == answer.headers["x-request-id"]
    return body


@pytest.mark.parametrize(
    "content",
    [b"{", b"", b"jobs=1", b'{"jobs": [{"gpus": 1}]} trailing', b"\xff\xfe{}", b'{"jobs": "\xe9"}', b"[" * 5000],
)
def test_a_body_that_is_no_json_is_malformed(content):
    is_problem(post(an_app(), DURATIONS, content=content, headers=JSON), 400, "malformed")


LIBRARY = re.compile(r"Input should|inputs are|Field required|should have|Value error|valid (string|integer|number)")
"""How the library that checks bodies speaks."""


@pytest.mark.parametrize(
    "body, field",
    [
        ([], "body"),
        ({}, "jobs"),
        ({"jobs": {}}, "jobs"),
        ({"jobs": [{"gpus": 1, "gpu": 1}]}, "jobs.0.gpu"),
        ({"jobs": [{"gpus": 1}], "job": 1}, "job"),
        ({"jobs": [{}]}, "jobs.0.gpus"),
        ({"jobs": [{"gpus": 1, "user": 7}]}, "jobs.0.user"),
        ({"jobs": [{"gpus": 1, "user": ""}]}, "jobs.0.user"),
        ({"jobs": [{"gpus": 1, "user": "a\u0000b"}]}, "jobs.0.user"),
        ({"jobs": [{"gpus": 1, "user": "\ud800"}]}, None),
        ({"jobs": [{"gpus": 1, "id": "x" * 300}]}, "jobs.0.id"),
        ({"jobs": [{"gpus": 1, "nodes": 1.5}]}, "jobs.0.nodes"),
        ({"jobs": [{"gpus": 1, "elapsed_seconds": -1}]}, "jobs.0.elapsed_seconds"),
        ({"jobs": [{"gpus": 1, "elapsed_seconds": 1e12}]}, "jobs.0.elapsed_seconds"),
        ({"jobs": [{"gpus": 10**400}]}, "jobs.0.gpus"),
        ({"jobs": [{"gpus": 1, "nodes": 10**4000}]}, "jobs.0.nodes"),
    ],
)
def test_a_field_that_cannot_be_accepted_is_named_with_its_limit_and_the_remedy(body, field):
    answer = post(an_app(), DURATIONS, content=json.dumps(body), headers=JSON)

    assert answer.status_code in {400, 422}
    if field is not None:
        wrong = is_problem(answer, 422, "refused")["errors"][0]
        assert wrong["field"] == field
        assert wrong["limit"]
        assert wrong["remedy"]
        assert not LIBRARY.search(answer.text)


@pytest.mark.parametrize(
    "deadline", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "2026-03-02T12:00:00", "x"]
)
def test_a_deadline_that_is_no_moment_in_utc_is_refused(deadline):
    answer = post(an_app(), "/v1/allocations", json={"jobs": [{"gpus": 1, "deadline": deadline}]})

    assert is_problem(answer, 422, "refused")["errors"][0]["field"] == "jobs.0.deadline"


def test_a_long_value_is_cut_in_the_answer():
    answer = post(an_app(), DURATIONS, json={"jobs": [{"gpus": 1, "user": "x" * 100_000}]})

    assert len(answer.content) < 1000


def test_many_wrong_fields_do_not_make_a_long_answer():
    answer = post(an_app(), DURATIONS, json={"jobs": [{"gpus": 0}] * 900})

    body = is_problem(answer, 422, "refused")
    assert len(body["errors"]) == 20
    assert "897 more" in body["detail"]


@pytest.mark.parametrize("path", ["/nope", "/v1/nope", "/v1/", "/v1/models/"])
def test_an_unknown_path_is_a_problem(path):
    is_problem(get(an_app(), path), 404, "unknown")


def test_a_wrong_method_is_a_problem_that_names_the_right_ones():
    answer = call(an_app(), "DELETE", "/v1/models")

    is_problem(answer, 405, "method-not-allowed")
    assert answer.headers["allow"] == "GET, HEAD"


def test_an_unknown_query_parameter_is_refused():
    answer = get(an_app(), "/v1/forecasts/demand?pools=a100")

    assert is_problem(answer, 422, "refused")["errors"][0]["field"] == "pools"


@pytest.mark.parametrize(
    "error, status, kind",
    [
        (Refused("gpus", 3, "at most 2", "Ask for less."), 422, "refused"),
        (Transient("no model has been loaded yet"), 503, "unavailable"),
        (Stale("the history is 3 h old"), 503, "stale"),
        (Defect(f"cannot read {SECRET}"), 500, "defect"),
        (AdvisorError(f"cannot read {SECRET}"), 500, "defect"),
        (RuntimeError(f"cannot read {SECRET}"), 500, "defect"),
    ],
)
def test_each_error_of_ours_has_one_answer(error, status, kind):
    answer = post(an_app(FakeService(trouble=error)), DURATIONS, json=ONE_JOB)

    body = is_problem(answer, status, kind)
    assert ("retry-after" in answer.headers) == (status == 503)
    assert (str(error) in body["detail"]) == (status < 500 or status == 503)
    assert "hunter2" not in answer.text, "nothing internal leaves"


@pytest.mark.parametrize("cause", [RuntimeError("the cause"), Defect("the cause")])
def test_what_nobody_expected_is_logged_under_the_id_that_the_client_is_given(cause, logged):
    answer = post(an_app(FakeService(trouble=cause)), DURATIONS, json=ONE_JOB)

    (event,) = logged
    assert event["event"] == "request_failed"
    assert event["request_id"] == answer.json()["request_id"]
    assert event["exc_info"] in {cause, True}


def test_a_body_beyond_the_limit_is_refused_before_it_is_read():
    app = an_app(body_limit_bytes=1000)

    answer = post(app, DURATIONS, content=b" " * 1001, headers=JSON)

    assert "1,000 bytes" in is_problem(answer, 413, "too-large")["detail"]


def test_a_body_without_a_stated_length_is_cut_off_at_the_limit():
    async def chunks():
        for _ in range(50):
            yield b" " * 100

    answer = post(an_app(body_limit_bytes=1000), DURATIONS, content=chunks(), headers=JSON)

    is_problem(answer, 413, "too-large")


def test_a_caller_may_name_its_request():
    answer = get(an_app(), "/healthz", headers={"x-request-id": "build-7.42"})

    assert answer.headers["x-request-id"] == "build-7.42"


@pytest.mark.parametrize("given", ["", "a b", "x" * 65, "<script>"])
def test_a_name_that_could_harm_a_log_is_replaced(given):
    answer = get(an_app(), "/healthz", headers={"x-request-id": given})

    assert re.fullmatch("[0-9a-f]{16}", answer.headers["x-request-id"])


@pytest.mark.parametrize("host", ["evil.example", "evil.example:8080", "127.0.0.1.evil.example", "169.254.169.254", ""])
def test_a_page_elsewhere_that_rebinds_its_name_to_loopback_gets_nothing(host):
    is_problem(get(an_app(), "/v1/models", headers={"host": host}), 421, "misdirected")


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:8080", "127.0.0.1:8080", "[::1]:8080"])
def test_loopback_is_answered_under_each_of_its_names(host):
    assert get(an_app(), "/healthz", headers={"host": host}).status_code == 200


@pytest.mark.parametrize("path", ["/", "/v1/models", "/nope", "/static/style.css", "/metrics"])
def test_every_answer_carries_the_security_headers(path):
    headers = get(an_app(), path).headers

    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy


def test_a_browser_gets_a_page_and_a_program_gets_a_problem():
    html = {"accept": "text/html"}

    page = get(an_app(), "/nope", headers=html)
    program = get(an_app(), "/v1/nope", headers=html)

    assert page.status_code == program.status_code == 404
    assert page.headers["content-type"].startswith("text/html")
    assert "/nope" in page.text
    assert program.headers["content-type"] == "application/problem+json"
