"""A stand-in metrics server on loopback: every series it holds has one value at every moment it was told."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import numpy as np

__all__ = ["MetricsStandIn", "Told", "serving"]

_METRIC = re.compile(r"\b(kube_\w+|DCGM_\w+)\b")


@dataclass(frozen=True)
class Told:
    """A series: its ``value`` at every moment from ``begin`` to ``end`` (Unix seconds)."""

    metric: str
    value: float
    labels: dict[str, str] = field(default_factory=dict)
    begin: float = 0.0
    end: float = np.inf


@dataclass
class MetricsStandIn:
    """Answers each query by the metric it names first, and the moment of a look for ``timestamp``.

    It knows no PromQL: matchers are not looked at, and a function over time is as good as none. ``status`` is answered
    instead of anything where it is not 200; ``headers`` are those of the last request.
    """

    series: list[Told] = field(default_factory=list)
    status: int = 200
    body: bytes = b"{}"
    headers: dict[str, str] = field(default_factory=dict)
    url: str = ""

    def answer(self, path: str, form: dict[str, list[str]]) -> tuple[int, bytes]:
        if self.status != 200:
            return self.status, self.body
        data = self._labels(path) if "/label/" in path else self._result(path.rsplit("/", 1)[-1], form)
        return 200, json.dumps({"status": "success", "data": data}).encode()

    def _labels(self, path: str) -> list[str]:
        label = path.split("/label/")[1].split("/", maxsplit=1)[0]
        if label == "__name__":
            return sorted({each.metric for each in self.series})
        return sorted({each.labels[label] for each in self.series if label in each.labels})

    def _result(self, kind: str, form: dict[str, list[str]]) -> dict[str, Any]:
        if kind == "buildinfo":
            return {"version": "2.53.0"}
        query, at = form["query"][0], "time" in form
        times = [float(form["time"][0])] if at else _grid(*(int(form[key][0]) for key in ("start", "end", "step")))
        metric = _METRIC.search(query)
        found = [each for each in self.series if metric is not None and each.metric == metric[0]]
        result = [
            {"metric": each.labels, "value" if at else "values": pairs[0] if at else pairs}
            for each in found
            if (pairs := [[t, str(t if "timestamp(" in query else each.value)] for t in times if _told(each, t, query)])
        ]
        return {"resultType": "vector" if at else "matrix", "result": result}


def _told(each: Told, time: float, query: str) -> bool:
    """Whether there is a sample; a function over an hour sees one that was last told within it."""
    over = 3600.0 if "[3600s]" in query else 0.0
    return each.begin <= time <= each.end + over


def _grid(start: int, end: int, step: int) -> list[float]:
    return [float(at) for at in range(start, end + 1, step)]


@contextmanager
def serving(stand_in: MetricsStandIn) -> Iterator[MetricsStandIn]:
    """Let it answer on a port of its own, which its ``url`` names."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(urlsplit(self.path).query)

        def do_POST(self) -> None:
            self._answer(self.rfile.read(int(self.headers["Content-Length"])).decode())

        def _answer(self, form: str) -> None:
            stand_in.headers = dict(self.headers)
            status, body = stand_in.answer(urlsplit(self.path).path, parse_qs(form))
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Silence."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    stand_in.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield stand_in
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
