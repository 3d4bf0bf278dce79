"""Decisions: one entry of the ledger per proposed change, whatever became of it."""

from __future__ import annotations

import dataclasses
import hashlib
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from advisor.domain.plans import Change, Mode, Value
from advisor.domain.units import utc

__all__ = ["DecisionRecord", "Verdict"]

_ID_LENGTH = 12


class Verdict(StrEnum):
    """What became of a proposed change."""

    REFUSED = "refused"
    """A guard said no; the reasons name it."""
    RECOMMENDED = "recommended"
    """Every guard of safety allowed it; it was left to a person."""
    APPLIED = "applied"
    """It was written, and the cluster took it."""
    FAILED = "failed"
    """It was to be written, and the cluster did not take it; nothing of it was changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DecisionRecord:
    """One proposed change, who allowed or refused it and why.

    ``new`` is what was proposed for this once, ``wanted`` where the advice wants the field to arrive
    (they differ where a step was bounded). ``models`` maps ``durations`` and ``demand`` to the version
    the advice came from, None where a baseline was served.
    """

    time: datetime
    pool: str
    object: str
    field: str
    old: Value
    new: Value
    wanted: Value
    verdict: Verdict
    mode: Mode
    reasons: tuple[str, ...]
    models: dict[str, str | None] = dataclasses.field(default_factory=dict)

    def __post_init__(self) -> None:
        """Keep the time in UTC."""
        object.__setattr__(self, "time", utc(self.time, "time"))

    @property
    def applied(self) -> bool:
        """Whether the cluster was changed."""
        return self.verdict is Verdict.APPLIED

    @property
    def change(self) -> Change:
        """The change itself; allowed unless a guard of safety refused it."""
        return Change(
            object=self.object,
            field=self.field,
            old=self.old,
            new=self.new,
            allowed=self.verdict is not Verdict.REFUSED,
            reasons=self.reasons,
        )

    @property
    def id(self) -> str:
        """A short name for the ledger: the same decision at the same moment has the same one."""
        parts = (self.time.isoformat(), self.pool, self.object, self.field, repr(self.old), repr(self.new))
        return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:_ID_LENGTH]
