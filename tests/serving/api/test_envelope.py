"""What holds for every request: HEAD wherever GET, and a bound on how many are answered at once."""

from __future__ import annotations

import asyncio

import httpx
import pytest
from starlette.types import Receive, Scope, Send

from serving.api import envelope
from serving.api.envelope import Envelope
from tests.serving.http import BASE, an_app, call, get, running
from tests.serving.test_operations import samples

GETS = [
    "/",
    "/jobs",
    "/pools/a100",
    "/static/style.css",
    "/healthz",
    "/readyz",
    "/metrics",
    "/openapi.json",
    "/v1/models",
]


@pytest.mark.parametrize("path", [*GETS, "/v1/recommendations", "/v1/forecasts/demand", "/nope"])
def test_head_answers_as_get_does_without_the_body(path: str) -> None:
    app = an_app()
    whole, head = get(app, path), call(app, "HEAD", path)

    assert head.status_code == whole.status_code
    assert head.headers["content-type"] == whole.headers["content-type"]
    assert head.headers["x-content-type-options"] == "nosniff"
    assert head.content == b""


def test_head_passes_through_a_real_server_and_leaves_its_connection_usable() -> None:
    with running(an_app()) as address, httpx.Client(base_url=address) as client:
        head, whole = client.head("/v1/models"), client.get("/v1/models")

    assert head.status_code == whole.status_code == 200
    assert head.content == b""
    assert head.headers["content-length"] == str(len(whole.content))


def test_head_is_no_way_into_what_get_is_not() -> None:
    answer = call(an_app(), "HEAD", "/v1/allocations")

    assert answer.status_code == 405
    assert answer.headers["allow"] == "POST"


def test_head_is_counted_as_itself() -> None:
    app = an_app()
    call(app, "HEAD", "/v1/models")

    assert samples(app)["gsa_http_requests_total", 'method="HEAD",route="/v1/models",status="200"'] == 1


class SlowApp:
    """Answers nothing before it is let go; ``full`` once as many wait as may."""

    def __init__(self) -> None:
        self.waiting = 0
        self.full = asyncio.Event()
        self.let_go = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        del receive
        if scope["path"] == "/broken":
            raise RuntimeError("broken")
        self.waiting += 1
        if self.waiting == envelope._MOST_IN_FLIGHT:
            self.full.set()
        await self.let_go.wait()
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"done"})


def test_beyond_the_bound_a_request_is_sent_away_and_may_come_back_when_others_are_done() -> None:
    counted: list[int] = []

    async def crowd() -> tuple[httpx.Response, list[httpx.Response], httpx.Response]:
        slow = SlowApp()
        app = Envelope(slow, body_limit_bytes=1000, counted=lambda *answer: counted.append(answer[2]))
        transport = httpx.ASGITransport(app)
        async with asyncio.timeout(20), httpx.AsyncClient(transport=transport, base_url=BASE) as client:
            # What failed must give its place back too.
            for _ in range(3):
                assert (await client.get("/broken")).status_code == 500
            tasks = [asyncio.create_task(client.get("/slow")) for _ in range(envelope._MOST_IN_FLIGHT)]
            await slow.full.wait()
            refused = await client.get("/slow")
            slow.let_go.set()
            return refused, await asyncio.gather(*tasks), await client.get("/slow")

    refused, answered, later = asyncio.run(crowd())

    assert refused.status_code == 503
    assert int(refused.headers["retry-after"]) >= 1
    assert refused.headers["content-type"] == "application/problem+json"
    assert refused.json()["type"].endswith(":busy")
    assert {answer.status_code for answer in answered} == {200}
    assert later.status_code == 200, "places are given back"
    assert counted.count(503) == 1
