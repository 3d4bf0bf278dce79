"""Warm capacity replayed on jobs, by hand."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from training.warm_jobs import JobRun, JobWindow, replay_jobs
from training.warm_replay import WarmWorld
from training.warm_schedule import WarmSchedule, keep_alive

WORLD = WarmWorld(node_gpus=8, latency_minutes=5.0)


def a_window(*jobs: tuple[float, float, int], running: tuple[tuple[float, int], ...] = (), minutes: float = 60.0):
    """Jobs as (submitted, runs for, GPUs), and those running already as (rest, GPUs)."""
    submit, duration, gpus = zip(*jobs, strict=True) if jobs else ((), (), ())
    rest, held = zip(*running, strict=True) if running else ((), ())
    return JobWindow(
        submit=np.array(submit, dtype=np.float64),
        duration=np.array(duration, dtype=np.float64),
        gpus=np.array(gpus, dtype=np.int64),
        running_rest=np.array(rest, dtype=np.float64),
        running_gpus=np.array(held, dtype=np.int64),
        minutes=minutes,
    )


def kept(window: JobWindow, minutes: float = 3.0, world: WarmWorld = WORLD) -> JobRun:
    return replay_jobs(window, keep_alive(int(window.minutes), [minutes])[0], world)


def test_a_job_waits_for_a_cold_node_which_stays_for_the_keep_alive():
    """Asked at 1.5, ready at 6.5, runs until 16.5; the first whole minute 3 min later is 20."""
    run = kept(a_window((1.5, 10.0, 8)))
    assert run.waits.tolist() == [5.0]
    assert (run.starts, run.boots, run.used) == (1, 5.0, 80.0)
    assert run.paid == 20.0 - 6.5


def test_small_jobs_share_a_node_and_the_fullest_that_fits_is_taken():
    """6 + 4 GPUs need two nodes; 2 more fit beside the 6, so that 4 stay free for the last."""
    run = kept(a_window((0.0, 50.0, 6), (0.0, 50.0, 4), (10.0, 20.0, 2), (11.0, 20.0, 4)))
    assert run.waits.tolist() == [5.0, 5.0, 0.0, 0.0]
    assert run.starts == 2


def test_a_job_that_fits_passes_one_that_does_not():
    run = kept(a_window((1.0, 5.0, 8), (2.0, 5.0, 2), running=((60.0, 6),)))
    assert run.waits.tolist() == [5.0, 0.0]


def test_a_gang_takes_whole_nodes_and_the_rest_of_it_a_place():
    run = kept(a_window((0.0, 10.0, 12), (6.0, 4.0, 4)))
    assert run.waits.tolist() == [5.0, 0.0]
    assert run.starts == 2


def test_what_runs_already_holds_its_nodes_and_is_not_scored():
    run = kept(a_window(running=((10.0, 8), (20.0, 4))))
    assert (run.waits.size, run.starts, run.used) == (0, 0, 80.0 + 80.0)


def test_a_node_booted_ahead_spares_the_wait():
    ahead = np.where(np.arange(60) >= 3, 8.0, 0.0)
    run = replay_jobs(a_window((10.0, 5.0, 8)), WarmSchedule(ahead=ahead, keep=ahead), WORLD)
    assert run.waits.tolist() == [0.0]


def test_free_gpus_on_a_node_in_use_stand_for_a_node_ahead():
    four = np.full(60, 4.0)
    run = replay_jobs(a_window(running=((60.0, 4),)), WarmSchedule(ahead=four, keep=four), WORLD)
    assert run.starts == 0


def test_a_job_still_waiting_at_the_end_has_waited_until_then():
    assert kept(a_window((58.0, 10.0, 1))).waits.tolist() == [2.0]


def test_draws_move_submissions_by_up_to_a_minute_and_repeat():
    window = a_window((0.0, 5.0, 1), (0.1, 5.0, 2), (30.0, 5.0, 3))
    one, again, other = window.jittered(1), window.jittered(1), window.jittered(2)
    assert (one.submit == again.submit).all()
    assert not (one.submit == other.submit).all()
    assert sorted(one.gpus) == [1, 2, 3]
    assert (np.diff(one.submit) >= 0).all()


@given(
    st.lists(st.tuples(st.floats(0, 59), st.floats(0.1, 90), st.integers(1, 20)), max_size=25),
    st.lists(st.integers(0, 24), min_size=60, max_size=60),
    st.floats(0, 20),
)
def test_what_is_used_is_what_jobs_held_and_no_more_than_was_owned(jobs, warm, patience):
    window = a_window(*sorted(jobs))
    gpus = np.array(warm, dtype=np.float64)
    run = replay_jobs(window, WarmSchedule(ahead=gpus, keep=gpus, patience_minutes=patience), WORLD)
    started = window.submit + run.waits
    held = np.clip(window.minutes - started, 0.0, window.duration)
    assert np.isclose(run.used, held @ window.gpus)
    assert run.used <= 8 * run.paid + 1e-6
    assert (run.waits >= 0).all()
    assert run.boots <= 5.0 * run.starts + 1e-6
