"""The incremental features against a second implementation that recomputes everything from the raw jobs."""

from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.domain.jobs import Job, Outcome
from advisor.features.duration import DURATION_SCHEMA, USAGE_SCHEMA
from advisor.telemetry.traces import TraceFile, TraceFormat
from tests.builders import NOON, a_history, a_usage
from tests.oracles.duration_features import oracle_row
from training.duration_table import duration_table


def assert_rows_agree(jobs, places):
    rows = duration_table(jobs, max(job.submit for job in jobs)).rows
    for place in places:
        expected = oracle_row(jobs, place)
        assert set(expected) == set(USAGE_SCHEMA.names)
        names = (USAGE_SCHEMA if any(job.usage is not None for job in jobs) else DURATION_SCHEMA).names
        for name, value in zip(names, rows[place], strict=True):
            assert value == pytest.approx(expected[name], abs=1e-6, nan_ok=True), (name, place)


WORK = ({}, {}, {"name": "train-17"}, {"name": "train-18"}, {"name": "4711"}, {"image": "train:9"}, {"name": "eval"})
SHAPES = ({}, {"gpu_kind": "H100"}, {"gpu_kind": "A100", "priority": -3}, {"time_limit_seconds": 3600.0})
USAGES = (
    {},
    {"usage": a_usage()},
    {"usage": a_usage(memory_peak_bytes=0.0, compute_mean=0.1)},
    {"usage": a_usage(compute_mean=None)},
    {"usage": a_usage(memory_peak_bytes=None, compute_mean=0.9)},
)


@st.composite
def worlds(draw: st.DrawFn) -> list[Job]:
    """Few owners and whole seconds, so that ties, bursts, waits and losses of sight are common."""
    size = draw(st.integers(1, 25))
    moment, jobs = NOON, []
    for number in range(size):
        moment += timedelta(seconds=draw(st.sampled_from([0, 0, 1, 9, 11, 70, 700, 4000])))
        wait = draw(st.sampled_from([0, 0, 0, 5, 600]))
        seconds = draw(st.sampled_from([0, 1, 5, 60, 75, 600, 5000, 90000]))
        fate = draw(st.sampled_from([*Outcome, "running", "never ran"]))
        fields = {"start": moment + timedelta(seconds=wait), "end": None, "outcome": None}
        gone = fields["start"] + timedelta(seconds=seconds)
        if fate == "never ran":
            fields |= {"start": None, "end": gone, "outcome": Outcome.CANCELLED}
        elif fate is Outcome.CENSORED:
            fields |= {"outcome": fate, "last_seen": gone}
        elif fate != "running":
            fields |= {"end": gone, "outcome": fate}
        owner = draw(st.sampled_from([("ada", None), ("ada", "lab"), ("bob", "lab"), (None, "lab"), (None, None)]))
        gpus = draw(st.sampled_from([1.0, 2.0]))
        fields |= draw(st.sampled_from(WORK)) | draw(st.sampled_from(SHAPES)) | draw(st.sampled_from(USAGES))
        jobs.append(Job(id=str(number), submit=moment, gpus=gpus, user=owner[0], namespace=owner[1], **fields))
    return jobs


@given(worlds())
def test_every_row_of_any_small_world_agrees(jobs):
    assert_rows_agree(jobs, range(len(jobs)))


def test_rows_of_a_busy_cluster_agree():
    jobs = a_history(600, seed=4, owners=4)
    assert_rows_agree(jobs, np.random.default_rng(4).choice(600, 60, replace=False))


@pytest.mark.traces
@pytest.mark.parametrize(
    "name,layout", [("philly_passed_jobs", TraceFormat.PHILLY), ("philly_first_15000_jobs", TraceFormat.PHILLY_USERS)]
)
def test_rows_of_a_real_cluster_agree(traces: Path, name, layout):
    batch = TraceFile(traces / "philly" / f"{name}.csv", layout).read(None, datetime(2026, 1, 1, tzinfo=UTC))
    jobs = sorted(batch.jobs, key=lambda job: job.submit)[:1500]
    assert_rows_agree(jobs, np.random.default_rng(1).choice(1500, 40, replace=False))
