"""NodePools, nodes and what was seen of a cluster at one moment (karpenter.sh/v1, read from its objects)."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from advisor.domain.units import utc
from advisor.errors import Refused

__all__ = ["GPU_RESOURCE", "Budget", "ClusterSnapshot", "Node", "NodePool", "Taint", "WarmBuffer", "Workload"]

GPU_RESOURCE = "nvidia.com/gpu"


@dataclass(frozen=True, slots=True)
class Budget:
    """One entry of ``spec.disruption.budgets``; None where the object leaves a field out."""

    nodes: str
    reasons: tuple[str, ...] | None = None
    schedule: str | None = None
    duration: str | None = None


@dataclass(frozen=True, slots=True)
class Taint:
    """One entry of ``spec.template.spec.taints``: work without the matching toleration stays away."""

    key: str
    effect: str
    value: str | None = None


@dataclass(frozen=True, slots=True)
class WarmBuffer:
    """Our own warm-capacity object of a pool: so many chunks, each of ``gpus_each`` GPUs on one node."""

    replicas: int
    gpus_each: int

    def __post_init__(self) -> None:
        """Check both counts.

        Raises:
            Refused: fewer than 0 chunks, or a chunk without a GPU.
        """
        if self.replicas < 0:
            raise Refused("replicas", self.replicas, "a buffer has 0 chunks or more", "Use 0 for none.")
        if self.gpus_each < 1:
            raise Refused("gpus_each", self.gpus_each, "a chunk holds at least one GPU", "Give the GPUs of a chunk.")

    @property
    def gpus(self) -> int:
        """GPUs it keeps ready."""
        return self.replicas * self.gpus_each


@dataclass(frozen=True, slots=True, kw_only=True)
class NodePool:
    """A karpenter.sh/v1 NodePool: the fields of its ``spec`` that advice reads or may change.

    ``consolidate_after`` is ``spec.disruption.consolidateAfter`` as written (a Go duration or
    ``Never``), ``consolidation_policy``, ``budgets``, ``limits``, ``weight`` and ``replicas`` likewise;
    None where absent. ``node_gpus`` are the physical GPUs of the types it may launch, largest last.
    ``slice_minutes`` and ``sharing_factor`` are what the pool uses now, where it says so. ``warm`` is
    the warm capacity that this program keeps for the pool, None where there is no such object.
    ``field_managers`` names who claimed a field for itself, by field path, as far as the cluster tells.
    """

    name: str
    consolidate_after: str | None = None
    consolidation_policy: str | None = None
    budgets: tuple[Budget, ...] | None = None
    limits: dict[str, str] = field(default_factory=dict)
    weight: int | None = None
    replicas: int | None = None
    gpu_kind: str | None = None
    node_gpus: tuple[int, ...] = (8,)
    slice_minutes: float | None = None
    sharing_factor: int = 1
    last_changed: datetime | None = None
    owned: bool = False
    resource_version: str = ""
    taints: tuple[Taint, ...] = ()
    warm: WarmBuffer | None = None
    field_managers: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Check the name, node sizes and sharing.

        Raises:
            Refused: an empty name, no node size, or one below 1.
        """
        if not self.name:
            raise Refused("name", self.name, "a NodePool has a name", "Give one.")
        if not self.node_gpus or min(self.node_gpus) < 1:
            raise Refused("node_gpus", self.node_gpus, "a GPU node has at least one GPU", "List the GPUs per node.")
        if self.sharing_factor < 1:
            raise Refused("sharing_factor", self.sharing_factor, "a GPU has at least one share", "Use 1 for none.")
        object.__setattr__(self, "node_gpus", tuple(sorted(self.node_gpus)))

    @property
    def gpu_limit(self) -> str | None:
        """``spec.limits["nvidia.com/gpu"]`` as written, None where there is none (unlimited)."""
        return self.limits.get(GPU_RESOURCE)

    @property
    def largest_node_gpus(self) -> int:
        """Physical GPUs of the largest node it may launch: the step of a limit."""
        return self.node_gpus[-1]


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """A node with GPUs. ``gpus`` is what it will have; it can take work only when ``ready``."""

    name: str
    pool: str
    gpus: int
    created: datetime
    ready: bool = True
    gpu_kind: str | None = None
    cordoned: bool = False

    def __post_init__(self) -> None:
        """Keep the time in UTC."""
        object.__setattr__(self, "created", utc(self.created, "created"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A pod (or a gang seen as one) that holds or wants GPUs now; ``node`` is None while it waits.

    ``gpus`` is per node it runs on. ``job_id`` ties it to the history where it is known, and ``job_source`` says
    whose job that is, where several sources may use the id.
    """

    id: str
    gpus: float
    submit: datetime
    node: str | None = None
    start: datetime | None = None
    pool: str | None = None
    job_id: str | None = None
    job_source: str | None = None
    user: str | None = None
    namespace: str | None = None
    name: str | None = None
    urgent: bool = False
    placeholder: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSnapshot:
    """The cluster at ``time``: pools, nodes and GPU workloads.

    ``notes`` say what was assumed instead of observed, and what was seen but left out.
    """

    time: datetime
    pools: tuple[NodePool, ...]
    nodes: tuple[Node, ...] = ()
    workloads: tuple[Workload, ...] = ()
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Check that names are unique and every node and workload points at something that exists.

        Raises:
            Refused: naming the first that does not.
        """
        object.__setattr__(self, "time", utc(self.time, "time"))
        pools = {pool.name for pool in self.pools}
        nodes = {node.name for node in self.nodes}
        if len(pools) != len(self.pools):
            raise Refused("pools", sorted(p.name for p in self.pools), "pool names are unique", "Rename one.")
        if len(nodes) != len(self.nodes):
            raise Refused("nodes", len(self.nodes), "node names are unique", "Rename one.")
        for node in self.nodes:
            if node.pool not in pools:
                raise Refused("node.pool", node.pool, f"node {node.name} must name a known pool", "Add the pool.")
        for workload in self.workloads:
            if workload.node is not None and workload.node not in nodes:
                raise Refused("workload.node", workload.node, f"{workload.id} must name a known node", "Add the node.")

    def pool(self, name: str) -> NodePool:
        """The pool of that name.

        Raises:
            Refused: there is none.
        """
        for pool in self.pools:
            if pool.name == name:
                return pool
        raise Refused(
            "pool", name, f"known pools are {', '.join(sorted(p.name for p in self.pools))}", "Use one of them."
        )

    def nodes_of(self, pool: str) -> tuple[Node, ...]:
        """The nodes of a pool, in the order seen."""
        return tuple(node for node in self.nodes if node.pool == pool)

    def used_gpus(self, node: str) -> float:
        """GPUs held on a node by real work (placeholders count as free)."""
        return sum(w.gpus for w in self.workloads if w.node == node and not w.placeholder)
