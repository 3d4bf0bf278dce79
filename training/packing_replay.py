"""How much of a cluster's GPUs each policy gives away before nothing fits, and what pods that end make of it.

The static replay is that of Weng et al. (USENIX ATC 2023): the pods in random order, then resampled, until they
have asked for ``load`` times the GPUs there are; nodes stand in a random order per seed, which settles ties.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from advisor.domain.packing import MILLI, HostShape, PodShape
from advisor.errors import Refused
from advisor.planning.packing import Packer
from advisor.planning.packing_costs import BestFit, FragmentationGradient, PlacementCost, StrandedAndWasted, UsualPods

__all__ = ["ADVISOR", "BEST_FIT", "FRAGMENTATION_GRADIENT", "Filled", "PackingWorld", "replay_filling"]

ADVISOR, FRAGMENTATION_GRADIENT, BEST_FIT = "advisor", "fragmentation_gradient", "best_fit"
_MEASURED_BELOW = 0.005
"""The last half per cent of arrivals is what the mean is taken over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PackingWorld:
    """Shapes of pods to draw from, nodes to fill, and how much is asked for, as a multiple of their GPUs."""

    shapes: tuple[PodShape, ...]
    hosts: tuple[HostShape, ...]
    load: float = 1.3

    def __post_init__(self) -> None:
        """Check that the pods ask for GPUs at all.

        Raises:
            Refused: they do not, or the load is not above 0.
        """
        if not self.load > 0:
            raise Refused("--load", self.load, "it must be above 0", "Use 1.3.")
        if not any(shape.gpus for shape in self.shapes):
            raise Refused("--pods", len(self.shapes), "none of the pods asks for a GPU", "Give a list that does.")

    @property
    def usual(self) -> UsualPods:
        """What usually comes: the list itself."""
        return UsualPods.of(Counter(self.shapes))

    def costs(self) -> dict[str, PlacementCost]:
        """The cost of each policy by its name."""
        usual = self.usual
        return {
            ADVISOR: StrandedAndWasted(usual),
            FRAGMENTATION_GRADIENT: FragmentationGradient(usual),
            BEST_FIT: BestFit(),
        }


@dataclass(frozen=True, slots=True)
class Filled:
    """Per cent of all GPUs that one policy gave away under one seed, and that were left but of no use."""

    policy: str
    seed: int
    allocated_percent: float
    fragmented_percent: float


def replay_filling(world: PackingWorld, task: tuple[str, int]) -> Filled:
    """Fill the nodes under (policy, seed)."""
    policy, seed = task
    rng = np.random.default_rng(seed)
    hosts = [world.hosts[at] for at in rng.permutation(len(world.hosts))]
    order = rng.permutation(len(world.shapes))
    packer = Packer(hosts, world.costs()[policy])
    total = sum(host.gpus for host in hosts)
    arrived, at, seen = 0, 0, []
    while arrived < world.load * total * MILLI:
        shape = world.shapes[order[at] if at < order.size else rng.integers(order.size)]
        at += 1
        arrived += shape.total_gpu_milli
        packer.place(shape)
        if arrived >= (world.load - _MEASURED_BELOW) * total * MILLI:
            seen.append(packer.state.allocated_gpus)
    lost = float(world.usual.fragmentation(packer.state.everything()).sum())
    return Filled(policy, seed, 100.0 * float(np.mean(seen)) / total, 100.0 * lost / MILLI / total)
