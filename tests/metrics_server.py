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

import httpx
import numpy as np

__all__ = ["MetricsStandIn", "Told", "a_job_told", "a_node_told", "a_pod_told", "serving"]

_SELECTOR = re.compile(r"\b(kube_\w+|DCGM_\w+)\b(?:\{([^}]*)\})?")
_MATCHER = re.compile(r'(\w+)(=~|!~|!=|=)"([^"]*)"')
_SCRAPE_SECONDS = 60


@dataclass(frozen=True)
class Told:
    """A series: its ``value`` at every moment from ``begin`` to ``end`` (Unix seconds)."""

    metric: str
    value: float | str
    labels: dict[str, str] = field(default_factory=dict)
    begin: float = 0.0
    end: float = np.inf


@dataclass
class MetricsStandIn:
    """Answers each query by its first selector, and the moment of a look for ``timestamp``.

    Of PromQL it knows no more: functions over an hour see what was last told within it, and labels all stay.
    ``status`` is answered instead of anything where it is not 200; ``headers`` are those of the last request.
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

    def transport(self) -> httpx.MockTransport:
        """The same without a connection."""

        def handle(request: httpx.Request) -> httpx.Response:
            form = parse_qs(request.content.decode() or request.url.query.decode())
            status, body = self.answer(request.url.path, form)
            return httpx.Response(status, content=body)

        return httpx.MockTransport(handle)

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
        if query.endswith("[3600s]"):
            times, at = _grid(*(int(times[0]) + offset for offset in (60 - 3600, 0)), _SCRAPE_SECONDS), False
            query = query.removesuffix("[3600s]")
        found = [each for each in self.series if _selects(query, each)]
        result = [
            {"metric": each.labels, "value" if at else "values": pairs[0] if at else pairs}
            for each in found
            if (pairs := [[t, str(t if "timestamp(" in query else each.value)] for t in times if _told(each, t, query)])
        ]
        return {"resultType": "vector" if at else "matrix", "result": result}


def a_node_told() -> list[Told]:
    """The node ``n1`` of the pool ``gpu``, there for ever."""
    labels = {"node": "n1", "label_karpenter_sh_nodepool": "gpu", "label_nvidia_com_gpu_product": "NVIDIA-H100"}
    return [Told("kube_node_info", 1, {"node": "n1"}), Told("kube_node_labels", 1, labels)]


def a_job_told(begun: float, seconds: float, name: str = "train", gpu: str = "GPU-a") -> list[Told]:
    """The pod of a Job on ``n1``: created at ``begun`` (Unix seconds), ended so much later, told of ever after.

    So is its GPU: the label of a pod lingers once it has ended.
    """
    pod, end = {"uid": f"uid-{name}", "namespace": "ml", "pod": f"{name}-0"}, begun + seconds
    device = {"UUID": gpu, "Hostname": "n1", "DCGM_FI_DRIVER_VERSION": "550", "namespace": "ml", "pod": f"{name}-0"}
    main = {**pod, "container": "main"}
    return [
        Told("kube_pod_created", begun, pod, begun),
        Told("kube_pod_status_scheduled_time", begun + 60, pod, begun + 60),
        Told("kube_pod_container_state_started", begun + 90, main, begun + 90, end),
        Told("kube_pod_status_phase", 1, {**pod, "phase": "Running"}, begun, end),
        Told("kube_pod_status_phase", 1, {**pod, "phase": "Succeeded"}, end),
        Told("kube_pod_completion_time", end, pod, end),
        Told("kube_pod_container_resource_requests", 1, {**main, "resource": "nvidia_com_gpu"}, begun),
        Told("kube_pod_owner", 1, {**pod, "owner_kind": "Job", "owner_name": name}, begun),
        Told("kube_pod_info", 1, {**pod, "node": "n1"}, begun),
        Told("kube_pod_labels", 1, {**pod, "label_created_by": "ada"}, begun),
        Told("DCGM_FI_DEV_GPU_UTIL", 62, device, begun),
        Told("DCGM_FI_DEV_FB_USED", 2048, device, begun),
    ]


def a_pod_told(
    name: str,
    begun: float,
    end: float,
    owner: str = "PyTorchJob/train",
    *,
    last: str = "Succeeded",
    stays: float = 7200.0,
) -> list[Told]:
    """The pod ``name`` on ``n1``, made for ``owner`` at ``begun``, in its ``last`` phase from ``end`` on.

    After a minute it has its node, half a minute later it runs; ended, it ``stays`` for some seconds, and without a
    ``last`` phase it vanishes instead. Moments are Unix seconds.
    """
    pod = {"uid": f"uid-{name}", "namespace": "ml", "pod": name}
    main, (kind, of) = {**pod, "container": "main"}, owner.split("/")
    gone = end + stays if last else end
    always = [
        Told("kube_pod_created", begun, pod, begun, gone),
        Told("kube_pod_status_scheduled_time", begun + 60, pod, begun + 60, gone),
        Told("kube_pod_container_resource_requests", 1, {**main, "resource": "nvidia_com_gpu"}, begun, gone),
        Told("kube_pod_owner", 1, {**pod, "owner_kind": kind, "owner_name": of}, begun, gone),
        Told("kube_pod_info", 1, {**pod, "node": "n1"}, begun, gone),
        Told("kube_pod_container_state_started", begun + 90, main, begun + 90, end),
        Told("kube_pod_status_phase", 1, {**pod, "phase": "Running"}, begun, end),
    ]
    if not last:
        return always
    ended = [Told("kube_pod_completion_time", end, pod, end, gone)]
    return [*always, *ended, Told("kube_pod_status_phase", 1, {**pod, "phase": last}, end, gone)]


def _selects(query: str, each: Told) -> bool:
    selector = _SELECTOR.search(query)
    if selector is None or selector[1] != each.metric:
        return False
    matchers = _MATCHER.findall((selector[2] or "").replace("\\\\", "\\"))
    return all(_matches(each.labels.get(label, ""), operator, value) for label, operator, value in matchers)


def _matches(label: str, operator: str, value: str) -> bool:
    equal = re.fullmatch(value, label) is not None if "~" in operator else label == value
    return equal is not operator.startswith("!")


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
