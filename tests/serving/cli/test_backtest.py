"""``gsa backtest`` on a trace: the document for machines, the tables for people, and what is refused."""

from __future__ import annotations

import csv
import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from typer.testing import CliRunner

from advisor.errors import Refused
from serving.cli import backtest
from tests.builders import NOON
from tests.docs.json_shapes import differences, documented

MAPPING = """[columns]
id = "id"
submit = "submit"
start = "start"
end = "end"
user = "user"
gpus = "gpus"

[time]
kind = "timestamp"
zone = "UTC"
"""


@pytest.fixture(scope="module")
def trace(tmp_path_factory) -> tuple[str, ...]:
    folder: Path = tmp_path_factory.mktemp("backtest")
    with (folder / "jobs.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(("id", "submit", "start", "end", "user", "gpus"))
        for number in range(100):
            submit = NOON + timedelta(minutes=40 * number)
            end = submit + timedelta(minutes=5 + 37 * number % 240)
            rows.writerow((f"job-{number}", submit, submit, end, f"user-{number % 3}", 8 if number % 7 == 0 else 1))
    (folder / "mapping.toml").write_text(MAPPING)
    return ("--trace", str(folder / "jobs.csv"), "--format", "table", "--mapping", str(folder / "mapping.toml"))


def run(trace: tuple[str, ...], *arguments: object, home: Path) -> Result:
    environment = {"GSA_STORAGE__HOME": str(home), "COLUMNS": "200"}
    given = [*trace, "--processes", "1", *(str(each) for each in arguments)]
    return CliRunner().invoke(backtest.app, given, env=environment, catch_exceptions=False)


def document(trace: tuple[str, ...], *arguments: object, home: Path) -> Any:
    result = run(trace, *arguments, "--output", "json", home=home)
    assert result.exit_code == 0
    return json.loads(result.stdout)


def test_the_document_has_the_described_shape(trace, tmp_path):
    found = document(trace, "--seeds", 2, "--checkpointable", 0.5, home=tmp_path)
    assert differences(documented("gsa backtest"), found) == []
    assert found["policies"]["advisor"]["jobs"] == 30
    assert set(found["differences"]) == set(found["policies"]) - {"advisor"}


def test_the_options_reach_the_cluster(trace, tmp_path):
    slow = document(trace, "--start-latency", "20m", home=tmp_path)["policies"]["karpenter"]
    fast = document(trace, "--start-latency", "30s", home=tmp_path)["policies"]["karpenter"]
    assert slow["mean_wait_minutes"] > 5 * fast["mean_wait_minutes"]
    dear = document(trace, "--start-latency", "30s", "--price", 25, "--node-gpus", 16, home=tmp_path)
    assert dear["policies"]["traditional"]["cost"] > 10 * fast["cost"]
    held = document(trace, "--quota-nodes", 1, "--split", 0.5, "--policy", "shortest_first", home=tmp_path)["policies"]
    assert held["karpenter"]["jobs"] == 50
    assert held["karpenter"]["mean_wait_minutes"] > fast["mean_wait_minutes"]
    assert "shortest_first" in held


def test_people_read_tables_with_the_setting_chosen_and_what_was_assumed(trace, tmp_path):
    shown = run(trace, home=tmp_path).stdout
    assert "- keep_alive_best: keep alive seconds" in shown
    assert "ours less theirs" in shown
    assert "assumed: one NodePool of nodes with 8 GPUs" in shown


@pytest.mark.parametrize(
    "arguments, named",
    [
        (("--start-latency", "soon"), "--start-latency"),
        (("--policy", "best"), "policy"),
    ],
)
def test_what_makes_no_sense_is_refused(trace, tmp_path, arguments, named):
    with pytest.raises(Refused, match=named):
        run(trace, *arguments, home=tmp_path)


def test_a_trace_needs_a_format(trace, tmp_path):
    with pytest.raises(Refused, match="--format"):
        run(trace[:2], home=tmp_path)
