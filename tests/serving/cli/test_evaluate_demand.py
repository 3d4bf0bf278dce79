"""``gsa evaluate demand``: series or a trace of jobs, the documented JSON, and the report as a page."""

from __future__ import annotations

import csv
import json
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from serving.cli.root import app
from tests.builders import NOON, a_history

MAPPING = """[series]
time = "time"
pool = {column = "pool"}
running = "running"
%s
gpus_per_node = 8
"""


@pytest.fixture
def hourly(tmp_path: Path) -> tuple[Path, Path]:
    """Two pools sampled hourly over three weeks, of which nothing is told that waits."""
    rng = np.random.default_rng(3)
    rows = []
    for pool, base in (("A10", 200.0), ("H800", 64.0)):
        level = base
        for hour in range(21 * 24):
            level = max(0.0, level + float(rng.choice([-8, 0, 0, 8])))
            rows.append((f"{NOON + timedelta(hours=hour):%Y-%m-%dT%H:%M:%SZ}", pool, level))
    table, mapping = tmp_path / "hourly.csv", tmp_path / "hourly.toml"
    with table.open("w", newline="") as file:
        csv.writer(file).writerows([("time", "pool", "running"), *rows])
    mapping.write_text(MAPPING % "")
    return table, mapping


def gsa(*arguments: object, fails: int = 0):
    done = CliRunner().invoke(app, ["evaluate", "demand", *map(str, arguments)])
    assert done.exit_code == fails, done.output
    return done


def test_hourly_pools_of_one_column_are_scored_and_the_missing_pending_is_said(hourly, tmp_path):
    table, mapping = hourly
    page = tmp_path / "demand.html"
    series = ("--series", table, "--mapping", mapping)
    done = gsa(*series, "--horizons", "60,360", "--output", "json", "--html", page)

    document = json.loads(done.stdout)
    assert set(document["pools"]) == {"A10", "H800"}
    for pool in document["pools"].values():
        assert set(pool["horizons"]) == {"60", "360"}
        for scores in pool["horizons"].values():
            assert {"model", "constant", "persistence", "seasonal"} <= set(scores["pinball"])
            assert {"0.5", "0.9", "0.95", "0.99"} <= set(scores["pinball"]["model"])
            assert {"model", "persistence", "seasonal"} <= set(scores["mae"])
            assert all(below <= upto for below, upto in scores["coverage"].values())
    assert "pool A10 has no pending GPUs: the forecast is of running GPUs alone" in document["protocol"]["assumed"]
    assert "releases" not in document
    written = page.read_text(encoding="utf-8")
    assert "How well demand is forecast" in written
    assert "H800: 360 min ahead" in written


def test_horizon_shorter_than_the_step_of_the_series_is_refused(hourly):
    table, mapping = hourly
    done = CliRunner().invoke(
        app, ["evaluate", "demand", "--series", table.as_posix(), "--mapping", mapping.as_posix()]
    )

    assert done.exit_code != 0
    assert "60 min apart" in str(done.exception)


def test_a_trace_is_evaluated_with_what_its_releases_are_worth(tmp_path):
    trace, mapping = tmp_path / "jobs.csv", tmp_path / "jobs.toml"
    jobs = a_history(1500)
    with trace.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("submitted", "seconds", "num_gpus", "user"))
        for job in jobs:
            seconds = job.duration_seconds or 600.0
            # Stretched, so that there are days of it.
            submit = NOON + 5 * (job.submit - NOON)
            writer.writerow((f"{submit:%Y-%m-%dT%H:%M:%SZ}", seconds, max(1, int(job.gpus)), job.user))
    mapping.write_text('[columns]\nsubmit = "submitted"\nduration = "seconds"\ngpus = "num_gpus"\nuser = "user"\n')
    source = ("--trace", trace, "--format", "table", "--mapping", mapping)

    document = json.loads(gsa(*source, "--by", "cluster", "--horizons", "30", "--output", "json").stdout)

    assert set(document["pools"]) == {"cluster"}
    (scores,) = document["releases"]["cluster"].values()
    assert set(scores["pinball"]) == {"without", "predicted", "true"}
    assert set(scores["share_of_gain"]) == {"0.05", "0.1", "0.25", "0.5"}
    assert scores["pinball"]["true"]["0.1"] <= scores["pinball"]["without"]["0.1"]


@pytest.mark.parametrize(
    "arguments, said",
    [
        ((), "Name --series or --trace"),
        (("--trace", "a.csv"), "Name it with --format"),
        (("--trace", "a.csv", "--series", "b.csv"), "Leave one of them out"),
    ],
)
def test_what_to_evaluate_on_must_be_said_once(arguments, said):
    done = CliRunner().invoke(app, ["evaluate", "demand", *arguments])

    assert done.exit_code != 0
    assert said in str(done.exception) + done.output
