"""Each rule of the simulated cluster by a world small enough to compute by hand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.errors import Defect, Refused
from advisor.simulator.accounts import Accounts, check_conservation
from advisor.simulator.policies.fifo import Karpenter, Traditional
from advisor.simulator.tasks import Task
from advisor.simulator.terms import ClusterTerms, StartParts
from tests.advisor.simulator.worlds import replayed, some_work, terms, waits


def test_the_worked_numbers_of_the_design():
    """Node 1 is paid 1-1141 s, node 2 721-1201 s; the second job meets the first node when it empties."""
    run = replayed(some_work(0, 8, 600), some_work(720, 2, 60), batch_idle_seconds=1.0)
    accounts = run.end.accounts
    assert waits(run) == [301.0, 181.0]
    assert accounts.paid == 9120 + 3840
    assert accounts.booting == 2400 + 2400
    assert accounts.used == 4920
    assert accounts.idle == 1800 + 1440


def test_a_batch_window_closes_a_second_after_the_last_request_and_gathers_all_of_them_onto_one_node():
    run = replayed(some_work(0, 4, 60), some_work(0.5, 4, 60), batch_idle_seconds=1.0)
    assert run.node_starts == 1
    # The second job fits the node already wanted, so it does not keep the window open.
    assert waits(run) == [301.0, 300.5]


def test_a_batch_window_that_keeps_growing_closes_after_ten_seconds():
    """Requests every 0.75 s: the window of the first closes at 10 s, that of the job at 10.5 s after 15.25 s."""
    run = replayed(*(some_work(0.75 * number, 8, 60) for number in range(20)), batch_idle_seconds=1.0)
    assert [waits(run)[number] for number in (0, 13, 14)] == [310.0, 310.0 - 9.75, 315.25 - 10.5]


def test_pending_is_free_and_booting_is_paid():
    start = StartParts(launch=(30.0,), register=(20.0,), initialise=(100.0,))
    run = replayed(some_work(0, 8, 600), start=start)
    assert waits(run) == [150.0]
    assert run.end.accounts.booting == 120 * 8
    assert run.end.accounts.paid == (120 + 600 + 180) * 8


def test_a_start_is_drawn_from_its_samples_by_the_seed():
    start = StartParts(launch=(0.0, 10.0), register=(5.0, 50.0), initialise=(100.0, 200.0))
    job = some_work(0, 8, 600)
    seen = {waits(replayed(job, start=start, seed=seed))[0] for seed in range(40)}
    assert seen == {launch + register + init for launch in (0, 10) for register in (5, 50) for init in (100, 200)}
    assert waits(replayed(job, start=start, seed=7)) == waits(replayed(job, start=start, seed=7))


def test_an_empty_node_goes_after_its_keep_alive_and_work_in_between_starts_it_anew():
    run = replayed(
        some_work(0, 8, 100), some_work(400 + 179, 1, 10), some_work(10_000, 1, 10), keep_alive_seconds=180.0
    )
    # Ready at 300, busy until 400, again 579-589, gone at 769; the third job needs another node.
    assert run.node_starts == 2
    assert run.horizon.accounts.paid == 769 * 8


def test_a_machine_is_billed_for_a_minute_at_least():
    run = replayed(some_work(0, 8, 5), start=StartParts.constant(10.0), keep_alive_seconds=0.0)
    assert run.end.accounts.paid == 60 * 8
    assert run.end.accounts.idle == 45 * 8


def test_a_limit_stops_launches_in_whole_nodes():
    limit = ClusterTerms.of_gpu_limit(15, 8)
    run = replayed(some_work(0, 8, 600), some_work(0, 8, 600), limit_nodes=limit)
    assert run.node_starts == 1
    assert waits(run) == [300.0, 900.0]


def test_a_static_pool_is_there_from_the_beginning_and_never_goes():
    run = replayed(some_work(0, 8, 60), some_work(5000, 8, 60), static_nodes=1, limit_nodes=1)
    assert waits(run) == [0.0, 0.0]
    assert run.node_starts == 0
    assert run.horizon.accounts.paid == 5000 * 8


def test_a_gang_has_whole_nodes_and_pays_only_for_what_it_asked_as_use():
    run = replayed(some_work(0, 12, 100), some_work(301, 1, 10), keep_alive_seconds=0.0)
    # 16 GPUs are held, so the small job gets a node of its own.
    assert run.node_starts == 3
    assert run.tasks[0].on == ()
    assert run.end.accounts.used == 1200 + 10
    assert run.end.accounts.held == 1600 + 10


def test_two_nodes_that_become_ready_together_are_seen_together():
    run = replayed(some_work(0, 16, 100), some_work(1, 1, 10))
    assert waits(run)[0] == 300.0


def test_shares_fill_the_fullest_gpu_and_never_span_two():
    """Three shares of .6 need three GPUs; .4 fits beside the first."""
    jobs = [some_work(0, 0.6, 100), some_work(1, 0.6, 100), some_work(2, 0.4, 100), some_work(3, 0.6, 100)]
    run = replayed(*jobs, node_gpus=2)
    assert run.node_starts == 2
    assert run.end.accounts.used == pytest.approx(220)


def test_a_whole_gpu_is_not_made_of_two_halves():
    run = replayed(some_work(0, 0.6, 100), some_work(0, 0.6, 100), some_work(0, 1, 100), node_gpus=2)
    assert run.node_starts == 2


class _StopsAt(Karpenter):
    """Stops the only job at the boundary of its lease, and starts it again at once."""

    lease_seconds = 100.0

    def boundary(self, cluster, task):
        if task.preemptions == 0:
            cluster.preempt(task)
            self.submitted(cluster, task)


def test_a_stopped_job_keeps_what_it_did_and_pays_the_switch_when_it_resumes():
    """Ready at 300, stopped at 400 with 100 s done, restored until 430, ends at 430 + 150."""
    run = replayed(some_work(0, 2, 250, checkpointable=True), policy=_StopsAt(), switch_seconds=30.0)
    (task,) = run.tasks
    assert (task.finish, task.lost, task.waited) == (580.0, 30.0, 300.0)
    assert run.end.accounts.used == 280 * 2
    assert run.end.useful == 250 * 2


def test_a_job_that_cannot_be_checkpointed_is_never_stopped():
    with pytest.raises(Defect, match="suspended"):
        replayed(some_work(0, 2, 250), policy=_StopsAt())


def test_alone_a_job_has_a_node_of_its_own():
    run = replayed(some_work(0, 1, 100), some_work(0, 1, 100), policy=Traditional(), keep_alive_seconds=0.0)
    assert run.node_starts == 2
    assert run.end.accounts.held == 2 * 8 * 100


def test_costs_are_counted_up_to_the_last_submission():
    run = replayed(some_work(0, 8, 1000), some_work(800, 8, 1000))
    assert run.horizon.at == 800
    assert run.horizon.useful == 500 * 8
    assert run.horizon.accounts.paid == 800 * 8


@pytest.mark.parametrize(
    "broken",
    [
        Accounts(paid=10, used=5, idle=3, booting=1, held=5),
        Accounts(paid=10, used=6, idle=3, booting=1, held=6),
    ],
)
def test_a_broken_law_is_a_defect(broken):
    task = Task(0, some_work(0, 1, 5), finish=5.0)
    with pytest.raises(Defect):
        check_conservation(broken, [task])


def test_a_job_that_was_there_for_longer_than_is_known_is_a_defect():
    task = Task(0, some_work(0, 1, 5), finish=9.0)
    with pytest.raises(Defect, match="9"):
        check_conservation(Accounts(paid=5, used=5, idle=0, booting=0, held=5), [task])


def test_a_job_larger_than_the_quota_is_refused():
    with pytest.raises(Refused, match="needs 3 nodes"):
        replayed(some_work(0, 24, 10), limit_nodes=2)


@pytest.mark.parametrize(
    "field, value", [("node_gpus", 0), ("keep_alive_seconds", -1), ("limit_nodes", 0), ("switch_seconds", -1)]
)
def test_terms_that_make_no_sense_are_refused(field, value):
    with pytest.raises(Refused, match=field):
        terms(**{field: value})


@given(
    st.lists(
        st.tuples(st.integers(0, 3000), st.sampled_from([0.25, 0.5, 1, 2, 4, 5, 8, 16]), st.integers(0, 2000)),
        min_size=1,
        max_size=30,
    ),
    st.booleans(),
)
def test_whatever_comes_is_conserved_and_runs_alike_twice(drawn, alone):
    jobs = [some_work(float(s), float(g), float(d), id=str(i)) for i, (s, g, d) in enumerate(drawn)]
    first, second = (
        replayed(*jobs, policy=(Traditional if alone else Karpenter)(), batch_idle_seconds=1.0) for _ in range(2)
    )
    assert first.end == second.end
    assert [task.finish for task in first.tasks] == [task.finish for task in second.tasks]
