"""Readings that mean something only beside the one before: the energy counter and the last XID code."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from advisor.telemetry.dcgm.columns import MOST_WATTS

__all__ = ["Increments", "events", "increments"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]


class Increments(NamedTuple):
    """Joules in the seconds before each reading, both (n,); ``known`` where there was a reading before that fits."""

    joules: Floats
    seconds: Floats
    known: Flags
    jumped: Flags


def increments(device: Integers, times: Floats, joules: Floats, before: Floats) -> Increments:
    """By how much each counter grew since its reading before.

    Rows are ordered by ``device`` and ``times`` (Unix seconds); ``before`` is the (time, joules) of each device at
    the end of the chunk before, (d, 2), NaN where there is none. A counter that fell began again at 0, so it grew
    by what it shows; where that, or a growth, is more than the card can draw, the reading ``jumped`` and gives no
    increment.

    >>> times, joules, none = np.array([0.0, 10.0, 20.0]), np.array([500.0, 900.0, 50.0]), np.full((1, 2), np.nan)
    >>> increments(np.zeros(3, int), times, joules, none).joules.tolist()
    [nan, 400.0, 50.0]
    """
    first = np.concatenate([[True], device[1:] != device[:-1]])[: device.size]
    was_at = np.where(first, before[device, 0], np.roll(times, 1))
    was = np.where(first, before[device, 1], np.roll(joules, 1))
    seconds = times - was_at
    grown = np.where(joules >= was, joules - was, joules)
    known = seconds > 0.0
    jumped = known & (grown > MOST_WATTS * seconds)
    fits = known & ~jumped
    return Increments(np.where(fits, grown, np.nan), seconds, fits, jumped)


def events(device: Integers, codes: Floats, before: Floats) -> Flags:
    """Rows at which the last code became another one that is an error.

    ``before`` is the last code of each device in the chunk before, (d,), NaN where there is none: then the first
    code may be weeks old and is no event. Two equal errors in a row cannot be told apart.
    """
    first = np.concatenate([[True], device[1:] != device[:-1]])[: device.size]
    was = np.where(first, before[device], np.roll(codes, 1))
    changed: Flags = ~np.isnan(was) & (codes != was) & (codes > 0.0)
    return changed
