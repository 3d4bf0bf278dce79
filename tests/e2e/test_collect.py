"""``gsa collect`` as a process: killed, its server killed, beside another process on the same store."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx
import pytest

from advisor.domain.ingest import JobBatch
from advisor.domain.jobs import Outcome
from advisor.domain.start_latency import Spread
from advisor.history.store import HistoryStore
from advisor.telemetry.prometheus.samples import Series
from tests.api_server import StandIn, kubeconfig_of, listening
from tests.builders import NOON, a_job
from tests.kube_objects import claim_object, node_object, pod_object
from tests.processes import gsa, started
from tests.servers.processes import ServerProcess, free_port
from tests.servers.prometheus import PrometheusServers
from tests.telemetry_world.dialects import DIALECTS
from tests.telemetry_world.exposition import Telemetry
from tests.telemetry_world.things import Sharing
from tests.telemetry_world.world import WorldSpec, a_world

ROOT = Path(__file__).resolve().parents[2]
HOUR = 3600
DAYS = 2


def wait_until(seen: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    """Look again for as long as the process lives."""
    while not seen():
        try:
            process.wait(0.05)
        except subprocess.TimeoutExpired:
            continue
        raise AssertionError(f"the process ended with {process.returncode} before it got there")


def store_of(home: Path) -> HistoryStore:
    return HistoryStore.open(f"sqlite:///{home / 'history.db'}")


@dataclass(frozen=True)
class Between:
    """Only the samples from one moment on and before another are there."""

    begin: float
    end: float

    def changed(self, series: Series) -> Iterable[Series]:
        kept = (series.times >= self.begin) & (series.times < self.end)
        yield series._replace(times=series.times[kept], values=series.values[kept])


@dataclass(frozen=True)
class Growing:
    """A server that knows the first part of a world, and learns the rest where it is told to."""

    servers: PrometheusServers
    server: ServerProcess
    rest: Path

    def comes_back(self, *, grown: bool) -> None:
        if grown:
            self.servers.grow(self.server, self.rest)
        self.server.start()


@pytest.fixture
def growing(prometheus_servers: PrometheusServers, tmp_path: Path) -> Growing:
    # It ends just now: what stays reads as of now, and looks back a day at what it had not seen the end of.
    start = int(time.time()) // HOUR * HOUR - DAYS * 24 * HOUR
    world = a_world(WorldSpec(days=DAYS, gpus=10, jobs=150, seed=3, start=start))
    dialect = next(each for each in DIALECTS.values() if each.sharing is Sharing.WHOLE)
    cut = world.end - 12 * HOUR
    parts = []
    for number, part in enumerate((Between(0, cut), Between(cut, world.end + HOUR))):
        parts.append(tmp_path / f"{number}.om")
        Telemetry(world, dialect, faults=(part,)).write(parts[-1])
    return Growing(prometheus_servers, prometheus_servers.load(parts[0]), parts[1])


@pytest.mark.prometheus
def test_a_collector_and_a_server_that_are_killed_again_and_again_leave_the_history_of_a_single_ingest(
    growing: Growing, tmp_path: Path
) -> None:
    home, once = tmp_path / "home", tmp_path / "once"
    words = ("collect", "--prometheus", growing.server.url, "--every", "1s")
    environment = {"GSA_PROMETHEUS__DAYS": "3"}

    with started(home, *words, **environment) as killed:
        wait_until((home / "history.db").exists, killed)
        killed.kill()
    with started(home, *words, **environment) as killed, store_of(home) as store:
        wait_until(lambda: store.watermark("prometheus") is not None, killed)
        first = len(store.jobs(datetime.now(UTC)))
        growing.server.stop(at_once=True)
        killed.kill()
    with started(home, *words, **environment) as collector, store_of(home) as store:
        # It begins while the server is away, for as long as it takes to give that more to tell.
        back = datetime.now(UTC)
        growing.comes_back(grown=True)
        wait_until(lambda: (store.watermark("prometheus") or back) > back, collector)
        growing.server.stop(at_once=True)
        growing.comes_back(grown=False)
        again = datetime.now(UTC)
        wait_until(lambda: (store.watermark("prometheus") or again) > again, collector)
        collector.terminate()
        assert collector.wait(60) == 0

    single = gsa(once, "ingest", "prometheus", "--url", growing.server.url, **environment)
    assert single.returncode == 0, single.stderr
    now = datetime.now(UTC)
    with store_of(home) as store, store_of(once) as other:
        assert store.jobs(now) == other.jobs(now)
        assert 0 < first < len(store.jobs(now))
        assert store.status().sources[0].outcomes == other.status().sources[0].outcomes


@pytest.fixture
def url(tmp_path: Path) -> str:
    found = f"sqlite:///{tmp_path / 'history.db'}"
    HistoryStore.open(found).close()
    return found


@pytest.fixture
def writer(url: str) -> Iterator[subprocess.Popen[str]]:
    """Another process that appends a hundred batches, as a collector does."""
    program = """
        import sys
        from datetime import timedelta
        from advisor.domain.ingest import JobBatch
        from advisor.history.store import HistoryStore
        from tests.builders import NOON, a_job

        with HistoryStore.open(sys.argv[1]) as store:
            for turn in range(100):
                now = NOON + timedelta(minutes=turn)
                jobs = tuple(a_job(f"job-{turn}-{n}") for n in range(50))
                store.append(JobBatch(source="live", jobs=jobs, watermark=now, overlapping=True), now)
    """
    with subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program), url],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        text=True,
    ) as process:
        yield process
        process.kill()


def test_who_writes_and_who_reads_and_writes_the_same_store_do_not_hinder_each_other(
    url: str, writer: subprocess.Popen[str]
) -> None:
    later, looks, counts = NOON + timedelta(days=1), 0, []
    with HistoryStore.open(url) as store:
        while writer.poll() is None:
            looks += 1
            counts.append(len(store.jobs(later)))
            store.record_advice(NOON + timedelta(seconds=looks), {"look": looks})
            own = JobBatch(source="other", jobs=(a_job(f"own-{looks}"),))
            store.append(own, NOON)
        counts = [count - number for number, count in enumerate(counts)]

        assert writer.returncode == 0
        assert len(store.jobs(later)) == 100 * 50 + looks
        assert all(count % 50 == 0 for count in counts), "a batch is seen whole or not at all"
        assert counts == sorted(counts)
        advice = store.latest_advice()
        assert advice is not None
        assert advice.document == {"look": looks}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_collector_that_nobody_answers_stays_shows_what_it_has_and_ends_with_0(
    number: signal.Signals, tmp_path: Path
) -> None:
    nowhere, port = f"http://127.0.0.1:{free_port()}", free_port()
    with store_of(tmp_path) as store:
        store.append(JobBatch(source="prometheus", jobs=(a_job("a"),), watermark=NOON), NOON)

    with started(tmp_path, "collect", "--prometheus", nowhere, "--metrics-port", str(port)) as collector:
        told: list[str] = []

        def answered() -> bool:
            try:
                told.append(httpx.get(f"http://127.0.0.1:{port}/metrics", trust_env=False).text)
            except httpx.TransportError:
                return False
            return True

        wait_until(answered, collector)
        collector.send_signal(number)

        assert collector.wait(60) == 0
    assert 'gsa_ingest_jobs{outcome="completed",source="prometheus"} 1.0' in told[0]


def test_a_single_turn_that_nobody_answers_leaves_with_4_and_nothing_to_collect_with_3(tmp_path: Path) -> None:
    nowhere = f"http://127.0.0.1:{free_port()}"

    assert gsa(tmp_path, "collect", "--prometheus", nowhere, "--once").returncode == 4
    nothing = gsa(tmp_path, "collect")
    assert nothing.returncode == 3
    assert "there is nothing to collect from" in nothing.stderr


def test_what_comes_and_goes_between_two_turns_is_there_and_starts_are_learnt(tmp_path: Path) -> None:
    gone = pod_object("short", created=60, scheduled=61, started=62, version="101")
    events = [{"type": kind, "object": gone} for kind in ("ADDED", "DELETED")]
    claims = [claim_object(f"c{n}", node=f"n{n}", Launched=3, Registered=40, Initialized=75) for n in range(5)]
    cluster = StandIn(
        lists={
            "/api/v1/pods": [pod_object("stays", created=0, scheduled=80, started=90)],
            "/api/v1/nodes": [node_object()],
            "/apis/batch/v1/jobs": [],
            "/apis/karpenter.sh/v1/nodeclaims": claims,
        },
        watches={"/api/v1/pods": [events]},
    )

    with listening(cluster), store_of(tmp_path) as store:
        words = ("collect", "--kubernetes", "--kubeconfig", str(kubeconfig_of(cluster, tmp_path)), "--every", "2s")
        with started(tmp_path, *words) as collector:
            wait_until(lambda: len(store.jobs(datetime.now(UTC))) == 2, collector)
            collector.terminate()
            assert collector.wait(60) == 0

        now = datetime.now(UTC)
        assert {job.name: job.outcome for job in store.jobs(now)} == {"short": Outcome.CANCELLED, "stays": None}
        (latency,) = store.start_latencies(now)
        assert latency.to_gpu == Spread(5, 75.0, 75.0)
        assert len(cluster.queries("/api/v1/pods")) == 1, "the second turn was told by the watch alone"
