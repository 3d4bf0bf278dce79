"""The index rule of warm capacity: is a spare node worth keeping, is one worth booting ahead of need?

p(h) is the chance that a spare is wanted within h minutes, E(H) the time until H that it is expected to
stand idle, L the start latency. ``stake`` and ``boot`` are node-minutes, ``weight`` the paid minutes that
one waiting minute of a node's GPUs is worth::

    keep iff for some H:      p(H) stake  >  E(H)
    boot iff for some H > L:  weight [sum over h <= L of h dp + L (p(H) - p(L))]
                              >  boot (1 - p(H)) + E(H) - E(L)

``minutes`` is a ladder that starts at 0; ``probability`` has one entry a rung along its first axis, further
axes are levels, moments or both, and every answer has those further axes. One plan and a replay over a
month so ask the same functions.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["boot_ahead", "expected_idle", "keep_idle", "ladder", "least_boot_weight", "least_keep_stake"]

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]


def ladder(horizons_minutes: Floats, probability: Floats, latency: float) -> tuple[Floats, Floats]:
    """Minutes from 0, where nothing is wanted yet, with the start latency as a rung, and the chances there.

    ``probability`` has one entry a horizon along its first axis; it is read linearly in between. Beyond the
    last horizon nothing more is foreseen, but a rung past the latency is needed to weigh a boot at all.
    """
    known = np.concatenate([[0.0], horizons_minutes])
    table = np.concatenate([np.zeros_like(probability[:1]), probability])
    minutes = np.unique(np.concatenate([known, [latency, max(2.0 * latency, float(known[-1]))]]))
    above = np.clip(np.searchsorted(known, minutes), 1, len(known) - 1)
    share = np.clip((minutes - known[above - 1]) / (known[above] - known[above - 1]), 0.0, 1.0)
    share = share.reshape(-1, *(1,) * (table.ndim - 1))
    return minutes, table[above - 1] * (1.0 - share) + table[above] * share


def expected_idle(minutes: Floats, probability: Floats) -> Floats:
    """E(H) at every rung: minutes a spare is expected to wait for its use, up to H.

    >>> expected_idle(np.array([0.0, 10.0]), np.array([0.0, 1.0]))
    array([0., 5.])
    """
    unused = 1.0 - (probability[1:] + probability[:-1]) / 2.0
    sums = np.cumsum(unused * np.diff(minutes).reshape(-1, *(1,) * (probability.ndim - 1)), axis=0)
    total: Floats = np.concatenate([np.zeros_like(sums[:1]), sums])
    return total


def least_keep_stake(minutes: Floats, probability: Floats) -> Floats:
    """The stake above which an idle node is worth keeping; infinite where it is never wanted.

    >>> float(least_keep_stake(np.array([0.0, 10.0]), np.array([0.0, 0.5])))
    15.0
    """
    least: Floats = _ratio(expected_idle(minutes, probability)[1:], probability[1:]).min(axis=0)
    return least


def keep_idle(minutes: Floats, probability: Floats, stake_minutes: float) -> Bools:
    """True where an idle node is worth keeping: at some horizon its chance of use times what a new one costs is more.

    ``stake_minutes`` is b L + W L, the node-minutes that a cold start is worth.
    """
    return np.asarray(least_keep_stake(minutes, probability) < stake_minutes)


def boot_ahead(
    minutes: Floats, probability: Floats, latency: float, weight: float, boot: float
) -> tuple[Floats, Floats]:
    """What booting one node now spares and costs, in paid node-minutes, at every rung past the start latency.

    ``weight`` is c W, ``boot`` is b L. ``minutes`` must hold ``latency`` and a later rung.
    """
    idle = expected_idle(minutes, probability)
    at = int(np.searchsorted(minutes, latency))
    middles = (minutes[1 : at + 1] + minutes[:at]) / 2.0
    before = np.tensordot(middles, np.diff(probability[: at + 1], axis=0), axes=1)
    later = slice(at + 1, None)
    spared = weight * (before + latency * (probability[later] - probability[at]))
    return spared, boot * (1.0 - probability[later]) + idle[later] - idle[at]


def least_boot_weight(minutes: Floats, probability: Floats, latency: float, boot: float) -> Floats:
    """The weight of waiting above which booting one node now pays; infinite where nothing is wanted in time."""
    spared, paid = boot_ahead(minutes, probability, latency, 1.0, boot)
    least: Floats = _ratio(paid, spared).min(axis=0)
    return least


def _ratio(top: Floats, bottom: Floats) -> Floats:
    ratio = np.full_like(top, np.inf)
    np.divide(top, bottom, out=ratio, where=bottom > 0)
    return ratio
