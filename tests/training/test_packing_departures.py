"""Pods that come and go: the hours of nodes, the bound and the waits, by hand."""

from __future__ import annotations

import numpy as np
import pytest

from advisor.domain.packing import MILLI, HostShape, PodShape
from advisor.planning.packing_costs import BestFit
from advisor.telemetry.packing_lists import ListedPod
from training.packing_departures import Autoscaling, Departures, Pod, Policy, replay_departures
from training.packing_streams import guard_penalties, stream_of

FOUR = PodShape(cpu_milli=1000, gpus=4, gpu_milli=MILLI)
EIGHT = PodShape(cpu_milli=1000, gpus=8, gpu_milli=MILLI)
HOUR = 3600.0


def nodes(count: int, gpus: int = 8, cpus: int = 96) -> list[HostShape]:
    return [HostShape(name=f"n{n}", cpu_milli=1000 * cpus, memory_mib=10**6, gpus=gpus) for n in range(count)]


def a_pod(submit: float, duration: float, shape: PodShape = FOUR) -> Pod:
    return Pod(submit, shape, duration, duration)


def test_one_node_by_hand():
    """A pod at 0 for an hour: launched at 0, ready at 180, empty at 3780, gone at 4080; the bound has 3600 + 180."""
    run = Departures(pods=[a_pod(0, HOUR)], hosts=nodes(2), autoscaling=Autoscaling(), measured=(0, 3 * HOUR))

    found = replay_departures(run, Policy(cost=BestFit()))

    assert found.node_hours == pytest.approx(4080 / 3600)
    # A pod holds its place while the node boots.
    assert found.bound_node_hours == pytest.approx(3780 / 3600)
    assert (found.boots, found.mean_wait_seconds, found.delayed_share, found.unplaced) == (1, 180.0, 1.0, 0)


def test_the_second_pod_shares_the_node_and_a_third_waits_for_another():
    pods = [a_pod(0, HOUR), a_pod(600, HOUR), a_pod(700, 60.0)]
    run = Departures(pods=pods, hosts=nodes(3), autoscaling=Autoscaling(), measured=(0, 2 * HOUR))

    found = replay_departures(run, Policy(cost=BestFit()))

    # Node 0 until 600 + 3600 + 300; node 1 from 700 to 700 + 180 + 60 + 300.
    assert found.node_hours == pytest.approx((4500 + 540) / 3600)
    assert found.boots == 2
    assert found.mean_wait_seconds == pytest.approx((180 + 0 + 180) / 3)


def test_without_autoscaling_a_pod_waits_until_another_ends():
    pods = [a_pod(0, HOUR, EIGHT), a_pod(10, 60.0, EIGHT), a_pod(20, 60.0)]
    run = Departures(pods=pods, hosts=nodes(1), autoscaling=None, measured=(0, 2 * HOUR))

    found = replay_departures(run, Policy(cost=BestFit()))

    # The third fits only once the second has ended.
    assert found.mean_wait_seconds == pytest.approx((0 + 3590 + 3640) / 3)
    # Empty from 3720 to 7200, eight GPUs, over two hours.
    assert found.gpus_on_empty_nodes == pytest.approx(8 * 3480 / 7200)
    assert found.boots == 0


def test_expected_extension_puts_those_together_that_end_together():
    """A short pod on node 0, a long one on node 1, both half free: a long pod takes the first or joins the long one."""
    pods = [a_pod(0, 700.0), a_pod(0, 10.0), a_pod(1, 50_000.0), a_pod(20, 50_000.0)]
    world = Departures(pods=pods, hosts=nodes(2), autoscaling=None, measured=(0, 10 * HOUR))

    plain = replay_departures(world, Policy(cost=BestFit()))
    timed = replay_departures(world, Policy(cost=BestFit(), sd=0.5))

    # Node 1 is empty for the first second, node 0 after 700 s.
    assert plain.gpus_on_empty_nodes == pytest.approx(8 * 1 / 36_000)
    assert timed.gpus_on_empty_nodes == pytest.approx(8 * (36_000 - 700 + 1) / 36_000)


def a_listed(submit: float, duration: float | None, shape: PodShape = FOUR) -> ListedPod:
    return ListedPod(shape, submit, duration)


def test_copies_keep_the_hour_of_the_day_and_the_load():
    day = 86_400.0
    stream = stream_of([a_listed(100.0 + HOUR * n, HOUR) for n in range(72)] + [a_listed(0, None), a_listed(0, 9e9)])

    pods = stream.copies(np.random.default_rng(1), 400.0, stream.span, 1.0)

    assert stream.span == 3 * day
    assert stream.gpus_in_use == pytest.approx(4.0)
    assert len(pods) == 72 * 100
    assert {round(pod.submit % HOUR) for pod in pods} == {0}
    errors = np.log([pod.predicted / pod.duration for pod in pods])
    assert errors.std() == pytest.approx(1.0, rel=0.05)
    assert sorted(pods, key=lambda pod: pod.submit) == pods


def test_nodes_that_few_can_replace_are_guarded():
    big = PodShape(cpu_milli=120_000, gpus=8, gpu_milli=MILLI)
    hosts = [*nodes(1, cpus=128), *nodes(39)]

    penalties = guard_penalties(hosts, {FOUR, big})

    assert set(penalties) == {FOUR}
    assert penalties[FOUR].tolist() == [10.0] + 39 * [0.0]
    assert guard_penalties(nodes(3), {FOUR}) == {}
