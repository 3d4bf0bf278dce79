"""GPU limits of a NodePool: in whole nodes, and honest about what a limit does not do.

Karpenter launches a node only if *all* its GPUs fit in what the limit leaves; a limit between two
multiples of the node size is therefore a limit at the lower one. Lowering a limit blocks launches and
removes nothing.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from advisor.domain.nodepools import Node
from advisor.domain.units import counted, finite

__all__ = ["LimitEffect", "WholeNodeLimit", "freed_gpus", "limit_effect", "whole_node_limit"]


@dataclass(frozen=True, slots=True)
class WholeNodeLimit:
    """A limit in physical GPUs that whole nodes of the largest type fit into, and why it is that one."""

    gpus: int
    reasons: tuple[str, ...]


def whole_node_limit(wanted_gpus: float, node_gpus: Sequence[int]) -> WholeNodeLimit:
    """The least limit that lets ``wanted_gpus`` run, given the GPUs of the types the pool may launch.

    >>> whole_node_limit(10, (8,)).gpus
    16

    Raises:
        Refused: a number of GPUs that is not finite.
    """
    step = max(node_gpus)
    nodes = math.ceil(finite(max(wanted_gpus, 0.0), "wanted_gpus") / step - 1e-9)
    gpus = nodes * step
    if gpus == wanted_gpus:
        return WholeNodeLimit(gpus, ())
    mixed = " (the largest type of a mixed pool sets the step)" if len(set(node_gpus)) > 1 else ""
    reason = (
        f"{wanted_gpus:g} GPUs wanted, {gpus} written: a node is launched only if all its {step} GPUs fit in what "
        f"the limit leaves{mixed}"
    )
    return WholeNodeLimit(gpus, (reason,))


@dataclass(frozen=True, slots=True)
class LimitEffect:
    """What a limit means beside what runs: it may lie below it, and frees nothing by itself."""

    in_use: int
    limit: int

    @property
    def frees_gpus(self) -> int:
        """GPUs that setting the limit gives back: always none."""
        return 0

    @property
    def reasons(self) -> tuple[str, ...]:
        """What to tell a person where the limit lies below what is in use, else nothing."""
        if self.in_use <= self.limit:
            return ()
        state = f"{counted(self.in_use, 'GPU')} in use of {self.limit}"
        effect = "the limit alone frees 0 GPUs, it only blocks new nodes; savings are counted once nodes are gone"
        return (f"{state}: {effect}",)


def limit_effect(nodes: Iterable[Node], limit: int) -> LimitEffect:
    """What a limit of ``limit`` GPUs means for a pool with these nodes; a node counts whole, idle or not."""
    return LimitEffect(sum(node.gpus for node in nodes), limit)


def freed_gpus(before: Iterable[Node], after: Iterable[Node]) -> int:
    """GPUs really given back between two looks: those of the nodes that are gone."""
    still_there = {node.name for node in after}
    return sum(node.gpus for node in before if node.name not in still_there)
