"""What a history would have cost and waited under other policies: the measures, and how sure their differences are."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from advisor.domain.reports import RunProtocol

__all__ = ["BacktestReport", "MeasuredDifference", "PolicyScores"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyScores:
    """What one policy did with one history, the mean over seeds; waits in minutes.

    A wait is finish - submission - duration, so it holds the queue, boots, pauses and switches. Short jobs run
    for up to 15 minutes. ``bounded_slowdown`` is the mean of (wait + duration) / duration, durations counted as 5
    minutes at least and the ratio as 1. ``fill_rate`` is useful GPU time over what nobody else could have because of
    jobs; ``gpu_utilisation`` is useful over paid GPU time and ``paid_over_useful`` its inverse, both up to the last
    submission, as is ``cost``, in the currency of the price. ``lost_gpu_hours`` went into switches. ``setting`` holds
    what was chosen for this policy, such as a keep-alive.
    """

    gpu_utilisation: float
    mean_wait_minutes: float
    p95_wait_minutes: float
    p99_wait_minutes: float
    longest_wait_minutes: float
    mean_short_wait_minutes: float | None
    bounded_slowdown: float
    fill_rate: float
    cost: float
    paid_over_useful: float
    node_starts: int
    preemptions: int
    moves: int
    lost_gpu_hours: float
    jobs: int
    setting: dict[str, float] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """As one entry of ``policies``."""
        return asdict(self)


@dataclass(frozen=True, slots=True)
class MeasuredDifference:
    """Ours less another's, with the interval that 95 % of resampled sets of days gave."""

    mean: float
    low: float
    high: float

    def to_json(self) -> dict[str, Any]:
        """As one entry of ``differences``."""
        return asdict(self)


@dataclass(frozen=True, slots=True, kw_only=True)
class BacktestReport:
    """Every policy on the same submissions; ``curves`` are the policies that were swept, by setting.

    ``differences`` are ``advisor`` less the policy named, except that policies which may stop and move everything are
    met by ``advisor_checkpointing``.
    """

    protocol: RunProtocol
    policies: dict[str, PolicyScores]
    differences: dict[str, dict[str, MeasuredDifference]]
    curves: dict[str, list[PolicyScores]] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        """The document of ``gsa backtest``."""
        return {
            "protocol": self.protocol.to_json(),
            "policies": {name: scores.to_json() for name, scores in self.policies.items()},
            "differences": {
                name: {measure: one.to_json() for measure, one in found.items()}
                for name, found in self.differences.items()
            },
            "curves": {name: [scores.to_json() for scores in points] for name, points in self.curves.items()},
        }
