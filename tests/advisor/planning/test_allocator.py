"""Who gets which slices: small clusters worked out by hand. Times are minutes from noon."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from advisor.domain.forecasts import DurationDistribution
from advisor.domain.slices import Decision, SliceLength
from advisor.errors import Refused
from advisor.planning.allocation_terms import AllocationTerms
from advisor.planning.allocator import allocate
from advisor.planning.durations import PoolDurations
from advisor.planning.slice_length import recommend_slices
from advisor.planning.slice_terms import SliceTerms
from tests.builders import (
    NOON,
    a_cluster,
    a_node,
    a_node_pool,
    a_slice_request,
    a_workload,
    exponential_durations,
    lognormal_durations,
)

FIXED = AllocationTerms(elastic=False)
ELASTIC = AllocationTerms()
FULL = a_workload("full", gpus=8.0)
"""Fills node-1."""


def minutes_left(minutes: float) -> DurationDistribution:
    return DurationDistribution.point(minutes * 60.0, spread=1e-6)


def at(minutes: float):
    return NOON + timedelta(minutes=minutes)


def soon(moment, minutes: float, seconds: float = 1.0) -> bool:
    return abs((moment - at(minutes)).total_seconds()) < seconds


def decide(cluster, *requests, terms=FIXED, plans=None, remaining=None):
    return {one.request_id: one for one in allocate(cluster, requests, plans or {}, terms, NOON, remaining)}


def one_node(**more):
    return a_cluster(a_node_pool(**more), nodes=(a_node(),))


# --- slices ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("minutes, count", [(15.0, 4), (30.0, 2), (7.0, 9)])
def test_an_hour_gets_consecutive_slices_on_one_share(minutes, count):
    found = decide(one_node(), a_slice_request(slice_length=SliceLength(minutes)))["task-1"]
    assert found.decision is Decision.PLACED
    assert found.slice_count == len(found.slices) == count
    assert {one.share for one in found.slices} == {found.slices[0].share}
    assert [one.start for one in found.slices] == [at(minutes * i) for i in range(count)]
    assert found.predicted_end == at(minutes * count)


def test_without_a_plan_the_default_length_is_used_and_said():
    found = decide(one_node(), a_slice_request())["task-1"]
    assert found.slice_count == 4
    assert "the default, since the pool has no plan" in found.reasons[1]


def test_the_plan_of_the_pool_gives_the_length_by_predicted_duration():
    tasks = PoolDurations(tuple(lognormal_durations(60.0 * m, 0.6) for m in (4, 5, 6, 200, 250, 300)), (1.0,) * 6)
    plan = recommend_slices("default", tasks, SliceTerms(switch_minutes=5.0, slices=500))
    short, long = (one.if_sliced_minutes for one in plan.classes)
    made = decide(
        one_node(),
        a_slice_request("short", minutes=4.0),
        a_slice_request("long", minutes=200.0),
        plans={"default": plan},
    )
    assert made["short"].slices[0].length.minutes == short
    assert made["long"].slices[0].length.minutes == long


def test_a_task_that_is_better_not_sliced_gets_one_slice_for_its_whole_run():
    plan = recommend_slices("default", PoolDurations.one(exponential_durations(1200.0)), SliceTerms(switch_minutes=5.0))
    made = decide(one_node(), a_slice_request("long", minutes=100.5), a_slice_request("short"), plans={"default": plan})
    assert [one.length.minutes for one in made["long"].slices] == [101.0]
    assert "not sliced" in made["long"].reasons[1]


def test_a_long_run_is_granted_a_day_of_slices_and_renewed():
    found = decide(one_node(), a_slice_request(minutes=7 * 1440.0))["task-1"]
    assert found.slice_count == 672
    assert len(found.slices) == 96
    assert "the first 96 now, the rest by renewal" in found.reasons[1]


def test_the_level_of_the_predicted_duration_can_be_chosen():
    wide = a_slice_request(duration=lognormal_durations(3600.0, 1.0))
    assert decide(one_node(), wide)["task-1"].slice_count == 4
    assert decide(one_node(), wide, terms=replace(FIXED, duration_level=0.9))["task-1"].slice_count > 8


# --- shares and gangs ------------------------------------------------------------------------------------------------


def test_a_share_takes_its_part_of_one_gpu_and_the_next_task_the_rest():
    made = decide(
        one_node(sharing_factor=4),
        a_slice_request("half", gpus=0.5),
        a_slice_request("quarter", gpus=0.25),
        a_slice_request("whole", gpus=1.0),
    )
    shares = {name: {one.share for one in found.slices} for name, found in made.items()}
    assert {len(found) for found in shares.values()} == {2, 1, 4}
    assert len({share.gpu for share in shares["half"] | shares["quarter"]}) == 1
    assert not shares["half"] & shares["quarter"]
    assert sum(share.physical_gpus for share in shares["whole"]) == 1.0


@pytest.mark.parametrize(
    "factor, gpus, remedy", [(4, 0.3, "Ask for 0.5 of a GPU"), (1, 0.5, "Ask for 1 whole GPU"), (3, 0.5, "0.666667")]
)
def test_a_share_that_does_not_divide_is_refused_with_the_next_that_does(factor, gpus, remedy):
    found = decide(one_node(sharing_factor=factor), a_slice_request(gpus=gpus))["task-1"]
    assert found.decision is Decision.REFUSED
    assert found.reasons[0].startswith("gpus: ")
    assert remedy in found.reasons[0]


def test_a_gang_within_a_node_stays_on_one_node_with_common_boundaries():
    cluster = a_cluster(
        nodes=(a_node("node-1"), a_node("node-2")),
        workloads=(a_workload("a", gpus=6.0), a_workload("b", node="node-2")),
    )
    found = decide(cluster, a_slice_request(gpus=4.0))["task-1"]
    assert {one.share.node for one in found.slices} == {"node-2"}
    assert len({one.share for one in found.slices}) == 4
    assert len({one.start for one in found.slices}) == found.slice_count == 4


def test_a_gang_larger_than_a_node_takes_whole_nodes_or_nothing():
    three = a_cluster(nodes=tuple(a_node(f"node-{i}") for i in (1, 2, 3)))
    found = decide(three, a_slice_request(gpus=20.0))["task-1"]
    by_node = {
        node: len({one.share for one in found.slices if one.share.node == node})
        for node in ("node-1", "node-2", "node-3")
    }
    assert sorted(by_node.values()) == [4, 8, 8]
    busy = a_cluster(nodes=three.nodes, workloads=(a_workload("a", node="node-2"), a_workload("b", node="node-3")))
    blocked = decide(busy, a_slice_request(gpus=20.0), remaining={"a": minutes_left(5), "b": minutes_left(9)})["task-1"]
    assert blocked.decision is Decision.DEFERRED
    assert blocked.slices == ()
    assert soon(blocked.deferred_until, 5.0)


# --- order -----------------------------------------------------------------------------------------------------------


def test_the_shorter_task_gets_the_last_gpu_unless_the_other_is_urgent():
    cluster = a_cluster(nodes=(a_node(gpus=1),))
    short, long = a_slice_request("short", minutes=10.0), a_slice_request("long", minutes=100.0)
    made = decide(cluster, long, short)
    assert (made["short"].decision, made["long"].decision) == (Decision.PLACED, Decision.DEFERRED)
    made = decide(cluster, replace(long, urgent=True), short)
    assert (made["short"].decision, made["long"].decision) == (Decision.DEFERRED, Decision.PLACED)


@pytest.mark.parametrize("days, first", [(6.0, "short"), (8.0, "long")])
def test_a_task_e_times_longer_passes_after_waiting_three_days(days, first):
    """ln 10 x 3 d = 6.9 d make up for ten times the length."""
    cluster = a_cluster(nodes=(a_node(gpus=1),))
    short = a_slice_request("short", minutes=10.0)
    long = a_slice_request("long", minutes=100.0, submit=NOON - timedelta(days=days))
    assert decide(cluster, short, long)[first].decision is Decision.PLACED


def test_answers_come_in_the_order_of_the_questions():
    requests = [a_slice_request(f"task-{i}", minutes=100.0 - i) for i in range(12)]
    assert [one.request_id for one in allocate(one_node(), requests, {}, FIXED, NOON)] == [r.id for r in requests]


# --- placement -------------------------------------------------------------------------------------------------------


def test_a_task_goes_where_it_keeps_no_node_up_longer():
    """node-1 ends in 10 min, node-2 in 10 h: an hour's task goes to node-2 although node-1 is fuller."""
    cluster = a_cluster(
        nodes=(a_node("node-1"), a_node("node-2")),
        workloads=(a_workload("a", gpus=6.0), a_workload("b", node="node-2")),
    )
    remaining = {"a": minutes_left(10), "b": minutes_left(600)}
    assert decide(cluster, a_slice_request(), remaining=remaining)["task-1"].slices[0].share.node == "node-2"


