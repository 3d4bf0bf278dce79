"""Rows left out, counted by reason, each reason with its first example."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from advisor.domain.ingest import Rejection

__all__ = ["UNKNOWN_OUTCOME", "RejectionTally", "further"]

UNKNOWN_OUTCOME = "unknown_outcome:"
_MOST_WORDS = 20
_OTHER_WORDS = f"{UNKNOWN_OUTCOME}(other words)"
_LONGEST_EXAMPLE = 200


class RejectionTally:
    """Counts what is left out."""

    def __init__(self) -> None:
        """Start with nothing rejected."""
        self._counts: dict[str, int] = {}
        self._examples: dict[str, str] = {}
        self._words = 0

    def add(self, reason: str, example: str, count: int = 1) -> None:
        """Count one row, or ``count`` of them, under ``reason``; the first ``example`` is kept, cut to readable length.

        Past 20 different unknown outcome words the rest share one reason: a column of free text must
        not become a list of reasons.
        """
        if reason not in self._counts and reason.startswith(UNKNOWN_OUTCOME):
            self._words += 1
            if self._words > _MOST_WORDS:
                reason = _OTHER_WORDS
        self._counts[reason] = self._counts.get(reason, 0) + count
        if reason not in self._examples:
            short = len(example) <= _LONGEST_EXAMPLE
            self._examples[reason] = example if short else example[: _LONGEST_EXAMPLE - 1] + "…"

    @property
    def total(self) -> int:
        """How many rows were left out."""
        return sum(self._counts.values())

    def rejections(self) -> tuple[Rejection, ...]:
        """One rejection a reason, the most frequent first."""
        order = sorted(self._counts, key=lambda reason: (-self._counts[reason], reason))
        return tuple(Rejection(reason=r, count=self._counts[r], example=self._examples[r]) for r in order)


def further(before: Sequence[Rejection], now: Sequence[Rejection]) -> Iterator[Rejection]:
    """What was left out since ``before``, by something that counts on."""
    counted = {each.reason: each.count for each in before}
    for each in now:
        count = each.count - counted.get(each.reason, 0)
        if count:
            yield replace(each, count=count)
