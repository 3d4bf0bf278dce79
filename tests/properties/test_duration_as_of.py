"""Nothing that happens after t changes what was known at t: the future is deleted, then made up anew."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.domain.jobs import Job, Outcome
from advisor.telemetry.traces import TraceFile, TraceFormat
from tests.builders import a_history, a_usage
from training.duration_table import duration_table


def with_another_future(jobs, now, rng):
    """The same jobs up to ``now``; everything later is drawn at random, also who comes and who never ends."""
    changed = []
    for job in jobs:
        known = job.as_of(now)
        if known is None:
            continue
        if known.end is None:
            start = known.start or max(now, job.submit) + timedelta(seconds=float(rng.integers(1, 5000)))
            end = max(now, start) + timedelta(seconds=float(rng.exponential(3000.0)) + 1.0)
            how = rng.choice([Outcome.FAILED, Outcome.COMPLETED])
            usage = None if job.usage is None else a_usage(memory_peak_bytes=7.0)
            known = replace(known, start=start, end=end, outcome=how, usage=usage)
        changed.append(known)
    later = [now + timedelta(seconds=float(s)) for s in rng.integers(1, 9999, size=20)]
    return changed + [Job(id=f"new-{i}", submit=moment, gpus=2, user="user-1") for i, moment in enumerate(later)]


def assert_rows_do_not_move(jobs, now, rng):
    """Neither the features nor the latest submissions that hazards are counted from."""
    then = [job for job in jobs if job.submit <= now]
    whole = duration_table(jobs, jobs[-1].submit)
    deleted = duration_table([job.as_of(now) for job in then], now)
    made_up = duration_table(with_another_future(jobs, now, rng), now)
    for table in (deleted, made_up):
        # Where usage is told of later only, the columns that hold it are not there yet.
        shown = table.rows.shape[1]
        assert np.array_equal(whole.rows[: len(then), :shown], table.rows[: len(then)], equal_nan=True)
        assert np.isnan(whole.rows[: len(then), shown:]).all()
        assert np.array_equal(whole.latest[: len(then)], table.latest[: len(then)], equal_nan=True)


@given(st.integers(0, 10_000), st.integers(1, 59))
def test_rows_up_to_any_moment_do_not_depend_on_what_comes_after(seed, cut):
    jobs = a_history(60, seed=seed, owners=2)
    assert_rows_do_not_move(jobs, jobs[cut].submit, np.random.default_rng(seed))


@given(st.integers(0, 10_000), st.integers(1, 59))
def test_what_jobs_will_have_used_is_not_known_before_they_have_ended(seed, cut):
    rng = np.random.default_rng(seed)
    jobs = [
        replace(job, usage=a_usage(memory_peak_bytes=float(rng.random() * 1e9)) if rng.random() < 0.7 else None)
        for job in a_history(60, seed=seed, owners=2)
    ]
    assert_rows_do_not_move(jobs, jobs[cut].submit, rng)


@pytest.mark.traces
def test_rows_of_a_real_cluster_do_not_depend_on_what_comes_after(traces: Path):
    file = TraceFile(traces / "philly/philly_first_15000_jobs.csv", TraceFormat.PHILLY_USERS)
    jobs = list(file.read(None, datetime(2026, 1, 1, tzinfo=UTC)).jobs)[:4000]
    assert_rows_do_not_move(jobs, jobs[3000].submit, np.random.default_rng(7))
