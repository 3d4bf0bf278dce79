"""The protocol, against a server that answers as it is told."""

from __future__ import annotations

import threading
from datetime import UTC, datetime

import httpx
import pytest

from advisor.errors import AdvisorError, Refused, Transient
from advisor.telemetry.prometheus.client import PrometheusClient
from advisor.telemetry.prometheus.ranges import Window
from advisor.telemetry.prometheus.selectors import Matcher, Selector
from tests.advisor.telemetry.prometheus.scripted import Script, a_client, answer, broken, matrix, options

WINDOW = Window(0, 600, 60)
NOON = datetime(2026, 11, 1, 12, tzinfo=UTC)
GOOD = matrix(({"pod": "a"}, [[60, "1"]]))
LOGIN = b"<!doctype html><html><head><title>Sign in\n to Grafana</title></head></html>"


def values(client: PrometheusClient) -> list[list[float]]:
    return [series.values.tolist() for chunk in client.range("up", WINDOW) for series in chunk]


def test_a_query_is_a_form_below_the_path_of_the_address():
    script = Script(GOOD)

    assert values(a_client(script)) == [[1]]

    (request,), (form,) = script.requests, script.forms()
    assert (request.method, str(request.url)) == ("POST", "http://127.0.0.1:9090/prefix/api/v1/query_range")
    assert form == {"query": ["up"], "start": ["0"], "end": ["600"], "step": ["60"], "timeout": ["60s"]}


def test_chunks_come_in_order_of_time_however_their_answers_arrive():
    first_may_go = threading.Event()

    def by_start(request: httpx.Request) -> httpx.Response:
        start = dict(httpx.QueryParams(request.content.decode()))["start"]
        if start == "0":
            assert first_may_go.wait(10)
        else:
            first_may_go.set()
        return matrix(({}, [[int(start), start]]))(request)

    client = a_client(Script(by_start), concurrency=2)

    assert [chunk[0].times.tolist() for chunk in client.range("up", WINDOW, 4)] == [[0], [240], [480]]


def test_no_more_chunks_are_asked_for_than_may_be_held():
    script = Script(GOOD)
    chunks = a_client(script, concurrency=2).range("up", Window(0, 60 * 99, 60), 1)

    next(chunks)
    chunks.close()

    assert len(script.requests) <= 3


def test_several_queries_are_answered_together_chunk_by_chunk():
    def by_query(request: httpx.Request) -> httpx.Response:
        form = dict(httpx.QueryParams(request.content.decode()))
        return matrix(({"q": form["query"]}, [[int(form["start"]), "1"]]))(request)

    chunks = list(a_client(Script(by_query)).ranges(["a", "b"], WINDOW, 6))

    assert [[(s.labels["q"], s.times[0]) for (s,) in chunk] for chunk in chunks] == [
        [("a", 0), ("b", 0)],
        [("a", 360), ("b", 360)],
    ]
    assert list(a_client(Script(GOOD)).ranges([], WINDOW)) == []


def test_the_cluster_asked_for_is_added_to_every_selector():
    script = Script(answer(body={"status": "success", "data": ["b", "a"]}))
    client = a_client(script, cluster='x"y', cluster_label="k8s_cluster")

    assert client.series_names([Selector("DCGM_.*")], NOON, NOON) == ["a", "b"]
    with pytest.raises(Refused):
        client.instant(Selector("up", (Matcher("job", "=", "a"),)), NOON)

    names, instant = script.forms()
    assert names["match[]"] == ['{__name__=~"DCGM_.*",k8s_cluster="x\\"y"}']
    assert instant["query"] == ['up{job="a",k8s_cluster="x\\"y"}']
    assert script.requests[0].url.path == "/prefix/api/v1/label/__name__/values"


def test_get_takes_over_where_post_is_not_allowed():
    script = Script(answer(405), GOOD)
    client = a_client(script)

    assert values(client) == values(client) == [[1]]
    assert [request.method for request in script.requests] == ["POST", "GET", "GET"]
    assert script.forms()[1]["query"] == ["up"]


