"""What the metrics tell of the sources of jobs."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from advisor.domain.ingest import JobBatch, Rejection
from advisor.errors import Transient
from advisor.history.status import HistoryStatus
from advisor.history.store import HistoryStore
from advisor.settings import ServerSettings
from serving.app import create_app
from serving.ingest_metrics import INGEST_COUNTERS, INGEST_GAUGES, IngestCollector
from tests.builders import NOON, a_job
from tests.serving.fake_service import FakePages, FakeService
from tests.serving.http import get


@pytest.fixture
def store() -> Iterator[HistoryStore]:
    with HistoryStore.open("sqlite://") as opened:
        yield opened


def told(store: HistoryStore) -> dict[str, float]:
    registry = CollectorRegistry()
    registry.register(IngestCollector(store.status))
    lines = (line for line in generate_latest(registry).decode().splitlines() if not line.startswith("#"))
    return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}


def test_every_source_is_told_with_what_it_has_and_what_was_dropped_and_why(store):
    dropped = (
        Rejection(reason="sentinel", count=7, example="GPU-1"),
        Rejection(reason="no_gpus", count=1, example="p"),
    )
    later = NOON + timedelta(minutes=5)
    jobs = (a_job("a"), a_job("b", seconds=None))
    store.append(JobBatch(source="live", jobs=jobs, watermark=NOON, rejections=dropped), later)
    store.append(JobBatch(source="file", jobs=(a_job("c"),)), later)

    assert told(store) == {
        'gsa_ingest_dropped_total{reason="no_gpus",source="live"}': 1.0,
        'gsa_ingest_dropped_total{reason="sentinel",source="live"}': 7.0,
        'gsa_ingest_jobs{outcome="completed",source="file"}': 1.0,
        'gsa_ingest_jobs{outcome="completed",source="live"}': 1.0,
        'gsa_ingest_jobs{outcome="running",source="live"}': 1.0,
        'gsa_ingest_last_success_timestamp_seconds{source="file"}': later.timestamp(),
        'gsa_ingest_last_success_timestamp_seconds{source="live"}': later.timestamp(),
        'gsa_ingest_watermark_timestamp_seconds{source="live"}': NOON.timestamp(),
    }


def test_every_name_is_declared(store):
    dropped = (Rejection(reason="sentinel", count=7, example="GPU-1"),)
    store.append(JobBatch(source="live", jobs=(a_job("a"),), watermark=NOON, rejections=dropped), NOON)

    declared = {*INGEST_GAUGES, *(f"{name}_total" for name in INGEST_COUNTERS)}
    assert {name.partition("{")[0] for name in told(store)} == declared


def test_the_server_tells_what_another_process_collects_meanwhile(tmp_path):
    url = f"sqlite:///{tmp_path / 'history.db'}"
    with HistoryStore.open(url) as store, HistoryStore.open(url) as other:
        app = create_app(FakeService(), FakePages(), ServerSettings(), sources=store.status)
        assert "gsa_ingest_jobs" not in get(app, "/metrics").text

        other.append(JobBatch(source="live", jobs=(a_job("a"),)), NOON)

        assert 'gsa_ingest_jobs{outcome="completed",source="live"} 1.0' in get(app, "/metrics").text


def test_a_history_that_cannot_be_read_takes_no_other_metric_with_it():
    def locked() -> HistoryStatus:
        raise Transient("the database is locked")

    answer = get(create_app(FakeService(), FakePages(), ServerSettings(), sources=locked), "/metrics")

    assert answer.status_code == 200
    assert "gsa_ready 1.0" in answer.text
    assert "gsa_ingest" not in answer.text
