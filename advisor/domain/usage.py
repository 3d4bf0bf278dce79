"""What an ended job did with its GPUs, as telemetry measured it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from advisor.errors import Refused

__all__ = ["ComputeSource", "GpuUsage"]

_SHARES = ("compute_mean", "compute_p95", "compute_peak", "idle_share")
_AMOUNTS = {"memory_peak_bytes": "bytes", "energy_joules": "joules"}


class ComputeSource(StrEnum):
    """What "compute" was read from, the most telling first.

    ``SM_ACTIVE`` and ``ENGINE_ACTIVE`` are profiling counters; ``UTILISATION`` only says that some
    kernel ran; ``GIVEN`` is whatever the source that handed over the job meant by it.
    """

    SM_ACTIVE = "sm_active"
    ENGINE_ACTIVE = "engine_active"
    UTILISATION = "utilisation"
    GIVEN = "given"


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuUsage:
    """What a job did with its GPUs over its whole run; None where that is not known.

    ``compute_*`` are shares (0 to 1) of one GPU: mean, 95th percentile and peak over all samples of all its GPUs, and
    ``compute_source`` says what they were read from. ``memory_peak_bytes`` is the most of any one GPU,
    ``energy_joules`` the sum over all, ``idle_share`` the share (0 to 1) of samples in which nothing was computed.
    ``estimated`` marks values that had to be guessed, since pods shared a GPU and telemetry counts by GPU.
    """

    compute_mean: float | None = None
    compute_p95: float | None = None
    compute_peak: float | None = None
    compute_source: ComputeSource | None = None
    memory_peak_bytes: float | None = None
    energy_joules: float | None = None
    idle_share: float | None = None
    estimated: bool = False

    def __post_init__(self) -> None:
        """Check every number once.

        Raises:
            Refused: naming the field, its value, the limit and the remedy.
        """
        for field in _SHARES:
            _check_share(field, getattr(self, field))
        for field, unit in _AMOUNTS.items():
            _check_amount(field, getattr(self, field), unit)
        computes = (self.compute_mean, self.compute_p95, self.compute_peak)
        if self.compute_source is None and any(share is not None for share in computes):
            known = " or ".join(ComputeSource)
            raise Refused("compute_source", None, "a share of compute was read from something", f"Give {known}.")


def _check_share(field: str, share: float | None) -> None:
    if share is None or 0.0 <= share <= 1.0:
        return
    if share > 1.0 and math.isfinite(share):
        remedy = 'It is probably a percentage: divide it by 100; in a mapping, set unit = "percent" for its column.'
        raise Refused(field, share, "a share of one GPU is at most 1", remedy)
    raise Refused(field, share, "a share of one GPU is a number from 0 to 1", "Leave an unknown value out instead.")


def _check_amount(field: str, amount: float | None, unit: str) -> None:
    if amount is not None and not (math.isfinite(amount) and amount >= 0.0):
        raise Refused(field, amount, f"it is at least 0 {unit}", "Leave an unknown value out instead.")
