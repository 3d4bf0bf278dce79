from datetime import timedelta

import pytest

from advisor.errors import Refused
from advisor.reconciler.startup import missing_capacity
from tests.builders import NOON, a_node


def test_one_node_is_asked_for_while_its_gpu_comes_up():
    """Field report A04: a pod at 0 s, a Ready node without GPUs at 90 s, its GPU at 240 s, a look every 30 s."""
    asked = []
    for seconds in range(0, 271, 30):
        now = NOON + timedelta(seconds=seconds)
        nodes = [a_node("n1", gpus=1, created=NOON, ready=seconds >= 240)] if asked else []
        missing = missing_capacity(1.0, nodes, now, node_gpus=1)
        asked += [seconds] * missing.nodes

    assert asked == [0]


def test_a_node_that_does_not_come_is_flagged_and_counted_on_no_more():
    """Field report A04: its GPU counts as coming until the start-up timeout of 15 minutes."""
    late = a_node("n1", gpus=1, created=NOON, ready=False)

    in_time = missing_capacity(1.0, [late], NOON + timedelta(minutes=15), node_gpus=1)
    overdue = missing_capacity(1.0, [late], NOON + timedelta(minutes=15, seconds=1), node_gpus=1)

    assert (in_time.nodes, in_time.coming_gpus, in_time.overdue) == (0, 1, ())
    assert (overdue.nodes, overdue.coming_gpus, overdue.overdue) == (1, 0, ("n1",))
    assert "n1" in overdue.reasons[-1]


@pytest.mark.parametrize("demand, nodes", [(0.0, 0), (8.0, 0), (8.5, 1), (16.0, 1), (16.1, 2)])
def test_what_is_missing_comes_in_whole_nodes(demand, nodes):
    assert missing_capacity(demand, [a_node()], NOON, node_gpus=8).nodes == nodes


def test_a_node_has_gpus():
    with pytest.raises(Refused, match="node_gpus"):
        missing_capacity(1.0, [], NOON, node_gpus=0)
