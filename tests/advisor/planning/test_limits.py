"""GPU limits: whole nodes, up at once, down after a quiet time."""

from __future__ import annotations

from datetime import timedelta

import pytest

from advisor.errors import Refused
from advisor.planning.limits import GpuNeed, LimitTerms, gpu_limit_of, recommend_gpu_limit
from tests.builders import NOON, a_node_pool

TERMS = LimitTerms()


def a_limited_pool(limit: str, **more):
    return a_node_pool(limits={"nvidia.com/gpu": limit}, **more)


def quiet_hour(gpus: float):
    return [GpuNeed(NOON - timedelta(minutes=minute), gpus) for minute in range(60, 0, -5)]


def test_a_limit_is_whole_nodes_of_the_largest_type():
    """Field report A01: 8 in use, limit 8, forecast 10 gives 16, and says why."""
    advice = recommend_gpu_limit(a_limited_pool("8"), 10.0, 8, [], TERMS, NOON)
    assert advice.gpus == 16
    assert "only if all its GPUs fit in what the limit leaves" in advice.reasons[0]


def test_a_mixed_pool_steps_by_its_largest_type():
    """Field report A01, variant: 1- and 8-GPU types."""
    pool = a_limited_pool("8", node_gpus=(1, 8))
    assert recommend_gpu_limit(pool, 10.0, 8, [], TERMS, NOON).gpus == 16


def test_the_limit_leaves_room_for_whole_nodes_beside_odd_ones():
    """Seven one-GPU nodes and 16 wanted: two more nodes of 8 make 23, so 16 would stop the second."""
    pool = a_limited_pool("8", node_gpus=(1, 8))
    assert recommend_gpu_limit(pool, 16.0, 7, [], TERMS, NOON).gpus == 24


def test_a_lower_limit_frees_nothing_by_itself():
    """Field report A03: 16 on two nodes, limit 16, forecast 8."""
    advice = recommend_gpu_limit(a_limited_pool("16"), 8.0, 16, quiet_hour(8.0), TERMS, NOON)
    assert advice.gpus == 8
    assert any("the limit alone frees 0 GPUs: 16 on nodes of 8 allowed" in reason for reason in advice.reasons)


def test_a_forecast_about_a_node_edge_moves_the_limit_once_in_two_hours():
    """Field report A23: 23.9 and 24.1 GPUs in turn every five minutes."""
    limit, changes, recent = 24, 0, quiet_hour(23.9)
    for step in range(24):
        now, need = NOON + timedelta(minutes=5 * step), (23.9, 24.1)[step % 2]
        advised = recommend_gpu_limit(a_limited_pool(str(limit)), need, 24, recent, TERMS, now).gpus
        changes += advised != limit
        limit = advised
        recent.append(GpuNeed(now, need))
    assert (limit, changes) == (32, 1)


def test_a_limit_goes_down_once_the_quiet_time_is_over():
    pool = a_limited_pool("32")
    busy_then_quiet = [
        *(GpuNeed(NOON - timedelta(minutes=m), 30.0) for m in (60, 40, 20)),
        *(GpuNeed(NOON - timedelta(minutes=m), 8.0) for m in (15, 10, 5)),
    ]
    assert recommend_gpu_limit(pool, 8.0, 8, busy_then_quiet, TERMS, NOON).gpus == 32
    assert recommend_gpu_limit(pool, 8.0, 8, quiet_hour(8.0), TERMS, NOON).gpus == 8


def test_a_limit_does_not_go_down_on_a_short_memory():
    recent = [GpuNeed(NOON - timedelta(minutes=5), 8.0)]
    advice = recommend_gpu_limit(a_limited_pool("32"), 8.0, 8, recent, TERMS, NOON)
    assert advice.gpus == 32
    assert any("only after 30 min of lower demand" in reason for reason in advice.reasons)


def test_a_pool_without_a_limit_gets_none_unless_asked():
    assert recommend_gpu_limit(a_node_pool(), 10.0, 8, [], TERMS, NOON).gpus is None
    assert recommend_gpu_limit(a_node_pool(), 10.0, 8, [], LimitTerms(set_missing=True), NOON).gpus == 16


def test_a_limit_stays_under_its_cap_in_whole_nodes():
    advice = recommend_gpu_limit(a_limited_pool("8"), 90.0, 8, [], LimitTerms(most_gpus=20), NOON)
    assert advice.gpus == 16
    assert any("capped" in reason for reason in advice.reasons)


@pytest.mark.parametrize(
    "text, gpus",
    [
        ("16", 16),
        ("2k", 2000),
        ("8000m", 8),
        (" 8 ", 8),
        ("1e3", 1000),
        ("12E0", 12),
        ("1Ki", 1024),
        ("8.9", 8),
        ("1e400", 2**63 - 1),
    ],
)
def test_a_limit_is_read_as_kubernetes_writes_it(text, gpus):
    assert gpu_limit_of(a_limited_pool(text)) == gpus


@pytest.mark.parametrize("text", ["", "nan", "-8", "1_000", "8 GPUs"])
def test_a_limit_that_is_no_count_is_refused(text):
    with pytest.raises(Refused, match="count of GPUs"):
        gpu_limit_of(a_limited_pool(text))


@pytest.mark.parametrize("need", [-1.0, float("nan"), float("inf")])
def test_a_need_that_is_none_is_refused(need):
    with pytest.raises(Refused, match="need"):
        recommend_gpu_limit(a_limited_pool("8"), need, 8, [], TERMS, NOON)
    with pytest.raises(Refused, match="gpus"):
        GpuNeed(NOON, need)


@pytest.mark.parametrize("more", [{"level": 1.0}, {"quiet_minutes": 0.0}, {"most_gpus": -1}])
def test_limit_terms_that_make_no_sense_are_refused(more):
    with pytest.raises(Refused):
        LimitTerms(**more)
