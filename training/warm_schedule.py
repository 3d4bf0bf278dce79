"""What a warm-capacity policy asks for at every moment: the one shape that both replays run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

__all__ = ["WarmSchedule", "keep_alive", "levels", "static", "trailing_maximum"]

Floats = NDArray[np.float64]
Indices = NDArray[np.int64]

_DUST = 1e-6


@dataclass(frozen=True, kw_only=True, eq=False)
class WarmSchedule:
    """A policy at one setting, over moments one step apart.

    At every moment ``ahead`` GPUs beyond those in use are to be ready or booting and ``keep`` of them are kept
    where they stand idle; both count the GPUs left free on nodes in use, and become whole nodes with
    :func:`levels`. An idle node beyond what is kept goes when it has stood idle for ``patience_minutes``. With
    ``total`` both count from zero, not from what is in use.
    """

    setting: Mapping[str, float] = field(default_factory=dict)
    ahead: Floats
    keep: Floats
    patience_minutes: float = 0.0
    total: bool = False

    def since(self, first: int) -> WarmSchedule:
        """The same from a later moment on."""
        return replace(self, ahead=self.ahead[first:], keep=self.keep[first:])


def levels(wanted_gpus: Floats, free_gpus: Floats, node_gpus: int) -> Indices:
    """Idle nodes that hold ``wanted_gpus`` beyond those free on nodes in use: whole nodes, 0 or more."""
    nodes = np.ceil((wanted_gpus - free_gpus) / node_gpus - _DUST)
    return np.maximum(nodes, 0.0).astype(np.int64)


def keep_alive(moments: int, minutes: Sequence[float]) -> list[WarmSchedule]:
    """No node ahead; an idle one stays for ``consolidateAfter``."""
    none = np.zeros(moments)
    return [
        WarmSchedule(setting={"consolidate_after_minutes": m}, ahead=none, keep=none, patience_minutes=m)
        for m in minutes
    ]


def static(moments: int, gpus: Sequence[float], patience_minutes: float) -> list[WarmSchedule]:
    """A fixed number of GPUs in all; what is wanted beyond is launched when it is asked for."""
    return [
        WarmSchedule(
            setting={"gpus": g},
            ahead=np.full(moments, g),
            keep=np.full(moments, g),
            patience_minutes=patience_minutes,
            total=True,
        )
        for g in gpus
    ]


def trailing_maximum(demand: Floats, step_minutes: int, minutes: Sequence[float]) -> list[WarmSchedule]:
    """As many GPUs as were wanted at most in the last ``minutes``."""
    made = []
    for window in minutes:
        size = max(1, round(window / step_minutes))
        padded = np.concatenate([np.zeros(size - 1), demand])
        highest = np.lib.stride_tricks.sliding_window_view(padded, size).max(axis=1)
        made.append(WarmSchedule(setting={"window_minutes": window}, ahead=highest, keep=highest, total=True))
    return made
