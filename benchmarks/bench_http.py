"""One prediction over HTTP, beside the same prediction in the process and the bare look-up in the trees.

The server is ``gsa serve`` as anybody would start it, on a history that ``gsa demo`` learnt from: a labelled
synthetic workload in a temporary folder, or the folder named by ``GSA_BENCH_HOME``. The load is made by
``wrk``; without it only the calls within the process are measured.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from advisor.clock import SystemClock
from advisor.settings import Settings
from serving.api.duration_schema import DurationsAnswer
from serving.api.service import DurationAsk
from serving.champions import Champions
from serving.live import LiveAdvisor, LiveParts
from serving.wiring import ClusterChoice, open_history, open_registry

SECONDS = 8
CALLS = 2000
PATIENCE_SECONDS = 900
BATCH = 100
GSA = Path(sys.executable).parent / "gsa"
WRK = shutil.which("wrk")
LOAD = """
wrk.method = "POST"
wrk.path = "/v1/predictions/durations"
wrk.headers["Content-Type"] = "application/json"
wrk.body = [==[%s]==]
done = function(summary, latency, requests)
  local failed = summary.errors.status + summary.errors.connect + summary.errors.read + summary.errors.timeout
  io.write(string.format('RESULT {"requests": %%d, "microseconds": %%d, "failed": %%d, "p50": %%f, "p99": %%f}\\n',
    summary.requests, summary.duration, failed, latency:percentile(50), latency:percentile(99)))
end
"""


@dataclass(frozen=True)
class Measured:
    """What one way of asking took."""

    name: str
    per_second: float
    p50_ms: float
    p99_ms: float

    def line(self, bare: Measured) -> str:
        """As a row, with its median beside the bare look-up's."""
        ratio = self.p50_ms / bare.p50_ms
        return f"{self.name:<44}{self.per_second:>10,.0f}{self.p50_ms:>10.3f}{self.p99_ms:>10.3f}{ratio:>9.2f}"


def main() -> None:
    """Measure, and print one table."""
    with _home() as home:
        settings = Settings(storage={"home": home})
        live = LiveAdvisor(
            LiveParts(
                settings=settings,
                history=open_history(settings),
                registry=open_registry(settings),
                clock=SystemClock(),
                cluster=ClusterChoice(),
            )
        )
        live.refresh()
        ask = _ask(live)
        rows = [*_within(live, Champions.of(open_registry(settings)), ask), *_over_http(home, ask)]
    print(f"{'one prediction':<44}{'per s':>10}{'p50 ms':>10}{'p99 ms':>10}{'x bare':>9}")
    for row in rows:
        print(row.line(rows[0]))


@contextmanager
def _home() -> Iterator[Path]:
    given = os.environ.get("GSA_BENCH_HOME")
    if given:
        yield Path(given)
        return
    with tempfile.TemporaryDirectory() as folder:
        print("learning from a synthetic workload ...", flush=True)
        environment = {**os.environ, "GSA_STORAGE__HOME": folder}
        subprocess.run([GSA, "demo", "--no-serve"], env=environment, check=True, stdout=subprocess.DEVNULL)
        yield Path(folder) / "demo" / "synthetic"


def _ask(live: LiveAdvisor) -> DurationAsk:
    """A job like the newest one that the model, and no baseline, answers."""
    for view in live.jobs(None, 500):
        job = view.job
        ask = DurationAsk(id="bench", gpus=job.gpus, user=job.user, namespace=job.namespace, name=job.name)
        if live.durations((ask,))[0].forecast.served == "model":
            return ask
    raise SystemExit("no job of this history is answered by the model; train one that is promoted")


def _within(live: LiveAdvisor, champions: Champions, ask: DurationAsk) -> Iterator[Measured]:
    model = champions.durations
    if model is None:
        raise SystemExit("no duration model has been promoted in this registry")
    row = np.zeros((1, len(model.columns)))
    yield _timed("bare look-up in the trees", lambda: model.leaves_of(row))
    yield _timed("model call in the process", lambda: live.durations((ask,)))

    def answered() -> bytes:
        made = DurationsAnswer.of(live.synthetic(), live.durations((ask,)))
        return made.model_dump_json().encode()

    yield _timed("model call and answer as JSON", answered)


def _timed(name: str, call: Callable[[], object]) -> Measured:
    for _ in range(CALLS // 10):
        call()
    taken = []
    for _ in range(CALLS):
        began = time.perf_counter()
        call()
        taken.append(1000 * (time.perf_counter() - began))
    cuts = statistics.quantiles(taken, n=100)
    return Measured(name, 1000 / statistics.fmean(taken), cuts[49], cuts[98])


def _over_http(home: Path, ask: DurationAsk) -> Iterator[Measured]:
    if WRK is None:
        print("wrk is not installed (Debian: apt-get install wrk), so nothing is measured over HTTP")
        return
    job = {key: value for key in ("gpus", "user", "namespace", "name") if (value := getattr(ask, key)) is not None}
    with _server(home) as port:
        for connections in (1, 8):
            yield _load(f"over HTTP, {connections} connections", port, [job], connections)
        yield _load(f"{BATCH} predictions a request, 1 connection", port, [job] * BATCH, 1)


@contextmanager
def _server(home: Path) -> Iterator[int]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {**os.environ, "GSA_STORAGE__HOME": str(home)}
    command = [GSA, "serve", "--port", str(port)]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _wait_until_ready(port, process)
        yield port
    finally:
        process.terminate()
        process.wait(30)


def _wait_until_ready(port: int, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise SystemExit(f"gsa serve ended with exit code {process.returncode}")
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=10):
                return
        except (urllib.error.URLError, OSError):
            time.sleep(0.5)
    raise SystemExit("gsa serve did not become ready")


def _load(name: str, port: int, jobs: list[dict[str, Any]], connections: int) -> Measured:
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as script:
        script.write(LOAD % json.dumps({"jobs": jobs}))
        script.flush()
        base = [str(WRK), "-t1", f"-c{connections}", "-s", script.name, f"http://127.0.0.1:{port}"]
        subprocess.run([*base, "-d2s"], check=True, capture_output=True)
        done = subprocess.run([*base, f"-d{SECONDS}s"], check=True, capture_output=True, text=True)
    found = json.loads(done.stdout.partition("RESULT ")[2])
    if found["failed"]:
        raise SystemExit(f"{name}: {found['failed']} requests failed")
    rate = found["requests"] / (found["microseconds"] / 1e6)
    return Measured(name, rate, found["p50"] / 1000, found["p99"] / 1000)


if __name__ == "__main__":
    main()
