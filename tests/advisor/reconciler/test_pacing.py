from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.cluster.fields import CONSOLIDATE_AFTER, GPU_LIMIT
from advisor.domain.decisions import DecisionRecord, Verdict
from advisor.domain.plans import Change, Mode
from advisor.reconciler.actions import SLICE_LENGTH, WARM_CHUNKS, amount
from advisor.reconciler.pacing import RecentWants, changes_per_hour, stepped
from tests.builders import NOON, a_node_pool


@pytest.mark.parametrize(
    "field, old, wanted, reached",
    [
        (CONSOLIDATE_AFTER, "180s", "3600s", "360s"),
        (CONSOLIDATE_AFTER, "181s", "10s", "91s"),
        (CONSOLIDATE_AFTER, "30s", "3600s", "60s"),
        (CONSOLIDATE_AFTER, "20s", "3600s", "40s"),
        (CONSOLIDATE_AFTER, "10s", "3600s", "30s"),
        (CONSOLIDATE_AFTER, "0s", "3600s", "30s"),
        (CONSOLIDATE_AFTER, None, "3600s", "3600s"),
        (GPU_LIMIT, "24", "200", "48"),
        (GPU_LIMIT, "10", "64", "16"),
        (GPU_LIMIT, "64", "8", "32"),
        (GPU_LIMIT, "8", "64", "16"),
        (GPU_LIMIT, "0", "64", "8"),
        (WARM_CHUNKS, 0, 5, 1),
        (WARM_CHUNKS, 3, 8, 6),
        (WARM_CHUNKS, 4, 0, 0),
        (SLICE_LENGTH, "15m", "5m", "450s"),
        (SLICE_LENGTH, "15m", "60m", "30m"),
    ],
)
def test_a_number_goes_one_step_and_says_where_it_is_headed(field, old, wanted, reached):
    change = Change(object="x", field=field, old=old, new=wanted, allowed=False, reasons=())

    step = stepped(change, a_node_pool(), 2.0)

    assert step.new == reached
    assert bool(step.reasons) is (reached != wanted)
    assert all(str(wanted) in reason for reason in step.reasons)


@pytest.mark.parametrize(
    "field, old, wanted, rule",
    [
        (CONSOLIDATE_AFTER, "30s", "3600s", "towards 3600s: at most 2 times"),
        (CONSOLIDATE_AFTER, "10s", "3600s", "towards 3600s: the least there is, though more than 2 times"),
        (GPU_LIMIT, "0", "64", "towards 64: the least there is, though more than 2 times"),
    ],
)
def test_a_step_says_which_rule_it_obeys(field, old, wanted, rule):
    change = Change(object="x", field=field, old=old, new=wanted, allowed=False, reasons=())

    (reason,) = stepped(change, a_node_pool(), 2.0).reasons

    assert rule in reason


@given(old=st.integers(30, 7200), wanted=st.integers(30, 7200), largest_step=st.floats(1.01, 10.0))
def test_a_keep_alive_of_30_s_or_more_never_grows_by_more_than_the_largest_step(old, wanted, largest_step):
    change = Change(object="x", field=CONSOLIDATE_AFTER, old=f"{old}s", new=f"{wanted}s", allowed=False, reasons=())

    reached = amount(CONSOLIDATE_AFTER, stepped(change, a_node_pool(), largest_step).new)

    assert old / largest_step - 1e-6 <= reached <= old * largest_step + 1e-6


def test_the_last_want_before_the_window_is_remembered():
    wants = RecentWants()
    for minutes, wanted in ((-70, 64.0), (-50, 8.0), (-10, 16.0), (0, 8.0)):
        wants = wants.remembering(NOON + timedelta(minutes=minutes), "a", wanted, 30)

    assert [gpus for _, gpus in wants.looks["a"]] == [8.0, 16.0, 8.0]
    assert wants.highest("a", NOON - timedelta(minutes=30)) == 16.0
    assert wants.highest("a", NOON - timedelta(minutes=5)) == 16.0
    assert wants.highest("a", NOON - timedelta(minutes=60)) is None
    assert wants.highest("b", NOON) is None


def test_changes_made_within_the_hour_are_counted():
    def a_record(minutes: int, verdict: Verdict) -> DecisionRecord:
        return DecisionRecord(
            time=NOON - timedelta(minutes=minutes),
            pool="default",
            object="NodePool/default",
            field=GPU_LIMIT,
            old="8",
            new="16",
            wanted="16",
            verdict=verdict,
            mode=Mode.APPLY,
            reasons=(),
        )

    records = [a_record(0, Verdict.APPLIED), a_record(59, Verdict.APPLIED), a_record(60, Verdict.APPLIED)]
    records += [a_record(5, Verdict.REFUSED), a_record(6, Verdict.FAILED), a_record(-5, Verdict.APPLIED)]

    assert changes_per_hour(records, NOON) == 2
