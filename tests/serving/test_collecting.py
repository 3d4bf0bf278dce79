"""The collecting loop: what is read, when it is tried again, and when it ends. No test waits."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta

import pytest
import structlog.testing

from advisor.clock import ManualClock
from advisor.domain.ingest import JobBatch, Rejection
from advisor.domain.start_latency import NodeStart, PoolStart, StartPart
from advisor.errors import Refused, Transient
from advisor.history.store import HistoryStore
from serving.collecting import CollectLoop, Rhythm, StartsAlone
from tests.builders import NOON, a_job

EVERY = 300.0
LATER = NOON + timedelta(days=1)


@pytest.fixture
def store() -> Iterator[HistoryStore]:
    with HistoryStore.open("sqlite://") as opened:
        yield opened


class Time:
    """A clock that waiting moves on, and that asks to stop at the end of the story."""

    def __init__(self, lasts: float) -> None:
        self.clock = ManualClock(NOON)
        self.end = NOON + timedelta(seconds=lasts)
        self.waits: list[float] = []

    def wait(self, seconds: float) -> bool:
        if seconds:
            self.waits.append(seconds)
        self.clock.advance(timedelta(seconds=seconds))
        return self.clock.now() >= self.end

    def rhythm(self) -> Rhythm:
        return Rhythm(every_seconds=EVERY, clock=self.clock, wait=self.wait, chance=lambda: 1.0)


class Live:
    """A source that tells of one job more at each turn; each turn may fail, or take its time."""

    name = "live"

    def __init__(self, time: Time, *turns: Exception | float) -> None:
        self.time = time
        self.turns = list(turns)
        self.asked: list[tuple[datetime | None, datetime]] = []

    def read(self, since: datetime | None, now: datetime) -> JobBatch:
        self.asked.append((since, now))
        turn = self.turns.pop(0) if self.turns else 0.0
        if isinstance(turn, Exception):
            raise turn
        self.time.clock.advance(timedelta(seconds=turn))
        jobs = tuple(a_job(f"job-{n}", submit=NOON) for n in range(len(self.asked)))
        return JobBatch(source=self.name, jobs=jobs, watermark=now, overlapping=True)

    @property
    def minutes(self) -> list[float]:
        """When it was read, in seconds after noon."""
        return [(now - NOON).total_seconds() for _, now in self.asked]


class Followable(Live):
    """One that can be followed, which may fail too."""

    def __init__(self, time: Time, *turns: Exception | float) -> None:
        super().__init__(time, *turns)
        self.follows: list[float] = []
        self.trouble: Exception | None = None

    def follow(self, seconds: float) -> None:
        self.follows.append(seconds)
        if self.trouble is not None:
            raise self.trouble
        self.time.clock.advance(timedelta(seconds=seconds))


def test_turns_begin_as_far_apart_as_asked_however_long_each_takes(store):
    time = Time(1000.0)
    source = Live(time, 40.0, 400.0)

    CollectLoop(source, store, time.rhythm()).run()

    assert source.minutes == [0.0, 300.0, 701.0], "the turn that outlasted the time between two is followed at once"
    assert [since for since, _ in source.asked] == [None, NOON, NOON + timedelta(seconds=300)]
    assert len(store.jobs(LATER)) == 3


def test_what_fails_is_tried_again_sooner_and_then_ever_later_but_never_past_the_next_turn(store):
    time = Time(2000.0)
    source = Live(time, *[Transient("nobody answers")] * 9)

    with structlog.testing.capture_logs() as told:
        CollectLoop(source, store, time.rhythm()).run()

    assert time.waits[:9] == [5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 300.0, 300.0, 300.0]
    failed = [each for each in told if each["event"] == "collecting_failed"]
    assert [each["failures"] for each in failed] == list(range(1, 10))
    assert failed[0]["reason"] == "nobody answers"
    assert told[-1]["event"] == "collected"


@pytest.mark.parametrize(
    "failure",
    [Transient("away"), Refused("url", "x", "nothing of kube-state-metrics", "Look."), ZeroDivisionError("x")],
)
def test_nothing_that_a_turn_meets_ends_the_loop_and_success_begins_anew(store, failure):
    time = Time(1500.0)
    source = Live(time, failure, 0.0, failure)

    CollectLoop(source, store, time.rhythm()).run()

    assert len(source.asked) >= 4
    assert time.waits[0] == time.waits[2]
    assert store.jobs(LATER)


def test_a_single_turn_tells_what_went_wrong(store):
    time = Time(1.0)
    with pytest.raises(Transient, match="nobody"):
        CollectLoop(Live(time, Transient("nobody answers")), store, time.rhythm()).turn()


def test_who_is_asked_to_stop_before_the_first_turn_takes_none(store):
    time = Time(0.0)
    source = Live(time)

    CollectLoop(source, store, time.rhythm()).run()

    assert source.asked == []


def test_a_store_that_is_locked_is_tried_again_with_nothing_lost(store, monkeypatch):
    time = Time(100.0)
    source = Live(time)
    append: Callable[..., object] = store.append
    locked = [Transient("database is locked"), None]

    def once_locked(*given: object) -> object:
        if trouble := locked.pop(0) if locked else None:
            raise trouble
        return append(*given)

    monkeypatch.setattr(store, "append", once_locked)
    CollectLoop(source, store, time.rhythm()).run()

    assert [since for since, _ in source.asked] == [None, None]
    assert len(store.jobs(LATER)) == 2


def test_a_source_that_can_be_followed_is_followed_between_turns_in_pieces(store):
    time = Time(320.0)
    source = Followable(time, 40.0)

    CollectLoop(source, store, time.rhythm()).run()

    assert source.minutes == [0.0, 300.0]
    assert sum(source.follows[:18]) == 260.0, "the rest of the time between two turns"
    assert max(source.follows) == 15.0, "and a signal is heeded after each piece"
    assert len(source.follows) == 20


def test_where_following_fails_the_next_turn_still_comes_in_time(store):
    time = Time(400.0)
    source = Followable(time)
    source.trouble = Refused("pods", None, "they may not be watched", "Add the verb watch.")

    with structlog.testing.capture_logs() as told:
        CollectLoop(source, store, time.rhythm()).run()

    assert source.minutes == [0.0, 300.0]
    assert [each["event"] for each in told].count("following_failed") == 2


def test_beside_another_source_only_starts_are_taken_of_a_cluster(store):
    time = Time(1.0)
    parts = {StartPart.LAUNCHED: 1.0, StartPart.REGISTERED: 2.0, StartPart.INITIALISED: 3.0}
    start = PoolStart(claim="c", pool="gpu", asked=NOON, start=NodeStart(parts))

    class Cluster(Followable):
        def read(self, since: datetime | None, now: datetime) -> JobBatch:
            batch = super().read(since, now)
            left_out = (Rejection(reason="placeholder", count=1, example="p"),)
            return JobBatch(
                source=batch.source, jobs=batch.jobs, rejections=left_out, watermark=now, starts=(start,), whole=True
            )

    store.append(JobBatch(source="live", jobs=(a_job("open", seconds=None),), watermark=NOON), NOON)
    alone = StartsAlone(Cluster(time))
    CollectLoop(alone, store, time.rhythm()).turn()
    alone.follow(5.0)

    assert store.jobs(LATER) == [a_job("open", seconds=None)], "what it does not tell of is not lost"
    assert store.status().rejections == ()
    assert [each.pool for each in store.start_latencies(LATER)] == ["gpu"]
    assert alone.inner.follows == [5.0]
