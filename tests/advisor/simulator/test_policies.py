"""What each policy decides, in worlds small enough to follow by hand; policies know the true durations here."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.errors import Refused
from advisor.simulator.foresight import Ages, Truth
from advisor.simulator.policies.backfilling import Backfilling, ShortestFirst
from advisor.simulator.policies.fifo import Karpenter, Traditional
from advisor.simulator.policies.recipe import Recipe, RecipeTerms
from advisor.simulator.policies.trailing import TrailingMaximum
from advisor.simulator.policies.warmth import Warmth
from advisor.simulator.simulation import SimulatedRun
from advisor.simulator.tasks import SimulatedJob
from advisor.simulator.terms import StartParts
from tests.advisor.simulator.worlds import replayed, some_work, waits

PLAIN = RecipeTerms(warm_level=0.0, moves=False)
MOVING = RecipeTerms(warm_level=0.0)
LEASED = RecipeTerms(warm_level=0.0, moves=False, leases=True)
AT_ONCE = StartParts.constant(0.0)
MINUTE = 60.0


def foreseen(policy: type[Any], jobs: Sequence[SimulatedJob], *settings: RecipeTerms, **more: Any) -> SimulatedRun:
    """The jobs, in order of submission, under a policy that knows how long they take."""
    return replayed(*jobs, policy=policy(Truth([job.seconds for job in jobs]), *settings), **more)


def movable(*jobs: tuple[float, float, float]) -> list[SimulatedJob]:
    return [some_work(*job, id=str(number), checkpointable=True) for number, job in enumerate(jobs)]


def on_hand(**more: Any) -> dict[str, Any]:
    """Two static nodes of 8 GPUs and no others."""
    return {"static_nodes": 2, "limit_nodes": 2, **more}


def test_karpenter_fills_the_fullest_node_and_skips_what_does_not_fit():
    jobs = [some_work(0, 6, 900), some_work(1, 4, 900), some_work(2, 8, 100), some_work(3, 2, 100)]
    run = replayed(*jobs, **on_hand())
    assert waits(run) == [0.0, 0.0, 898.0, 0.0]


def test_the_shortest_waiting_job_goes_first():
    jobs = [some_work(0, 8, 1000), some_work(1, 8, 900), some_work(2, 8, 60)]
    assert waits(foreseen(ShortestFirst, jobs, static_nodes=1, limit_nodes=1)) == [0.0, 1059.0, 998.0]
    assert waits(foreseen(Recipe, jobs, PLAIN, static_nodes=1, limit_nodes=1)) == [0.0, 1059.0, 998.0]


def test_three_days_of_waiting_make_up_for_a_remaining_time_e_times_longer():
    day = 86400.0
    jobs = [some_work(0, 8, 7 * day), some_work(1, 8, 200), some_work(6 * day, 8, 100)]
    run = foreseen(Recipe, jobs, PLAIN, static_nodes=1, limit_nodes=1)
    # ln 2 is .69, and 6 days are worth 2.
    assert run.tasks[1].finish == 7 * day + 200


def test_a_job_goes_where_it_prolongs_the_life_of_the_node_least_not_to_the_fullest():
    jobs = [some_work(0, 6, 600), some_work(1, 4, 36_000), some_work(2, 1, 30_000)]
    run = foreseen(Recipe, jobs, PLAIN, start=AT_ONCE, keep_alive_seconds=0.0)
    # The third joins the second: the first node is gone after ten minutes.
    assert run.end.accounts.paid == 600 * 8 + 36_000 * 8
    best_fit = replayed(*jobs, start=AT_ONCE, keep_alive_seconds=0.0)
    assert best_fit.end.accounts.paid == 30_002 * 8 + 36_000 * 8


def test_a_reservation_lets_in_only_what_will_be_gone_in_time():
    """Node A is busy until 1000 s, B until 2000 s; the gang that waits for both has them at 2000 s."""
    jobs = [
        some_work(0, 8, 1000),
        some_work(0, 8, 2000, id="b"),
        some_work(10, 16, 100),
        some_work(20, 1, 900),
        some_work(30, 1, 1500),
    ]
    run = foreseen(Backfilling, jobs, **on_hand())
    gang, short, long = run.tasks[2:]
    assert (gang.finish, short.finish) == (2100.0, 1900.0)
    assert long.finish == 2100.0 + 1500.0
    # Without it, small jobs go first for as long as any comes.
    assert replayed(*jobs, **on_hand()).tasks[2].finish == 2600.0


def test_the_trailing_maximum_keeps_nodes_for_the_highest_need_of_the_last_hour():
    jobs = [some_work(0, 16, 600), some_work(3600, 16, 600)]
    assert waits(replayed(*jobs, policy=TrailingMaximum()))[1] == 0.0
    assert waits(replayed(*jobs))[1] == 300.0


def test_the_warm_target_is_the_quantile_of_rises_within_ten_minutes():
    """Need is 0 but for one step of 20 GPUs: of the thirteen windows that are over, the five before the peak rise."""
    warmth = Warmth(0.5)
    for step in range(18):
        warmth.record(20.0 if step == 9 else 0.0)
    assert warmth.target == 0.0
    eager = Warmth(0.9)
    for step in range(18):
        eager.record(20.0 if step == 9 else 0.0)
    assert eager.target == 20.0


def test_a_warm_target_has_an_upper_bound_and_forgets_after_a_day():
    warmth = Warmth(0.99)
    for step in range(720 + 12):
        warmth.record(500.0 if step == 6 else 0.0)
        if step == 12:
            assert warmth.target == 64.0
    assert warmth.target == 0.0


def test_warm_capacity_starts_nodes_before_the_work_and_keeps_them():
    bursts = [some_work(1800.0 * number, 8, 300, id=str(number)) for number in range(20)]
    run = foreseen(Recipe, bursts, RecipeTerms(moves=False))
    assert waits(run)[0] == 300.0
    assert waits(run)[5:] == [0.0] * 15


def test_two_half_empty_nodes_become_one():
    """Both get a long job of 3 GPUs beside a short one of 5 that ends; at the next round the one moves over."""
    jobs = movable((0, 3, 36_000), (0, 5, 400), (1, 3, 36_000), (1, 5, 400))
    still = foreseen(Recipe, [*jobs], PLAIN, keep_alive_seconds=0.0)
    moved = foreseen(Recipe, [*jobs], MOVING, keep_alive_seconds=0.0)
    assert sum(task.moves for task in still.tasks) == 0
    assert [task.moves for task in moved.tasks] == [1, 0, 0, 0]
    # From the round at 900 s on one node is enough, until the moved job has ended a switch later.
    assert still.end.accounts.paid == 8 * (36_300 + 36_300)
    assert moved.end.accounts.paid == 8 * (900 + 36_300 + 59)


def test_nothing_is_moved_or_stopped_that_is_not_marked():
    jobs = [some_work(60.0 * n, g, 3000.0 * (n % 4 + 1), id=str(n)) for n, g in enumerate([8, 3, 16, 1, 2, 5, 1, 8])]
    run = foreseen(Recipe, jobs, RecipeTerms(leases=True), limit_nodes=2)
    assert [task.preemptions + task.moves for task in run.tasks] == [0] * 8


def test_a_lease_is_renewed_unless_a_shorter_job_waits():
    """The long job holds the only node; at its boundary, 900 s, it gives way to the short one and is restored after."""
    jobs = movable((0, 8, 36_000), (60, 8, 600))
    run = foreseen(Recipe, jobs, LEASED, static_nodes=1, limit_nodes=1)
    assert waits(run) == [600.0 + MINUTE, 840.0]
    assert run.tasks[0].preemptions == 1


def test_a_job_that_is_hardly_longer_is_not_stopped():
    jobs = movable((0, 8, 900 + 700), (60, 8, 600))
    run = foreseen(Recipe, jobs, LEASED, static_nodes=1, limit_nodes=1)
    assert [task.preemptions for task in run.tasks] == [0, 0]


def test_many_that_are_together_worth_more_are_not_stopped_for_one():
    """Eight jobs of 1000 s left are worth 8/1000, one of 8 GPUs and 800 s is worth 1/800."""
    eight = [(0.0, 1.0, 1900.0)] * 8
    jobs = movable(*eight, (60, 8, 800))
    run = foreseen(Recipe, jobs, LEASED, static_nodes=1, limit_nodes=1)
    assert sum(task.preemptions for task in run.tasks) == 0
    # For one of 100 s (1/100 > 8/1000) they are.
    run = foreseen(Recipe, movable(*eight, (60, 8, 100)), LEASED, static_nodes=1, limit_nodes=1)
    assert sum(task.preemptions for task in run.tasks) == 8


def test_a_waiting_gang_gets_its_nodes_at_the_common_boundary():
    """Own boundaries are 900 s after each start, so both nodes are never free together before a common one."""
    jobs = movable((0, 8, 90_000), (300, 8, 90_000), (400, 16, 600))
    run = foreseen(Recipe, jobs, LEASED, **on_hand())
    gang = run.tasks[2]
    assert gang.finish == 900.0 + 600.0
    assert [task.preemptions for task in run.tasks] == [1, 1, 0]


def test_a_running_gang_gives_way_whole_and_only_to_another_gang():
    jobs = movable((0, 16, 90_000), (60, 1, 600), (120, 16, 600))
    run = foreseen(Recipe, jobs, LEASED, **on_hand())
    long, single, gang = run.tasks
    assert gang.finish == 900.0 + 600.0
    assert long.preemptions == 1
    # The single job goes before the long gang comes back, never by stopping it.
    assert single.finish == 1500.0 + 600.0


def test_work_in_the_way_of_a_gang_is_put_back_in_the_queue_up_to_a_fifth_of_its_size():
    """Beside the long job runs one of 1 GPU with little left: it is in the way, and starts again afterwards."""
    jobs = movable((0, 8, 90_000), (0, 7, 90_000), (1, 1, 1300), (400, 16, 900))
    run = foreseen(Recipe, jobs, LEASED, **on_hand())
    assert run.tasks[3].finish == 900.0 + 900.0
    assert run.tasks[2].preemptions == 1


def test_urgent_work_does_not_wait_for_shorter_work():
    jobs = movable((0, 8, 500))
    jobs += [some_work(10, 8, 100, id="b"), some_work(20, 8, 3000, id="c", urgent=True)]
    run = foreseen(Recipe, jobs, PLAIN, static_nodes=1, limit_nodes=1)
    assert [task.finish for task in run.tasks] == [500.0, 3600.0, 3500.0]


def test_idle_nodes_are_held_for_a_gang_while_its_partners_boot():
    """One static node is idle; the gang needs two. The small job that comes meanwhile gets a node of its own."""
    jobs = [some_work(0, 16, 600), some_work(100, 1, 5000)]
    assert waits(foreseen(Recipe, jobs, PLAIN, static_nodes=1))[0] == 300.0
    assert waits(replayed(*jobs, static_nodes=1))[0] > 300.0


@pytest.mark.parametrize("wrong", [{"warm_level": 1.0}, {"lease_seconds": 0.0}, {"patience_days": -1.0}])
def test_a_recipe_that_makes_no_sense_is_refused(wrong):
    with pytest.raises(Refused, match=next(iter(wrong))):
        RecipeTerms(**wrong)


@given(
    st.lists(
        st.tuples(
            st.integers(0, 6000), st.sampled_from([0.25, 0.5, 1, 2, 4, 8, 16]), st.integers(0, 9000), st.booleans()
        ),
        min_size=1,
        max_size=30,
    ),
    st.sampled_from([None, 2, 3]),
    st.integers(0, 7),
)
def test_whatever_a_policy_does_is_conserved(drawn, limit, which):
    """Every run checks the laws of conservation itself; here policies meet random work, marked and not."""
    jobs = [
        some_work(float(s), float(g), float(d), id=str(i), checkpointable=c)
        for i, (s, g, d, c) in enumerate(sorted(drawn))
    ]
    truth = Truth([job.seconds for job in jobs])
    policies: list[Any] = [
        Karpenter(),
        Traditional(),
        TrailingMaximum(),
        Backfilling(truth),
        ShortestFirst(truth),
        Recipe(truth),
        Recipe(truth, RecipeTerms(leases=True)),
        Recipe(Ages(), RecipeTerms(leases=True, reserves=True)),
    ]
    run = replayed(*jobs, policy=policies[which], limit_nodes=limit, batch_idle_seconds=1.0)
    assert all(task.finish is not None for task in run.tasks)
    assert all(task.job.checkpointable or task.run == 1 for task in run.tasks)
