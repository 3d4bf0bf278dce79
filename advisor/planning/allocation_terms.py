"""What an allocation depends on besides the cluster and the requests, checked once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from advisor.domain.units import finite, positive
from advisor.errors import Refused

__all__ = ["AllocationTerms"]


@dataclass(frozen=True, slots=True, kw_only=True)
class AllocationTerms:
    """How requests are ordered, sized, batched and deferred.

    ``duration_level`` is the quantile of the predicted duration that D in ceil(D / L) means; the default
    is the median, and slices beyond it are renewed. ``ageing_days`` is how long a request must wait to
    pass one whose predicted duration is e times shorter. ``batch_z`` is the number of standard deviations
    kept free when tiny tasks share a slice; they are batched only where they would otherwise not start at
    once, unless ``batch_when_idle``. A window shorter than ``minimum_slice_minutes`` is never
    granted by itself. At most ``longest_grant`` slices are granted at a time, the rest by renewal.

    ``elastic`` says that pools may start nodes within their limits, ready ``start_latency_seconds`` after they are
    asked for, in a pool among ``start_latencies`` after so many seconds; with ``wait_for_release`` a GPU that is
    expected free sooner is waited for instead. ``most_gpus_unlimited`` is the largest request believed of a pool
    without a GPU limit.
    """

    duration_level: float = 0.5
    ageing_days: float = 3.0
    batch_z: float = 1.64
    batch_when_idle: bool = False
    minimum_slice_minutes: float = 5.0
    default_slice_minutes: float = 15.0
    longest_grant: int = 96
    elastic: bool = True
    start_latency_seconds: float = 300.0
    start_latencies: Mapping[str, float] = field(default_factory=dict)
    wait_for_release: bool = False
    most_gpus_unlimited: int = 1024

    def __post_init__(self) -> None:
        """Check every number once.

        Raises:
            Refused: naming the field, its value and what it may be.
        """
        if not 0.0 < finite(self.duration_level, "duration_level") < 1.0:
            raise Refused("duration_level", self.duration_level, "a level lies strictly between 0 and 1", "Use 0.5.")
        positive(self.ageing_days, "ageing_days", "days")
        positive(self.minimum_slice_minutes, "minimum_slice_minutes", "minutes")
        positive(self.default_slice_minutes, "default_slice_minutes", "minutes")
        for name in ("batch_z", "start_latency_seconds"):
            if finite(getattr(self, name), name) < 0:
                raise Refused(name, getattr(self, name), "it must be 0 or more", "Use 0 for none.")
        for pool, seconds in self.start_latencies.items():
            if finite(seconds, "start_latencies") < 0:
                raise Refused("start_latencies", f"{pool}: {seconds}", "it must be 0 or more", "Use 0 for none.")
        for name in ("longest_grant", "most_gpus_unlimited"):
            if getattr(self, name) < 1:
                raise Refused(name, getattr(self, name), "it must be 1 or more", "Use a positive count.")

    def start_latency_of(self, pool: str) -> float:
        """Seconds from asking for a node of ``pool`` to a usable GPU."""
        return self.start_latencies.get(pool, self.start_latency_seconds)
