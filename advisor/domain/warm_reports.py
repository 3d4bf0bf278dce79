"""What warm capacity was worth on a history: the trade between cost and waiting of every policy."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from advisor.domain.reports import RunProtocol

__all__ = ["KEEP_ALIVE", "WarmAtCost", "WarmComparison", "WarmPoint", "WarmReport"]

KEEP_ALIVE = "keep_alive"
"""The policy that all others are held against: idle nodes stay for a while, none is booted ahead."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmPoint:
    """One policy at one setting.

    ``cost`` is paid over wanted node-minutes, boots paid; ``boot_share`` is the part of it that went into boots.
    ``mean_wait_minutes`` are GPU-minutes of unmet demand per GPU-minute demanded, x 1 min;
    ``wait_per_new_gpu_minutes`` the same unmet minutes per GPU newly asked for, and ``p95_wait_minutes`` what 95 %
    of the GPUs newly asked for waited at most, first come first served. ``utilisation`` is GPU-minutes used over
    paid ones. With several seeds all are means.
    """

    setting: Mapping[str, float]
    cost: float
    mean_wait_minutes: float
    p95_wait_minutes: float
    node_starts: int
    utilisation: float
    wait_per_new_gpu_minutes: float
    boot_share: float
    wait_per_job_minutes: float | None = None

    def to_json(self) -> dict[str, Any]:
        """As one point of a curve."""
        document = asdict(self)
        document["setting"] = dict(self.setting)
        if self.wait_per_job_minutes is None:
            del document["wait_per_job_minutes"]
        return document


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmAtCost:
    """A policy's wait at a cost, between its neighbouring settings; None where every setting costs more.

    ``jobs_relative_to_keep_alive`` compares the mean wait of jobs, whatever their GPUs; None where there are none.
    """

    mean_wait_minutes: float | None
    relative_to_keep_alive: float | None
    node_starts: float | None = None
    jobs_relative_to_keep_alive: float | None = None

    def to_json(self) -> dict[str, Any]:
        """As one entry of ``at_equal_cost``."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmComparison:
    """Every policy on one pool, or on several as one.

    ``served`` is the policy that the pool's history before the split spoke for, and ``reason`` says how.
    """

    curves: Mapping[str, tuple[WarmPoint, ...]]
    at_equal_cost: Mapping[str, Mapping[str, WarmAtCost]]
    served: str | None = None
    reason: str | None = None

    def to_json(self) -> dict[str, Any]:
        """As one entry of ``pools``."""
        return {
            "curves": {name: [point.to_json() for point in points] for name, points in self.curves.items()},
            "at_equal_cost": {
                cost: {name: one.to_json() for name, one in policies.items()}
                for cost, policies in self.at_equal_cost.items()
            },
            "served": self.served,
            "reason": self.reason,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmReport:
    """Every pool, and ``shared`` where several were replayed as one; ``apart`` sums up the pools on their own."""

    protocol: RunProtocol
    pools: Mapping[str, WarmComparison]
    apart: WarmComparison | None = None
    terms: Mapping[str, float] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The document of ``gsa evaluate warm``."""
        return {
            "protocol": {**self.protocol.to_json(), **self.terms},
            "pools": {name: one.to_json() for name, one in self.pools.items()},
            "apart": None if self.apart is None else self.apart.to_json(),
        }
