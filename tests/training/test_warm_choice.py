"""Policies at equal cost, and which rule a pool's past speaks for."""

from __future__ import annotations

import pytest

from advisor.domain.warm_reports import KEEP_ALIVE, WarmPoint
from training.warm_choice import ADVISOR, chosen, comparison
from training.warm_frontier import at_equal_cost, compared_costs, wait_at


def a_curve(*points: tuple[float, float]) -> tuple[WarmPoint, ...]:
    return tuple(
        WarmPoint(
            setting={"knob": float(place)},
            cost=cost,
            mean_wait_minutes=wait,
            p95_wait_minutes=5.0,
            node_starts=10 * (place + 1),
            utilisation=0.9,
            wait_per_new_gpu_minutes=wait * 100,
            boot_share=0.0,
        )
        for place, (cost, wait) in enumerate(points)
    )


SLOW = a_curve((1.0, 4.0), (1.04, 3.0), (1.06, 2.0), (1.2, 1.0))
QUICK = a_curve((1.01, 3.0), (1.05, 1.0), (1.2, 0.0))


def test_the_wait_at_a_cost_lies_between_the_neighbouring_settings():
    assert wait_at(SLOW, 1.05) == pytest.approx(2.5)
    assert wait_at(SLOW, 1.05, "node_starts") == pytest.approx(25)


def test_below_its_least_cost_a_policy_has_no_wait_and_above_its_dearest_it_need_not_spend_more():
    assert wait_at(QUICK, 1.005) is None
    assert wait_at(SLOW, 1.3) == 1.0
    assert wait_at((), 1.0) is None


def test_a_dearer_setting_that_waits_longer_is_passed_over():
    assert wait_at(a_curve((1.0, 2.0), (1.1, 3.0), (1.2, 1.0)), 1.1) == pytest.approx(1.5)


def test_policies_are_compared_at_the_usual_costs():
    found = at_equal_cost({KEEP_ALIVE: SLOW, "quick": QUICK})
    assert list(found) == ["1.05", "1.10"]
    assert found["1.05"]["quick"].relative_to_keep_alive == pytest.approx(1.0 / 2.5 - 1.0)
    assert found["1.05"][KEEP_ALIVE].relative_to_keep_alive == 0.0


def test_where_keep_alive_costs_more_they_are_compared_a_little_above_its_least():
    assert compared_costs(a_curve((1.6, 2.0), (2.0, 1.0))) == (1.05, 1.1, 1.632, 1.68, 1.76)


def test_the_rule_that_waits_least_is_served():
    choice = chosen({KEEP_ALIVE: SLOW, "a": SLOW, "b": QUICK}, ("a", "b"))
    assert choice.name == "b"
    assert choice.relative["a"] == 0.0
    found = comparison({KEEP_ALIVE: SLOW, "a": SLOW, "b": QUICK}, choice)
    assert found.curves[ADVISOR] == QUICK
    assert found.served == "b"
    assert "b -" in (found.reason or "")


def test_keep_alive_is_served_where_no_rule_waits_less():
    worse = a_curve((1.0, 5.0), (1.2, 4.0))
    assert chosen({KEEP_ALIVE: SLOW, "a": worse}, ("a",)).name == KEEP_ALIVE


def test_without_waits_the_first_rule_stands():
    calm = a_curve((1.0, 0.0), (1.2, 0.0))
    assert chosen({KEEP_ALIVE: calm, "a": calm}, ("a",)).name == "a"
