"""The rules that warm capacity can follow, and which of them a pool's own past speaks for."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

__all__ = ["WarmRule", "WarmRuleName"]


class WarmRuleName(StrEnum):
    """How it is decided how many nodes are ready, and how long an idle one stays."""

    INDEX = "index"
    RISE_QUANTILE = "rise_quantile"
    KEEP_ALIVE = "keep_alive"


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmRule:
    """A rule with its one setting, and how the replay of the pool's past spoke for it.

    ``boot_weight`` is the c of the index rule, ``quantile`` that of the largest rises of the last day.
    """

    name: WarmRuleName
    reason: str
    boot_weight: float | None = None
    quantile: float | None = None

    @property
    def words(self) -> str:
        """The rule as it is told."""
        if self.name is WarmRuleName.INDEX:
            return f"the index rule with c = {self.boot_weight:g}"
        if self.name is WarmRuleName.RISE_QUANTILE:
            return f"the {100 * (self.quantile or 0.0):g} % quantile of the last day's rises"
        return "keep-alive alone"

    def to_json(self) -> dict[str, Any]:
        """As it is kept with the demand model."""
        return {
            "name": self.name.value,
            "reason": self.reason,
            "boot_weight": self.boot_weight,
            "quantile": self.quantile,
        }

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> WarmRule:
        """What :meth:`to_json` wrote."""
        return cls(**{**document, "name": WarmRuleName(document["name"])})
