"""Whether to slice at all, and how long to let a task run before looking again (Gittins index with set-up cost)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from advisor.domain.forecasts import DurationDistribution

__all__ = ["Quantum", "quantum", "reached_share"]

Floats = NDArray[np.float64]

_CUTS_PER_PIECE = 8
_FLAT = 1e-5
_MOST_AGES = 256


@dataclass(frozen=True, slots=True)
class Quantum:
    """The lease after which stopping a task helps most; ``minutes`` None where it should run to its end.

    ``passed_share`` is the share of tasks still running then (the only ones the boundary concerns),
    ``index`` their chance of ending per minute spent, set-up included.
    """

    minutes: float | None
    passed_share: float
    index: float


def quantum(distribution: DurationDistribution, switch_minutes: float, age_minutes: float = 0.0) -> Quantum:
    """The maximiser of P(end within Q) / (s + E[min(remaining, Q)]) over Q, for a task of that age.

    Where the hazard rises, or stays level, the maximiser is the longest duration: run to the end.
    Where it falls, leases are finite and grow with age. A running task has ``switch_minutes`` 0 and a
    stopped one s, which by itself keeps two tasks from trading places for nothing.
    """
    minutes, cdf, spent = _progress(distribution.given_age(age_minutes * 60.0), _CUTS_PER_PIECE)
    index = cdf / (spent + switch_minutes)
    best = int(np.flatnonzero(index >= index.max() * (1.0 - _FLAT))[-1])
    passed = float(1.0 - cdf[best])
    if passed <= 0.0:
        return Quantum(None, 0.0, float(index[best]))
    return Quantum(float(minutes[best]), passed, float(index[best]))


def reached_share(distribution: DurationDistribution, waiting_index: float) -> float:
    """The share of tasks that reach the age from which a waiting task is worth more than letting them go on.

    ``waiting_index`` is the best :func:`quantum` index of what may wait, set-up included. 0 means that
    running to the end is right at every age. For a pool of one kind this age is the kind's own quantum;
    long tasks beside short ones reach it at once.
    """
    _, cdf, spent = _progress(distribution, 1)
    if cdf.size > _MOST_AGES:
        at = np.unique(np.linspace(0, cdf.size - 1, _MOST_AGES).astype(int))
        cdf, spent = cdf[at], spent[at]
    cdf, spent = np.append(0.0, cdf), np.append(0.0, spent)
    gained = cdf[None, :] - cdf[:, None]
    paid = spent[None, :] - spent[:, None]
    later = np.triu(np.ones_like(paid, dtype=bool), 1) & (paid > 0.0)
    standing = np.where(later, gained / np.where(later, paid, 1.0), 0.0).max(axis=1)[:-1]
    beaten = np.flatnonzero((standing < waiting_index * (1.0 - _FLAT)) & (cdf[:-1] < 1.0))
    return float(1.0 - cdf[beaten[0]]) if beaten.size else 0.0


def _progress(distribution: DurationDistribution, cuts: int) -> tuple[Floats, Floats, Floats]:
    """Minutes t, P(end by t) and E[min(D, t)] in minutes at the edges and ``cuts`` - 1 points between them."""
    logs = _refined(distribution.log_edges, cuts)
    ends = np.exp(logs)
    cdf = np.interp(logs, distribution.log_edges, distribution.cdf)
    pieces = np.diff(cdf) * np.diff(ends) / np.diff(logs)
    spent = np.concatenate([[0.0], np.cumsum(pieces)]) + (1.0 - cdf) * ends
    return ends / 60.0, cdf, spent / 60.0


def _refined(edges: Floats, cuts: int) -> Floats:
    """The edges with evenly spaced points between them, since the maximiser may lie inside a piece."""
    steps = np.linspace(0.0, 1.0, cuts, endpoint=False)
    inner = (edges[:-1, None] + np.diff(edges)[:, None] * steps[None, :]).ravel()
    refined: Floats = np.unique(np.append(inner, edges[-1]))
    # Points closer than rounding would make a piece without width.
    kept: Floats = refined[np.concatenate([[True], np.diff(refined) > math.ulp(64.0)])]
    return kept