def test_what_was_just_placed_counts_as_keeping_its_node_up():
    """The ten-hour gang fits node-2 only; the hour's task joins it, although node-1 is fuller."""
    cluster = a_cluster(nodes=(a_node("node-1"), a_node("node-2")), workloads=(a_workload("a", gpus=6.0),))
    made = decide(
        cluster,
        a_slice_request("gang", gpus=5.0, minutes=600.0, urgent=True),
        a_slice_request("hour"),
        remaining={"a": minutes_left(10)},
    )
    assert {one.share.node for one in made["gang"].slices + made["hour"].slices} == {"node-2"}


def test_keeping_a_large_node_up_costs_more_than_keeping_a_small_one():
    pool = a_node_pool(node_gpus=(4, 8))
    cluster = a_cluster(
        pool, nodes=(a_node("large"), a_node("small", gpus=4)), workloads=(a_workload("a", node="large", gpus=6.0),)
    )
    found = decide(cluster, a_slice_request(minutes=120.0), remaining={"a": minutes_left(10)})["task-1"]
    assert found.slices[0].share.node == "small"


def test_of_nodes_that_live_as_long_anyway_the_fullest_takes_the_task():
    cluster = a_cluster(
        nodes=(a_node("node-1"), a_node("node-2")),
        workloads=(a_workload("a", gpus=1.0), a_workload("b", gpus=6.0, node="node-2")),
    )
    remaining = {"a": minutes_left(600), "b": minutes_left(600)}
    assert decide(cluster, a_slice_request(), remaining=remaining)["task-1"].slices[0].share.node == "node-2"


