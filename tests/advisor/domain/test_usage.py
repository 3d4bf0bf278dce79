from __future__ import annotations

from typing import Any

import pytest

from advisor.domain.usage import ComputeSource, GpuUsage
from advisor.errors import Refused


def test_nothing_need_be_known_but_whether_it_was_guessed() -> None:
    usage = GpuUsage()

    assert usage.compute_mean is None
    assert not usage.estimated


@pytest.mark.parametrize("share", [0.0, 0.37, 1.0])
def test_a_share_reaches_from_nothing_to_all_of_one_gpu(share: float) -> None:
    assert GpuUsage(compute_mean=share, compute_source=ComputeSource.GIVEN).compute_mean == share
    assert GpuUsage(idle_share=share).idle_share == share


@pytest.mark.parametrize("field", ["compute_mean", "compute_p95", "compute_peak", "idle_share"])
def test_a_share_above_one_is_taken_for_a_percentage_and_the_remedy_says_so(field: str) -> None:
    change: dict[str, Any] = {field: 93.0, "compute_source": ComputeSource.UTILISATION}
    with pytest.raises(Refused, match="percent") as refused:
        GpuUsage(**change)
    assert (refused.value.field, refused.value.value) == (field, 93.0)


@pytest.mark.parametrize("field", ["compute_mean", "idle_share", "memory_peak_bytes", "energy_joules"])
@pytest.mark.parametrize("value", [-0.1, float("nan"), float("-inf"), float("inf")])
def test_what_no_gpu_can_have_done_is_refused_by_field(field: str, value: float) -> None:
    change: dict[str, Any] = {field: value, "compute_source": ComputeSource.GIVEN}
    with pytest.raises(Refused) as refused:
        GpuUsage(**change)
    assert refused.value.field == field


@pytest.mark.parametrize("field", ["compute_mean", "compute_p95", "compute_peak"])
def test_a_share_of_compute_says_what_it_was_read_from(field: str) -> None:
    change: dict[str, Any] = {field: 0.5}
    with pytest.raises(Refused, match="sm_active or engine_active") as refused:
        GpuUsage(**change)
    assert refused.value.field == "compute_source"
