"""Kaplan-Meier on a handful of values, in plain Python."""

from __future__ import annotations

import math
from collections.abc import Sequence

__all__ = ["kaplan_meier_quantiles"]


def kaplan_meier_quantiles(ordered: Sequence[tuple[float, bool]], levels: Sequence[float]) -> list[float]:
    """The value by which each share of ``levels`` (ascending) has ended; NaN where too few have been seen to end.

    ``ordered`` are pairs (value, still running), sorted; at equal values ends come before those still
    running. Product-limit estimator of Kaplan and Meier (1958).

    >>> kaplan_meier_quantiles([(1.0, False), (2.0, True), (3.0, False)], [0.25, 0.75])
    [1.0, 3.0]
    """
    found: list[float] = []
    remaining = len(levels)
    survival = 1.0
    at_risk = len(ordered)
    for value, running in ordered:
        if not running:
            # Written as one product, so that n ends of n leave exactly nothing.
            survival *= (at_risk - 1) / at_risk
            while remaining and 1.0 - survival >= levels[-remaining] - 1e-12:
                found.append(value)
                remaining -= 1
            if not remaining:
                return found
        at_risk -= 1
    return found + [math.nan] * remaining
