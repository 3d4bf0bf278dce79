"""Kaplan-Meier histograms in the leaves of forests: what became of the jobs that fell where this one falls.

Each (tree, leaf) holds a weighted histogram of ln seconds of the jobs that ended there; running jobs
hang in it as censored mass at their present age. A job that ends is in its leaves at once, which is
worth more than refitting the trees.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from advisor.domain.forecasts import OutcomeChances
from advisor.domain.jobs import JobIdentity, Outcome
from advisor.forecast.grid import LogGrid
from advisor.forecast.running import RunningJobs

__all__ = ["CAUSES", "LeafCounts", "LeafHistograms"]

CAUSES = (Outcome.FAILED, Outcome.CANCELLED)
"""Outcomes kept apart in the leaves; all other ends completed."""

_HALF_A_JOB = 0.5

Floats = NDArray[np.float64]
LeafIndices = NDArray[np.int32]


class LeafHistograms:
    """Histograms of the leaves of one or more forests standing side by side.

    ``forests`` gives the number of trees of each; leaves of a job are one index per tree, all trees in
    a row. Weights are the caller's: only their ratios matter.
    """

    def __init__(self, forests: Sequence[int], leaves_per_tree: int, grid: LogGrid) -> None:
        self.grid = grid
        trees = sum(forests)
        self._forest_of = np.repeat(np.arange(len(forests), dtype=np.intp), forests)
        self._members = (self._forest_of == np.arange(len(forests))[:, np.newaxis]).astype(np.float64)
        self._first_row = np.arange(trees, dtype=np.intp) * leaves_per_tree
        self._mass = np.zeros((trees * leaves_per_tree, grid.cells))
        self._total = np.zeros(trees * leaves_per_tree)
        # Jobs lost sight of are rare, so their histogram is made when the first one comes.
        self._lost: Floats | None = None
        self._running = RunningJobs(trees, grid)
        # Most jobs complete, so only the others are kept apart; on many clusters none are told of.
        self._by_cause: NDArray[np.float32] | None = None
        self._overall = dict.fromkeys(Outcome, 0.0)

    def add(self, leaves: LeafIndices, log_seconds: float, weight: float, outcome: Outcome = Outcome.COMPLETED) -> None:
        """A job that fell into ``leaves`` has ended after exp(``log_seconds``), and how."""
        rows, cell = self._first_row + leaves, self.grid.cell_of(log_seconds)
        self._mass[rows, cell] += weight
        self._total[rows] += weight
        self._overall[outcome] += weight
        if outcome in CAUSES:
            if self._by_cause is None:
                self._by_cause = np.zeros((len(CAUSES), *self._mass.shape), dtype=np.float32)
            self._by_cause[CAUSES.index(outcome), rows, cell] += weight

    def add_lost(self, leaves: LeafIndices, log_seconds: float, weight: float) -> None:
        """A job was lost sight of at that age: it lasted at least as long."""
        if self._lost is None:
            self._lost = np.zeros_like(self._mass)
        rows = self._first_row + leaves
        self._lost[rows, self.grid.cell_of(log_seconds)] += weight
        self._total[rows] += weight

    def started(self, job: JobIdentity, leaves: LeafIndices, start: float, weight: float) -> None:
        """A job began to run at ``start`` (Unix seconds); it counts as censored at its age until it stops."""
        self._running.add(job, leaves, start, weight)

    def stopped(self, job: JobIdentity) -> None:
        """It runs no more; what is known of its duration comes by :meth:`add` or :meth:`add_lost`."""
        self._running.remove(job)

    def counts(self, leaves: LeafIndices, now: float) -> LeafCounts:
        """What the leaves of n jobs (n, trees) hold at ``now`` (Unix seconds), every tree with one vote."""
        rows = self._first_row + leaves
        alive = np.zeros((len(rows), len(self._members), self.grid.cells))
        total = self._total[rows]
        running = [self._running.in_leaves(own, now) for own in leaves]
        for place, (trees, _, weights) in enumerate(running):
            if trees.size:
                total[place] += np.bincount(trees, weights=weights, minlength=total.shape[1])
        votes = np.divide(1.0, total, out=np.zeros_like(total), where=total > 0)
        ballot = self._members * votes[:, np.newaxis, :]
        ended = np.matmul(ballot, self._mass[rows])
        for place, (trees, cells, weights) in enumerate(running):
            if trees.size:
                where = self._forest_of[trees] * self.grid.cells + cells
                counted = np.bincount(where, weights=weights * votes[place, trees], minlength=alive[place].size)
                alive[place] += counted.reshape(alive[place].shape)
        if self._lost is not None:
            alive += np.matmul(ballot, self._lost[rows])
        return LeafCounts(rows, ballot, ended, alive)

    def cdfs(self, counts: LeafCounts) -> Floats:
        """P(duration <= edge) at every edge of the grid, one row per job: (n, edges).

        The mean over forests of one product-limit estimate each; NaN where the leaves hold nothing at all.
        """
        _, survival = _product_limits(counts.ended, counts.alive)
        # Not "above zero": a number that is none must be seen to be none in the answer.
        known = ~(counts.ended + counts.alive <= 0)
        last = known.shape[2] - 1 - known[:, :, ::-1].argmax(axis=2)
        cdfs = self.grid.survivors_spread(survival, last)
        held = known.any(axis=2)
        cdfs[~held] = 0.0
        number = np.add.reduce(held, axis=1)[:, np.newaxis]
        summed = np.add.reduce(cdfs, axis=1)
        found: Floats = np.divide(summed, number, out=np.full_like(summed, np.nan), where=number > 0)
        return found

    def chances(self, counts: LeafCounts, ages: Floats, weight: float) -> list[OutcomeChances]:
        """How jobs of which the leaves say ``counts`` and that have run ``ages`` (seconds) will end.

        Cumulated incidence of each outcome beyond that age (Aalen and Johansen, 1978), so that jobs still
        running count as what they are; leaning on the rate of all jobs as if half a job more had ended at it.
        ``weight`` is that of a new job.
        """
        every = sum(self._overall.values())
        # One of each kind, so that what has never been seen is rare and not impossible.
        usual = np.array([(self._overall[cause] + weight) / (every + 3.0 * weight) for cause in CAUSES])
        incidence, held = self._incidence(counts, self.grid.cells_of(np.log(np.maximum(ages, 1.0))))
        lean = _HALF_A_JOB * weight
        rates = (held * incidence + lean * usual) / (held + lean)
        # Where a number is none the durations say so, and are answered without these. Causes are kept in single
        # precision, so that their shares may exceed the whole by a rounding.
        rates = np.clip(np.where(np.isfinite(rates), rates, 0.0), 0.0, 1.0)
        rates /= np.maximum(np.add.reduce(rates, axis=1), 1.0)[:, np.newaxis]
        return [
            OutcomeChances(completed=max(1.0 - failed - cancelled, 0.0), failed=failed, cancelled=cancelled)
            for failed, cancelled in rates.tolist()
        ]

    def _incidence(self, counts: LeafCounts, first: NDArray[np.intp]) -> tuple[Floats, Floats]:
        """Shares of the ends from cell ``first`` on that had each cause (n, causes), and the weight they rest on."""
        died, survival = _product_limits(counts.ended, counts.alive)
        later = (np.arange(self.grid.cells) >= first[:, np.newaxis])[:, np.newaxis, :]
        ends = later * died
        ends[:, :, 1:] *= survival[:, :, :-1]
        held = np.add.reduce(later * self._mass[counts.rows], axis=(1, 2))[:, np.newaxis] / counts.rows.shape[1]
        shares = np.zeros((len(first), len(CAUSES)))
        if self._by_cause is not None:
            per_end = np.divide(ends, counts.ended, out=np.zeros_like(ends), where=counts.ended > 0)
            whole = np.add.reduce(ends, axis=(1, 2))
            for place, of_cause in enumerate(self._by_cause):
                caused = np.add.reduce(per_end * np.matmul(counts.ballot, of_cause[counts.rows]), axis=(1, 2))
                np.divide(caused, whole, out=shares[:, place], where=whole > 0)
        return shares, held


class LeafCounts(NamedTuple):
    """What the leaves of n jobs hold: what ``ended`` and what was ``alive`` at last, both (n, forests, cells).

    ``rows`` are the leaves themselves (n, trees), ``ballot`` what each of them counts (n, forests, trees).
    """

    rows: NDArray[np.intp]
    ballot: Floats
    ended: Floats
    alive: Floats


def _product_limits(ended: Floats, alive: Floats) -> tuple[Floats, Floats]:
    """Kaplan and Meier over the last axis: the share of those at risk in a cell that ended, and survival.

    Jobs censored within a cell count half there, as in a life table.
    """
    known = ended + alive
    # Cumulated from the far end, so that what is at risk never falls below what ends.
    at_risk = np.add.accumulate(known[..., ::-1], axis=-1)[..., ::-1] - 0.5 * alive
    # Not "above zero": a number that is none must be seen to be none in the answer.
    died = np.divide(ended, at_risk, out=np.zeros_like(ended), where=~(at_risk <= 0))
    survival: Floats = np.multiply.accumulate(np.maximum(1.0 - died, 0.0), axis=-1)
    return died, survival
