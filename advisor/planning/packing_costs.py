"""What it costs to put a pod here rather than there: what the placement would leave stranded.

Three ways in which free GPUs are of no use: too small a part for what usually comes (fragmentation, and the
waste of a single GPU), or on a node whose CPUs are gone (stranded). A placement costs what it adds to them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from advisor.domain.packing import MILLI, PodShape
from advisor.planning.packing_state import NodeStates, Options

__all__ = [
    "BestFit",
    "FragmentationGradient",
    "PlacementCost",
    "StrandedAndWasted",
    "UsualPods",
]

Floats = NDArray[np.float64]

_TYPICAL_SHARE = 0.95
_LARGEST_NODE_GPUS = 8
_LAST_BIT = 1e-9
_LARGEST_NODE_CPU_MILLI = 128_000
_LOW_WEIGHT, _HIGH_WEIGHT = 1.38, 0.55
_CPU_LEFT_WEIGHT = 0.03
_CPU_POD_WEIGHT, _USUAL_CPU_PER_GPU_MILLI, _MOST_SPARE = 0.17, 12_000.0, 4.0
"""Found on the OpenB list and its variants; what they are worth is told in the documentation."""
_REFUSED_SMALL = 0.2
"""The chance that GPUs are left as they are: what comes next goes elsewhere."""


class PlacementCost(Protocol):
    """Says what each option costs; the least is taken."""

    def __call__(self, options: Options) -> Floats:
        """Costs (nodes, options); those of options that do not fit are ignored."""
        ...


@dataclass(frozen=True, slots=True, eq=False)
class UsualPods:
    """What usually comes: shapes with their shares, the commonest first, covering 95 % of the pods.

    ``cpu_per_gpu`` is how much CPU (thousandths) pods with GPUs ask for per GPU; ``sizes`` and
    ``size_shares`` are what pods of one GPU take of it.
    """

    shapes: tuple[PodShape, ...]
    shares: Floats
    cpu_per_gpu: float
    sizes: NDArray[np.int64]
    size_shares: Floats

    @classmethod
    def of(cls, counts: Mapping[PodShape, int]) -> UsualPods:
        """From how often each shape was seen; memory and kinds are not told apart."""
        plain: Counter[PodShape] = Counter()
        for shape, count in counts.items():
            plain[PodShape(cpu_milli=shape.cpu_milli, gpus=shape.gpus, gpu_milli=shape.gpu_milli)] += count
        ranked = sorted(plain.items(), key=lambda item: (-item[1], item[0]))
        total, seen, kept = sum(plain.values()), 0, []
        for shape, count in ranked:
            if seen >= _TYPICAL_SHARE * total:
                break
            kept.append((shape, count))
            seen += count
        gpu = sum(shape.total_gpu_milli * count for shape, count in plain.items())
        cpu = sum(shape.cpu_milli * count for shape, count in plain.items() if shape.gpus)
        single: Counter[int] = Counter()
        for shape, count in plain.items():
            if shape.gpus == 1:
                single[shape.gpu_milli] += count
        sizes = np.array(sorted(single), dtype=np.int64)
        weights = np.array([single[int(size)] for size in sizes], dtype=float)
        return cls(
            tuple(shape for shape, _ in kept),
            np.array([count for _, count in kept], dtype=float) / max(seen, 1),
            MILLI * cpu / gpu if gpu else 0.0,
            sizes,
            weights / max(weights.sum(), 1.0),
        )

    def fragmentation(self, states: NodeStates) -> Floats:
        """Free GPU (thousandths) that what usually comes cannot use, in the mean over it (Weng et al., ATC 2023).

        Of a node that cannot host a shape all that is free counts, of another the GPUs too full for its share.
        """
        asks = np.array([shape.gpu_milli for shape in self.shapes])
        sizes, at = np.unique(asks, return_inverse=True)
        enough = states.gpu[..., None, :] >= sizes[:, None]
        too_small = np.where(enough, 0, states.gpu[..., None, :]).sum(axis=-1)
        hosts = enough.sum(axis=-1)[..., at] >= np.array([shape.gpus for shape in self.shapes])
        hosts &= states.cpu[..., None] >= np.array([shape.cpu_milli for shape in self.shapes])
        hosts &= asks > 0
        free = states.gpu.sum(axis=-1)
        lost: Floats = np.where(hosts, too_small[..., at], free[..., None]) @ self.shares
        return lost

    def waste(self) -> Floats:
        """What is expected to be lost in the end of r thousandths of a GPU, (1001,), by what usually fills them up.

        W(r) = [sum_k p_k W(r - k) + q P(k > r) r] / [P(k <= r) + q P(k > r)], W(0) = 0: parts are filled at
        random by what comes, and what does not fit leaves the rest for good with chance q.
        """
        waste = np.zeros(MILLI + 1)
        for r in range(1, MILLI + 1):
            fits = self.sizes <= r
            fitting = float(self.size_shares[fits].sum())
            left = float((self.size_shares[fits] * waste[r - self.sizes[fits]]).sum())
            over = _REFUSED_SMALL * (1.0 - fitting)
            waste[r] = (left + over * r) / (fitting + over) if fitting + over > 0 else float(r)
        return waste


class BestFit:
    """Leave as little free as possible, GPU and CPU alike (each by the size of the largest node)."""

    def __call__(self, options: Options) -> Floats:
        """See :class:`PlacementCost`; between 0 and 1."""
        gpu = options.after.gpu.sum(axis=-1) / (_LARGEST_NODE_GPUS * MILLI)
        cost: Floats = 0.5 * gpu + 0.5 * options.after.cpu / _LARGEST_NODE_CPU_MILLI
        return cost


@dataclass(frozen=True, slots=True, eq=False)
class FragmentationGradient:
    """The steepest descent of fragmentation (Weng et al., ATC 2023), with the whole scores 0 to 100 of its authors."""

    usual: UsualPods

    def __call__(self, options: Options) -> Floats:
        """See :class:`PlacementCost`."""
        gain = self.usual.fragmentation(options.before)[:, None] - self.usual.fragmentation(options.after)
        # A gain of nothing scores 50 whatever the last bit of a sum says.
        return -np.floor(100.0 / (1.0 + np.exp(-gain / MILLI)) + _LAST_BIT)


class StrandedAndWasted:
    """GPUs without CPU and parts of GPUs without use: what the advisor places by.

    Stranded GPUs count at two ratios of CPU to GPU, below and above what usually is asked for. A pod without GPUs
    goes where there is much CPU per GPU. Free CPU counts a little, so that of equals the fuller node is taken.
    """

    def __init__(self, usual: UsualPods) -> None:
        self._usual = usual
        self._waste = usual.waste() / MILLI

    def __call__(self, options: Options) -> Floats:
        """See :class:`PlacementCost`; GPUs."""
        cost = self._lost(options.after) - self._lost(options.before)[:, None]
        cost += _CPU_LEFT_WEIGHT * options.after.cpu / _LARGEST_NODE_CPU_MILLI
        if not options.shape.gpus:
            spare = np.minimum(options.host_cpu_per_gpu / _USUAL_CPU_PER_GPU_MILLI, _MOST_SPARE)
            cost -= _CPU_POD_WEIGHT * spare[:, None]
        return cost

    def _lost(self, states: NodeStates) -> Floats:
        per_gpu = self._usual.cpu_per_gpu
        lost: Floats = self._waste[states.gpu].sum(axis=-1)
        return (
            lost + _LOW_WEIGHT * _stranded(states, 0.75 * per_gpu) + _HIGH_WEIGHT * _stranded(states, 1.125 * per_gpu)
        )


def _stranded(states: NodeStates, cpu_per_gpu: float) -> Floats:
    """GPUs free beyond those that the free CPU serves at ``cpu_per_gpu`` thousandths each."""
    if cpu_per_gpu <= 0:
        return np.zeros(states.cpu.shape)
    stranded: Floats = np.maximum(0.0, states.gpu.sum(axis=-1) / MILLI - states.cpu / cpu_per_gpu)
    return stranded
