from dataclasses import replace

import pytest

from advisor.cluster.fields import CONSOLIDATE_AFTER, GPU_LIMIT
from advisor.domain.nodepools import WarmBuffer
from advisor.reconciler.actions import CHUNK_GPUS, SLICE_LENGTH, WARM_CHUNKS, amount, applied_to, diff, own_name
from tests.builders import a_node, a_node_pool, a_pool_advice


def seen(advice, pool, nodes=()):
    return [(change.object, change.field, change.old, change.new) for change in diff(advice, pool, nodes)]


def test_advice_that_agrees_with_the_pool_changes_nothing():
    assert diff(a_pool_advice(), a_node_pool()) == ()


def test_keep_alive_is_written_as_consolidate_after():
    changes = seen(a_pool_advice(keep_alive_seconds=600), a_node_pool())

    assert changes == [("NodePool/default", CONSOLIDATE_AFTER, "180s", "600s")]


@pytest.mark.parametrize("written", ["3m", "180s", "2m60s"])
def test_another_spelling_of_the_same_keep_alive_is_no_change(written):
    assert diff(a_pool_advice(), a_node_pool(consolidate_after=written)) == ()


@pytest.mark.parametrize("written", ["32", "32000m"])
def test_another_spelling_of_the_same_limit_is_no_change(written):
    """A quantity spelled anew would be a conflict with its owner for nothing."""
    assert diff(a_pool_advice(gpu_limit=32), a_node_pool(limits={"nvidia.com/gpu": written})) == ()


def test_a_limit_is_raised_to_whole_nodes_with_the_reason():
    """Field report A01: eight GPUs in use, limit eight, ten forecast."""
    pool = a_node_pool(limits={"nvidia.com/gpu": "8"})

    (change,) = diff(a_pool_advice(gpu_limit=10), pool, (a_node(),))

    assert (change.field, change.old, change.new) == (GPU_LIMIT, "8", "16")
    assert "10 GPUs wanted, 16 written" in change.reasons[0]


def test_a_lowered_limit_promises_no_saving():
    """Field report A03: sixteen GPUs run, demand falls to eight."""
    pool = a_node_pool(limits={"nvidia.com/gpu": "16"})

    (change,) = diff(a_pool_advice(gpu_limit=8), pool, (a_node("a"), a_node("b")))

    assert change.new == "8"
    assert any("16 GPUs in use of 8: the limit alone frees 0 GPUs" in reason for reason in change.reasons)


def test_a_limit_nobody_advises_is_never_taken_away():
    assert diff(a_pool_advice(gpu_limit=None), a_node_pool(limits={"nvidia.com/gpu": "16"})) == ()


def test_warm_capacity_is_an_object_of_our_own():
    changes = seen(a_pool_advice(warm_gpus=16), a_node_pool())

    assert changes == [
        ("CapacityBuffer/slice-advisor-default", WARM_CHUNKS, None, 2),
        ("CapacityBuffer/slice-advisor-default", CHUNK_GPUS, None, 8),
    ]


def test_a_buffer_that_is_no_longer_needed_is_emptied_and_none_is_made_for_nothing():
    assert seen(a_pool_advice(), a_node_pool(warm=WarmBuffer(2, 8))) == [
        ("CapacityBuffer/slice-advisor-default", WARM_CHUNKS, 2, 0)
    ]
    assert seen(a_pool_advice(), a_node_pool(warm=WarmBuffer(0, 8))) == []


def test_the_slice_length_of_most_jobs_is_the_pools():
    changes = seen(a_pool_advice(slice_minutes=12.5), a_node_pool())

    assert changes == [("ConfigMap/slice-advisor-default", SLICE_LENGTH, "15m", "750s")]


def test_a_slice_length_names_its_class_only_where_there_are_several():
    advice = a_pool_advice(slice_minutes=12.5)
    (one,) = advice.slice_plan.classes
    two = replace(
        advice.slice_plan,
        classes=(replace(one, name="short", share_of_jobs=0.7), replace(one, name="long", share_of_jobs=0.3)),
    )

    (change,) = diff(advice, a_node_pool())
    (of_several,) = diff(replace(advice, slice_plan=two), a_node_pool())

    assert change.reasons == one.reasons
    assert of_several.reasons[0] == "for the short tasks, which most jobs of the pool are"


def test_a_keep_alive_gives_the_reasons_that_carry_it():
    advice = a_pool_advice(keep_alive_seconds=300)
    warm = replace(advice.warm, reasons=("no node ready", "a boot takes that long"))

    (without,) = diff(replace(advice, warm=warm), a_node_pool())
    (told,) = diff(replace(advice, warm=replace(warm, keep_alive_reasons=("a boot takes that long",))), a_node_pool())

    assert without.reasons == warm.reasons
    assert told.reasons == ("a boot takes that long",)


def test_a_class_that_is_better_left_unsliced_changes_no_slice_length():
    assert diff(a_pool_advice(slice_minutes=None), a_node_pool()) == ()


def test_a_static_pool_takes_neither_keep_alive_nor_limit_nor_buffer():
    advice = a_pool_advice(keep_alive_seconds=900, gpu_limit=64, warm_gpus=8)

    assert diff(advice, a_node_pool(replicas=4)) == ()


def test_nothing_is_allowed_before_it_was_judged():
    assert [change.allowed for change in diff(a_pool_advice(keep_alive_seconds=900), a_node_pool())] == [False]


def test_changes_applied_are_what_was_wanted():
    advice = a_pool_advice(keep_alive_seconds=900, gpu_limit=64, warm_gpus=16, slice_minutes=20.0)

    after = applied_to(a_node_pool(), diff(advice, a_node_pool()))

    assert (after.consolidate_after, after.gpu_limit) == ("900s", "64")
    assert (after.warm, after.slice_minutes) == (WarmBuffer(2, 8), 20.0)


def test_our_objects_names_are_legal_and_told_apart():
    odd, other = own_name("vc Mod_" + "x" * 80), own_name("vc-mod-" + "x" * 80)

    assert own_name("gpu-a100") == "slice-advisor-gpu-a100"
    assert odd != other
    assert all(len(name) <= 63 and name == name.lower() and " " not in name for name in (odd, other))


@pytest.mark.parametrize("text, number", [("1e400", 2.0**63), ("-1e400", -(2.0**63)), ("1e3", 1000.0), ("500m", 0.5)])
def test_the_number_behind_a_limit_never_overflows(text, number):
    assert amount(GPU_LIMIT, text) == number