def test_without_predictions_the_older_workload_is_taken_to_last_longer():
    young = a_workload("young", start=NOON - timedelta(minutes=2))
    old = a_workload("old", node="node-2", start=NOON - timedelta(days=2), submit=NOON - timedelta(days=2))
    cluster = a_cluster(nodes=(a_node("node-1"), a_node("node-2")), workloads=(young, old))
    assert decide(cluster, a_slice_request())["task-1"].slices[0].share.node == "node-2"


def test_of_equal_nodes_the_oldest_takes_the_task():
    nodes = (a_node("node-a"), a_node("node-b", created=NOON - timedelta(hours=1)))
    assert decide(a_cluster(nodes=nodes), a_slice_request())["task-1"].slices[0].share.node == "node-b"


def test_cordoned_and_booting_nodes_take_nothing_and_placeholders_give_way():
    cluster = a_cluster(
        nodes=(a_node("gone", cordoned=True), a_node("boots", ready=False), a_node("held")),
        workloads=(a_workload("spare", gpus=8.0, node="held", placeholder=True),),
    )
    assert decide(cluster, a_slice_request())["task-1"].slices[0].share.node == "held"


# --- deferral --------------------------------------------------------------------------------------------------------


def test_what_does_not_fit_waits_until_enough_gpus_are_expected_free():
    cluster = a_cluster(nodes=(a_node(),), workloads=(a_workload("a", gpus=4.0), a_workload("b", gpus=4.0)))
    remaining = {"a": minutes_left(30), "b": minutes_left(50)}
    made = decide(cluster, a_slice_request("four", gpus=4.0), remaining=remaining)
    assert soon(made["four"].deferred_until, 30.0)
    made = decide(cluster, a_slice_request("eight", gpus=8.0), remaining=remaining)
    assert soon(made["eight"].deferred_until, 50.0)