@pytest.mark.parametrize(
    "failure",
    [
        *(answer(status) for status in (429, 502, 503, 504)),
        broken(httpx.ConnectError),
        broken(httpx.ReadTimeout),
        broken(httpx.RemoteProtocolError),
        answer(body=b'{"status":"success","data":{"resultType":"matrix","result":[{"metric":{},"values":[[60,"1"]'),
        matrix(isPartial=True),
    ],
    ids=["429", "502", "503", "504", "connect", "timeout", "broken-off", "truncated", "partial"],
)
def test_what_may_pass_is_tried_again_after_growing_pauses(failure):
    script = Script(failure, failure, GOOD)

    assert values(a_client(script)) == [[1]]

    first, second = script.pauses
    assert 0.25 <= first <= 0.5 <= second <= 1.0


@pytest.mark.parametrize("failure", [answer(503, b"WAL replay"), broken(httpx.ConnectError, "WAL replay")])
def test_a_server_that_stays_out_is_transient_with_what_it_said(failure):
    script = Script(GOOD, failure)
    client = a_client(script, retries=5)
    values(client)

    with pytest.raises(Transient, match=r"asked 6 times: .*WAL replay"):
        values(client)
    assert len(script.pauses) == 5


def test_an_address_that_never_answered_is_given_up_soon():
    script = Script(broken(httpx.ConnectError))

    with pytest.raises(Transient, match=r"http://127.0.0.1:9090 could not answer, asked 3 times: .*Check the address"):
        values(a_client(script, retries=20))


def test_what_went_wrong_on_the_way_is_told_in_words_and_a_server_that_had_answered_is_not_a_wrong_address():
    script = Script(GOOD, broken(httpx.ConnectError, "[Errno 111] Connection refused"))
    client = a_client(script, retries=0)
    values(client)

    with pytest.raises(Transient, match=r"asked once: Connection refused\.$"):
        values(client)


@pytest.mark.parametrize("kind, tries", [("timeout", 3), ("unavailable", 3), ("bad_data", 1), ("", 1)])
def test_an_error_that_comes_with_success_is_told_in_the_server_s_words(kind, tries):
    said = {"status": "error", "errorType": kind, "error": "the store-gateway is on fire"}
    script = Script(answer(200, said))

    with pytest.raises(Transient if tries > 1 else Refused, match="the store-gateway is on fire"):
        values(a_client(script))
    assert len(script.requests) == tries


def test_too_much_is_halved_even_where_it_comes_with_success():
    too_much = answer(200, {"status": "error", "errorType": "execution", "error": "too many samples"})
    script = Script(too_much, GOOD, GOOD)

    assert list(a_client(script).range("up", Window(0, 240, 60)))
    assert [form["end"] for form in script.forms()] == [["240"], ["120"], ["240"]]


@pytest.mark.parametrize(
    "headers, pause",
    [
        ({"Retry-After": "17"}, 17.0),
        ({"Retry-After": "Sun, 01 Nov 2026 12:00:09 GMT", "Date": "Sun, 01 Nov 2026 12:00:00 GMT"}, 9.0),
    ],
)
def test_the_pause_a_server_asks_for_is_kept(headers, pause):
    script = Script(answer(429, headers=headers), GOOD)

    assert values(a_client(script)) == [[1]]
    assert script.pauses == [pause]


@pytest.mark.parametrize("asked", ["soon", "-5", "Sun, 01 Nov 2026 12:00:09 GMT", ""])
def test_a_pause_that_cannot_be_read_is_ours(asked):
    script = Script(answer(429, headers={"Retry-After": asked}), GOOD)

    assert values(a_client(script)) == [[1]]
    assert script.pauses[0] <= 0.5


def test_a_pause_of_hours_is_not_waited_for():
    script = Script(answer(429, headers={"Retry-After": "7200"}))

    with pytest.raises(Transient, match="pause of 7200 s"):
        values(a_client(script))
    assert script.pauses == []


