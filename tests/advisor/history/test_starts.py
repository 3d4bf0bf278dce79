"""How long nodes took to start, as the store keeps it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest

from advisor.domain.ingest import JobBatch
from advisor.domain.start_latency import NodeStart, PoolStart, Spread, StartLatency, StartPart
from advisor.history.store import HistoryStore
from tests.builders import NOON

TO_GPU = (StartPart.LAUNCHED, StartPart.REGISTERED, StartPart.INITIALISED)
LATER = NOON + timedelta(days=1)


@pytest.fixture
def store() -> Iterator[HistoryStore]:
    with HistoryStore.open("sqlite://") as opened:
        yield opened


def a_start(claim: str, *seconds: float, pool: str = "gpu", asked: datetime = NOON, **more: float) -> PoolStart:
    parts = dict(zip(TO_GPU, seconds, strict=False)) | {StartPart(name): value for name, value in more.items()}
    return PoolStart(claim=claim, pool=pool, asked=asked, start=NodeStart(parts))


def keep(store: HistoryStore, *starts: PoolStart) -> None:
    store.append(JobBatch(source="live", jobs=(), starts=starts, watermark=NOON), NOON)


def of_pool(store: HistoryStore, as_of: datetime = LATER) -> StartLatency:
    (found,) = store.start_latencies(as_of)
    return found


def test_starts_are_kept_once_however_often_they_are_told(store):
    starts = [a_start(f"c{n}", 10, 20, 30 + n) for n in range(3)]
    keep(store, *starts)
    keep(store, *starts)

    assert of_pool(store) == StartLatency.by_pool(starts)[0]
    assert of_pool(store).to_gpu == Spread.of([60, 61, 62])


def test_what_becomes_known_later_is_added_and_what_is_known_stays(store):
    keep(store, a_start("c", 10, 20))
    assert of_pool(store).to_gpu is None
    keep(store, a_start("c", 99, 99, 30, gpus_allocatable=25))
    keep(store, a_start("c", 10))

    found = of_pool(store)
    assert found.to_gpu == Spread(1, 60.0, 60.0)
    assert found.parts[StartPart.DEVICES] == Spread(1, 25.0, 25.0)


def test_only_what_had_happened_is_known(store):
    keep(store, a_start("early", 10, 20, 30), a_start("under way", 10, 20, 300), a_start("late", 1, 1, 1, asked=LATER))

    assert of_pool(store, NOON + timedelta(seconds=60)).to_gpu == Spread(1, 60.0, 60.0)
    assert store.start_latencies(NOON - timedelta(seconds=1)) == ()


def test_pools_are_told_apart_and_of_each_the_newest_200_nodes_count(store):
    old = [a_start(f"old-{n}", 1, 1, 1, asked=NOON - timedelta(hours=1)) for n in range(50)]
    keep(store, *old, *(a_start(f"new-{n}", 10, 20, 30) for n in range(200)), a_start("c", 5, 5, 5, pool="a"))

    other, gpu = store.start_latencies(LATER)
    assert (other.pool, other.nodes) == ("a", 1)
    assert (gpu.nodes, gpu.to_gpu) == (200, Spread(200, 60.0, 60.0))
