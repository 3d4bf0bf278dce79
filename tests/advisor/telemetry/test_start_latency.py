"""Start latency from the moments of NodeClaims and pods."""

from __future__ import annotations

from typing import Any

from advisor.domain.start_latency import StartLatency, StartPart
from advisor.telemetry.kubernetes.nodes import ClaimObject
from advisor.telemetry.kubernetes.pods import PodObject, PodReader
from advisor.telemetry.start_latency import node_starts
from tests.kube_objects import a_condition, at, pod_object


def a_claim(name: str = "c1", node: str = "n1", **moments: float) -> ClaimObject:
    found = {"launched": 5.0, "registered": 40.0, "initialised": 80.0, **moments}
    return ClaimObject(
        name=name, pool="gpu", created=at(0), node=node, **{key: at(each) for key, each in found.items() if each >= 0}
    )


def a_pod(name: str, scheduled: float, started: float, prepared: float | None = None, **more: Any) -> PodObject:
    conditions = [] if prepared is None else [a_condition("PodReadyToStartContainers", prepared)]
    document = pod_object(name, scheduled=scheduled, started=started, status={"conditions": conditions, **more})
    pod = PodReader(())(document, None, None)
    assert pod is not None
    return pod


def latency_of(*pods: PodObject, claim: ClaimObject | None = None) -> StartLatency:
    (found,) = StartLatency.by_pool(node_starts([claim or a_claim()], [], pods))
    return found


def seconds(latency: StartLatency) -> dict[StartPart, float]:
    return {part: spread.p50 for part, spread in latency.parts.items()}


def test_parts_follow_each_other_from_the_claim_to_the_container():
    found = seconds(latency_of(a_pod("p", 81, 200, prepared=84)))
    assert sum(found.values()) == 200
    assert found[StartPart.STARTED] == 116


def test_only_the_pod_that_was_first_on_its_node_counts():
    latency = latency_of(a_pod("late", 100, 101, prepared=100), a_pod("first", 81, 200, prepared=84))
    assert seconds(latency)[StartPart.STARTED] == 116


def test_a_pod_that_came_long_after_had_not_waited_for_the_node():
    assert StartPart.STARTED not in seconds(latency_of(a_pod("p", 700, 701, prepared=700)))


def test_after_an_unknown_moment_nothing_is_guessed():
    assert list(seconds(latency_of(claim=a_claim(registered=-1)))) == [StartPart.LAUNCHED]
    assert StartPart.STARTED not in seconds(latency_of(a_pod("p", 81, 200)))


def test_clocks_that_differ_never_make_a_negative_part_nor_a_longer_sum():
    latency = latency_of(a_pod("p", 79, 200, prepared=78), claim=a_claim(launched=5, registered=4))
    assert all(each >= 0 for each in seconds(latency).values())
    assert latency.to_work is not None
    assert latency.to_work.p50 == 200


def test_a_claim_that_never_launched_is_no_start():
    assert node_starts([a_claim(launched=-1)], [], []) == ()
