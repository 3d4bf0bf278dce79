"""The public traces beside the project, whole: how many jobs they hold, and that a second run changes nothing."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from advisor.domain.ingest import JobBatch
from advisor.domain.jobs import Outcome
from advisor.history.store import AppendResult, HistoryStore
from advisor.telemetry.collector import collect
from advisor.telemetry.traces import TraceFile, TraceFormat

pytestmark = pytest.mark.traces
NOW = datetime(2026, 1, 1, tzinfo=UTC)
PASSED, USERS = "philly/philly_passed_jobs.csv", "philly/philly_first_15000_jobs.csv"
PODS = "alibaba-openb-2023/openb_pod_list_default.csv"


@pytest.fixture
def store() -> Iterator[HistoryStore]:
    with HistoryStore.open("sqlite://") as opened:
        yield opened


@pytest.fixture(scope="module")
def passed(traces: Path) -> JobBatch:
    return TraceFile(traces / PASSED, TraceFormat.PHILLY).read(None, NOW)


def test_every_passed_philly_job_is_kept_also_the_equal_rows(traces: Path, passed: JobBatch):
    assert (len(passed.jobs), len({job.id for job in passed.jobs}), passed.rejections) == (82_247, 82_247, ())
    assert {(job.outcome, job.start_assumed) for job in passed.jobs} == {(Outcome.COMPLETED, True)}
    with (traces / PASSED).open() as file:
        rows = Counter(
            (row["timestamp"] + "+00:00", float(row["duration"]), float(row["num_gpus"]), row["cluster"])
            for row in csv.DictReader(file)
        )
    jobs = Counter((str(job.submit), job.duration_seconds, job.gpus, job.namespace) for job in passed.jobs)
    assert jobs == rows


def test_a_whole_trace_is_stored_once(passed: JobBatch, store):
    assert store.append(passed, NOW) == AppendResult(added=82_247, changed=0, unchanged=0)
    before = store.status()
    assert store.append(passed, NOW) == AppendResult(added=0, changed=0, unchanged=82_247)
    assert store.status() == before
    assert before.outcomes == {"completed": 82_247}


def test_the_first_philly_jobs_have_users_and_every_kind_of_end(traces: Path, store):
    file = TraceFile(traces / USERS, TraceFormat.PHILLY_USERS)
    result = collect(file, store, NOW)
    assert (result.added, result.rejections) == (15_000, ())
    assert store.status().outcomes == {"cancelled": 1953, "completed": 8538, "failed": 4509}
    jobs = store.jobs(NOW)
    assert len({job.user for job in jobs}) == 136
    assert jobs[0].submit == datetime.fromtimestamp(1502100181, UTC)
    before = store.status()
    again = collect(file, store, NOW)
    assert (again.added, again.changed, again.unchanged) == (0, 0, 15_000)
    assert store.status() == before


def test_the_two_philly_files_tell_of_the_same_submissions(traces: Path, passed: JobBatch):
    users = TraceFile(traces / USERS, TraceFormat.PHILLY_USERS).read(None, NOW)
    known = Counter((job.submit, job.duration_seconds) for job in passed.jobs)
    both = known & Counter((job.submit, job.duration_seconds) for job in users.jobs)
    assert both.total() > 7_600


def test_openb_pods_keep_their_shares_and_their_waits(traces: Path, store):
    file = TraceFile(traces / PODS, TraceFormat.OPENB)
    result = collect(file, store, NOW)
    assert {each.reason: each.count for each in result.rejections} == {"no_gpus": 1_088}
    assert result.added == 8_152 - 1_088
    assert store.status().outcomes == {"cancelled": 4978, "censored": 32, "completed": 185, "failed": 1869}
    jobs = store.jobs(NOW)
    assert min(job.gpus for job in jobs) < 0.1
    assert max(job.gpus for job in jobs) == 8.0
    assert not any(job.calendar_known for job in jobs)
    before = store.status()
    assert collect(file, store, NOW).added == 0
    assert store.status() == before