def test_one_release_is_promised_to_one_request():
    cluster = a_cluster(nodes=(a_node(gpus=1),), workloads=(a_workload("a"),))
    made = decide(
        cluster,
        a_slice_request("first", minutes=20.0),
        a_slice_request("second", minutes=25.0),
        remaining={"a": minutes_left(30)},
    )
    assert soon(made["first"].deferred_until, 30.0)
    assert soon(made["second"].deferred_until, 50.0)


def test_a_release_that_nobody_can_foresee_is_not_dated():
    found = decide(a_cluster(nodes=(a_node(),), workloads=(FULL,)), a_slice_request())["task-1"]
    assert (found.decision, found.deferred_until) == (Decision.DEFERRED, None)
    assert "nothing tells when" in found.reasons[0]


def test_a_blocked_gang_keeps_its_gpus_from_longer_work_but_not_from_shorter():
    """Four of eight GPUs are idle until the other four are free in 30 min; the gang has eight reserved."""
    cluster = a_cluster(nodes=(a_node(),), workloads=(a_workload("a", gpus=4.0),))
    made = decide(
        cluster,
        a_slice_request("gang", gpus=8.0, minutes=10.0, urgent=True),
        a_slice_request("leaves", minutes=20.0),
        a_slice_request("stays", minutes=40.0),
        remaining={"a": minutes_left(30)},
    )
    assert soon(made["gang"].deferred_until, 30.0)
    assert made["leaves"].decision is Decision.PLACED
    assert "before gang gang can start" in made["leaves"].reasons[0]
    assert made["stays"].decision is Decision.DEFERRED
    assert soon(made["stays"].deferred_until, 40.0)


def test_a_window_below_the_minimum_slice_stays_with_the_gang():
    cluster = a_cluster(nodes=(a_node(),), workloads=(a_workload("a", gpus=4.0),))
    made = decide(
        cluster,
        a_slice_request("gang", gpus=8.0, minutes=10.0, urgent=True),
        a_slice_request("tiny", minutes=1.0),
        remaining={"a": minutes_left(4)},
    )
    assert made["tiny"].decision is Decision.DEFERRED


def test_only_the_first_blocked_gang_holds_gpus():
    cluster = a_cluster(
        nodes=(a_node("node-1"), a_node("node-2")),
        workloads=(a_workload("a", gpus=4.0), a_workload("b", gpus=4.0, node="node-2")),
    )
    made = decide(
        cluster,
        a_slice_request("gang-1", gpus=8.0, minutes=10.0, urgent=True),
        a_slice_request("gang-2", gpus=8.0, minutes=20.0, urgent=True),
        a_slice_request("small", minutes=60.0),
        remaining={"a": minutes_left(30), "b": minutes_left(35)},
    )
    assert soon(made["gang-1"].deferred_until, 30.0)
    assert made["small"].decision is Decision.PLACED
    assert made["gang-2"].decision is Decision.DEFERRED
    assert soon(made["gang-2"].deferred_until, 40.0), "node-1 after the first gang, since the small task holds node-2"


# --- nodes to come ---------------------------------------------------------------------------------------------------


def test_a_node_that_boots_is_used_before_another_is_started():
    """Field report A04: one pending task, one node on its way, asked again every 30 s: no second node."""
    for age in (0, 90, 240):
        node = a_node(ready=False, created=NOON - timedelta(seconds=age))
        found = decide(a_cluster(nodes=(node,)), a_slice_request(), terms=ELASTIC)["task-1"]
        assert found.launch_nodes == 0
        assert soon(found.deferred_until, max(300 - age, 60) / 60)


