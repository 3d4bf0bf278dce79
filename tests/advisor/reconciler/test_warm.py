import pytest

from advisor.errors import Refused
from advisor.reconciler.warm import buffer_count, check_placeholder_priority


@pytest.mark.parametrize("priority", [-1, -5, -10])
def test_a_placeholder_just_below_zero_is_accepted(priority):
    """Field report A05."""
    check_placeholder_priority(priority)


@pytest.mark.parametrize("priority", [-11, -100, -33_554_432])
def test_a_placeholder_below_the_cutoff_would_start_nothing(priority):
    """Field report A05: it stays pending for ever."""
    with pytest.raises(Refused, match="below cutoff -10, will not scale up"):
        check_placeholder_priority(priority)


def test_the_cutoff_is_the_autoscalers_own():
    """Field report A05: before 1.12 it was 0."""
    check_placeholder_priority(-100, cutoff=-100)
    with pytest.raises(Refused, match="below cutoff 0"):
        check_placeholder_priority(-1, cutoff=0)


@pytest.mark.parametrize("priority", [0, 5])
def test_a_placeholder_gives_way_to_real_work(priority):
    with pytest.raises(Refused, match="pre-empt"):
        check_placeholder_priority(priority)


def a_count(**more):
    asked = {"replicas": None, "percent": None, "workload_replicas": 0, "limit_gpus": None, "gpus_each": 1}
    return buffer_count(**{**asked, **more})


def test_a_buffer_takes_the_larger_of_replicas_and_percentage_within_its_limit():
    """Field report A06: five replicas, 80 % of ten, a limit of six GPUs."""
    count = a_count(replicas=5, percent=80, workload_replicas=10, limit_gpus=6)

    assert count.chunks == 6
    assert "older releases take the smaller of replicas and percentage: 5" in count.warnings[0]


@pytest.mark.parametrize("workload, chunks", [(3, 1), (0, 0), (10, 2)])
def test_a_percentage_alone_is_rounded_up(workload, chunks):
    """Field report A06: 20 % of three replicas, and of none."""
    count = a_count(percent=20, workload_replicas=workload)

    assert (count.chunks, count.warnings) == (chunks, ())


@pytest.mark.parametrize("limit, chunks", [(8, 2), (9, 2), (3, 0), (0, 0)])
def test_a_limit_holds_whole_chunks(limit, chunks):
    assert a_count(limit_gpus=limit, gpus_each=4).chunks == chunks


def test_a_buffer_of_nothing_is_refused():
    with pytest.raises(Refused, match="needs replicas, a percentage or a limit"):
        a_count()
    with pytest.raises(Refused, match="gpus_each"):
        a_count(replicas=1, gpus_each=0)
