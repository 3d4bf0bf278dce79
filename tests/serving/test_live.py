"""Between two cycles: what comes in counts, and the state is replaced where it must be."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from advisor.clock import ManualClock
from advisor.domain.ingest import JobBatch
from advisor.domain.jobs import Job
from advisor.domain.start_latency import NodeStart, PoolStart, StartPart
from advisor.errors import Refused
from advisor.history.store import HistoryStore
from advisor.settings import Settings, load_settings
from serving.api.service import AllocationAsk, DurationAnswer, DurationAsk
from serving.cli.serve import looks
from serving.controller import ControllerLoop
from serving.live import LiveAdvisor, LiveParts
from serving.wiring import ClusterChoice, open_registry
from tests.builders import NOON, a_history, a_job

MINUTE = timedelta(minutes=1)
HISTORY = a_history(60, seed=2)
END = HISTORY[-1].submit
WITHIN_SECONDS = 20.0


@pytest.fixture
def store() -> Iterator[HistoryStore]:
    with HistoryStore.open("sqlite://") as opened:
        append(opened, *HISTORY)
        yield opened


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Settings:
    monkeypatch.setenv("GSA_STORAGE__HOME", str(tmp_path))
    return load_settings()


@pytest.fixture
def live(store: HistoryStore, settings: Settings) -> LiveAdvisor:
    parts = LiveParts(
        settings=settings,
        history=store,
        registry=open_registry(settings),
        clock=ManualClock(NOON),
        cluster=ClusterChoice(),
    )
    return LiveAdvisor(parts)


def append(store: HistoryStore, *jobs: Job) -> None:
    store.append(JobBatch(source="test", jobs=jobs), END)


def of_newcomer(live: LiveAdvisor) -> DurationAnswer:
    (answer,) = live.durations([DurationAsk(id="x", gpus=1.0, user="newcomer")])
    return answer


def newcomers(submit=END + MINUTE) -> tuple[Job, Job]:
    """One that ended, and one after it: a replayed history is looked at as of its last submission."""
    ended = a_job("ended", user="newcomer", submit=submit, seconds=30.0)
    return ended, a_job("after", user="other", submit=submit + MINUTE, seconds=None)


def test_an_end_counts_without_a_cycle(live, store):
    live.refresh()
    advice = live.advice()
    assert of_newcomer(live).as_of == END

    append(store, *newcomers())
    assert live.take_in()

    answer = of_newcomer(live)
    assert (answer.forecast.key, answer.forecast.key_count) == ("user+gpus", 1)
    assert answer.as_of == live.now() == END + 2 * MINUTE
    assert live.advice() is advice
    view = live.job("ended")
    assert view is not None
    assert view.promise is not None
    assert [found.job.id for found in live.jobs(None, 1)] == ["after"]


def from_two(store: HistoryStore) -> None:
    """Two schedulers, each with a job 1234 that runs."""
    for source, user in (("slurm-a", "ada"), ("slurm-b", "eve")):
        running = a_job("1234", user=user, submit=END, seconds=None)
        store.append(JobBatch(source=source, jobs=(running,)), END)


def test_an_id_of_two_sources_is_two_jobs_and_asked_for_by_source(live, store):
    from_two(store)
    live.refresh()

    with pytest.raises(Refused, match="one each of slurm-a, slurm-b") as refused:
        live.job("1234")
    mine, other, nobodys = (live.job("1234", source) for source in ("slurm-a", "slurm-b", "test"))

    assert (refused.value.field, refused.value.value) == ("job", "1234")
    assert "?source=slurm-a" in refused.value.remedy
    assert [(view.job.user, view.promise.source) for view in (mine, other)] == [("ada", "slurm-a"), ("eve", "slurm-b")]
    assert nobodys is None
    assert live.job(HISTORY[-1].id).job.source == "test"
    assert {view.job.identity for view in live.jobs("1234", 9)} == {("slurm-a", "1234"), ("slurm-b", "1234")}


WORKING = """
[[pools]]
name = "default"
nodes = 1

