"""Kaplan-Meier histograms in the leaves of forests: what became of the jobs that fell where this one falls.

Each (tree, leaf) holds a weighted histogram of ln seconds of the jobs that ended there; running jobs
hang in it as censored mass at their present age. A job that ends is in its leaves at once, which is
worth more than refitting the trees.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from advisor.domain.forecasts import OutcomeChances
from advisor.domain.jobs import Outcome
from advisor.forecast.grid import LogGrid

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
        self._running = _RunningJobs(trees)
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

    def started(self, job_id: str, leaves: LeafIndices, start: float, weight: float) -> None:
        """A job began to run at ``start`` (Unix seconds); it counts as censored at its age until it stops."""
        self._running.add(job_id, leaves, start, weight)

    def stopped(self, job_id: str) -> None:
        """It runs no more; what is known of its duration comes by :meth:`add` or :meth:`add_lost`."""
        self._running.remove(job_id)

    def cdf(self, counts: LeafCounts) -> Floats:
        """P(duration <= edge) at every edge of the grid for a job of which the leaves say ``counts``.

        The mean over forests of one product-limit estimate each, in which every tree has one vote.
        """
        _, survival = _product_limits(counts.ended, counts.alive)
        known = counts.ended + counts.alive
        last = known.shape[1] - 1 - (known[:, ::-1] > 0).argmax(axis=1)
        cdfs = np.array([self.grid.survivors_spread(row, int(end)) for row, end in zip(survival, last, strict=True)])
        mean: Floats = cdfs.sum(axis=0) / len(cdfs)
        return mean

    def chances(self, counts: LeafCounts, age_seconds: float, weight: float) -> OutcomeChances:
        """How a job of which the leaves say ``counts`` and that has run ``age_seconds`` will end.

        ``weight`` is that of a new job.

        Cumulated incidence of each outcome beyond that age (Aalen and Johansen, 1978), so that jobs still
        running count as what they are; leaning on the rate of all jobs as if half a job more had ended at it.
        """
        every = sum(self._overall.values())
        # One of each kind, so that what has never been seen is rare and not impossible.
        rates = np.array([(self._overall[cause] + weight) / (every + 3.0 * weight) for cause in CAUSES])
        first = self.grid.cell_of(math.log(age_seconds)) if age_seconds > 1.0 else 0
        incidence, held = self._incidence(counts, first)
        rates = (held * incidence + _HALF_A_JOB * weight * rates) / (held + _HALF_A_JOB * weight)
        failed, cancelled = (float(rate) for rate in rates)
        return OutcomeChances(completed=max(1.0 - failed - cancelled, 0.0), failed=failed, cancelled=cancelled)

    def _incidence(self, counts: LeafCounts, first: int) -> tuple[Floats, float]:
        """Shares of the ends from cell ``first`` on that had each cause, and the weight they rest on."""
        died, survival = _product_limits(counts.ended, counts.alive)
        before = np.concatenate([np.ones((len(survival), 1)), survival[:, :-1]], axis=1)
        ends = before * died
        per_end = np.divide(ends, counts.ended, out=np.zeros_like(ends), where=counts.ended > 0)[:, first:]
        whole = ends[:, first:].sum()
        held = float(self._mass[counts.rows, first:].sum()) / len(counts.rows)
        if not whole > 0 or self._by_cause is None:
            return np.zeros(len(CAUSES)), held
        by_cause = [counts.ballot @ self._by_cause[cause, counts.rows, first:] for cause in range(len(CAUSES))]
        return np.array([float((per_end * ended).sum() / whole) for ended in by_cause]), held

    def counts(self, leaves: LeafIndices, now: float) -> LeafCounts | None:
        """What ``leaves`` hold at ``now`` (Unix seconds), every tree with one vote; None where they hold nothing."""
        rows = self._first_row + leaves
        who, trees, cells, weights = self._running.in_leaves(leaves, now, self.grid)
        total = self._total[rows]
        if who.size:
            total = total + np.bincount(trees, weights=weights, minlength=total.size)
        votes = np.divide(1.0, total, out=np.zeros_like(total), where=total > 0)
        ballot = self._members * votes
        known = ballot.any(axis=1)
        if not known.any():
            return None
        ended = ballot @ self._mass[rows]
        alive = np.zeros_like(ended)
        if who.size:
            place = self._forest_of[trees] * self.grid.cells + cells
            alive += np.bincount(place, weights=weights * votes[trees], minlength=alive.size).reshape(alive.shape)
        if self._lost is not None:
            alive += ballot @ self._lost[rows]
        return LeafCounts(rows, ballot[known], ended[known], alive[known])


class LeafCounts(NamedTuple):
    """Per forest and cell: what ``ended`` there, and what was ``alive`` there at last; each tree's row and vote."""

    rows: NDArray[np.intp]
    ballot: Floats
    ended: Floats
    alive: Floats


def _product_limits(ended: Floats, alive: Floats) -> tuple[Floats, Floats]:
    """Kaplan and Meier on the grid, one row a forest: the share of those at risk in a cell that ended, and survival.

    Jobs censored within a cell count half there, as in a life table.
    """
    known = ended + alive
    # Cumulated from the far end, so that what is at risk never falls below what ends.
    at_risk = np.add.accumulate(known[:, ::-1], axis=1)[:, ::-1] - 0.5 * alive
    # Not "above zero": a number that is none must be seen to be none in the answer.
    died = np.divide(ended, at_risk, out=np.zeros_like(ended), where=~(at_risk <= 0))
    survival: Floats = np.multiply.accumulate(np.maximum(1.0 - died, 0.0), axis=1)
    return died, survival


class _RunningJobs:
    """Jobs running now, as rows that one comparison can search: leaves, start and weight of each."""

    def __init__(self, trees: int) -> None:
        self._place: dict[str, int] = {}
        self._ids: list[str] = []
        self._leaves = np.zeros((64, trees), dtype=np.int32)
        self._trees = trees
        self._start = np.zeros(64)
        self._weight = np.zeros(64)

    def add(self, job_id: str, leaves: LeafIndices, start: float, weight: float) -> None:
        if job_id in self._place:
            return
        place = len(self._ids)
        if place == self._start.size:
            self._leaves = np.concatenate([self._leaves, np.zeros_like(self._leaves)])
            self._start = np.concatenate([self._start, np.zeros_like(self._start)])
            self._weight = np.concatenate([self._weight, np.zeros_like(self._weight)])
        self._place[job_id] = place
        self._ids.append(job_id)
        self._leaves[place] = leaves
        self._start[place] = start
        self._weight[place] = weight

    def remove(self, job_id: str) -> None:
        """Close the gap with the last row, so that rows stay together."""
        place = self._place.pop(job_id, None)
        if place is None:
            return
        last_id = self._ids.pop()
        if last_id != job_id:
            last = len(self._ids)
            self._ids[place] = last_id
            self._place[last_id] = place
            for column in (self._leaves, self._start, self._weight):
                column[place] = column[last]

    def in_leaves(
        self, leaves: LeafIndices, now: float, grid: LogGrid
    ) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.intp], Floats]:
        """Who shares which tree's leaf with ``leaves``: rows, trees, cells of their ages, weights."""
        count = len(self._ids)
        # Faster on one axis than on two.
        who, trees = np.divmod(np.flatnonzero(self._leaves[:count] == leaves), self._trees)
        ages = np.log(np.maximum(now - self._start[who], 1.0))
        return who, trees, grid.cells_of(ages), self._weight[who]
