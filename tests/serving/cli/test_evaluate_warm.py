"""``gsa evaluate warm``: series apart and as one, jobs on nodes, the report as a page, and bad input."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner, Result

from advisor.errors import Refused
from serving.cli import evaluate
from tests.builders import NOON
from tests.docs.json_shapes import differences, documented

POLICIES = {"advisor", "keep_alive", "static", "trailing_max", "clairvoyant"}
DAYS = 8
SERIES_MAPPING = """[series]
time = "time"
pool = "{pool}"
running = "running"
pending = "pending"
gpus_per_node = 8
"""
JOBS_MAPPING = """[columns]
id = "id"
submit = "submit"
duration = "seconds"
gpus = "gpus"
namespace = "team"
"""


def clockwork(seed: int) -> np.ndarray:
    """A node at all times, one more for half of every second hour, and small jobs at random."""
    minutes = np.arange(DAYS * 1440)
    small = np.random.default_rng(seed).integers(0, 5, minutes.size // 30).repeat(30)
    return 8 + 8 * ((minutes // 30) % 4 == 0) + np.pad(small, (0, minutes.size - small.size))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("warm")
    for seed, pool in enumerate(("one", "two")):
        (made / f"{pool}.toml").write_text(SERIES_MAPPING.format(pool=pool))
        with (made / f"{pool}.csv").open("w", newline="") as file:
            rows = csv.writer(file)
            rows.writerow(["time", "running", "pending"])
            for place, gpus in enumerate(clockwork(seed)[::5]):
                rows.writerow([(NOON + timedelta(minutes=5 * place)).isoformat(), int(gpus), 0])
    (made / "jobs.toml").write_text(JOBS_MAPPING)
    with (made / "jobs.csv").open("w", newline="") as file:
        rows = csv.writer(file)
        rows.writerow(["id", "submit", "seconds", "gpus", "team"])
        for number in range(DAYS * 48):
            at = NOON + timedelta(minutes=30 * number)
            rows.writerow([f"j{number}", at.isoformat(), 1500, 8 if number % 4 == 0 else 1, "a" if number % 8 else "b"])
    return made


@pytest.fixture(scope="module")
def gsa() -> Callable[..., Result]:
    def run(*arguments: str | Path) -> Result:
        return CliRunner().invoke(evaluate.app, ["warm", *map(str, arguments)])

    return run


@pytest.fixture(scope="module")
def pair(folder: Path, gsa: Callable[..., Result]) -> dict[str, Any]:
    named = [
        part
        for pool in ("one", "two")
        for part in ("--series", folder / f"{pool}.csv", "--mapping", folder / f"{pool}.toml")
    ]
    result = gsa(*named, "--start-latency", "5m", "--html", folder / "page.html", "--output", "json")
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_pools_are_evaluated_apart_and_as_one(pair):
    assert set(pair["pools"]) == {"one", "two", "shared"}
    assert pair["apart"]["curves"].keys() == pair["pools"]["one"]["curves"].keys()
    for one in pair["pools"].values():
        assert set(one["curves"]) >= POLICIES
        assert set(one["at_equal_cost"]) >= {"1.05", "1.10"}


def test_the_document_has_the_shape_that_is_described(pair):
    assert differences(documented("gsa evaluate warm"), pair) == []


def test_whoever_sees_the_hour_coming_waits_less_at_equal_cost(pair):
    for cost in pair["pools"]["shared"]["at_equal_cost"].values():
        if cost["keep_alive"]["mean_wait_minutes"]:
            assert cost["clairvoyant"]["relative_to_keep_alive"] < -0.5


def test_apart_the_sums_of_pools_are_shown(pair):
    alone = [pair["pools"][pool]["curves"]["keep_alive"][3]["node_starts"] for pool in ("one", "two")]
    assert pair["apart"]["curves"]["keep_alive"][3]["node_starts"] == sum(alone)


def test_waits_and_utilisation_are_shares(pair):
    for points in pair["pools"]["one"]["curves"].values():
        for point in points:
            assert 0 <= point["utilisation"] <= 1
            assert 0 <= point["mean_wait_minutes"] <= 1
            assert point["boot_share"] <= point["cost"]


def test_the_page_shows_every_pool_and_its_frontier(pair, folder):
    page = (folder / "page.html").read_text(encoding="utf-8")
    assert all(f"What waiting costs: {pool}" in page for pool in (*pair["pools"], "apart"))
    assert "consolidateAfter 60 min" in page


def test_jobs_are_replayed_on_nodes(folder, gsa):
    trace = ("--trace", folder / "jobs.csv", "--format", "table", "--mapping", folder / "jobs.toml")
    result = gsa(*trace, "--seeds", "2", "--start-cost", "1m", "--output", "json")
    assert result.exit_code == 0, result.output
    found = json.loads(result.stdout)
    assert differences(documented("gsa evaluate warm"), found) == []
    point = found["pools"]["whole"]["curves"]["keep_alive"][0]
    assert point["wait_per_job_minutes"] > 0
    assert any("best fit" in said for said in found["protocol"]["assumed"])


def test_a_table_is_for_people(folder, gsa):
    result = gsa("--series", folder / "one.csv", "--mapping", folder / "one.toml")
    assert result.exit_code == 0, result.output
    assert "against keep-alive" in result.stdout
    assert "is served;" in " ".join(result.stdout.split())


@pytest.mark.parametrize(
    "arguments, field",
    [
        (
            (
                "--series",
                "one.csv",
                "--series",
                "two.csv",
                "--series",
                "one.csv",
                "--mapping",
                "one.toml",
                "--mapping",
                "two.toml",
            ),
            "--mapping",
        ),
        (("--series", "one.csv", "--series", "one.csv", "--mapping", "one.toml"), "pool"),
        (("--series", "one.csv", "--mapping", "one.toml", "--trace", "jobs.csv"), "--trace"),
        (("--series", "one.csv", "--mapping", "one.toml", "--start-latency", "soon"), "--start-latency"),
        (("--series", "one.csv", "--mapping", "one.toml", "--start-latency", "0s"), "--start-latency"),
        (("--series", "one.csv", "--mapping", "one.toml", "--split", "0.2"), "series"),
        (
            ("--trace", "jobs.csv", "--format", "table", "--mapping", "jobs.toml", "--namespace", "nobody"),
            "--namespace",
        ),
        (("--trace", "jobs.csv"), "--format"),
    ],
)
def test_bad_input_is_named(folder, gsa, arguments, field):
    here = [folder / part if part.endswith((".csv", ".toml")) else part for part in arguments]
    result = gsa(*here)
    assert isinstance(result.exception, Refused), result.output
    assert result.exception.field == field