[[workloads]]
id = "pod-1"
gpus = 1
node = "default-1"
job_id = "1234"
"""


def test_what_runs_on_a_described_cluster_is_the_job_of_its_source(store, settings, tmp_path):
    """The id alone names two jobs: who is meant must be said."""
    from_two(store)
    file = tmp_path / "cluster.toml"
    ask = AllocationAsk(job=DurationAsk(id="x", gpus=1.0))

    def allocated(text: str) -> str:
        file.write_text(text)
        live = LiveAdvisor(
            LiveParts(
                settings=settings,
                history=store,
                registry=open_registry(settings),
                clock=ManualClock(NOON),
                cluster=ClusterChoice(file=file),
            )
        )
        live.refresh()
        (allocation,) = live.allocate([ask])
        return str(allocation.decision)

    with pytest.raises(Refused, match="one each of slurm-a, slurm-b") as refused:
        allocated(WORKING)
    assert refused.value.field == "job_id of workload pod-1"
    assert "job_source" in refused.value.remedy
    assert allocated(WORKING + 'job_source = "slurm-b"\n') == "placed"


def test_nothing_is_taken_in_before_the_first_cycle(live):
    assert live.take_in()
    assert not live.readiness().ready


def test_the_state_that_was_fed_goes_on_with_the_next_cycle(live, store):
    live.refresh()
    foresight = live._current().foresight
    append(store, *newcomers())
    live.take_in()
    live.refresh()
    assert live._current().foresight is foresight
    assert live.advice().time == END + 2 * MINUTE


def test_what_came_late_is_answered_from_at_once_and_put_in_its_place_by_the_next_cycle(live, store):
    live.refresh()
    foresight = live._current().foresight
    append(store, *newcomers(END - 30 * MINUTE))

    assert live.take_in()
    assert of_newcomer(live).forecast.key_count == 1
    live.refresh()

    assert live._current().foresight is not foresight
    assert of_newcomer(live).forecast.key_count == 1


def test_another_history_waits_for_a_cycle_and_the_old_state_answers(live, store):
    live.refresh()
    append(store, *newcomers(), *(a_job(f"bulk-{n}", submit=END + MINUTE, seconds=1.0) for n in range(2001)))

    assert not live.take_in()
    assert of_newcomer(live).as_of == END
    live.refresh()

    assert live.take_in()
    assert of_newcomer(live).as_of == END + 2 * MINUTE
    assert live.history().jobs == len(HISTORY) + 2003


def test_what_cannot_be_taken_in_hurries_a_cycle(live, store):
    live.refresh()
    append(store, *newcomers(), *(a_job(f"bulk-{n}", submit=END + MINUTE, seconds=1.0) for n in range(2001)))
    begun = threading.Event()

    def cycle() -> float:
        """Does nothing when the loop begins: only a cycle that was asked for refreshes."""
        if begun.is_set():
            live.refresh()
        begun.set()
        return 3600.0

    cycles = ControllerLoop(cycle, least_wait_seconds=0.0)
    looking = looks(live, cycles, 0.01)
    cycles.start()
    assert begun.wait(WITHIN_SECONDS)
    looking.start()
    try:
        assert _until(lambda: live.now() == END + 2 * MINUTE)
    finally:
        assert looking.stop(WITHIN_SECONDS)
        assert cycles.stop(WITHIN_SECONDS)


def _until(done) -> bool:
    waiting = threading.Event()
    return any(done() or waiting.wait(0.02) for _ in range(int(WITHIN_SECONDS / 0.02)))


def test_how_promises_were_kept_is_told_by_day(live, store):
    live.refresh()
    kept = live.kept_promises(7)
    assert sum(day.counted for day in kept) > 0
    assert [day.begin for day in kept] == sorted(day.begin for day in kept)
    assert all(day.replayed for day in kept), "what is found at the start is promised to afterwards"


def test_what_comes_in_while_it_runs_is_promised_to_in_time_and_counted_apart(live, store):
    live.refresh()
    append(store, a_job("quick", submit=END + MINUTE, seconds=None))
    live.take_in()
    append(
        store, a_job("quick", submit=END + MINUTE, seconds=1.0), a_job("last", submit=END + 3 * MINUTE, seconds=None)
    )
    live.take_in()

    assert sum(day.counted for day in live.kept_promises(7) if not day.replayed) == 1


def seconds_to_a_new_node(live: LiveAdvisor) -> float:
    """What is promised to the first of many large tasks that has to have a node started for it."""
    asks = [AllocationAsk(job=DurationAsk(id=f"large-{n}", gpus=8.0)) for n in range(40)]
    until = next(one.deferred_until for one in live.allocate(asks) if one.launch_nodes)
    assert until is not None
    return (until - live.now()).total_seconds()


def test_what_was_measured_of_a_pools_nodes_reaches_its_advice_and_its_allocations(live, store):
    live.refresh()
    (pool,) = live.advice().pools
    assert pool.warm.start_latency_seconds == seconds_to_a_new_node(live) == 300.0
    parts = {StartPart.LAUNCHED: 10.0, StartPart.REGISTERED: 20.0, StartPart.INITIALISED: 70.0}
    starts = tuple(
        PoolStart(claim=f"c{n}", pool=pool.pool, asked=NOON - timedelta(days=1), start=NodeStart(parts))
        for n in range(5)
    )
    store.append(JobBatch(source="cluster", jobs=(), starts=starts), END)

    live.refresh()

    (pool,) = live.advice().pools
    assert pool.warm.start_latency_seconds == seconds_to_a_new_node(live) == 100.0
    assert any("P90 of the last 5 nodes" in reason for reason in pool.reasons)
