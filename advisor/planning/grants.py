"""Consecutive slices for one task: ceil(D / L) on every share it holds, a gang's all on the same boundaries."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from advisor.domain.gpus import GpuShare
from advisor.domain.slices import Slice, SliceLength, SlicePlan, SliceRequest
from advisor.planning.allocation_terms import AllocationTerms
from advisor.planning.durations import mean_and_deviation
from advisor.planning.fleet import CELL_MIDDLES

__all__ = ["Task", "consecutive_slices"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Task:
    """A request with what is worked out from it once: its expected length, its survival, its slice length."""

    request: SliceRequest
    terms: AllocationTerms
    plans: Mapping[str, SlicePlan]

    @cached_property
    def seconds(self) -> float:
        """The predicted length D at the level the terms choose."""
        return self.request.duration.quantile(self.terms.duration_level)

    @cached_property
    def survival(self) -> Floats:
        """P(still running) at the middles of the cells."""
        return self.request.duration.survival_at(CELL_MIDDLES)

    @cached_property
    def moments(self) -> tuple[float, float]:
        """Mean and standard deviation of the duration in seconds."""
        return mean_and_deviation(self.request.duration)

    def length(self, pool: str) -> tuple[SliceLength, str]:
        """The slice length in a pool, and whose choice it is.

        Where the plan says not to slice, a task that fits the best length takes that one slice (others may
        share it), a longer one a single slice of its own predicted length in whole minutes.
        """
        if self.request.slice_length is not None:
            return self.request.slice_length, "as asked"
        plan = self.plans.get(pool)
        if plan is None:
            return SliceLength(self.terms.default_slice_minutes), "the default, since the pool has no plan"
        chosen = plan.class_for(self.request.duration.median / 60.0)
        if chosen.minutes is not None:
            return SliceLength(chosen.minutes), f"class {chosen.name} of the pool's plan"
        usual = chosen.if_sliced_minutes or self.terms.default_slice_minutes
        whole_run = max(usual, math.ceil(self.seconds / 60.0 - 1e-9))
        return SliceLength(float(whole_run)), f"class {chosen.name} is not sliced: one for the whole run"


def consecutive_slices(
    shares: Sequence[GpuShare], length: SliceLength, count: int, start: datetime
) -> tuple[Slice, ...]:
    """``count`` slices after each other on every share, ordered by start, then share."""
    ordered = sorted(shares)
    step = timedelta(minutes=length.minutes)
    return tuple(Slice(start + step * i, share, length) for i in range(count) for share in ordered)
