"""How soon a job that has ended counts in the answers of the API: seconds from its append to the store.

The server is ``gsa serve`` as anybody would start it, on the home named by ``GSA_BENCH_HOME``, which must hold a
history and is written to (give a copy). One job of an owner never seen before is appended with its end, and the same
question about that owner is asked until the answer rests on it.
"""

from __future__ import annotations

import json
import os
import random
import socket
import statistics
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

from advisor.clock import SystemClock
from advisor.domain.ingest import JobBatch
from advisor.domain.jobs import Job, Outcome
from advisor.history.store import HistoryStore
from advisor.settings import Settings
from serving.wiring import open_history

ROUNDS = int(os.environ.get("GSA_BENCH_JOBS", "10"))
PATIENCE_SECONDS = 900
BETWEEN_ASKS_SECONDS = 0.02
GSA = Path(sys.executable).parent / "gsa"


def main() -> None:
    """Measure, and print one line a job and their median."""
    named = os.environ.get("GSA_BENCH_HOME")
    if named is None:
        print("GSA_BENCH_HOME names no home that may be written to, so nothing is measured")
        return
    home = Path(named)
    with open_history(Settings(storage={"home": home})) as history, _served(home) as url:
        ready = time.perf_counter()
        _until(url, "/readyz", None, lambda answer: answer["ready"])
        print(f"{history.status().jobs:,} jobs; ready after {time.perf_counter() - ready:.1f} s")
        taken, chance = [], random.Random(1)
        for number in range(ROUNDS):
            # Not in step with the server's looks, which the last answer was.
            time.sleep(chance.random())
            taken.append(_seconds_until_seen(history, url, f"bench-{time.time_ns()}"))
            print(f"job {number}: counted after {taken[-1]:.2f} s", flush=True)
        print(f"median {statistics.median(taken):.2f} s, longest {max(taken):.2f} s")


def _seconds_until_seen(history: HistoryStore, url: str, owner: str) -> float:
    last = history.last_event()
    if last is None:
        raise SystemExit("the history is empty")
    begun, ended = last + timedelta(seconds=1), last + timedelta(seconds=61)
    after = ended + timedelta(seconds=1)
    new = (
        Job(id=owner, submit=begun, start=begun, end=ended, outcome=Outcome.COMPLETED, gpus=1.0, user=owner),
        # A replayed history is looked at as of its last submission.
        Job(id=f"{owner}-next", submit=after, gpus=1.0, user=f"{owner}-next"),
    )
    history.append(JobBatch(source="bench", jobs=new), SystemClock().now())
    appended = time.perf_counter()
    asked = {"jobs": [{"id": "x", "gpus": 1, "user": owner}]}
    _until(url, "/v1/predictions/durations", asked, lambda answer: _rests_on_owner(answer["predictions"][0]))
    return time.perf_counter() - appended


def _rests_on_owner(prediction: dict[str, Any]) -> bool:
    return bool(prediction["key"].startswith("user") and prediction["key_count"] == 1)


def _until(url: str, path: str, body: object, seen: Any) -> None:  # noqa: ANN401 - a condition on a JSON answer
    deadline = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < deadline:
        try:
            request = urllib.request.Request(
                url + path,
                data=None if body is None else json.dumps(body).encode(),
                headers={"Content-Type": "application/json"},
            )
            with urllib.request.urlopen(request, timeout=60) as answer:
                if seen(json.loads(answer.read())):
                    return
        except (urllib.error.URLError, ConnectionError):
            pass
        time.sleep(BETWEEN_ASKS_SECONDS)
    raise SystemExit(f"nothing seen within {PATIENCE_SECONDS} s")


@contextmanager
def _served(home: Path) -> Iterator[str]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {**os.environ, "GSA_STORAGE__HOME": str(home)}
    command = [str(GSA), "serve", "--port", str(port)]
    server = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(30)


if __name__ == "__main__":
    main()
