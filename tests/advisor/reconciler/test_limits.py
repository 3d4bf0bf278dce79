import pytest

from advisor.errors import Refused
from advisor.reconciler.limits import freed_gpus, limit_effect, whole_node_limit
from tests.builders import a_node


def test_a_limit_is_written_in_whole_nodes_and_says_why():
    """Field report A01: eight GPUs in use, ten forecast, and a limit of ten starts nothing."""
    limit = whole_node_limit(10, (8,))

    assert limit.gpus == 16
    assert "only if all its 8 GPUs fit" in limit.reasons[0]


def test_the_largest_type_of_a_mixed_pool_is_the_step():
    """Field report A01, the pool that mixes one- and eight-GPU types."""
    limit = whole_node_limit(10, (1, 8))

    assert limit.gpus == 16
    assert "mixed pool" in limit.reasons[0]


@pytest.mark.parametrize(
    "wanted, gpus", [(0, 0), (8, 8), (8.0000000001, 8), (8.1, 16), (-3, 0), (24.1, 32), (23.9, 24)]
)
def test_the_least_sufficient_multiple_is_taken(wanted, gpus):
    assert whole_node_limit(wanted, (8,)).gpus == gpus


def test_an_exact_multiple_needs_no_reason():
    assert whole_node_limit(16, (8,)).reasons == ()


def test_a_limit_that_is_no_number_is_refused():
    with pytest.raises(Refused, match="wanted_gpus"):
        whole_node_limit(float("inf"), (8,))


def test_lowering_a_limit_frees_nothing():
    """Field report A03: sixteen GPUs run, the limit falls to eight."""
    effect = limit_effect((a_node("a"), a_node("b")), 8)

    assert effect.frees_gpus == 0
    assert "16 GPUs in use of 8" in effect.reasons[0]
    assert "frees 0 GPUs" in effect.reasons[0]


def test_a_limit_above_what_runs_needs_no_warning():
    assert limit_effect((a_node("a"),), 8).reasons == ()


def test_savings_are_the_nodes_that_are_gone():
    """Field report A03: booked only once nodes are gone, and new ones do not cancel them."""
    before = (a_node("a"), a_node("b", gpus=4))

    assert freed_gpus(before, before) == 0
    assert freed_gpus(before, (a_node("a"), a_node("c"))) == 4
