"""The simulator agrees to the second with one that looks at everything once a second."""

from __future__ import annotations

import random

import pytest

from advisor.simulator.policies.fifo import Karpenter, Traditional
from advisor.simulator.terms import StartParts
from tests.advisor.simulator.worlds import replayed, some_work
from tests.oracles.ticking_cluster import TickingWorld


def _drawn(seed: int) -> TickingWorld:
    """A small world: up to 25 jobs within a few minutes on nodes of 4 GPUs that take a while to start."""
    draw = random.Random(seed)
    jobs = sorted(
        (draw.randrange(0, 400), draw.choice([1, 1, 1, 2, 3, 4, 5, 8]), draw.choice([0, 1, 5, 30, 60, 200, 400]))
        for _ in range(draw.randrange(1, 26))
    )
    static = draw.choice([0, 0, 0, 2])
    return TickingWorld(
        jobs=jobs,
        size=4,
        start=draw.choice([1, 20, 90]),
        keep_alive=draw.choice([0, 15, 60]),
        limit=draw.choice([None, 2, 4]),
        static=static,
        alone=draw.random() < 0.4,
    )


@pytest.mark.parametrize("seed", range(200))
def test_both_simulators_agree_to_the_second(seed):
    world = _drawn(seed)
    work = [some_work(float(s), float(g), float(d), id=str(number)) for number, (s, g, d) in enumerate(world.jobs)]
    run = replayed(
        *work,
        policy=Traditional() if world.alone else Karpenter(),
        node_gpus=world.size,
        start=StartParts.constant(float(world.start)),
        keep_alive_seconds=float(world.keep_alive),
        limit_nodes=world.limit,
        static_nodes=world.static,
        batch_idle_seconds=1.0,
        least_billed_seconds=0.0,
    )
    # The other begins at 0 and ends when its last node goes; static ones are paid throughout.
    world.run()
    assert {int(task.job.id): task.finish for task in run.tasks} == world.finished
    assert run.node_starts == world.launched
    dynamic = world.paid - world.static * world.size * world.now
    mine = run.end.accounts.paid - world.static * world.size * (run.end.at - work[0].submit)
    assert mine == dynamic
