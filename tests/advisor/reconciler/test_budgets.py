import pytest

from advisor.domain.nodepools import Budget
from advisor.errors import Refused
from advisor.reconciler.budgets import budgets_from_text, budgets_to_text, check_budget, check_carried_whole
from advisor.reconciler.cron import check_schedule


@pytest.mark.parametrize(
    "budget, offered",
    [
        (Budget("0", schedule="0 0 * * sat-sun", duration="24h"), "sat,sun"),
        (Budget("0", schedule="30 10 * * 1-7", duration="24h"), "*"),
        (Budget("0", schedule="0 0 * * 7", duration="24h"), "0"),
        (Budget("0", schedule="0 0 * * 6", duration="1d"), "24h"),
        (Budget("110%"), "100%"),
    ],
)
def test_a_budget_that_karpenter_would_count_as_zero_is_refused_with_what_was_meant(budget, offered):
    """Field report A02: the CRD takes the first three, and Karpenter then stops all disruption they cover."""
    with pytest.raises(Refused) as refused:
        check_budget(budget)
    assert f"Write {offered}." in str(refused.value)


@pytest.mark.parametrize(
    "schedule",
    [
        "0 0 * * sat,sun",
        "0 9 * * mon-fri",
        "*/15 8-17 1,15 jan-jun ?",
        "5/10 * * * *",
        "0 0 31 12 6",
        "0 0 * * SUN",
        "10-40/5 * * * *",
        "@daily",
        "@midnight",
    ],
)
def test_schedules_that_the_parser_takes_are_taken(schedule):
    check_schedule(schedule)


@pytest.mark.parametrize(
    "schedule, offered",
    [
        ("0 22-4 * * *", "22,23,0,1,2,3,4"),
        ("0 0 * * fri-mon", "fri,sat,sun,mon"),
        ("0 0 * * 5-7", "5,6,0"),
        ("0 0 * nov-feb *", "nov,dec,jan,feb"),
        ("0 0 * * 0-7", "*"),
    ],
)
def test_a_range_over_the_end_is_spelled_out(schedule, offered):
    with pytest.raises(Refused) as refused:
        check_schedule(schedule)
    assert f"Write {offered}." in str(refused.value)


@pytest.mark.parametrize(
    "schedule",
    [
        "99 99 * * *",
        "60 * * * *",
        "* 24 * * *",
        "* * 0 * *",
        "* * 32 * *",
        "* * * 13 *",
        "* * * * 8",
        "*/0 * * * *",
        "*/x * * * *",
        "1-2-3 * * * *",
        "a * * * *",
        "* * * foo *",
        "mon * * * *",
        ", * * * *",
        "1,,2 * * * *",
        "-1 * * * *",
        "* * * *",
        "* * * * * *",
        "",
        "@every 1h",
        "@fortnightly",
        "TZ=Europe/Berlin 0 0 * * *",
        "CRON_TZ=UTC 0 0 * * *",
        "٣ * * * *",
    ],
)
def test_schedules_that_the_parser_refuses_are_refused(schedule):
    with pytest.raises(Refused, match="schedule"):
        check_schedule(schedule)


def test_a_sound_budget_passes():
    check_budget(Budget("10%", reasons=("Drifted",), schedule="0 9 * * mon-fri", duration="8h30m"))


def test_what_the_crd_refuses_is_refused_too():
    with pytest.raises(Refused, match="must be set with"):
        check_budget(Budget("1", schedule="0 0 * * *"))


def test_an_entry_in_force_may_not_be_dropped():
    before = (Budget("10%"), Budget("0", ("Empty",)))

    check_carried_whole(before, (*before, Budget("0", schedule="0 0 * * *", duration="1h")))
    with pytest.raises(Refused, match="would be dropped"):
        check_carried_whole(before, (Budget("10%"),))


@pytest.mark.parametrize("after", [(), (Budget("1", ("Drifted",)),)])
def test_the_default_entry_is_in_force_where_none_is_written(after):
    """An empty list, or one that only names reasons, leaves the other reasons unlimited."""
    with pytest.raises(Refused, match="10%"):
        check_carried_whole(None, after)


def test_a_list_survives_being_written_as_text():
    budgets = (Budget("10%"), Budget("0", ("Empty", "Drifted"), "@daily", "1h"))

    assert budgets_from_text(budgets_to_text(budgets)) == budgets


@pytest.mark.parametrize("text", ["", "7", "[1]", '[{"reasons": []}]', '{"nodes": "1"}'])
def test_text_that_is_no_list_of_budgets_is_refused(text):
    with pytest.raises(Refused, match="budgets"):
        budgets_from_text(text)
