"""Prices: plain arithmetic, checked against sums done by hand."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from advisor.domain.plans import Money
from advisor.errors import Refused
from advisor.planning.costs import (
    Prices,
    break_even_minutes,
    cold_start_cost,
    gpu_cost,
    idle_cost,
    switch_cost,
    waiting_cost,
    waiting_ratio,
)

PRICES = Prices(per_gpu_hour=3.0, per_waiting_gpu_minute=0.5)


def test_a_gpu_hour_costs_its_price_whatever_it_is_spent_on():
    assert gpu_cost(PRICES, 60.0) == 3.0
    assert idle_cost(PRICES, node_gpus=8, minutes=15.0) == 6.0
    assert switch_cost(PRICES, gpus=4, switch_minutes=5.0) == 1.0


def test_waiting_is_paid_per_gpu_that_waits():
    assert waiting_cost(PRICES, 16.0) == 8.0


def test_a_cold_start_costs_its_boot_and_its_wait():
    """8 GPUs, 5 min: 40 GPU-minutes of boot at 0.05, 40 of waiting at 0.50."""
    assert cold_start_cost(PRICES, 8, 5.0) == pytest.approx(2.0 + 20.0)


def test_an_unbilled_boot_costs_only_the_wait():
    free_boot = Prices(per_gpu_hour=3.0, per_waiting_gpu_minute=0.5, boot_billed=False)
    assert cold_start_cost(free_boot, 8, 5.0) == pytest.approx(20.0)


def test_at_the_break_even_idling_has_cost_as_much_as_a_cold_start():
    minutes = break_even_minutes(PRICES, 5.0)
    assert minutes == pytest.approx(5.0 + 10.0 * 5.0)
    assert idle_cost(PRICES, 8, minutes) == pytest.approx(cold_start_cost(PRICES, 8, 5.0))


def test_half_belief_in_waiting_halves_its_part_of_the_break_even():
    assert break_even_minutes(PRICES, 5.0, weight=0.5) == pytest.approx(5.0 + 25.0)


def test_the_ratio_says_how_many_paid_minutes_a_waiting_one_is_worth():
    assert waiting_ratio(PRICES) == pytest.approx(10.0)


def test_prices_go_to_money_and_back():
    assert Prices.of(PRICES.money) == PRICES
    assert Prices.of(Money(1.0, 0.0, "EUR")).currency == "EUR"


@pytest.mark.parametrize(
    "field, value",
    [
        ("per_gpu_hour", 0.0),
        ("per_gpu_hour", -1.0),
        ("per_gpu_hour", float("nan")),
        ("per_waiting_gpu_minute", -0.1),
        ("per_waiting_gpu_minute", float("inf")),
    ],
)
def test_a_price_that_is_none_is_refused_by_name(field, value):
    with pytest.raises(Refused, match=field):
        Prices(**{field: value})


def test_no_other_file_of_planning_reads_a_price():
    folder = Path(__file__).resolve().parents[3] / "advisor" / "planning"
    readers = {
        path.name
        for path in folder.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and node.attr in {"per_gpu_hour", "per_waiting_gpu_minute"}
    }
    assert readers == {"costs.py"}
