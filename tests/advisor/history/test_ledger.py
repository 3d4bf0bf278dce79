"""Decisions and advice as they were recorded."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from sqlalchemy import func, select

from advisor.domain.decisions import DecisionRecord, Verdict
from advisor.domain.plans import Mode
from advisor.errors import Defect
from advisor.history.schema import ADVICE
from advisor.history.store import HistoryStore
from tests.builders import NOON

HOUR = timedelta(hours=1)
LIMIT = "spec.limits.nvidia.com/gpu"


@pytest.fixture
def store() -> Iterator[HistoryStore]:
    with HistoryStore.open("sqlite://") as opened:
        yield opened


def a_decision(*, hours: int = 0, **more: Any) -> DecisionRecord:
    fields = {
        "time": NOON + hours * HOUR,
        "pool": "a100",
        "object": "NodePool/a100",
        "field": LIMIT,
        "old": "16",
        "new": "24",
        "wanted": "32",
        "verdict": Verdict.APPLIED,
        "mode": Mode.APPLY,
        "reasons": ("demand",),
        "models": {"durations": "3", "demand": None},
    }
    return DecisionRecord(**{**fields, **more})


@pytest.mark.parametrize("value", [None, True, 3, 2.5, "30m", ""])
def test_a_decision_comes_back_as_it_was_recorded(store, value):
    decision = a_decision(old=value, new=value, wanted=value, reasons=("one", "zwei ü"))
    store.record_decisions([decision])
    [recorded] = store.decisions(10)
    assert recorded == decision
    assert type(recorded.new) is type(value)


def test_a_decision_recorded_twice_stands_once(store):
    store.record_decisions([a_decision(), a_decision()])
    store.record_decisions([a_decision(), a_decision(hours=1)])
    assert [each.time for each in store.decisions(10)] == [NOON + HOUR, NOON]


def test_decisions_come_newest_first_and_limited(store):
    store.record_decisions([a_decision(hours=hours) for hours in (1, 3, 2)])
    assert [each.time for each in store.decisions(2)] == [NOON + 3 * HOUR, NOON + 2 * HOUR]
    assert [each.time for each in store.decisions(5, as_of=NOON + 2 * HOUR)] == [NOON + 2 * HOUR, NOON + HOUR]


def test_only_what_was_carried_out_starts_a_cool_down(store):
    assert store.last_applied("a100", LIMIT) is None
    store.record_decisions([])
    store.record_decisions(
        [
            a_decision(hours=1),
            a_decision(hours=2, verdict=Verdict.RECOMMENDED),
            a_decision(hours=3, pool="t4"),
            a_decision(hours=4, field="spec.weight"),
        ]
    )
    assert store.last_applied("a100", LIMIT) == NOON + HOUR
    assert store.last_applied("a100", LIMIT, as_of=NOON) is None


def test_the_latest_advice_is_that_of_the_time_asked(store):
    assert store.latest_advice() is None
    for hours in (2, 1):
        store.record_advice(NOON + hours * HOUR, {"pools": [hours], "mode": "Recommend"})
    newest, earlier = store.latest_advice(), store.latest_advice(as_of=NOON + HOUR)
    assert newest is not None
    assert earlier is not None
    assert (newest.time, newest.document) == (NOON + 2 * HOUR, {"pools": [2], "mode": "Recommend"})
    assert earlier.document["pools"] == [1]
    assert store.latest_advice(as_of=NOON) is None


def test_the_same_advice_for_the_same_time_is_kept_once(store):
    for pools in ([1], [1], [2]):
        store.record_advice(NOON, {"pools": pools})
    with store._database.reading() as connection:
        assert connection.scalar(select(func.count()).select_from(ADVICE)) == 2


def test_advice_with_a_number_that_is_none_is_a_defect(store):
    with pytest.raises(Defect):
        store.record_advice(NOON, {"p90": float("nan")})
    assert store.latest_advice() is None
