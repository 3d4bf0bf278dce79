"""The law of a change in demand: probabilities of classes, spread over what was seen inside each class.

"No change" is a class of its own, since most changes are exactly that. Quantiles are read off one
cumulative distribution, so they cannot cross.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from advisor.errors import Defect

__all__ = ["SMALLEST_CHANGE", "ChangeClasses", "ChangeLaw", "corrected_levels"]

Floats = NDArray[np.float64]
Classes = NDArray[np.int64]

SMALLEST_CHANGE = 0.01
"""Changes of fewer nodes than this are no change."""

_SMALL_STEPS = (0.01, 0.51, 1.01, 2.01, 3.01, 4.01, 6.01)
_LARGEST_RISE = 9.01
_LARGE_SHARE = 0.1
_EDGE_LEVELS = (0.1, 0.3, 0.5, 0.7, 0.85, 0.95)
_ATOMS = 10
_FEWEST, _FEWEST_SHARE, _FEWEST_EVER = 30, 0.002, 5
_ROUNDING = 1e-9


@dataclass(frozen=True, eq=False)
class ChangeClasses:
    """Classes of the change in nodes: class i holds changes from ``edges[i-1]`` up to ``edges[i]``.

    ``atoms`` has one row a class, its empirical quantiles at the middles of ten equal shares.
    """

    edges: Floats
    atoms: Floats

    def __post_init__(self) -> None:
        """Check shapes and order.

        Raises:
            Defect: edges that do not rise, or atoms that lie outside their class.
        """
        if self.atoms.ndim != 2 or self.atoms.shape[0] != self.edges.size + 1 or (np.diff(self.edges) <= 0).any():
            raise Defect("classes need rising edges and one row of atoms each")
        if (np.diff(self.atoms.ravel()) < 0).any():
            raise Defect("atoms must not fall from class to class")
        self.edges.flags.writeable = False
        self.atoms.flags.writeable = False

    @classmethod
    def from_changes(cls, changes: Floats) -> ChangeClasses:
        """Classes fit for ``changes`` (nodes): fixed edges where they are small, else quantiles of the non-zero ones.

        Classes that hold fewer than thirty of them (0.2 % in a short history) are merged with a neighbour.
        """
        edges = _merged(_edges_for(changes), changes)
        classes = np.searchsorted(edges, changes, side="right")
        shares = (np.arange(_ATOMS) + 0.5) / _ATOMS
        atoms = [np.quantile(changes[classes == c], shares, method="inverted_cdf") for c in range(edges.size + 1)]
        return cls(edges, np.array(atoms))

    def __len__(self) -> int:
        """How many classes there are."""
        return self.edges.size + 1

    def classify(self, changes: Floats) -> Classes:
        """The class of each change."""
        found: Classes = np.searchsorted(self.edges, changes, side="right").astype(np.int64)
        return found

    def law(self, probabilities: Floats) -> ChangeLaw:
        """The law of rows with these class ``probabilities``, shape (rows, classes)."""
        return ChangeLaw(self, np.cumsum(probabilities, axis=1) / probabilities.sum(axis=1, keepdims=True))

    def to_json(self) -> dict[str, Any]:
        """As numbers that read back to the bit."""
        return {"edges": self.edges.tolist(), "atoms": self.atoms.tolist()}

    @classmethod
    def from_json(cls, document: dict[str, Any]) -> ChangeClasses:
        """What :meth:`to_json` wrote."""
        return cls(np.array(document["edges"], dtype=np.float64), np.array(document["atoms"], dtype=np.float64))


@dataclass(frozen=True, slots=True, eq=False)
class ChangeLaw:
    """For each of n rows the distribution of its change in nodes: a tenth of a class's probability on each atom.

    ``upto`` is the probability of each class and all below it, shape (rows, classes).
    """

    classes: ChangeClasses
    upto: Floats

    def quantiles(self, levels: Floats) -> Floats:
        """The smallest atom by which each level is reached: shape (rows, levels), never falling along a row."""
        below = np.concatenate([np.zeros((len(self.upto), 1)), self.upto], axis=1)
        found = np.empty((len(self.upto), len(levels)))
        for column, level in enumerate(levels):
            # Sums of probabilities miss a level that they should hit by rounding alone.
            wanted = min(float(level), 1.0) - _ROUNDING
            where = np.minimum((self.upto < wanted).sum(axis=1), len(self.classes) - 1)
            rows = np.arange(len(where))
            start, mass = below[rows, where], self.upto[rows, where] - below[rows, where]
            share = np.divide(wanted - start, mass, out=np.ones_like(mass), where=mass > 0)
            atom = np.clip(np.ceil(share * _ATOMS - _ROUNDING) - 1, 0, _ATOMS - 1).astype(np.int64)
            found[:, column] = self.classes.atoms[where, atom]
        return found

    def transforms(self, outcomes: Floats) -> tuple[Floats, Floats]:
        """Probability forecast below each outcome, and up to it; they differ where it is an atom."""
        atoms = self.classes.atoms
        where = self.classes.classify(outcomes)
        rows = np.arange(len(where))
        below = np.where(where > 0, self.upto[rows, np.maximum(where - 1, 0)], 0.0)
        mass = self.upto[rows, where] - below
        under = (atoms[where] < outcomes[:, None] - _ROUNDING).mean(axis=1)
        upto = (atoms[where] <= outcomes[:, None] + _ROUNDING).mean(axis=1)
        return below + mass * under, below + mass * upto


def corrected_levels(levels: Floats, lower: Floats, upper: Floats) -> Floats:
    """The levels to ask of a law so that outcomes fall below as often as promised, from past transforms.

    Each past outcome is smeared evenly over its transform's bracket (``lower`` to ``upper``). The level
    at which the smeared outcomes reach the nominal one is gone towards halfway, and a tail is never made
    more than three times thicker. The median stays: most outcomes are the one atom it lies in, and moving
    it would only now and then trade that atom for noise.
    """
    tails = np.linspace(0.0, 0.05, 51)
    grid = np.unique(np.concatenate([tails, np.linspace(0.0, 1.0, 101), 1.0 - tails]))
    # The mean of many clipped ramps, one an outcome; a bracket without width is a step.
    width = np.maximum(upper - lower, 1e-9)
    reached = np.array([np.clip((g - lower) / width, 0.0, 1.0).mean() for g in grid])
    right = np.interp(levels, np.maximum.accumulate(reached), grid)
    halfway = (levels + right) / 2.0
    tail = np.where(levels >= 0.5, 1.0 - levels, levels)
    moved = np.clip(np.where(levels >= 0.5, 1.0 - halfway, halfway), 0.0, np.minimum(tail * 3.0, 0.5))
    corrected: Floats = np.where(levels >= 0.5, 1.0 - moved, moved)
    corrected[levels == 0.5] = 0.5
    return corrected


def _edges_for(changes: Floats) -> Floats:
    moved = changes[np.abs(changes) > SMALLEST_CHANGE]
    if moved.size == 0 or (np.abs(moved) > _SMALL_STEPS[-1]).mean() <= _LARGE_SHARE:
        steps = np.array(_SMALL_STEPS)
        return np.concatenate([-steps[::-1], steps, [_LARGEST_RISE]])
    sides = [np.array([-SMALLEST_CHANGE, SMALLEST_CHANGE])]
    for sign in (1.0, -1.0):
        sizes = sign * moved[sign * moved > 0]
        if sizes.size:
            # A hair above, so that an atom on an edge belongs to the class below it.
            sides.append(sign * (np.quantile(sizes, _EDGE_LEVELS, method="inverted_cdf") + SMALLEST_CHANGE / 2))
    return np.unique(np.concatenate(sides))


def _merged(edges: Floats, changes: Floats) -> Floats:
    """``edges`` without those that would leave a class of rises or of falls with too few changes."""
    fewest = int(np.clip(changes.size * _FEWEST_SHARE, _FEWEST_EVER, _FEWEST))
    falls = -_kept(-edges[edges < 0][::-1], -changes, fewest)[::-1]
    kept = np.concatenate([falls, _kept(edges[edges > 0], changes, fewest)])
    # Where demand changed at every step, "no change" itself holds nothing and goes.
    counts = np.bincount(np.searchsorted(kept, changes, side="right"), minlength=kept.size + 1)
    return np.delete(kept, np.minimum(np.flatnonzero(counts == 0), kept.size - 1))


def _kept(edges: Floats, changes: Floats, fewest: int) -> Floats:
    """Rising positive ``edges``, working inwards: an outer class with too few joins the next one inside."""
    kept: list[float] = []
    outer = np.inf
    for edge in edges[::-1]:
        if ((changes >= edge) & (changes < outer)).sum() >= fewest:
            kept.append(float(edge))
            outer = float(edge)
    if kept:
        # What is left inside must not join "no change", so the innermost class takes it.
        kept[-1] = float(edges[0])
    return np.array(kept[::-1])
