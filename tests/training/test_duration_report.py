"""The report: groups that part the jobs, in an order people read, and a document of the promised shape."""

import json
from datetime import UTC, datetime

import numpy as np
import pytest

from advisor.domain.reports import DurationReport, RunProtocol
from tests.builders import lognormal_durations
from training.duration_report import ScoredJobs, duration_report
from training.metrics import LEVELS, mark

PROTOCOL = RunProtocol(
    data_digest="d",
    rows=10,
    split_time=datetime(2026, 3, 2, tzinfo=UTC),
    refits=1,
    seed=1,
    versions={},
    assumed=(),
)
SECONDS = np.array([0.5, 1.0, 9.99, 10.0, 99.0, 1000.0, 50_000.0, 2_000_000.0])
KEYS = ["all", "user", "gpus", "user+gpus", "namespace+gpus", "user+gpus", "user", "namespace"]


def reported(seconds=SECONDS, keys=KEYS) -> DurationReport:
    jobs = ScoredJobs(
        weeks=np.floor(np.linspace(0.0, 2.9, len(seconds))),
        warm=np.array([key.endswith("+gpus") for key in keys], dtype=np.bool_),
        gpus=np.array([1.0, 0.5] * len(seconds))[: len(seconds)],
        keys=keys,
    )
    marks = {
        name: mark([lognormal_durations(median, 1.0)] * len(seconds), np.asarray(seconds))
        for name, median in (("median_of_5", 60.0), ("model", 600.0))
    }
    return duration_report(marks, jobs, PROTOCOL)


@pytest.fixture(scope="module")
def report() -> DurationReport:
    return reported()


def test_decades_go_by_the_actual_duration_with_their_lower_bound_inside(report):
    assert {decade: scores.n for decade, scores in report.by_decade["model"].items()} == {
        "0.1": 1, "1": 2, "10": 2, "1000": 1, "10000": 1, "1000000": 1,
    }  # fmt: skip
    assert report.by_decade["model"]["10000"].log_mae == pytest.approx(np.log(50_000 / 600))


def test_keys_come_most_specific_first(report):
    assert {key: scores.n for key, scores in report.by_key["model"].items()} == {
        "namespace+gpus": 1, "user+gpus": 2, "namespace": 1, "user": 2, "gpus": 1, "all": 1,
    }  # fmt: skip
    assert list(report.by_key["model"]) == ["namespace+gpus", "user+gpus", "namespace", "user", "gpus", "all"]


def test_every_grouping_parts_the_same_jobs(report):
    for table in (report.by_history, report.by_gpus, report.by_decade, report.by_key):
        for name, whole in report.scores.items():
            assert sum(scores.n for scores in table[name].values()) == whole.n == SECONDS.size
            errors = sum(scores.n * scores.log_mae for scores in table[name].values() if scores.n)
            assert errors / whole.n == pytest.approx(whole.log_mae)


def test_the_document_of_a_predictor_has_its_groups_its_curve_and_its_running_jobs(report):
    document = json.loads(json.dumps(report.to_json(), allow_nan=False))
    model = document["predictors"]["model"]
    assert set(model["by"]) == {"warm", "cold", "gpus", "decade", "key"}
    assert {age: scores["n"] for age, scores in model["running"].items()} == {"600": 3, "3600": 2, "21600": 2}
    assert set(model["running"]["600"]["coverage"]) == {str(level) for level in LEVELS}
    assert list(model["reliability"]) == [f"{level / 100:g}" for level in range(5, 100, 5)]
    assert sum(model["n_by_week"]) == model["n"]
    assert set(model["by"]["decade"]["10"]) == set(model) - {"by", "running"}


def test_a_report_on_no_jobs_still_is_one():
    report = reported([], [])
    document = json.loads(json.dumps(report.to_json(), allow_nan=False))
    assert document["predictors"]["model"]["n"] == 0
    assert document["predictors"]["model"]["by"]["decade"] == {}
    assert document["predictors"]["model"]["running"]["600"] == {"n": 0, "coverage": {}}
