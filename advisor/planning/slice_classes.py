"""One to three slice lengths in one pool: where to cut the tasks, and whether another class is worth it.

Tasks are told apart by their *predicted median*, and every class is charged for the whole predicted
spread of its tasks: a task that was put into the wrong class costs what it really would. Losses add up
over tasks, so the best cuts are found exactly by dynamic programming over sorted groups.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from advisor.planning.durations import PoolDurations
from advisor.planning.slice_bounds import Choice, choose, last_least
from advisor.planning.slice_objective import CostTable
from advisor.planning.slice_terms import SliceTerms

__all__ = ["Group", "Grouping", "best_grouping", "choose_jointly"]

Floats = NDArray[np.float64]

_MOST_GROUPS = 60
_ATTENTIONS = (1.0, 0.75, 0.5, 0.25, 0.1, 0.03, 0.0)
Pair = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Group:
    """One class: parts ``first`` up to ``last`` of tasks sorted by predicted median."""

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Grouping:
    """The classes of a pool, its cost per useful minute, and the other numbers of classes looked at.

    ``choices`` index the lengths of the cost table, one for each class; ``rejected`` are (number of
    classes, cost, GPUs it would save against this, GPUs that splitting costs).
    """

    groups: tuple[Group, ...]
    choices: tuple[Choice, ...]
    cost: float
    rejected: tuple[tuple[int, float, float, float], ...]


def best_grouping(durations: PoolDurations, table: CostTable, terms: SliceTerms) -> Grouping:
    """The grouping of the least cost, pooling loss included; ``durations`` are sorted by predicted median.

    A class more is kept only if R times what it saves exceeds beta times what the split costs,
    sum of sqrt(R_k) - sqrt(R): shares in separate hands need more spares (square-root staffing). R is
    the number of shares in use (all of them where the load is unknown).
    """
    board = _board(durations, table, terms)
    found = [pairs for n in range(1, terms.max_classes + 1) if (pairs := _cheapest(board, n)) is not None]
    costs = [board.cost(pairs) for pairs in found]
    in_use = terms.places * (terms.load or 1.0)
    losses = [board.pooling_loss(pairs, in_use, terms.pooling_beta) for pairs in found]
    best = int(np.argmin([in_use * cost + loss for cost, loss in zip(costs, losses, strict=True)]))
    rejected = tuple(
        (len(found[i]), costs[i], in_use * (costs[best] - costs[i]), losses[i] - losses[best])
        for i in range(len(found))
        if i != best
    )
    groups = tuple(Group(board.cuts[i], board.cuts[j]) for i, j in found[best])
    choices = choose_jointly(table, groups, terms.overhead_cap)
    return Grouping(groups, choices, _cost_of(table, groups, choices), rejected)


def choose_jointly(table: CostTable, groups: tuple[Group, ...], cap: float) -> tuple[Choice, ...]:
    """The lengths of all classes together: cheapest first, urgent work counting less until the pool is stable."""
    tables = [table.of(group.first, group.last) for group in groups]
    if len(tables) == 1:
        return (choose(tables[0].cost, tables[0].overhead_cost, cap),)
    cheapest = tuple(last_least(one.cost) for one in tables)
    useful = np.array([one.useful.sum() for one in tables]) / table.useful.sum()
    for attention in _ATTENTIONS:
        taken = tuple(last_least(one.overhead_cost + attention * (one.cost - one.overhead_cost)) for one in tables)
        overhead = sum(share * one.overhead_cost[i] for share, one, i in zip(useful, tables, taken, strict=True))
        if overhead <= cap:
            return tuple(Choice(i, moved=i != free, stable=True) for i, free in zip(taken, cheapest, strict=True))
    return tuple(Choice(i, moved=i != free, stable=False) for i, free in zip(taken, cheapest, strict=True))


def _cost_of(table: CostTable, groups: tuple[Group, ...], choices: tuple[Choice, ...]) -> float:
    lost = 0.0
    for group, choice in zip(groups, choices, strict=True):
        part = table.of(group.first, group.last)
        lost += float(part.cost[choice.index] * part.useful.sum())
    return lost / float(table.useful.sum())


def _cuts(durations: PoolDurations) -> tuple[int, ...]:
    """Where classes may be cut: between different medians, thinned to at most 60 groups of like weight."""
    medians = [part.median for part in durations.parts]
    inner = [i for i in range(1, len(medians)) if medians[i] > medians[i - 1]]
    if len(inner) >= _MOST_GROUPS:
        reached = np.cumsum(durations.weights)[np.array(inner) - 1] / sum(durations.weights)
        wanted = np.arange(1, _MOST_GROUPS) / _MOST_GROUPS
        inner = sorted({inner[min(int(i), len(inner) - 1)] for i in np.searchsorted(reached, wanted)})
    return (0, *inner, len(medians))


@dataclass(frozen=True, eq=False)
class _Board:
    """Every possible class [first cut, last cut]: its lost and useful minutes, and lost again where it may stand."""

    cuts: tuple[int, ...]
    allowed: Floats
    lost: Floats
    useful: Floats

    def cost(self, groups: tuple[Pair, ...]) -> float:
        """Lost per useful minute of the whole pool."""
        return float(sum(self.lost[pair] for pair in groups) / self.useful[0, -1])

    def pooling_loss(self, groups: tuple[Pair, ...], in_use: float, beta: float) -> float:
        """Shares that splitting costs: beta (sum of sqrt(R_k) - sqrt(R))."""
        shares = np.array([self.useful[pair] for pair in groups]) / self.useful[0, -1]
        return float(beta * (np.sqrt(in_use * shares).sum() - math.sqrt(in_use)))


def _board(durations: PoolDurations, table: CostTable, terms: SliceTerms) -> _Board:
    cuts = _cuts(durations)
    useful = _between(table.useful[:, None], cuts)[..., 0]
    weight = _between(np.array(durations.weights)[:, None], cuts)[..., 0]
    real = np.triu(np.ones_like(useful, dtype=bool), 1)
    lost = _between(table.overhead + table.urgent, cuts).min(axis=-1)
    large = weight >= terms.least_class_share * weight[0, -1]
    return _Board(cuts, np.where(real & large, lost, np.inf), lost, useful)


def _between(rows: Floats, cuts: tuple[int, ...]) -> Floats:
    """Sums of ``rows[first:last]`` for every pair of cuts, from running sums."""
    running = np.vstack([np.zeros(rows.shape[1]), np.cumsum(rows, axis=0)])[list(cuts)]
    sums: Floats = running[None, :, :] - running[:, None, :]
    return sums


def _cheapest(board: _Board, count: int) -> tuple[Pair, ...] | None:
    """The best way to make exactly ``count`` classes; None if there is none."""
    ends = len(board.cuts)
    best = np.full(ends, np.inf)
    best[0] = 0.0
    came_from = []
    for _ in range(count):
        ways = best[:, None] + board.allowed
        came_from.append(np.argmin(ways, axis=0))
        best = ways.min(axis=0)
    if not np.isfinite(best[-1]):
        return None
    groups: list[Pair] = []
    end = ends - 1
    for origins in reversed(came_from):
        groups.append((int(origins[end]), end))
        end = groups[-1][0]
    return tuple(reversed(groups))
