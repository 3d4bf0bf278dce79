"""What is free on each node, and where a pod would fit: the arrays that placement costs are computed on.

GPUs and CPUs are counted in thousandths, memory in MiB; a GPU that a node does not have has nothing free.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from advisor.domain.packing import MILLI, HostShape, PodShape

__all__ = ["NodeStates", "Options", "PackingState"]

Ints = NDArray[np.int64]
Rows = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class NodeStates:
    """Free CPU (...,) and free GPUs (..., most GPUs of a node), in thousandths."""

    cpu: Ints
    gpu: Ints


@dataclass(frozen=True, slots=True, eq=False)
class Options:
    """Where on each of some nodes a pod would go, tightest first.

    ``fits`` (nodes, options) says which exist; ``before`` has one state a node, ``after`` one an option;
    ``first`` (nodes, options) is the GPU a shared pod would take, -1 otherwise. ``host_cpu_per_gpu`` (nodes,)
    is what the nodes have in all, in thousandths of a CPU; infinite without GPUs.
    """

    shape: PodShape
    host_cpu_per_gpu: Floats
    fits: NDArray[np.bool_]
    before: NodeStates
    after: NodeStates
    first: Ints


class PackingState:
    """Nodes in a fixed order and what is free on each of them."""

    def __init__(self, hosts: Sequence[HostShape]) -> None:
        most = max((host.gpus for host in hosts), default=0)
        self.kinds = np.array([host.kind for host in hosts], dtype=object)
        self.sizes: Ints = np.array([host.gpus for host in hosts], dtype=np.int64)
        self.cpus: Ints = np.array([host.cpu_milli for host in hosts], dtype=np.int64)
        self.cpu: Ints = self.cpus.copy()
        self.memory: Ints = np.array([host.memory_mib for host in hosts], dtype=np.int64)
        self.gpu: Ints = np.where(np.arange(max(most, 1)) < self.sizes[:, None], MILLI, 0).astype(np.int64)

    def __len__(self) -> int:
        return self.cpu.size

    @property
    def allocated_gpus(self) -> float:
        """GPUs given away."""
        return float(self.sizes.sum() - self.gpu.sum() / MILLI)

    def everything(self) -> NodeStates:
        """What is free on all nodes."""
        return NodeStates(self.cpu, self.gpu)

    def options(self, shape: PodShape, rows: Rows) -> Options:
        """Every distinct way to put ``shape`` on each of ``rows``."""
        gpu, cpu = self.gpu[rows], self.cpu[rows]
        hosts = self._hosts(shape, rows)
        before = NodeStates(cpu, gpu)
        ratio = self.cpus[rows] / np.where(self.sizes[rows] > 0, self.sizes[rows], np.nan)
        ratio = np.where(np.isnan(ratio), np.inf, ratio)
        if shape.gpus == 1 and shape.is_shared:
            return _on_one_gpu(shape, ratio, hosts, before)
        taken, fits = _taken(shape, gpu)
        after = NodeStates((cpu - shape.cpu_milli)[:, None], (gpu - taken)[:, None, :])
        first = np.full((rows.size, 1), -1, dtype=np.int64)
        return Options(shape, ratio, (hosts & fits)[:, None], before, after, first)

    def take(self, shape: PodShape, row: int, first: int = -1) -> Ints:
        """Place ``shape`` on a node, on GPU ``first`` where one is named; the thousandths taken of each GPU."""
        if first >= 0:
            taken = np.zeros(self.gpu.shape[1], dtype=np.int64)
            taken[first] = shape.gpu_milli
        else:
            taken = _taken(shape, self.gpu[row : row + 1])[0][0]
        self.cpu[row] -= shape.cpu_milli
        self.memory[row] -= shape.memory_mib
        self.gpu[row] -= taken
        return taken

    def give_back(self, shape: PodShape, row: int, taken: Ints) -> None:
        """Undo :meth:`take`."""
        self.cpu[row] += shape.cpu_milli
        self.memory[row] += shape.memory_mib
        self.gpu[row] += taken

    def _hosts(self, shape: PodShape, rows: Rows) -> NDArray[np.bool_]:
        fits: NDArray[np.bool_] = (self.cpu[rows] >= shape.cpu_milli) & (self.memory[rows] >= shape.memory_mib)
        if shape.kinds:
            fits &= np.isin(self.kinds[rows].astype(str), shape.kinds)
        return fits


def _taken(shape: PodShape, gpu: Ints) -> tuple[Ints, NDArray[np.bool_]]:
    """What a pod that takes one share or none of each GPU takes on each node (tightest, lowest), and where it fits."""
    taken = np.zeros_like(gpu)
    if not shape.gpus:
        return taken, np.ones(gpu.shape[0], dtype=bool)
    room = np.where(gpu >= shape.gpu_milli, gpu, np.iinfo(np.int64).max)
    picked = np.argsort(room, axis=1, kind="stable")[:, : shape.gpus]
    fits = (gpu >= shape.gpu_milli).sum(axis=1) >= shape.gpus
    np.put_along_axis(taken, picked, shape.gpu_milli, axis=1)
    return taken, fits


def _on_one_gpu(shape: PodShape, ratio: Floats, hosts: NDArray[np.bool_], before: NodeStates) -> Options:
    """One option per GPU, tightest first; of GPUs that are equally free the lowest stands for all."""
    gpu, (nodes, most) = before.gpu, before.gpu.shape
    order = np.argsort(gpu, axis=1, kind="stable")
    ordered = np.take_along_axis(gpu, order, axis=1)
    repeats = np.zeros_like(ordered, dtype=bool)
    repeats[:, 1:] = ordered[:, 1:] == ordered[:, :-1]
    fits = hosts[:, None] & (ordered >= shape.gpu_milli) & ~repeats
    after = np.repeat(gpu[:, None, :], most, axis=1)
    after[np.arange(nodes)[:, None], np.arange(most)[None, :], order] -= shape.gpu_milli
    cpu = np.repeat((before.cpu - shape.cpu_milli)[:, None], most, axis=1)
    return Options(shape, ratio, fits, before, NodeStates(cpu, after), order)
