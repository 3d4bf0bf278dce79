"""Decisions and advice as they were recorded."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest

from advisor.domain.plans import Change, Mode
from advisor.errors import Defect
from advisor.history.store import Decision, HistoryStore
from tests.builders import NOON

HOUR = timedelta(hours=1)
LIMIT = Change(
    object="NodePool/a100", field="spec.limits.nvidia.com/gpu", old="16", new="24", allowed=True, reasons=("demand",)
)


@pytest.fixture
def store() -> Iterator[HistoryStore]:
    with HistoryStore.open("sqlite://") as opened:
        yield opened


def a_decision(*, hours: int = 0, change: Change = LIMIT, pool: str = "a100", applied: bool = True) -> Decision:
    return Decision(time=NOON + hours * HOUR, pool=pool, change=change, mode=Mode.APPLY, applied=applied)


@pytest.mark.parametrize("value", [None, True, 3, 2.5, "30m", ""])
def test_a_decision_comes_back_as_it_was_recorded(store, value):
    decision = a_decision(change=replace(LIMIT, old=value, new=value, reasons=("one", "zwei ü")))
    store.record_decisions([decision])
    [recorded] = store.decisions(10)
    assert recorded.id is not None
    assert replace(recorded, id=None) == decision
    assert type(recorded.change.new) is type(value)


def test_decisions_come_newest_first_and_limited(store):
    store.record_decisions([a_decision(hours=hours) for hours in (1, 3, 2)])
    assert [each.time for each in store.decisions(2)] == [NOON + 3 * HOUR, NOON + 2 * HOUR]
    assert [each.time for each in store.decisions(5, as_of=NOON + 2 * HOUR)] == [NOON + 2 * HOUR, NOON + HOUR]


def test_only_what_was_carried_out_starts_a_cool_down(store):
    assert store.last_applied("a100", LIMIT.field) is None
    store.record_decisions([])
    store.record_decisions(
        [
            a_decision(hours=1),
            a_decision(hours=2, applied=False),
            a_decision(hours=3, pool="t4"),
            a_decision(hours=4, change=replace(LIMIT, field="spec.weight")),
        ]
    )
    assert store.last_applied("a100", LIMIT.field) == NOON + HOUR
    assert store.last_applied("a100", LIMIT.field, as_of=NOON) is None


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


def test_advice_with_a_number_that_is_none_is_a_defect(store):
    with pytest.raises(Defect):
        store.record_advice(NOON, {"p90": float("nan")})
    assert store.latest_advice() is None
