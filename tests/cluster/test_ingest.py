"""``gsa ingest kubernetes`` of a real cluster: what is there, who may read it, and a server that stands still."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from serving.cli.root import ExitCode
from tests.cluster.comparing import differences, history_of
from tests.cluster.conftest import a_waiting_pod, grant
from tests.cluster.story import BenchStory
from tests.processes import gsa
from tests.servers.control_plane import ControlPlane
from tests.servers.kube_api import KubeApi
from tests.servers.kubelet import Kubelet

pytestmark = pytest.mark.cluster


def ingest(bench: ControlPlane, home: Path, user: str = "reader") -> subprocess.CompletedProcess[str]:
    words = ("ingest", "kubernetes", "--kubeconfig", str(bench.kubeconfig(user)), "--output", "json")
    return gsa(home, *words)


def test_one_reading_tells_the_truth_of_all_that_is_still_there(
    bench: ControlPlane, api: KubeApi, namespace: str, tmp_path: Path
) -> None:
    story = BenchStory(api, Kubelet(api), namespace)
    story.begin()
    story.go_on()

    done = ingest(bench, tmp_path)

    assert done.returncode == 0, done.stderr
    there = {name: job for name, job in story.jobs.items() if name not in story.gone}
    assert differences({**there, **story.last_runs}, history_of(tmp_path, namespace)) == []
    told = json.loads(done.stdout)
    assert told["source"] == "kubernetes/bench"
    assert {each["reason"]: each["count"] for each in told["rejections"]} == {"unreadable_gpus": 1}
    assert "a third" in told["rejections"][0]["example"]
    # All but kinds that are not installed may be read with the role of the guide.
    assert [note for note in told["notes"] if "could not be read" in note] == []


def test_it_is_the_same_history_after_a_second_reading(
    bench: ControlPlane, api: KubeApi, namespace: str, tmp_path: Path
) -> None:
    story = BenchStory(api, Kubelet(api), namespace)
    story.begin()
    assert ingest(bench, tmp_path).returncode == 0
    story.go_on()

    assert ingest(bench, tmp_path).returncode == 0

    found = history_of(tmp_path, namespace)
    still = {name: job for name, job in story.jobs.items() if name not in {*story.gone, *story.last_runs}}
    assert differences(still, {name: job for name, job in found.items() if name in still}) == []
    # Nobody saw how these ended, so they lasted at least until they were last read.
    assert {name: found[name].outcome for name in story.gone} == dict.fromkeys(story.gone, "censored")


def test_who_may_read_nothing_is_told_which_rule_to_add(bench: ControlPlane, tmp_path: Path) -> None:
    denied = ingest(bench, tmp_path, "stranger")

    assert denied.returncode == ExitCode.REFUSED
    assert "403 Forbidden" in denied.stderr
    assert 'apiGroups: [""], resources: ["pods"], verbs: ["get", "list", "watch"]' in denied.stderr.replace("\n", " ")


def test_who_is_not_known_is_told_so_and_not_of_rules(bench: ControlPlane, tmp_path: Path) -> None:
    unknown = ingest(bench, tmp_path, "nobody")

    assert unknown.returncode == ExitCode.REFUSED
    assert "401 Unauthorized" in unknown.stderr
    assert "ClusterRole" not in unknown.stderr
    assert "--kubeconfig" in unknown.stderr


def test_who_may_read_pods_alone_is_told_what_that_costs(
    bench: ControlPlane, api: KubeApi, namespace: str, tmp_path: Path
) -> None:
    grant(api, "pods-only", [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}])
    api.create(f"/api/v1/namespaces/{namespace}/pods", a_waiting_pod("alone"))

    done = ingest(bench, tmp_path, "pods-only")

    assert done.returncode == 0, done.stderr
    assert history_of(tmp_path, namespace).keys() == {"alone"}
    (of_nodes,) = (note for note in json.loads(done.stdout)["notes"] if note.startswith("nodes "))
    assert "pools, GPU kinds" in of_nodes
    assert "403 Forbidden" in of_nodes


@pytest.fixture
def held(bench: ControlPlane) -> Iterator[ControlPlane]:
    bench.api_server.hold()
    yield bench
    bench.api_server.go_on()


def test_a_server_that_stands_still_is_not_waited_for_for_ever(held: ControlPlane, tmp_path: Path) -> None:
    late = ingest(held, tmp_path)

    assert late.returncode == ExitCode.UNAVAILABLE
    assert "could not be asked for pods" in late.stderr.replace("\n", " ")
