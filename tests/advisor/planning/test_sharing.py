"""How many shares a GPU is cut into."""

from __future__ import annotations

from dataclasses import replace

import pytest

from advisor.errors import Refused
from advisor.planning.sharing import SharingEvidence, SharingStrategy, WorkKind, from_zero, recommend_sharing
from tests.builders import a_node_pool

SMALL_SERVERS = SharingEvidence(
    usable_memory_gib=80.0,
    memory_peaks_gib=(16.0, 15.0, 14.0, 12.0, 10.0),
    busy_hour=(0.1, 0.1, 0.1, 0.05, 0.05),
    duty_q95=(0.2, 0.2, 0.2, 0.2, 0.1),
    hours=30.0,
    kind=WorkKind.INFERENCE,
)


def test_no_telemetry_means_whole_gpus():
    advice = recommend_sharing(None)
    assert advice.factor == 1
    assert "no telemetry of memory and compute" in advice.reasons[0]


def test_small_servers_share_up_to_the_most_that_is_safe():
    assert recommend_sharing(SMALL_SERVERS).factor == 4


@pytest.mark.parametrize(
    "more, factor, why",
    [
        ({"memory_peaks_gib": (40.0, 30.0, 30.0, 12.0, 10.0)}, 2, "memory peaks"),
        ({"memory_peaks_gib": (26.0, 25.0, 25.0, 12.0, 10.0)}, 2, "1.1 x their memory peaks is 83.6 GiB"),
        ({"busy_hour": (0.2, 0.2, 0.2, 0.1, 0.1)}, 2, "busiest hours"),
        ({"duty_q95": (0.5, 0.4, 0.4, 0.1, 0.1)}, 2, "95th percentiles"),
        ({"hours": 12.0}, 1, "at least 24 h"),
        ({"kind": WorkKind.TRAINING}, 2, "at most 2"),
        ({"memory_peaks_gib": (60.0,) * 5}, 1, "memory peaks"),
    ],
)
def test_the_rule_that_stops_the_factor_is_named(more, factor, why):
    advice = recommend_sharing(replace(SMALL_SERVERS, **more))
    assert advice.factor == factor
    assert any(why in reason for reason in advice.reasons)


def test_pods_to_come_are_taken_to_be_like_the_most_demanding():
    one = replace(SMALL_SERVERS, memory_peaks_gib=(30.0,), busy_hour=(0.1,), duty_q95=(0.1,))
    assert recommend_sharing(one).factor == 2


@pytest.mark.parametrize(
    "more",
    [{"busy_hour": (0.1,)}, {"memory_peaks_gib": (float("nan"),) * 5}, {"duty_q95": (-0.1,) * 5}],
)
def test_readings_that_are_none_are_refused(more):
    with pytest.raises(Refused):
        replace(SMALL_SERVERS, **more)


def test_an_empty_pool_counts_physical_gpus():
    """Field report A25: 1-GPU instances, 4 shares, pool empty; X asks 1, Y has two containers of 1 each."""
    pool = a_node_pool(node_gpus=(1,), sharing_factor=4)
    pod_x, pod_y = from_zero(pool, [1]), from_zero(pool, [1, 1])
    assert (pod_x.fits, pod_x.physical_gpus) == (True, 1)
    assert (pod_y.fits, pod_y.physical_gpus) == (False, 2)
    assert "no node would start" in pod_y.reasons[0]


def test_a_larger_type_holds_it_with_a_warning():
    found = from_zero(a_node_pool(node_gpus=(1, 8), sharing_factor=4), [1, 1])
    assert found.fits
    assert "2 physical GPUs" in found.reasons[0]


def test_under_mps_nobody_may_ask_for_two():
    """Field report A25, the MPS pod that asks 2."""
    found = from_zero(a_node_pool(sharing_factor=4), [2], SharingStrategy.MPS)
    assert not found.fits
    assert "one share only" in found.reasons[0]


@pytest.mark.parametrize("shares", [[], [0], [1, -1]])
def test_a_pod_that_asks_for_nothing_is_refused(shares):
    with pytest.raises(Refused, match="container_shares"):
        from_zero(a_node_pool(), shares)
