"""``gsa ingest`` and ``gsa history``: what they print, and that machines get one document and nothing else."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml
from typer import Typer
from typer.testing import CliRunner, Result

from advisor.domain.ingest import PARTITIONS
from advisor.errors import Refused
from serving.cli import history, ingest
from tests.api_server import StandIn, kubeconfig_of, listening
from tests.docs.json_shapes import differences, documented
from tests.kube_objects import a_condition, claim_object, node_object, pod_object

USERS = """u_id,user,gpu_num,cpu_num,node_num,interval,run_time,wall_time,new_status
0,1,1,0,1,0,1389,0,Killed
1,2,8,0,4,395,14405,0,Failed
2,3,1,0,1,257,0,0,Pass
3,3,1,0,1,257,66,0,Pass
"""
SACCT = """JobID|State|Submit|Start|End|AllocTRES
1|COMPLETED|2026-03-02T12:00:00|2026-03-02T12:00:00|2026-03-02T13:00:00|gres/gpu=2
1.batch|COMPLETED|2026-03-02T12:00:00|2026-03-02T12:00:00|2026-03-02T13:00:00|gres/gpu=2
2|LOST|2026-03-02T12:00:00|2026-03-02T12:00:00|2026-03-02T13:00:00|gres/gpu=2
"""
MAPPING = '[columns]\nsubmit = "at"\nduration = "took"\n'


@pytest.fixture
def gsa(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Result]:
    """Runs one command on a store of its own; errors of ours come through as they are."""
    monkeypatch.setenv("GSA_STORAGE__HOME", str(tmp_path / "home"))

    def run(command: Typer, *arguments: object) -> Result:
        return CliRunner().invoke(command, [str(each) for each in arguments], catch_exceptions=False)

    return run


@pytest.fixture
def users(tmp_path: Path) -> Path:
    path = tmp_path / "users.csv"
    path.write_text(USERS)
    return path


def test_ingest_prints_what_came_in_and_what_did_not(gsa, users):
    result = gsa(ingest.app, "trace", users, "--format", "philly-users")
    assert result.exit_code == 0
    assert "source philly-users" in result.stdout
    assert "not_positive_duration" in result.stdout
    assert "started at its submission" in result.stdout


def test_ingest_twice_says_that_nothing_changed(gsa, users):
    arguments = ("trace", users, "--format", "philly-users", "--output", "json")
    first, second = (json.loads(gsa(ingest.app, *arguments).stdout) for _ in range(2))
    assert (first["added"], first["changed"], first["unchanged"]) == (3, 0, 0)
    assert (second["added"], second["changed"], second["unchanged"]) == (0, 0, 3)
    assert first["rejections"] == [
        {"reason": "not_positive_duration", "count": 1, "of": "jobs", "example": "row 3: duration 0 s"},
    ]
    assert set(first) == {
        "source", "added", "changed", "unchanged", "rejections", "notes", "watermark", "synthetic",
    }  # fmt: skip


def test_slurm_comes_in_under_the_cluster_s_name_and_in_its_zone(gsa, tmp_path):
    (tmp_path / "jobs.txt").write_text(SACCT)
    arguments = ("slurm", tmp_path / "jobs.txt", "--source", "west", "--zone", "Europe/Berlin")
    document = json.loads(gsa(ingest.app, *arguments, "--output", "json").stdout)
    assert document == {
        "source": "west", "added": 1, "changed": 0, "unchanged": 0,
        "rejections": [
            {"reason": "unknown_outcome:LOST", "count": 1, "of": "jobs",
             "example": "row 3: state 'LOST' is none of Slurm's"},
        ],
        "watermark": "2026-03-02T12:00:00+00:00", "notes": [PARTITIONS], "synthetic": False,
    }  # fmt: skip
    shown = gsa(ingest.app, *arguments)
    assert "source west" in shown.stdout
    assert shown.stderr.splitlines() == ["ingest: reading rows, 2 in all", "ingest: storing jobs, 1 in all"]


def test_accounting_that_lacks_a_column_is_refused_with_the_command_that_has_it_and_no_store_is_made(gsa, tmp_path):
    (tmp_path / "jobs.txt").write_text("JobID|State\n1|COMPLETED\n")
    with pytest.raises(Refused, match="no column Submit, Start, End") as refused:
        gsa(ingest.app, "slurm", tmp_path / "jobs.txt")
    assert "sacct --allusers" in refused.value.remedy
    assert json.loads(gsa(history.app, "status", "--output", "json").stdout)["sources"] == []


def test_a_table_comes_in_by_its_mapping_under_a_name_of_its_own(gsa, tmp_path):
    (tmp_path / "jobs.csv").write_text("at,took\n2026-03-02 12:00,60\n")
    (tmp_path / "mapping.toml").write_text(MAPPING)
    mapped = ("--format", "table", "--mapping", tmp_path / "mapping.toml", "--source", "west")
    gsa(ingest.app, "trace", tmp_path / "jobs.csv", *mapped)
    status = json.loads(gsa(history.app, "status", "--output", "json").stdout)
    assert [(each["source"], each["jobs"]) for each in status["sources"]] == [("west", 1)]


def test_a_mistaken_mapping_is_refused_and_no_store_is_made(gsa, tmp_path):
    (tmp_path / "jobs.csv").write_text("at,took\n2026-03-02 12:00,60\n")
    (tmp_path / "mapping.toml").write_text(MAPPING.replace("took", "lasted"))
    with pytest.raises(Refused, match="no such column among at, took"):
        gsa(ingest.app, "trace", tmp_path / "jobs.csv", "--format", "table", "--mapping", tmp_path / "mapping.toml")
    assert json.loads(gsa(history.app, "status", "--output", "json").stdout)["sources"] == []


def test_status_says_the_same_to_people_and_to_machines(gsa, users):
    gsa(ingest.app, "trace", users, "--format", "philly-users")

    shown = gsa(history.app, "status").stdout
    as_json = json.loads(gsa(history.app, "status", "--output", "json").stdout)
    as_yaml = yaml.safe_load(gsa(history.app, "status", "--output", "yaml").stdout)

    assert as_json == as_yaml
    assert as_json["outcomes"] == {"cancelled": 1, "completed": 1, "failed": 1}
    assert as_json["first_submit"] == "2017-08-07T10:03:01+00:00"
    assert set(as_json) == {
        "jobs", "outcomes", "first_submit", "last_event", "synthetic", "notes", "rejections", "sources",
    }  # fmt: skip
    assert "philly-users" in shown
    assert "not_positive_duration" in shown
    assert "as given" in shown


def test_an_empty_store_says_how_to_fill_it(gsa):
    assert "gsa ingest" in gsa(history.app, "status").stdout


def test_an_empty_store_points_at_the_demo_that_was_run_in_the_same_folder(gsa, tmp_path):
    demo = tmp_path / "home" / "demo" / "synthetic"
    demo.mkdir(parents=True)
    (demo / "history.db").touch()

    shown = gsa(history.app, "status").stdout.replace("\n", " ")

    assert f"GSA_STORAGE__HOME={demo} gsa history status" in shown


def test_each_stage_is_one_line_where_nobody_watches(gsa, users):
    result = gsa(ingest.app, "trace", users, "--format", "philly-users")

    assert result.stderr.splitlines() == ["ingest: reading rows, 4 in all", "ingest: storing jobs, 3 in all"]


def test_a_cluster_is_read_with_its_start_latency(gsa, tmp_path):
    claim = claim_object(created=0, Launched=5, Registered=40, Initialized=80)
    ready = a_condition("PodReadyToStartContainers", 84)
    lists = {
        "/api/v1/pods": [pod_object("train", scheduled=81, started=200, status={"conditions": [ready]})],
        "/api/v1/nodes": [node_object()],
        "/apis/batch/v1/jobs": [],
        "/apis/karpenter.sh/v1/nodeclaims": [claim],
    }
    with listening(StandIn(lists)) as server:
        file = kubeconfig_of(server, tmp_path, "prod-eu")
        printed = gsa(ingest.app, "kubernetes", "--kubeconfig", file)
        machine = gsa(ingest.app, "kubernetes", "--kubeconfig", file, "--context", "here", "--output", "json")
    assert printed.exit_code == 0
    assert "source kubernetes/prod-eu" in printed.stdout
    assert "start latency of NodePool gpu" in printed.stdout
    assert "80 s" in printed.stdout
    document = json.loads(machine.stdout)
    assert (document["source"], document["unchanged"]) == ("kubernetes/prod-eu", 1)
    (latency,) = document["start_latency"]
    assert (latency["pool"], latency["to_gpu"]["p90_seconds"]) == ("gpu", 80.0)
    assert latency["parts"].pop("gpus_allocatable") is None
    assert differences(documented("gsa ingest kubernetes"), document) == []


def test_a_cluster_has_the_name_it_is_given(gsa, tmp_path):
    with listening(StandIn({"/api/v1/pods": [pod_object(started=5)]})) as server:
        file = kubeconfig_of(server, tmp_path)
        printed = gsa(ingest.app, "kubernetes", "--kubeconfig", file, "--name", "eu")
    assert "source kubernetes/eu" in printed.stdout
    assert "serves no jobs" in printed.stdout


def test_pods_that_may_not_be_listed_name_the_rule_to_add(gsa, tmp_path):
    server = StandIn({"/api/v1/pods": []}, instead={"/api/v1/pods": [403]})
    with listening(server), pytest.raises(Refused, match=r'resources: \["pods"\], verbs: \["get", "list", "watch"\]'):
        gsa(ingest.app, "kubernetes", "--kubeconfig", kubeconfig_of(server, tmp_path))
