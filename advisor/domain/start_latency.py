"""Start latency as it was measured: how long a NodePool's nodes take from being asked for to running work."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any

import numpy as np

from advisor.errors import Refused

__all__ = ["NodeStart", "PoolStart", "Spread", "StartLatency", "StartPart"]


class StartPart(StrEnum):
    """The parts of a start, in order; each begins where the one before ends.

    ``DEVICES`` alone lies within another: it is the part of ``INITIALISED`` until the GPUs could be allocated.
    """

    LAUNCHED = "launched"
    REGISTERED = "registered"
    DEVICES = "gpus_allocatable"
    INITIALISED = "initialised"
    PREPARED = "pod_prepared"
    STARTED = "image_pulled_and_started"


_TO_GPU = (StartPart.LAUNCHED, StartPart.REGISTERED, StartPart.INITIALISED)
_TO_WORK = (*_TO_GPU, StartPart.PREPARED, StartPart.STARTED)


@dataclass(frozen=True, slots=True)
class NodeStart:
    """One node's start: seconds by part, where known."""

    seconds: Mapping[StartPart, float]

    def __post_init__(self) -> None:
        """Check the seconds.

        Raises:
            Refused: one is negative or no number.
        """
        for part, seconds in self.seconds.items():
            if not (math.isfinite(seconds) and seconds >= 0.0):
                limit = "a part of a start takes at least 0 s"
                raise Refused(str(part), seconds, limit, "Leave an unknown part out instead.")

    @property
    def to_gpu(self) -> float | None:
        """Seconds from asking for the node to a GPU that can take work; None where a part is not known."""
        return self._sum(_TO_GPU)

    @property
    def to_work(self) -> float | None:
        """Seconds from asking for the node to its first container running; None where a part is not known."""
        return self._sum(_TO_WORK)

    def _sum(self, parts: Sequence[StartPart]) -> float | None:
        known = [self.seconds[part] for part in parts if part in self.seconds]
        return sum(known) if len(known) == len(parts) else None


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolStart:
    """The start of one node of ``pool``: asked for by the NodeClaim ``claim`` at ``asked``."""

    claim: str
    pool: str
    asked: datetime
    start: NodeStart

    @property
    def known_at(self) -> datetime:
        """When all of it that is known had happened."""
        within = sum(seconds for part, seconds in self.start.seconds.items() if part is not StartPart.DEVICES)
        return self.asked + timedelta(seconds=within)


@dataclass(frozen=True, slots=True)
class Spread:
    """Seconds of ``count`` samples at the median and at 90 %, between neighbouring samples linearly."""

    count: int
    p50: float
    p90: float

    @classmethod
    def of(cls, samples: Sequence[float]) -> Spread | None:
        """The spread of samples, None where there is none."""
        if not samples:
            return None
        p50, p90 = (float(value) for value in np.quantile(samples, (0.5, 0.9)))
        return cls(len(samples), p50, p90)


@dataclass(frozen=True, slots=True, kw_only=True)
class StartLatency:
    """What the starts of one NodePool had in common.

    ``parts`` holds those of which there is a sample, in order. ``to_gpu`` and ``to_work`` are the spreads of sums over
    nodes of which all parts are known, which is not the sum of the parts' spreads.
    """

    pool: str
    nodes: int
    parts: Mapping[StartPart, Spread]
    to_gpu: Spread | None = None
    to_work: Spread | None = None

    @classmethod
    def of(cls, pool: str, starts: Sequence[NodeStart]) -> StartLatency:
        """From the starts of the nodes of ``pool``."""
        spreads = {part: Spread.of([s.seconds[part] for s in starts if part in s.seconds]) for part in StartPart}
        return cls(
            pool=pool,
            nodes=len(starts),
            parts={part: spread for part, spread in spreads.items() if spread is not None},
            to_gpu=Spread.of([total for start in starts if (total := start.to_gpu) is not None]),
            to_work=Spread.of([total for start in starts if (total := start.to_work) is not None]),
        )

    @classmethod
    def by_pool(cls, starts: Iterable[PoolStart]) -> tuple[StartLatency, ...]:
        """One for each NodePool that these nodes belong to, by name."""
        found: dict[str, list[NodeStart]] = {}
        for each in starts:
            found.setdefault(each.pool, []).append(each.start)
        return tuple(cls.of(pool, found[pool]) for pool in sorted(found))

    def document(self) -> dict[str, Any]:
        """As JSON: seconds, null where nothing is known."""
        return {
            "pool": self.pool,
            "nodes": self.nodes,
            "parts": {str(part): _document(self.parts.get(part)) for part in StartPart},
            "to_gpu": _document(self.to_gpu),
            "to_work": _document(self.to_work),
        }


def _document(spread: Spread | None) -> dict[str, float] | None:
    return None if spread is None else {"count": spread.count, "p50_seconds": spread.p50, "p90_seconds": spread.p90}
