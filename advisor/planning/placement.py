"""Which node a task goes to: the one whose life it extends least, then the fullest, then the oldest.

A node can be released once everything on it has ended, so the price of a placement is the time by
which the newcomer is expected to keep the node up alone::

    E = integral of S_new(t) * product over the node's tasks of P(ended by t) dt

with the product 1 on an empty node. Nodes whose E differ by less than five minutes count as equal, and
a larger node's life counts for more. With E nodes empty together and can be released; with best fit alone
they do not.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from advisor.domain.units import shown_duration
from advisor.planning.fleet import CELL_WIDTHS, Fleet, Need

__all__ = ["choose_rows", "extension_minutes", "preference", "shown_extension"]

Floats = NDArray[np.float64]
Rows = NDArray[np.int64]

_STEP_MINUTES = 5.0
_USUAL_GPUS = 8.0


def extension_minutes(fleet: Fleet, rows: Rows, survival: Floats) -> Floats:
    """Minutes of an eight-GPU node's life that a task of this survival (at the cells' middles) is expected to add."""
    minutes: Floats = fleet.ended[rows] @ (survival * CELL_WIDTHS) / 60.0
    return minutes * (fleet.sizes[rows] / _USUAL_GPUS)


def choose_rows(
    fleet: Fleet, parts: Sequence[Need], survival: Floats, kind: str | None, within_seconds: float = 0.0
) -> tuple[int, ...] | None:
    """One node for each part, all different, all free within ``within_seconds``; None if that cannot be had.

    Parts come largest first; the best nodes take them in that order.
    """
    chosen: list[int] = []
    for need in sorted(set(parts), key=lambda part: (-part.gpus, -part.shares)):
        wanted = parts.count(need)
        rows = np.flatnonzero(fleet.earliest(need, kind) <= within_seconds)
        if chosen:
            rows = rows[~np.isin(rows, chosen)]
        if rows.size < wanted:
            return None
        chosen.extend(_best(fleet, rows, survival, wanted))
    return tuple(chosen)


def preference(fleet: Fleet, row: int, survival: Floats) -> tuple[float, int, float, str]:
    """The key by which nodes of different pools are compared; smaller is better."""
    extension = float(extension_minutes(fleet, np.array([row]), survival)[0])
    return (extension // _STEP_MINUTES, int(fleet.idle[row]), fleet.created[row], fleet.names[row])


def shown_extension(key: tuple[float, int, float, str]) -> str:
    """The extension a preference stands for, for a person to read."""
    return f"by {shown_duration(key[0] * _STEP_MINUTES * 60.0)} or more" if key[0] > 0 else "by less than 5 min"


def _best(fleet: Fleet, rows: Rows, survival: Floats, wanted: int) -> list[int]:
    steps = np.floor(extension_minutes(fleet, rows, survival) / _STEP_MINUTES)
    # Both are whole numbers, so one key holds them; a stable choice keeps the oldest of equals.
    key = steps * (fleet.idle.max() + 1.0) + fleet.idle[rows]
    if wanted == 1:
        return [int(rows[int(np.argmin(key))])]
    return [int(row) for row in rows[np.argsort(key, kind="stable")[:wanted]]]
