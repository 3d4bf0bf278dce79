"""Start latency as samples and spreads."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.domain.start_latency import NodeStart, StartLatency, StartPart
from advisor.errors import Refused

TO_GPU = (StartPart.LAUNCHED, StartPart.REGISTERED, StartPart.INITIALISED)


def test_a_sum_is_known_only_where_every_part_of_it_is():
    start = NodeStart(dict.fromkeys(TO_GPU, 10.0))
    assert (start.to_gpu, start.to_work) == (30.0, None)
    assert NodeStart({StartPart.LAUNCHED: 1.0}).to_gpu is None


def test_what_lies_within_another_part_is_not_counted_twice():
    assert NodeStart({**dict.fromkeys(TO_GPU, 10.0), StartPart.DEVICES: 8.0}).to_gpu == 30.0


def test_sums_are_spread_by_sample_and_not_the_sum_of_spreads():
    """A slow launch and a slow registration of different nodes are not one slow start."""
    slow = [
        NodeStart({StartPart.LAUNCHED: a, StartPart.REGISTERED: b, StartPart.INITIALISED: 0.0})
        for a, b in ((100.0, 0.0), (0.0, 100.0))
    ]
    latency = StartLatency.of("gpu", [*slow, NodeStart({StartPart.LAUNCHED: 5.0})])
    assert latency.to_gpu is not None
    assert (latency.nodes, latency.to_gpu.count, latency.to_gpu.p90) == (3, 2, 100.0)
    assert latency.parts[StartPart.LAUNCHED].count == 3
    assert sum(latency.parts[part].p90 for part in TO_GPU) > 150


def test_its_document_names_every_part_and_has_null_for_the_unknown():
    document = StartLatency.of("gpu", [NodeStart({StartPart.LAUNCHED: 5.0})]).document()
    assert list(document["parts"]) == [str(part) for part in StartPart]
    assert document["parts"]["launched"] == {"count": 1, "p50_seconds": 5.0, "p90_seconds": 5.0}
    assert (document["parts"]["registered"], document["to_gpu"]) == (None, None)


@pytest.mark.parametrize("seconds", [-1.0, float("nan"), float("inf")])
def test_impossible_seconds_are_refused(seconds):
    with pytest.raises(Refused, match="launched"):
        NodeStart({StartPart.LAUNCHED: seconds})


@given(st.lists(st.floats(0, 1e6), min_size=1, max_size=30))
def test_quantiles_lie_in_order_within_the_samples(samples):
    (spread,) = StartLatency.of("gpu", [NodeStart({StartPart.LAUNCHED: each}) for each in samples]).parts.values()
    assert min(samples) <= spread.p50 <= spread.p90 <= max(samples)
