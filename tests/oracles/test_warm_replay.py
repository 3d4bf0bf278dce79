"""The replay of all settings at once against one that keeps every node as a thing of its own."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tests.oracles.warm_nodes import replayed, schedule_of
from training.warm_replay import WarmWorld, replay_series


@st.composite
def worlds(draw):
    minutes = draw(st.integers(1, 40))
    demand = draw(st.lists(st.integers(0, 40), min_size=minutes, max_size=minutes))
    gpus = st.lists(st.integers(0, 24), min_size=minutes, max_size=minutes)
    schedules = [
        schedule_of(draw(gpus), draw(gpus), draw(st.integers(0, 6)), total=draw(st.booleans()))
        for _ in range(draw(st.integers(1, 3)))
    ]
    world = WarmWorld(
        node_gpus=draw(st.sampled_from([1, 4, 8])),
        latency_minutes=draw(st.integers(1, 6)),
        boot_billed=draw(st.booleans()),
        start_cost_minutes=draw(st.sampled_from([0.0, 0.5])),
    )
    return demand, schedules, world


@given(worlds())
def test_every_setting_comes_out_as_with_nodes_of_its_own(case):
    demand, schedules, world = case
    run = replay_series(np.array(demand, dtype=np.float64), 1, schedules, world)
    for place, schedule in enumerate(schedules):
        slow = replayed(demand, schedule, world)
        ours = (run.paid[place], run.boots[place], run.starts[place], run.used[place], run.unmet_minutes[place])
        assert ours == (slow.paid, slow.boots, slow.starts, slow.used, slow.unmet)


@given(worlds())
def test_what_is_demanded_is_used_or_waits_and_nothing_is_used_that_is_not_owned(case):
    demand, schedules, world = case
    run = replay_series(np.array(demand, dtype=np.float64), 1, schedules, world)
    assert np.allclose(run.used + run.unmet_minutes, sum(demand))
    assert (run.used <= run.owned + 1e-9).all()
    assert run.demanded == sum(demand)