def test_a_node_past_the_start_up_timeout_is_not_counted_on():
    node = a_node(ready=False, created=NOON - timedelta(minutes=20))
    found = decide(a_cluster(nodes=(node,)), a_slice_request(), terms=ELASTIC)["task-1"]
    assert (found.launch_pool, found.launch_nodes) == ("default", 1)


def test_what_nothing_holds_has_a_node_started_and_the_next_shares_it():
    cluster = a_cluster(nodes=(a_node(),), workloads=(FULL,))
    made = decide(
        cluster, a_slice_request("a", gpus=4.0), a_slice_request("b", gpus=4.0), a_slice_request("c"), terms=ELASTIC
    )
    assert sum(one.launch_nodes for one in made.values()) == 2
    assert all(soon(one.deferred_until, 5.0) for one in made.values())


@pytest.mark.parametrize("pool, minutes", [("default", 12.0), ("another", 5.0)])
def test_each_pool_has_its_own_start_latency(pool, minutes):
    terms = replace(ELASTIC, start_latencies={pool: 720.0})
    started = decide(a_cluster(nodes=(a_node(),), workloads=(FULL,)), a_slice_request(), terms=terms)["task-1"]
    boots = decide(a_cluster(nodes=(a_node(ready=False, created=NOON),)), a_slice_request(), terms=terms)["task-1"]
    assert (started.launch_nodes, boots.launch_nodes) == (1, 0)
    assert soon(started.deferred_until, minutes)
    assert soon(boots.deferred_until, minutes)


def test_the_smallest_type_that_holds_it_is_started():
    cluster = a_cluster(a_node_pool(node_gpus=(1, 8), limits={"nvidia.com/gpu": "3"}))
    made = decide(cluster, *(a_slice_request(f"task-{i}") for i in range(4)), terms=ELASTIC)
    assert [one.launch_nodes for one in made.values()].count(1) == 3
    assert soon(made["task-3"].deferred_until, 65.0)


def test_a_limit_without_room_for_a_whole_node_starts_none():
    cluster = a_cluster(a_node_pool(limits={"nvidia.com/gpu": "15"}), nodes=(a_node(),), workloads=(FULL,))
    found = decide(cluster, a_slice_request(), terms=ELASTIC, remaining={"full": minutes_left(30)})["task-1"]
    assert found.launch_nodes == 0
    assert soon(found.deferred_until, 30.0)


def test_a_limit_that_cannot_be_read_starts_no_node_and_lets_what_stands_be_used():
    odd = {"nvidia.com/gpu": "lots"}
    cluster = a_cluster(a_node_pool(limits=odd), nodes=(a_node(),), workloads=(a_workload("part", gpus=7.0),))
    made = decide(cluster, a_slice_request("a"), a_slice_request("b"), terms=ELASTIC)
    assert made["a"].decision is Decision.PLACED
    assert made["b"].launch_nodes == 0


def test_a_gang_uses_what_is_idle_and_starts_only_the_rest():
    cluster = a_cluster(nodes=(a_node("node-1"), a_node("node-2")), workloads=(FULL,))
    found = decide(cluster, a_slice_request(gpus=24.0), terms=ELASTIC)["task-1"]
    assert found.launch_nodes == 2


def test_a_likely_release_beside_idle_gpus_does_not_pass_for_a_node_that_is_coming():
    cluster = a_cluster(nodes=(a_node(),), workloads=(a_workload("a", gpus=4.0),))
    found = decide(cluster, a_slice_request(gpus=8.0), terms=ELASTIC, remaining={"a": minutes_left(2)})["task-1"]
    assert found.launch_nodes == 1


def test_a_sooner_release_is_waited_for_only_if_asked():
    cluster = a_cluster(nodes=(a_node(),), workloads=(FULL,))
    remaining = {"full": minutes_left(2)}
    started = decide(cluster, a_slice_request(), terms=ELASTIC, remaining=remaining)["task-1"]
    waited = decide(cluster, a_slice_request(), terms=replace(ELASTIC, wait_for_release=True), remaining=remaining)[
        "task-1"
    ]
    assert (started.launch_nodes, waited.launch_nodes) == (1, 0)
    assert "a release is expected in 2 min" in started.reasons[0]
    assert soon(waited.deferred_until, 2.0)


