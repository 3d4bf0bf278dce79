"""Warm nodes and keep-alive by the index rule."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from advisor.domain.forecasts import RiseForecast
from advisor.domain.warm_rules import WarmRule, WarmRuleName
from advisor.errors import Refused
from advisor.planning.costs import Prices
from advisor.planning.warm_capacity import WarmTerms, plan_warm
from advisor.planning.warm_index import boot_ahead, expected_idle, keep_idle
from tests.builders import NOON, a_node_pool

PRICES = Prices(per_gpu_hour=3.0, per_waiting_gpu_minute=0.8)
"""One waiting GPU-minute is worth 16 paid ones."""
TERMS = WarmTerms(start_latency_seconds=300.0)
HORIZONS = (5.0, 10.0, 15.0, 30.0, 60.0, 120.0, 240.0)


def a_rise(*levels: tuple[float, ...], **more) -> RiseForecast:
    """One tuple of seven chances per level: that need rises by so many nodes within each horizon."""
    table = tuple(zip(*levels, strict=True))
    return RiseForecast(
        **{
            "pool": "default",
            "made_at": NOON,
            "node_gpus": 8,
            "horizons_minutes": HORIZONS,
            "probabilities": table,
            "served": "model",
            **more,
        }
    )


def memoryless(per_hour: float) -> tuple[float, ...]:
    return tuple(1.0 - float(np.exp(-per_hour * h / 60.0)) for h in HORIZONS)


NEVER = (0.0,) * 7
BUSY = a_rise(memoryless(20.0), memoryless(4.0), memoryless(0.5), memoryless(0.05))
CALM = a_rise(memoryless(0.2), memoryless(0.01))


def test_expected_idle_is_the_time_a_spare_waits_for_its_use():
    """Certain to be used evenly over ten minutes: five minutes on average."""
    assert expected_idle(np.array([0.0, 10.0]), np.array([0.0, 1.0]))[-1] == 5.0
    assert expected_idle(np.array([0.0, 10.0, 20.0]), np.array([0.0, 0.0, 0.0]))[-1] == 20.0


def test_an_idle_node_is_kept_where_its_chance_of_use_outweighs_its_idling():
    """Used within 10 min with chance .5: idles 7.5 min on average against half of the stake."""
    minutes, chance = np.array([0.0, 10.0]), np.array([0.0, 0.5])
    assert keep_idle(minutes, chance, stake_minutes=15.1)
    assert not keep_idle(minutes, chance, stake_minutes=14.9)


def test_a_boot_now_spares_the_wait_of_what_comes_by_then():
    """L = 4: a rise at 2 min (chance .2) saves 2, one between 4 and 8 (chance .3) saves 4; idle after 4 min."""
    minutes, chance = np.array([0.0, 4.0, 8.0]), np.array([0.0, 0.2, 0.5])
    spared, paid = boot_ahead(minutes, chance, latency=4.0, weight=10.0, boot=4.0)
    assert spared == pytest.approx([10.0 * (2.0 * 0.2 + 4.0 * 0.3)])
    assert paid == pytest.approx([4.0 * 0.5 + 4.0 * (1.0 - 0.35)])


def test_a_busy_pool_has_nodes_ready_and_a_calm_one_has_none():
    assert plan_warm(BUSY, a_node_pool(), PRICES, TERMS, NOON).boot_nodes == 2
    assert plan_warm(CALM, a_node_pool(), PRICES, TERMS, NOON).boot_nodes == 0
    assert plan_warm(a_rise(NEVER), a_node_pool(), PRICES, TERMS, NOON).warm_gpus == 0


def test_warm_gpus_are_whole_nodes():
    plan = plan_warm(BUSY, a_node_pool(), PRICES, TERMS, NOON)
    assert plan.warm_gpus == 8 * plan.boot_nodes
    assert plan.node_gpus == 8


def test_the_curve_crosses_where_the_level_is_chosen_and_the_rejected_node_is_named():
    plan = plan_warm(BUSY, a_node_pool(), PRICES, TERMS, NOON)
    worth = [point.saving_per_hour > point.cost_per_hour for point in plan.curve]
    assert worth == [True, True, False, False]
    assert [point.nodes for point in plan.curve] == [1, 2, 3, 4]
    assert "rejected: one more would save" in plan.reasons[0]
    last, rejected = plan.reasons[0].split("; rejected: ")
    for said, point in ((last, plan.curve[1]), (rejected, plan.curve[2])):
        assert f"save {point.saving_per_hour:.2f} USD/h of waiting for {point.cost_per_hour:.2f} USD/h" in said
        assert "the node's price is 24.00 USD/h" in said


def test_a_node_is_weighed_over_a_time_that_is_said_with_the_chance_of_that_time():
    for point in plan_warm(BUSY, a_node_pool(), PRICES, TERMS, NOON).curve:
        within = BUSY.horizons_minutes.index(point.horizon_minutes)
        assert point.horizon_minutes > 5.0
        assert point.probability_needed == BUSY.probabilities[within][point.nodes - 1]
    reason = plan_warm(CALM, a_node_pool(), PRICES, TERMS, NOON).reasons[0]
    assert "weighed over the next 4 h, in which need for it comes with 55 %" in reason


def test_the_shortest_keep_alive_says_what_keeps_it_from_being_shorter():
    held = plan_warm(a_rise(NEVER), a_node_pool(), PRICES, TERMS, NOON)
    free = plan_warm(a_rise(NEVER), a_node_pool(), PRICES, replace(TERMS, start_latency_seconds=20.0), NOON)
    assert (
        "not under 5 min: a node takes as long to start, and a shorter one would let half of a gang" in held.reasons[1]
    )
    assert "not under 60 s: no keep-alive is set shorter" in free.reasons[1]


def test_dearer_waiting_keeps_more_ready_and_cheaper_gpus_too():
    levels = [
        plan_warm(BUSY, a_node_pool(), Prices(per_gpu_hour=gpu, per_waiting_gpu_minute=wait), TERMS, NOON).boot_nodes
        for gpu, wait in ((3.0, 0.0), (3.0, 0.1), (3.0, 0.8), (3.0, 8.0), (0.3, 8.0))
    ]
    assert levels == sorted(levels)
    assert levels[0] == 0
    assert levels[-1] > levels[2]


def test_a_shared_pool_boots_more_readily():
    shared = replace(TERMS, boot_weight=1.0)
    one = replace(PRICES, per_waiting_gpu_minute=0.3)
    separate = plan_warm(BUSY, a_node_pool(), one, TERMS, NOON).boot_nodes
    assert plan_warm(BUSY, a_node_pool(), one, shared, NOON).boot_nodes > separate


def test_bounds_hold_and_say_so():
    most = plan_warm(BUSY, a_node_pool(), PRICES, replace(TERMS, most_nodes=1), NOON)
    least = plan_warm(CALM, a_node_pool(), PRICES, replace(TERMS, least_nodes=2), NOON)
    assert (most.boot_nodes, least.boot_nodes) == (1, 2)
    assert "bounds; the curve says 2" in most.reasons[0]
    assert least.warm_gpus == 16


def test_keep_alive_is_the_shortest_safe_one_where_idle_nodes_are_not_worth_keeping():
    plan = plan_warm(a_rise(memoryless(0.01)), a_node_pool(), PRICES, TERMS, NOON)
    assert plan.keep_nodes == 0
    assert plan.keep_alive_seconds == 300
    assert (
        plan_warm(
            a_rise(NEVER), a_node_pool(), PRICES, replace(TERMS, start_latency_seconds=20.0), NOON
        ).keep_alive_seconds
        == 60
    )


def test_keep_alive_follows_the_moment_at_which_reuse_becomes_unlikely():
    """Half of all rises come within the first 10 min, then nothing: idling beyond is for nothing."""
    early = a_rise((0.25, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5))
    plan = plan_warm(early, a_node_pool(), PRICES, replace(TERMS, boot_weight=0.0), NOON)
    assert (plan.boot_nodes, plan.keep_nodes) == (0, 1)
    assert plan.keep_alive_seconds == 600


def test_keep_alive_is_bounded_by_twice_the_break_even_and_by_the_longest_allowed():
    """Break-even: 5 min of boot + half of 16 x 5 min = 45 min; a steady chance of reuse would keep it for ever."""
    steady = a_rise(memoryless(3.0))
    terms = replace(TERMS, boot_weight=0.0, longest_keep_alive_seconds=86_400.0)
    assert plan_warm(steady, a_node_pool(), PRICES, terms, NOON).keep_alive_seconds == 2 * 45 * 60
    assert plan_warm(steady, a_node_pool(), PRICES, replace(TERMS, boot_weight=0.0), NOON).keep_alive_seconds == 3600


@pytest.mark.parametrize(
    "rise, why",
    [
        (None, "no forecast of rises"),
        (replace(BUSY, served="persistence"), "shown no skill"),
        (replace(BUSY, made_at=NOON - timedelta(hours=2)), "old"),
    ],
)
def test_without_a_forecast_to_act_on_the_break_even_is_kept_and_said(rise, why):
    plan = plan_warm(rise, a_node_pool(), PRICES, TERMS, NOON)
    assert (plan.boot_nodes, plan.warm_gpus, plan.served) == (0, 0, "default")
    assert plan.keep_alive_seconds == 45 * 60
    assert any(why in reason for reason in plan.reasons)


def test_a_baseline_may_be_accepted_by_name():
    plan = plan_warm(
        replace(BUSY, served="trailing"), a_node_pool(), PRICES, replace(TERMS, accepted=("model", "trailing")), NOON
    )
    assert (plan.served, plan.boot_nodes) == ("trailing", 2)


def test_an_unknown_start_latency_is_assumed_and_said():
    plan = plan_warm(BUSY, a_node_pool(), PRICES, WarmTerms(), NOON)
    assert plan.start_latency_seconds == 300.0
    assert any("never measured: 5 min is assumed" in reason for reason in plan.reasons)


def test_a_start_latency_beyond_every_horizon_is_still_answered():
    plan = plan_warm(BUSY, a_node_pool(), PRICES, WarmTerms(start_latency_seconds=6 * 3600.0), NOON)
    assert plan.keep_alive_seconds == 6 * 3600
    assert len(plan.curve) == 4


def test_a_boot_that_is_not_billed_is_cheaper_to_be_wrong_about():
    billed = plan_warm(BUSY, a_node_pool(), PRICES, TERMS, NOON)
    free = plan_warm(BUSY, a_node_pool(), replace(PRICES, boot_billed=False), TERMS, NOON)
    for cheap, dear in zip(free.curve, billed.curve, strict=True):
        assert cheap.saving_per_hour - cheap.cost_per_hour >= dear.saving_per_hour - dear.cost_per_hour
    assert free.boot_nodes >= billed.boot_nodes


def test_a_forecast_of_something_else_is_refused():
    with pytest.raises(Refused, match="rise"):
        plan_warm(replace(BUSY, pool="other"), a_node_pool(), PRICES, TERMS, NOON)
    with pytest.raises(Refused, match="rise"):
        plan_warm(replace(BUSY, node_gpus=4), a_node_pool(), PRICES, TERMS, NOON)


@pytest.mark.parametrize(
    "field, value",
    [
        ("start_latency_seconds", 0.0),
        ("start_latency_seconds", float("nan")),
        ("waiting_weight", -0.5),
        ("least_nodes", 9),
        ("longest_keep_alive_seconds", 0.0),
    ],
)
def test_warm_terms_that_make_no_sense_are_refused_by_name(field, value):
    with pytest.raises(Refused, match=field):
        WarmTerms(**{field: value})


def a_rule(name: WarmRuleName, **more) -> WarmRule:
    return WarmRule(name=name, reason="it cost least on its last days", **more)


def test_the_rule_that_the_pools_past_speaks_for_is_followed_and_named():
    """c = 1 boots what c = 1/2, the setting, does not."""
    rise = replace(BUSY, rule=a_rule(WarmRuleName.INDEX, boot_weight=1.0))
    plan = plan_warm(rise, a_node_pool(), PRICES, replace(TERMS, boot_weight=0.1), NOON)
    assert plan.boot_nodes > plan_warm(BUSY, a_node_pool(), PRICES, replace(TERMS, boot_weight=0.1), NOON).boot_nodes
    assert "the index rule with c = 1 is followed: it cost least on its last days" in plan.reasons


def test_the_plain_rule_has_the_nodes_ready_that_the_last_days_rises_ask_for():
    rise = replace(CALM, rule=a_rule(WarmRuleName.RISE_QUANTILE, quantile=0.95), recent_rise_nodes=3)
    plan = plan_warm(rise, a_node_pool(), PRICES, TERMS, NOON)
    assert (plan.warm_gpus, plan.boot_nodes, plan.keep_nodes, plan.served) == (24, 3, 3, "rise_quantile")
    assert plan.keep_alive_seconds == 300
    assert any("the 95 % quantile of the last day's rises is followed" in reason for reason in plan.reasons)


def test_the_plain_rule_stays_within_bounds_and_says_so():
    rise = replace(CALM, rule=a_rule(WarmRuleName.RISE_QUANTILE, quantile=0.95), recent_rise_nodes=30)
    plan = plan_warm(rise, a_node_pool(), PRICES, TERMS, NOON)
    assert plan.boot_nodes == TERMS.most_nodes
    assert "bounds; the rises ask for 30" in plan.reasons[0]


def test_keep_alive_alone_boots_nothing_ahead():
    rise = replace(BUSY, rule=a_rule(WarmRuleName.KEEP_ALIVE))
    plan = plan_warm(rise, a_node_pool(), PRICES, TERMS, NOON)
    assert (plan.boot_nodes, plan.served) == (0, "default")
    assert any("keep-alive alone is followed" in reason for reason in plan.reasons)
