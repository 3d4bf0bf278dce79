"""A server that answers as it is told: one answer for each request, in order, and then the last one for ever."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Callable, Mapping
from urllib.parse import parse_qs

import httpx

from advisor.settings import PrometheusOptions
from advisor.telemetry.prometheus.client import PrometheusClient

__all__ = ["URL", "Script", "a_client", "answer", "broken", "matrix", "options"]

URL = "http://127.0.0.1:9090/prefix"

Step = Callable[[httpx.Request], httpx.Response]


class Script:
    """A transport, and the requests and pauses it has seen."""

    def __init__(self, *steps: Step) -> None:
        self._steps = list(steps)
        self._lock = threading.Lock()
        self.requests: list[httpx.Request] = []
        self.pauses: list[float] = []
        self.transport = httpx.MockTransport(self._handle)

    def _handle(self, request: httpx.Request) -> httpx.Response:
        with self._lock:
            self.requests.append(request)
            step = self._steps.pop(0) if len(self._steps) > 1 else self._steps[0]
        return step(request)

    def forms(self) -> list[dict[str, list[str]]]:
        """What each request asked, wherever it said it."""
        return [parse_qs(one.content.decode() or one.url.query.decode()) for one in self.requests]


def options(**more: object) -> PrometheusOptions:
    return PrometheusOptions.model_validate({"url": URL, "flavour": "prometheus", **more})


def a_client(script: Script, **more: object) -> PrometheusClient:
    return PrometheusClient(
        options(**more), transport=script.transport, sleep=script.pauses.append, jitter=random.Random(1)
    )


def answer(status: int = 200, body: object = b"", headers: Mapping[str, str] | None = None) -> Step:
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    return lambda _: httpx.Response(status, content=content, headers=headers)


def matrix(*series: tuple[Mapping[str, str], list[list[object]]], **more: object) -> Step:
    result = [{"metric": labels, "values": pairs} for labels, pairs in series]
    return answer(body={"status": "success", "data": {"resultType": "matrix", "result": result}, **more})


def broken(error: type[Exception], text: str = "out") -> Step:
    def step(_: httpx.Request) -> httpx.Response:
        raise error(text)

    return step
