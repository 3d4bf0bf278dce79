"""Why a prediction is what it is: on whose history it rests, what moved it, and what would narrow it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from advisor.domain.units import utc

__all__ = ["DurationExplanation", "FeatureEffect"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FeatureEffect:
    """One feature's part in a prediction: its value in ``unit`` (None: unknown), and which way it pushed.

    ``share`` is its part of everything that pushed this prediction either way, in [0, 1].
    """

    name: str
    meaning: str
    unit: str
    value: float | None
    longer: bool
    share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DurationExplanation:
    """The evidence of one prediction.

    ``key`` is the most specific history in which a job like this has ended, ``key_count`` how many have, the
    latest at ``last_end``. ``weights`` say what each part of the answer counts, summing to 1. ``effects``
    are the features that moved the trees most, strongest first, none where a baseline answers. ``narrower``
    are sentences about what would make the answer sharper.
    """

    key: str
    key_count: int
    last_end: datetime | None
    weights: dict[str, float]
    effects: tuple[FeatureEffect, ...]
    narrower: tuple[str, ...]

    def __post_init__(self) -> None:
        """Keep the time in UTC."""
        if self.last_end is not None:
            object.__setattr__(self, "last_end", utc(self.last_end, "last_end"))