@pytest.mark.parametrize(
    "status, body, words",
    [
        (400, {"status": "error", "errorType": "bad_data", "error": "parse error:\n unexpected"}, "parse error: unexp"),
        (401, b"<html><body>Unauthorized</body></html>", "Unauthorized.*bearer_token_file"),
        (403, b"no org id", "no org id.*tenant"),
        (404, b"404 page not found", "Mimir serves below /prometheus"),
        (414, b"", "HTTP 414.*POST"),
        (422, {"status": "error", "error": "many-to-many matching"}, "many-to-many.*Correct the query"),
    ],
)
def test_what_would_not_pass_is_refused_at_once_with_what_was_said_and_a_remedy(status, body, words):
    script = Script(answer(status, body))

    with pytest.raises(Refused, match=words):
        values(a_client(script))
    assert (len(script.requests), script.pauses) == (1, [])


def test_a_single_moment_that_is_too_much_is_refused_with_a_remedy():
    script = Script(answer(422, {"status": "error", "error": "query processing would load too many samples"}))

    with pytest.raises(Refused, match=r"too many samples.*fewer series"):
        list(a_client(script).range("up", Window(0, 240, 60)))
    # Five points, three, two, one: each time the earlier half.
    assert [form["end"] for form in script.forms()] == [["240"], ["120"], ["60"], ["0"]]


def test_a_failure_of_the_server_itself_is_transient():
    with pytest.raises(Transient, match=r"HTTP 500.*disk"):
        values(a_client(Script(answer(500, {"status": "error", "error": "disk"}))))


@pytest.mark.parametrize(
    "step, words",
    [
        (answer(body=LOGIN, headers={"content-type": "text/html"}), r"web page \(Sign in to Grafana\)"),
        (answer(body=b"  <html>"), "web page, not with JSON"),
        (answer(302, headers={"location": "https://ada:pw@sso/login?token=s3cret"}), "redirects.*https://sso/login,"),
        (answer(body=b"pong"), "no Prometheus: it is no JSON"),
        (answer(body={"hello": 1}), "no answer of the Prometheus HTTP API"),
        (answer(body={"status": "success", "data": {"resultType": "string", "result": [1, "x"]}}), "no samples"),
        (broken(httpx.ConnectError, "[SSL: CERTIFICATE_VERIFY_FAILED] self-signed"), "prometheus.ca_file"),
    ],
)
def test_what_is_no_prometheus_is_called_so(step, words):
    script = Script(step)

    with pytest.raises(Refused, match=words):
        values(a_client(script))
    assert len(script.requests) == 1


def test_the_first_refusal_ends_a_range():
    script = Script(GOOD, answer(400, {"status": "error", "error": "no"}))
    chunks = a_client(script, concurrency=1).range("up", Window(0, 60 * 99, 60), 1)

    next(chunks)
    with pytest.raises(Refused):
        next(chunks)
    assert len(script.requests) == 2


def test_remarks_and_samples_left_out_are_handed_on_once_answered():
    warned = matrix(({}, [[60, "1"], [120, "x"]]), warnings=["w"], infos=["i"])
    script = Script(warned, answer(503), warned)
    client = a_client(script)

    values(client)
    values(client)

    assert client.notes == ("w", "i")
    assert [(one.reason, one.count) for one in client.rejections] == [("value_is_no_number", 2)]


@pytest.mark.parametrize(
    "build, headers, flavour, sent, path",
    [
        ({"version": "2.42.0"}, {}, "prometheus", {}, "/api/v1/query"),
        (
            {"version": "0.36.1"},
            {},
            "thanos",
            {"dedup": "true", "partial_response": "false", "max_source_resolution": "0s"},
            "/api/v1/query",
        ),
        ({"application": "Grafana Mimir", "version": "2.14.0"}, {}, "mimir", {}, "/prometheus/api/v1/query"),
        ({}, {"X-Server-Hostname": "vm"}, "victoriametrics", {"nocache": "1"}, "/api/v1/query"),
    ],
)
def test_a_server_is_asked_once_what_it_is_and_then_spoken_to_as_such(build, headers, flavour, sent, path):
    vector = {"status": "success", "data": {"resultType": "vector", "result": []}}
    script = Script(answer(body={"status": "success", "data": build}, headers=headers), answer(body=vector))
    client = a_client(script, flavour="auto", url="http://127.0.0.1:9090")

    client.instant("up", NOON)
    client.instant("up", NOON)

    assert (client.build_info().flavour, client.build_info().version) == (flavour, build.get("version"))
    assert [request.url.path for request in script.requests] == ["/api/v1/status/buildinfo", path, path]
    assert {key: found for key, (found,) in script.forms()[1].items()}.items() >= sent.items()


