"""``gsa collect --kubernetes`` beside a real cluster: all that comes and goes, whatever becomes of the API server."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing
from datetime import UTC, datetime
from pathlib import Path
from time import monotonic

import pytest

from advisor.history.store import HistoryStore
from tests.cluster.comparing import differences, history_of
from tests.cluster.conftest import a_waiting_pod, grant
from tests.cluster.story import BenchStory
from tests.processes import started
from tests.servers.control_plane import ControlPlane
from tests.servers.kube_api import KubeApi
from tests.servers.kubelet import Kubelet

pytestmark = pytest.mark.cluster

_PATIENCE_SECONDS = 120.0


@pytest.fixture
def home(tmp_path: Path) -> Path:
    HistoryStore.open(f"sqlite:///{tmp_path / 'history.db'}").close()
    return tmp_path


def collecting(bench: ControlPlane, home: Path, user: str = "reader") -> AbstractContextManager[subprocess.Popen[str]]:
    return started(home, "collect", "--kubernetes", "--kubeconfig", str(bench.kubeconfig(user)), "--every", "2s")


def come_to(look: Callable[[], object], process: subprocess.Popen[str]) -> None:
    """Look again until there is nothing more to be said, for as long as the process lives and patience lasts."""
    until = monotonic() + _PATIENCE_SECONDS
    while left := look():
        try:
            process.wait(0.2)
        except subprocess.TimeoutExpired:
            assert monotonic() < until, left
            continue
        raise AssertionError(f"the process ended with {process.returncode} before it got there: {left}")


def ended(process: subprocess.Popen[str]) -> int:
    process.terminate()
    return process.wait(60)


def not_read_since(home: Path, moment: datetime) -> bool:
    with HistoryStore.open(f"sqlite:///{home / 'history.db'}") as store:
        read = store.watermark("kubernetes/bench")
    return read is None or read < moment


def test_who_stays_knows_the_truth_of_what_came_and_went(
    bench: ControlPlane, api: KubeApi, namespace: str, home: Path
) -> None:
    story = BenchStory(api, Kubelet(api), namespace)
    with collecting(bench, home) as collector:
        come_to(lambda: not_read_since(home, datetime.min.replace(tzinfo=UTC)), collector)
        story.begin()
        story.go_on()
        come_to(lambda: differences(story.jobs, history_of(home, namespace)), collector)
        assert ended(collector) == 0


def test_an_api_server_that_dies_and_forgets_the_past_costs_no_job(
    bench: ControlPlane, api: KubeApi, namespace: str, home: Path
) -> None:
    story = BenchStory(api, Kubelet(api), namespace)
    with collecting(bench, home) as collector:
        story.begin()
        come_to(lambda: differences(story.jobs, history_of(home, namespace)), collector)
        bench.api_server.stop(at_once=True)
        bench.forget_the_past()
        bench.api_server.start()
        back = datetime.now(UTC)
        come_to(lambda: not_read_since(home, back), collector)
        with closing(bench.api()) as again:
            story.api, story.kubelet = again, Kubelet(again)
            story.go_on()
        come_to(lambda: differences(story.jobs, history_of(home, namespace)), collector)
        assert ended(collector) == 0


@pytest.fixture
def going_on(bench: ControlPlane) -> Iterator[None]:
    yield
    bench.api_server.go_on()


def test_a_server_that_stands_still_for_a_while_is_left_and_asked_again(
    bench: ControlPlane, api: KubeApi, namespace: str, home: Path, going_on: None
) -> None:
    path = f"/api/v1/namespaces/{namespace}/pods"
    with collecting(bench, home) as collector:
        api.create(path, a_waiting_pod("before"))
        come_to(lambda: {"before"} - history_of(home, namespace).keys(), collector)
        bench.api_server.hold()
        with pytest.raises(subprocess.TimeoutExpired):
            # Longer than it waits for any answer.
            collector.wait(35)
        bench.api_server.go_on()
        api.create(path, a_waiting_pod("after"))
        come_to(lambda: {"before", "after"} ^ history_of(home, namespace).keys(), collector)
        assert ended(collector) == 0


def test_who_may_not_watch_reads_lists_turn_after_turn(
    bench: ControlPlane, api: KubeApi, namespace: str, home: Path
) -> None:
    grant(api, "lister", [{"apiGroups": ["", "batch"], "resources": ["pods", "nodes", "jobs"], "verbs": ["list"]}])
    path = f"/api/v1/namespaces/{namespace}/pods"
    with collecting(bench, home, "lister") as collector:
        api.create(path, a_waiting_pod("first"))
        come_to(lambda: {"first"} - history_of(home, namespace).keys(), collector)
        api.create(path, a_waiting_pod("second"))
        come_to(lambda: {"second"} - history_of(home, namespace).keys(), collector)
        assert ended(collector) == 0
