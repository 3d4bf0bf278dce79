"""Warm capacity replayed on a series, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from training.warm_replay import WarmWorld, replay_series, waits_of
from training.warm_schedule import WarmSchedule, keep_alive, levels, static, trailing_maximum

WORLD = WarmWorld(node_gpus=8, latency_minutes=2.0)


def gpus(*values: float) -> np.ndarray:
    return np.array(values, dtype=np.float64)


def test_a_node_is_missed_for_its_start_latency_and_paid_from_its_order():
    """One node from the start, a second wanted in minute 2: ordered then, ready in minute 4, 16 GPU-minutes waited."""
    run = replay_series(gpus(8, 8, 16, 16, 16, 16), 1, keep_alive(6, [1.0]), WORLD)
    assert run.paid[0] == 1 + 1 + 2 + 2 + 2 + 2
    assert (run.boots[0], run.starts[0], run.unmet_minutes[0], run.used[0]) == (2, 1, 16, 64)
    assert run.waits[0].tolist() == [2.0] * 8
    assert (run.wanted, run.demanded, run.risen) == (10, 80, 8)


def test_an_idle_node_stays_for_the_keep_alive_and_spares_the_next_wait():
    """Idle in minutes 2 to 4: a keep-alive of 4 holds it, one of 2 lets it go in minute 4 and boots again in 5."""
    run = replay_series(gpus(16, 16, 8, 8, 8, 16, 16, 16), 1, keep_alive(8, [2.0, 4.0]), WORLD)
    assert run.starts.tolist() == [1, 0]
    assert run.unmet_minutes.tolist() == [16, 0]
    assert run.paid.tolist() == [15, 16]


def test_a_node_ahead_of_need_is_ready_when_it_comes():
    ahead = WarmSchedule(ahead=gpus(8, 8, 8, 0, 0, 0), keep=np.zeros(6))
    run = replay_series(gpus(8, 8, 8, 16, 16, 16), 1, [ahead], WORLD)
    assert (run.unmet_minutes[0], run.starts[0], run.paid[0]) == (0, 1, 12)


def test_gpus_left_free_on_nodes_in_use_count_as_ready():
    assert levels(gpus(0, 4, 5, 12, 13), gpus(4, 4, 4, 4, 4), 8).tolist() == [0, 0, 1, 1, 2]


def test_a_free_boot_costs_nothing_and_a_start_may_cost_more():
    demand = gpus(8, 16, 16, 16)
    free = replay_series(demand, 1, keep_alive(4, [1.0]), WarmWorld(latency_minutes=2.0, boot_billed=False))
    dear = replay_series(demand, 1, keep_alive(4, [1.0]), WarmWorld(latency_minutes=2.0, start_cost_minutes=3.0))
    assert free.paid[0] == 1 + 1 + 1 + 2
    assert dear.paid[0] == 1 + 2 + 2 + 2 + 3


def test_a_gap_holds_the_last_known_demand():
    run = replay_series(gpus(8, np.nan, np.nan, 8), 1, keep_alive(4, [1.0]), WORLD)
    assert (run.demanded, run.starts[0]) == (32, 0)


def test_no_demand_at_all_costs_nothing():
    run = replay_series(np.zeros(5), 1, keep_alive(5, [1.0]), WORLD)
    assert (run.paid[0], run.wanted, run.waits[0].size) == (0, 0, 0)


def test_first_come_first_served_waits():
    """Four GPUs come in sample 1, two of them served in 2 and two in 3; one more comes in 3 and is served in 4."""
    assert waits_of(gpus(0, 4, 4, 5, 5), gpus(0, 4, 2, 1, 0)).tolist() == [1, 1, 2, 2, 1]


def test_a_fixed_fleet_stays_whatever_comes():
    run = replay_series(gpus(0, 0, 8, 24, 24, 0, 0, 0), 1, static(8, [16.0], 0.0), WORLD)
    assert run.paid[0] == pytest.approx(2 + 2 + 2 + 3 + 3 + 2 + 2 + 2)


def test_the_trailing_maximum_remembers_so_long():
    schedules = trailing_maximum(gpus(8, 24, 8, 8, 8), 1, [2.0])
    assert schedules[0].ahead.tolist() == [8, 24, 24, 8, 8]
