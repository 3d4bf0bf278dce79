"""The figures the README may claim, measured on the real traces where they lie beside the project."""

import math
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from advisor.telemetry.traces import TraceFile, TraceFormat
from training.answers import _floors
from training.backtest import evaluate_durations

pytestmark = pytest.mark.traces
NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_the_floor_on_passed_jobs_is_where_an_honest_replay_puts_it(traces: Path):
    """A replay that learns durations at submission would find two thirds within a factor of two."""
    batch = TraceFile(traces / "philly/philly_passed_jobs.csv", TraceFormat.PHILLY).read(None, NOW)
    jobs = sorted(batch.jobs, key=lambda job: job.submit)
    answers = _floors(jobs, jobs[int(0.7 * len(jobs))].submit)
    errors = np.array(
        [abs(math.log(a.distribution.median / jobs[place].duration_seconds)) for place, a in answers.items()]
    )
    assert len(answers) == pytest.approx(24_675, abs=5)
    assert errors.mean() == pytest.approx(1.126, abs=0.003)
    assert np.mean(errors <= math.log(2)) == pytest.approx(0.596, abs=0.003)


def test_the_model_on_jobs_of_every_end_is_far_ahead_of_the_floor(traces: Path):
    batch = TraceFile(traces / "philly/philly_first_15000_jobs.csv", TraceFormat.PHILLY_USERS).read(None, NOW)
    report = evaluate_durations(batch.jobs)
    model, floor = report.scores["model"], report.scores["median_of_5"]
    assert (report.served, model.n) == ("model", 4500)
    assert floor.log_mae == pytest.approx(2.21, abs=0.02)
    assert model.log_mae <= 1.46
    assert model.crps_log <= 1.08
    assert model.pinball_log["0.9"] <= 0.43
    assert 0.87 <= model.coverage["0.9"] <= 0.94
    assert (model.crossings, model.not_positive) == (0, 0)