def test_a_static_pool_grows_by_nobodys_request():
    cluster = a_cluster(a_node_pool(replicas=2), nodes=(a_node(),), workloads=(FULL,))
    assert decide(cluster, a_slice_request(), terms=ELASTIC)["task-1"].launch_nodes == 0


# --- tiny tasks ------------------------------------------------------------------------------------------------------


def test_tiny_tasks_share_the_last_gpus_slice_in_order():
    cluster = a_cluster(nodes=(a_node(gpus=1),))
    made = decide(cluster, *(a_slice_request(f"tiny-{i}", minutes=4.0 + i / 10) for i in range(5)))
    placed = [one for one in made.values() if one.decision is Decision.PLACED]
    assert [one.request_id for one in placed] == ["tiny-0", "tiny-1", "tiny-2"]
    assert {one.slices for one in placed} == {placed[0].slices}
    assert "after tiny-0, tiny-1 in about" in made["tiny-2"].reasons[0]
    assert made["tiny-3"].decision is Decision.DEFERRED
    assert soon(made["tiny-3"].deferred_until, 4.0 + 4.1 + 4.2)


def test_a_wide_prediction_is_not_squeezed_into_a_slice():
    cluster = a_cluster(nodes=(a_node(gpus=1),))
    wide = lognormal_durations(240.0, 1.2)
    made = decide(cluster, a_slice_request("a", minutes=4.0), a_slice_request("b", duration=wide))
    assert made["b"].decision is Decision.DEFERRED


def test_tiny_tasks_do_not_wait_for_each_other_while_gpus_are_idle_unless_asked():
    tiny = [a_slice_request(f"tiny-{i}", minutes=2.0) for i in range(4)]
    apart = decide(one_node(), *tiny)
    together = decide(one_node(), *tiny, terms=replace(FIXED, batch_when_idle=True))
    assert len({one.slices for one in apart.values()}) == 4
    assert len({one.slices for one in together.values()}) == 1


def test_a_batch_takes_no_task_that_would_end_too_late_in_it():
    """Behind four minutes of another a task of four ends at 8, after its deadline at 6."""
    cluster = a_cluster(nodes=(a_node(gpus=1),))
    pressed = a_slice_request("pressed", minutes=4.1, deadline=at(6.0))
    made = decide(cluster, a_slice_request("first", minutes=4.0), pressed)
    assert made["pressed"].decision is Decision.REFUSED
    assert made["pressed"].reasons[0].startswith("deadline: ")


def test_a_batch_takes_only_tasks_of_its_size():
    cluster = a_cluster(a_node_pool(sharing_factor=2), nodes=(a_node(gpus=1),))
    made = decide(
        cluster,
        a_slice_request("half", gpus=0.5, minutes=1.0),
        a_slice_request("other-half", gpus=0.5, minutes=2.0),
        a_slice_request("whole", gpus=1.0, minutes=3.0),
        a_slice_request("third-half", gpus=0.5, minutes=4.0),
    )
    assert made["whole"].decision is Decision.DEFERRED
    assert made["third-half"].slices == made["half"].slices


# --- refusals --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "more, field, says",
    [
        ({"gpus": 10_000.0}, "gpus", "can have 1,024 GPUs"),
        ({"pool": "h100"}, "pool", "known pools are default"),
        ({"gpu_kind": "tpu"}, "gpu_kind", "GPU kinds are a100"),
        ({"deadline": NOON - timedelta(minutes=1), "submit": NOON - timedelta(hours=1)}, "deadline", "has passed"),
        ({"deadline": NOON + timedelta(minutes=30)}, "deadline", "is expected to take 60 min"),
    ],
)
def test_a_request_that_can_never_be_placed_is_refused_with_field_limit_and_remedy(more, field, says):
    cluster = a_cluster(a_node_pool(gpu_kind="a100"), nodes=(a_node(),))
    found = decide(cluster, a_slice_request(**more), terms=ELASTIC)["task-1"]
    assert found.decision is Decision.REFUSED
    assert found.reasons[0].startswith(f"{field}: ")
    assert says in found.reasons[0]
    assert found.reasons[0].endswith(".")


