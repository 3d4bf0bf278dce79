"""Source into store: once, twice, and as the source grows."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from advisor.domain.ingest import JobBatch
from advisor.errors import Refused, Transient
from advisor.history.store import HistoryStore
from advisor.telemetry.collector import collect
from advisor.telemetry.mapping import mapping_from
from advisor.telemetry.synthetic import SyntheticSource
from advisor.telemetry.traces import TraceFile, TraceFormat
from tests.builders import NOON, a_job

LATER = NOON + timedelta(days=30)
MAPPING = mapping_from({"columns": {"submit": "at", "duration": "took"}})


def test_collecting_twice_changes_nothing(tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_text("at,took\n2026-03-02 12:00,60\n2026-03-02 12:00,60\n2026-03-02 12:00,x\n")
    with HistoryStore.open("sqlite://") as store:
        first = collect(TraceFile(path, TraceFormat.TABLE, MAPPING), store, LATER)
        before = store.status()
        second = collect(TraceFile(path, TraceFormat.TABLE, MAPPING), store, LATER + timedelta(hours=1))
        assert (first.added, first.changed, first.unchanged) == (2, 0, 0)
        assert (second.added, second.changed, second.unchanged) == (0, 0, 2)
        assert first.rejections == second.rejections == before.rejections
        assert store.status() == before


def test_a_grown_file_brings_only_what_is_new(tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_text("at,took\n2026-03-02 12:00,60\n")
    with HistoryStore.open("sqlite://") as store:
        collect(TraceFile(path, TraceFormat.TABLE, MAPPING), store, LATER)
        path.write_text("at,took\n2026-03-01 12:00,90\n2026-03-02 12:00,60\n")
        grown = collect(TraceFile(path, TraceFormat.TABLE, MAPPING), store, LATER)
        assert (grown.added, grown.unchanged) == (1, 1)


def test_a_source_is_asked_for_what_comes_after_its_watermark():
    class Remembering:
        name = "live"

        def __init__(self) -> None:
            self.asked: list[datetime | None] = []

        def read(self, since: datetime | None, now: datetime) -> JobBatch:
            self.asked.append(since)
            return JobBatch(source=self.name, jobs=(), watermark=now)

    source = Remembering()
    with HistoryStore.open("sqlite://") as store:
        collect(source, store, NOON)
        collect(source, store, LATER)
    assert source.asked == [None, NOON]


def test_the_generated_workload_grows_as_time_goes_by():
    with HistoryStore.open("sqlite://") as store:
        collect(SyntheticSource(1, days=2), store, NOON)
        next_day = collect(SyntheticSource(1, days=2), store, NOON + timedelta(days=1))
        assert next_day.added > 0
        assert next_day.changed > 0
        assert next_day.rejections == ()
        assert store.is_synthetic()


def test_a_source_that_cannot_be_reached_leaves_the_store_alone():
    class Unreachable:
        name = "live"

        def read(self, since: datetime | None, now: datetime) -> JobBatch:
            raise Transient(f"nobody answers for {since} to {now}")

    with HistoryStore.open("sqlite://") as store:
        with pytest.raises(Transient):
            collect(Unreachable(), store, NOON)
        assert store.status().sources == ()


def test_a_real_trace_is_not_mixed_into_a_generated_workload(tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_text("at,took\n2026-03-02 12:00,60\n")
    with HistoryStore.open("sqlite://") as store:
        store.append(JobBatch(source="synthetic", jobs=(a_job("a"),), synthetic=True), LATER)
        with pytest.raises(Refused, match="must not be mixed"):
            collect(TraceFile(path, TraceFormat.TABLE, MAPPING), store, LATER)
        assert store.jobs(LATER) == [a_job("a")]