def test_a_server_that_keeps_its_build_back_is_taken_for_prometheus():
    client = a_client(Script(answer(403), GOOD), flavour="auto")

    assert values(client) == [[1]]
    assert client.build_info().flavour == "prometheus"


def test_headers_for_a_tenant_are_sent():
    script = Script(GOOD)

    values(a_client(script, headers={"X-Scope-OrgID": "team-a"}))

    assert script.requests[0].headers["x-scope-orgid"] == "team-a"


def test_a_token_is_read_anew_for_each_request(tmp_path):
    file = tmp_path / "token"
    file.write_text("first\n", encoding="utf-8")
    script = Script(GOOD)
    client = a_client(script, bearer_token_file=file)

    values(client)
    file.write_text("second\n", encoding="utf-8")
    values(client)

    assert [request.headers["authorization"] for request in script.requests] == ["Bearer first", "Bearer second"]


def test_a_user_and_password_are_sent(tmp_path):
    file = tmp_path / "password"
    file.write_text("pässword\n".replace("ä", "a"), encoding="utf-8")
    script = Script(GOOD)

    values(a_client(script, username="ada", password_file=file))

    assert script.requests[0].headers["authorization"] == "Basic YWRhOnBhc3N3b3Jk"


@pytest.mark.parametrize(
    "make",
    [
        lambda _: {"url": None},
        lambda folder: {"bearer_token_file": folder / "none"},
        lambda folder: {"bearer_token_file": _file(folder, " \n")},
        lambda folder: {"bearer_token_file": _file(folder, "a\nb")},
        lambda folder: {"ca_file": _file(folder, "no certificate")},
        lambda folder: {"ca_file": folder / "none"},
    ],
    ids=["no-address", "no-file", "empty", "two-lines", "no-certificate", "no-authority"],
)
def test_what_cannot_be_used_is_refused_before_anything_is_sent(make, tmp_path):
    with pytest.raises(Refused):
        PrometheusClient(options(**make(tmp_path)))


def _file(folder, text):
    (folder / "file").write_text(text, encoding="utf-8")
    return folder / "file"


@pytest.mark.parametrize(
    "step",
    [
        answer(401, b"token s3cret-token is unknown"),
        answer(403, {"status": "error", "error": "tenant h3ader"}),
        answer(503, b"s3cret-token h3ader"),
        answer(body=b"<title>s3cret-token h3ader</title>"),
        answer(302, headers={"location": "https://x:s3cret-token@h/?h3ader"}),
        broken(httpx.ConnectError, "s3cret-token h3ader"),
    ],
)
def test_no_error_repeats_a_secret_that_the_server_repeats(step):
    client = a_client(Script(step), bearer_token="s3cret-token", headers={"X-Key": "h3ader"})

    with pytest.raises(AdvisorError) as raised:
        values(client)

    assert "s3cret-token" not in str(raised.value)
    assert "h3ader" not in str(raised.value)


def test_no_remark_repeats_a_secret():
    client = a_client(Script(matrix(warnings=["Bearer s3cret-token is old"])), bearer_token="s3cret-token")

    values(client)

    assert client.notes == ("Bearer *** is old",)


@pytest.mark.parametrize(
    "url, more, warned",
    [
        ("http://prometheus.monitoring:9090", {"bearer_token": "token"}, True),
        ("http://10.0.0.1", {"username": "a", "password": "b"}, True),
        ("http://10.0.0.1", {"headers": {"authorization": "b"}}, True),
        ("http://10.0.0.1", {}, False),
        ("https://10.0.0.1", {"bearer_token": "token"}, False),
        ("http://127.0.0.7:9090", {"bearer_token": "token"}, False),
        ("http://[::1]:9090", {"bearer_token": "token"}, False),
        ("http://localhost:9090", {"bearer_token": "token"}, False),
    ],
)
def test_a_secret_in_the_clear_is_warned_of(url, more, warned):
    notes = a_client(Script(GOOD), url=url, **more).notes

    assert bool(notes) == warned
    assert "token" not in str(notes)