def test_a_fixed_cluster_refuses_what_is_larger_than_it():
    found = decide(one_node(), a_slice_request(gpus=9.0))["task-1"]
    assert "can have 8 GPUs" in found.reasons[0]


def test_a_deadline_that_the_queue_breaks_is_refused():
    cluster = a_cluster(nodes=(a_node(),), workloads=(FULL,))
    late = a_slice_request(deadline=at(80.0))
    found = decide(cluster, late, remaining={"full": minutes_left(30)})["task-1"]
    assert found.decision is Decision.REFUSED
    assert "it can start at about 2026-03-02T12:30" in found.reasons[0]
    found = decide(cluster, replace(late, deadline=at(100.0)), remaining={"full": minutes_left(30)})["task-1"]
    assert found.decision is Decision.DEFERRED


def test_a_kind_is_found_on_the_node_where_the_pool_does_not_say():
    cluster = a_cluster(nodes=(a_node("old", gpu_kind="v100"), a_node("new", gpu_kind="h100")))
    assert decide(cluster, a_slice_request(gpu_kind="h100"))["task-1"].slices[0].share.node == "new"


def test_two_requests_of_one_id_are_refused_before_anything_is_decided():
    with pytest.raises(Refused, match="unique"):
        decide(one_node(), a_slice_request(), a_slice_request())


def test_stale_readings_of_more_work_than_gpus_fill_the_node_and_no_more():
    cluster = a_cluster(nodes=(a_node(gpus=1),), workloads=tuple(a_workload(f"w{i}", gpus=3.0) for i in range(3)))
    assert decide(cluster, a_slice_request())["task-1"].decision is Decision.DEFERRED


def test_no_requests_give_no_answers():
    assert allocate(one_node(), [], {}, FIXED, NOON) == ()


@pytest.mark.parametrize(
    "field, value",
    [
        ("duration_level", 1.0),
        ("ageing_days", 0.0),
        ("batch_z", -1.0),
        ("start_latency_seconds", float("nan")),
        ("start_latencies", {"default": -1.0}),
        ("start_latencies", {"default": float("nan")}),
        ("longest_grant", 0),
        ("minimum_slice_minutes", -5.0),
    ],
)
def test_allocation_terms_that_make_no_sense_are_refused_by_name(field, value):
    with pytest.raises(Refused, match=field):
        AllocationTerms(**{field: value})


def test_a_task_in_a_gangs_gap_shares_its_slice_with_nobody():
    """The gang may start in 30 min; a second tiny task behind the first would still be right, a tenth not."""
    cluster = a_cluster(nodes=(a_node(gpus=2),), workloads=(a_workload("a"),))
    made = decide(
        cluster,
        a_slice_request("gang", gpus=2.0, minutes=60.0, urgent=True),
        *(a_slice_request(f"tiny-{i}", minutes=4.0 + i / 10) for i in range(3)),
        remaining={"a": minutes_left(6)},
    )
    assert soon(made["gang"].deferred_until, 6.0)
    assert [made[f"tiny-{i}"].decision for i in range(3)] == [Decision.PLACED, Decision.DEFERRED, Decision.DEFERRED]
    assert soon(made["tiny-1"].deferred_until, 66.0)


def test_scattered_work_leaves_no_share_looking_idle():
    """0.75 on either GPU and 0.5 more cannot lie so, yet all of it is in use."""
    cluster = a_cluster(
        a_node_pool(sharing_factor=4),
        nodes=(a_node(gpus=2),),
        workloads=tuple(a_workload(f"w{i}", gpus=gpus) for i, gpus in enumerate((0.75, 0.75, 0.5))),
    )
    assert decide(cluster, a_slice_request(gpus=0.25))["task-1"].decision is Decision.DEFERRED
