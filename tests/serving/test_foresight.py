"""A fed foresight is the one that would be built from the store now, or says that it is not."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from advisor.domain.forecasts import DurationForecast
from advisor.domain.ingest import JobBatch
from advisor.domain.jobs import Job
from advisor.domain.promises import Promise
from advisor.errors import Transient
from advisor.forecast.calibration import CalibrationSettings
from advisor.forecast.duration_model import DurationModel
from advisor.forecast.registry import DEMAND, DURATIONS
from advisor.history.store import HistoryStore
from advisor.settings import DemandSettings
from serving.champions import Champions
from serving.foresight import Foresight
from tests.builders import a_history, a_job
from tests.serving.fake_values import a_forecast, a_promise
from training.duration import DurationSettings, fit_durations

MINUTE = timedelta(minutes=1)
SMALL = DurationSettings(trees=3, leaves=31, least_jobs=50, calibration=CalibrationSettings(least=40, every=5))
HISTORY = a_history(700, seed=5)
FITTED = HISTORY[400].submit
END = HISTORY[-1].submit


@pytest.fixture(scope="module")
def champions() -> Champions:
    model = fit_durations(HISTORY, FITTED, SMALL)
    assert model is not None
    return served(model)


def served(model: DurationModel | None) -> Champions:
    versions = {DURATIONS: None if model is None else "7", DEMAND: None}
    return Champions(durations=model, demand=None, versions=versions, named=versions, reasons=())


@pytest.fixture
def store() -> Iterator[HistoryStore]:
    with HistoryStore.open("sqlite://") as opened:
        yield opened


def foresight(champions: Champions, store: HistoryStore) -> Foresight:
    return Foresight(champions, store, DemandSettings())


def append(store: HistoryStore, *jobs: Job, source: str = "test") -> None:
    store.append(JobBatch(source=source, jobs=jobs), END)


def as_seen(now: datetime, jobs: list[Job]) -> list[Job]:
    """What a source that tells of the present would have written by ``now``."""
    return [known for job in jobs if (known := job.as_of(now)) is not None]


def answers(one: Foresight, now: datetime) -> list[DurationForecast]:
    running = [job for job in HISTORY if job.as_of(now) and job.gone_at is not None and job.gone_at > now][-5:]
    new = [a_job(f"new-{n}", user=f"user-{n}", submit=now, seconds=None) for n in range(6)]
    odd = [a_job("cold", user="nobody-yet"), a_job("huge", user="user-1", gpus=10_000)]
    return one.forecast([*running, *new, *odd], now)


@pytest.mark.parametrize("fitted", [True, False], ids=["model", "baseline"])
def test_fed_in_increments_equals_built_at_once_to_the_bit(champions, store, fitted):
    chosen = champions if fitted else served(None)
    fed = foresight(chosen, store)
    moments = [HISTORY[at].submit for at in (50, 399, 400, 401, *range(410, 690, 23), 699)]
    for now in moments:
        append(store, *as_seen(now, HISTORY))
        assert fed.take_in(now)
    assert fed.serves(chosen, END)

    built = foresight(chosen, store)
    built.take_in(END)

    for later in (timedelta(0), 3 * MINUTE, timedelta(days=1)):
        assert answers(fed, END + later) == answers(built, END + later)
    assert fed.jobs() == built.jobs()


def test_two_sources_with_the_same_ids_are_fed_as_they_are_built(champions, store):
    """Numbers of two schedulers meet: what counts as open must not depend on how events came in parcels."""
    mine = [replace(job, id=f"{number % 40}-{number // 80}") for number, job in enumerate(HISTORY)]
    fed = foresight(champions, store)
    for now in [HISTORY[at].submit for at in (100, *range(300, 700, 60), 699)]:
        for parity in (0, 1):
            seen = as_seen(now, [job for at, job in enumerate(mine) if at // 40 % 2 == parity])
            append(store, *seen, source=f"scheduler-{parity}")
        assert fed.take_in(now)
    built = foresight(champions, store)
    built.take_in(END)

    assert fed.serves(champions, END)
    assert answers(fed, END) == answers(built, END)


CROWD, TOGETHER = 10_000, END + MINUTE
"""So many jobs, submitted before the fit and promised to by an earlier server, and when they are over."""


def a_crowd(apart: timedelta) -> list[Job]:
    """They end one after the other, so far apart."""
    ends = (TOGETHER + apart * number for number in range(CROWD))
    begun = HISTORY[300].submit
    return [
        a_job(f"crowd-{n}", user=f"user-{n % 60}", submit=begun, seconds=(end - begun).total_seconds())
        for n, end in enumerate(ends)
    ]


def taken_in(champions: Champions, store: HistoryStore, crowd: list[Job]) -> tuple[Foresight, float]:
    """A state that knew them running and has been fed with their ends, and the seconds of computing that took."""
    append(store, *HISTORY, *as_seen(END, crowd))
    promise = a_promise(crowd[0], a_forecast())
    store.record_promises([replace(promise, source="test", job_id=job.id) for job in crowd])
    fed = foresight(champions, store)
    fed.take_in(END)
    append(store, *crowd)
    begun = time.process_time()
    assert fed.take_in(TOGETHER + timedelta(days=1))
    return fed, time.process_time() - begun


def test_ten_thousand_jobs_that_end_in_one_second_cost_no_more_than_as_many_ends_apart(champions, store):
    with HistoryStore.open("sqlite://") as other:
        _, apart = taken_in(champions, other, a_crowd(timedelta(milliseconds=360)))
    fed, together = taken_in(champions, store, a_crowd(timedelta(0)))

    built = foresight(champions, store)
    built.take_in(fed.now)

    assert fed.serves(champions, fed.now)
    assert answers(fed, fed.now) == answers(built, built.now)
    assert together < 3.0 * apart
    (asked,) = fed.forecast([a_job("x", user="user-7", submit=fed.now, seconds=None)], fed.now)
    assert asked.key_count >= CROWD // 60


def test_an_end_counts_as_soon_as_it_is_taken_in(champions, store):
    append(store, *HISTORY)
    one = foresight(champions, store)
    one.take_in(END)
    asked = [a_job("asked", user="newcomer")]
    assert one.forecast(asked, END)[0].key_count != 1

    append(store, a_job("first", user="newcomer", submit=END + MINUTE, seconds=60.0))
    assert one.take_in(END + 2 * MINUTE)

    assert one.forecast(asked, END + 2 * MINUTE)[0].key_count == 1
    assert one.now == END + 2 * MINUTE


def test_what_comes_late_counts_at_once_and_asks_for_a_rebuilt_state(champions, store):
    append(store, *HISTORY)
    one = foresight(champions, store)
    one.take_in(END)

    append(store, a_job("late", user="newcomer", submit=END - 30 * MINUTE, seconds=60.0))
    assert one.take_in(END)

    assert one.forecast([a_job("asked", user="newcomer")], END)[0].key_count == 1
    assert not one.serves(champions, END)


def test_another_history_is_not_fed_to_a_state_that_answers(champions, store):
    append(store, *HISTORY[:300])
    one = foresight(champions, store)
    one.take_in(FITTED)
    before = answers(one, FITTED)

    append(store, *HISTORY)

    assert not one.take_in(END, most=100)
    assert not one.take_in(END, most=100)
    assert answers(one, FITTED) == before
    assert not one.serves(champions, FITTED)


def test_time_that_moved_backwards_needs_a_new_state(champions, store):
    append(store, *HISTORY)
    one = foresight(champions, store)
    one.take_in(END)
    assert not one.take_in(FITTED)
    assert one.now == END


def test_other_champions_need_a_new_state(champions, store):
    append(store, *HISTORY)
    one = foresight(champions, store)
    one.take_in(END)
    assert one.serves(champions, END)
    assert not one.serves(replace(champions), END)


def test_whoever_looks_sees_one_moment_while_the_state_is_fed(champions, store):
    append(store, *HISTORY[:500])
    one = foresight(champions, store)
    one.take_in(HISTORY[499].submit)
    stopped = threading.Event()
    torn: list[object] = []

    def look() -> None:
        while not stopped.is_set():
            with one.looking() as seen:
                first = seen.durations.forecast([a_job("x", user="user-1")], END)
                second = seen.durations.forecast([a_job("x", user="user-1")], END)
            if first != second:
                torn.append(first)

    lookers = [threading.Thread(target=look) for _ in range(3)]
    for looker in lookers:
        looker.start()
    try:
        for at in range(500, 700, 25):
            append(store, *as_seen(HISTORY[at].submit, HISTORY))
            assert one.take_in(HISTORY[at].submit)
    finally:
        stopped.set()
        for looker in lookers:
            looker.join(10.0)

    built = foresight(champions, store)
    built.take_in(one.now)
    assert torn == []
    assert answers(one, one.now) == answers(built, one.now)


def promises(store: HistoryStore, *names: str):
    return [store.promises([("test", name)]).get(("test", name)) for name in names]


def test_a_promise_is_made_as_a_submission_is_taken_in_and_never_again(champions, store):
    append(store, *as_seen(END, HISTORY))
    one = foresight(champions, store)
    one.take_in(END)
    now = END + MINUTE
    new = a_job("new", user="user-1", submit=now, seconds=None)
    (expected,) = one.forecast([new], now)

    append(store, new)
    one.take_in(now)
    (promise,) = promises(store, "new")
    append(store, a_job("new", user="user-1", submit=now, seconds=5.0))
    one.take_in(now + MINUTE)
    foresight(champions, store).take_in(now + MINUTE)

    assert promise is not None
    assert (promise.replayed, promise.asked_at, promise.model_version) == (False, now, "7")
    assert promise.p50_seconds == expected.distribution.median
    assert promise.p90_seconds == expected.distribution.quantile(0.9)
    assert promises(store, "new") == [promise]


class WriteLocked(HistoryStore):
    """A history that another program is writing to."""

    locked = True

    def record_promises(self, promises: Sequence[Promise]) -> int:
        if self.locked:
            raise Transient("the database is locked")
        return super().record_promises(promises)


def test_a_promise_that_cannot_be_written_holds_nothing_up_and_is_kept_later():
    with WriteLocked.open("sqlite://") as store:
        one = foresight(served(None), store)
        append(store, a_job("a", submit=END, seconds=None))
        assert one.take_in(END)
        assert promises(store, "a") == [None]

        store.locked = False
        assert one.take_in(END)

        (promise,) = promises(store, "a")
        assert promise is not None
        assert promise.asked_at == END


def test_promises_made_afterwards_say_so(champions, store):
    """Those found at the start, and those told of only when they had ended."""
    append(store, *HISTORY[:-1])
    one = foresight(champions, store)
    one.take_in(HISTORY[-2].submit)
    now = END + timedelta(hours=1)
    append(store, a_job("over", submit=END, seconds=60.0))
    one.take_in(now)

    made = promises(store, HISTORY[-2].id, "over")

    assert [promise is not None and promise.replayed for promise in made] == [True, True]


def test_a_start_promises_to_no_more_than_the_newest_that_are_gone(champions, store):
    late = END + timedelta(days=30)
    append(store, *HISTORY)
    one = foresight(champions, store)
    one.take_in(late)

    assert promises(store, HISTORY[0].id, HISTORY[199].id) == [None, None]
    assert None not in promises(store, HISTORY[200].id, HISTORY[-1].id)
