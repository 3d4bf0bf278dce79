"""A cluster described in a TOML file, for advice without a cluster; or assumed from the history.

::

    time = "history"              # the moment looked from (default), or an earlier one as 2026-03-02T12:00:00Z

    [[pools]]
    name = "default"              # required
    node_gpus = [8]               # GPUs of the node types it may launch; default [8]
    gpu_kind = "a100"
    consolidate_after = "180s"    # as in the NodePool; default "0s", as in Karpenter
    consolidation_policy = "WhenEmptyOrUnderutilized"
    limits = { "nvidia.com/gpu" = "512" }
    budgets = [{ nodes = "10%" }] # each with nodes, and optionally reasons, schedule and duration
    weight = 10
    # replicas = 4                # a static pool; it takes neither a weight nor GPU limits
    slice_minutes = 15            # slice length in use, where the pool says so
    sharing_factor = 1            # shares a GPU is cut into
    taints = [{ key = "nvidia.com/gpu", effect = "NoSchedule" }]
    field_manager = "argocd"      # who owns the pool's fields; default nobody
    owned = false                 # whether the pool is the advisor's own
    nodes = 12                    # ready nodes of the largest type; or one by one:

    [[nodes]]
    name = "n1"                   # required
    pool = "default"              # required
    gpus = 8                      # default: the largest type of its pool
    ready = true
    cordoned = false
    gpu_kind = "a100"
    created = "-2h"               # before the description's time; or a moment. Default: that time itself

    [[workloads]]
    id = "train-7"                # required
    gpus = 4                      # required; per node
    node = "n1"                   # absent: it waits
    submit = "-30m"               # likewise
    start = "-20m"                # default where it has a node: its submission
    pool = "default"              # also: job_id, job_source, user, namespace, name, urgent, placeholder

A key that is not listed here is refused, and every refusal names the field, its value, the limit and the remedy.
"""

from __future__ import annotations

import math
import tomllib
from collections.abc import Mapping
from datetime import datetime, timedelta
from pathlib import Path

from advisor.cluster.fields import (
    BUDGETS,
    CONSOLIDATE_AFTER,
    CONSOLIDATION_POLICY,
    DEFAULT_CONSOLIDATE_AFTER,
    GPU_LIMIT,
    REPLICAS,
    WEIGHT,
    WRITABLE_FIELDS,
    FieldValue,
    check_field,
    field_of,
)
from advisor.cluster.quantities import parse_quantity
from advisor.cluster.tables import StrictTable
from advisor.domain.nodepools import Budget, ClusterSnapshot, Node, NodePool, Taint, Workload
from advisor.domain.units import counted, parse_duration, utc
from advisor.errors import Refused

__all__ = ["default_description", "load_description", "parse_description"]

_KEY_OF_FIELD = {
    CONSOLIDATE_AFTER: "consolidate_after",
    CONSOLIDATION_POLICY: "consolidation_policy",
    BUDGETS: "budgets",
    GPU_LIMIT: "limits",
    WEIGHT: "weight",
    REPLICAS: "replicas",
}
_DEFAULT_KEEP_ALIVE = "180s"
_DEFAULT_SLICE_MINUTES = 15.0
_MOST_NODES = 20_000
_MOST_NODE_GPUS = 64
_MOST_SHARES = 128
_MOST_GPUS = 1_000_000
_MOST_SLICE_MINUTES = 10_080.0  # a week
_BEYOND_QUANTITIES = 2**63
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def load_description(path: Path, history_end: datetime | None = None) -> ClusterSnapshot:
    """The cluster described in a file.

    Raises:
        Refused: the file cannot be read, is not TOML, or describes no possible cluster.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise Refused("cluster file", str(path), f"it cannot be read: {why}", "Check the path.") from error
    return parse_description(text, history_end)


def parse_description(text: str, history_end: datetime | None = None) -> ClusterSnapshot:
    """The cluster described in TOML text; ``history_end`` is what ``time = "history"`` means, and the latest time.

    Raises:
        Refused: naming the field, its value, the limit and the remedy.
    """
    try:
        content = tomllib.loads(text)
    except (ValueError, RecursionError) as error:
        raise Refused("cluster file", text[:40], f"it is not TOML: {error}", "Correct the syntax.") from error
    top = StrictTable(content, "")
    time = _time(top, history_end)
    pool_tables = top.tables("pools")
    if not pool_tables:
        raise Refused("pools", [], "a cluster has at least one NodePool", "Add a [[pools]] table.")
    pools: list[NodePool] = []
    nodes: list[Node] = []
    for table in pool_tables:
        pool, count = _pool(table)
        pools.append(pool)
        nodes.extend(_plain_nodes(pool, count, time))
    sizes = {pool.name: pool for pool in pools}
    nodes.extend(_node(table, sizes, time) for table in top.tables("nodes") or ())
    workloads = tuple(_workload(table, time) for table in top.tables("workloads") or ())
    top.refuse_unknown()
    snapshot = ClusterSnapshot(time=time, pools=tuple(pools), nodes=tuple(nodes), workloads=workloads)
    _check_pools(snapshot)
    _check_capacity(snapshot)
    return snapshot


def default_description(pools: Mapping[str, float], time: datetime, node_gpus: int = 8) -> ClusterSnapshot:
    """The cluster assumed where none is described: one NodePool for each pool of the history.

    ``pools`` maps each pool to the GPUs it needs at ``time``; it gets enough ready nodes of
    ``node_gpus`` GPUs to hold them. No workload is placed: who runs where is not known. The snapshot's
    notes say that all of this is assumed.
    """
    needed = dict(pools) or {"default": 0.0}
    assumed = [
        NodePool(
            name=name,
            consolidate_after=_DEFAULT_KEEP_ALIVE,
            node_gpus=(node_gpus,),
            slice_minutes=_DEFAULT_SLICE_MINUTES,
        )
        for name in needed
    ]
    nodes = [
        node
        for pool in assumed
        for node in _plain_nodes(pool, math.ceil(max(needed[pool.name], 0.0) / node_gpus - 1e-9), time)
    ]
    note = (
        f"no cluster was described, so one NodePool was assumed for each pool of the history, with ready nodes of "
        f"{counted(node_gpus, 'GPU')} for what runs, consolidateAfter {_DEFAULT_KEEP_ALIVE} and slices of "
        f"{_DEFAULT_SLICE_MINUTES:g} min; describe yours in a file to replace it"
    )
    return ClusterSnapshot(time=time, pools=tuple(assumed), nodes=tuple(nodes), notes=(note,))


def _check_pools(snapshot: ClusterSnapshot) -> None:
    pools = [pool.name for pool in snapshot.pools]
    homes = {node.name: node.pool for node in snapshot.nodes}
    for n, workload in enumerate(snapshot.workloads):
        where = f"workloads[{n}].pool"
        if workload.pool is not None and workload.pool not in pools:
            limit = f"described pools are {', '.join(sorted(pools))}"
            raise Refused(where, workload.pool, limit, "Use one of them, or leave it out.")
        home = None if workload.node is None else homes[workload.node]
        if home is not None and workload.pool not in (None, home):
            raise Refused(where, workload.pool, f"node {workload.node} is of pool {home}", "Leave it out.")


def _check_capacity(snapshot: ClusterSnapshot) -> None:
    held: dict[str, float] = {}
    for workload in snapshot.workloads:
        if workload.node is not None:
            held[workload.node] = held.get(workload.node, 0.0) + workload.gpus
    for node in snapshot.nodes:
        if held.get(node.name, 0.0) > node.gpus + 1e-9:
            raise Refused(
                "workloads.gpus",
                held[node.name],
                f"node {node.name} has {counted(node.gpus, 'GPU')}",
                "Let some of them wait.",
            )


def _time(top: StrictTable, history_end: datetime | None) -> datetime:
    written = top.moment("time")
    if written is None or written == "history":
        if history_end is None:
            raise Refused("time", "history", "the history is empty", "Ingest a history first, or give a moment.")
        return utc(history_end, "time")
    time = _absolute(written, "time")
    if history_end is not None and time > history_end:
        limit = f"it lies after {history_end.isoformat()}, the moment looked from (where the history ends)"
        raise Refused("time", time.isoformat(), limit, "Leave it out, or look from then with --as-of.")
    return time


def _absolute(written: str | datetime, where: str) -> datetime:
    if isinstance(written, datetime):
        return utc(written, where)
    try:
        return utc(datetime.fromisoformat(written), where)
    except ValueError as error:
        raise Refused(where, written, "it is no moment", "Write 2026-03-02T12:00:00Z.") from error


def _moment(table: StrictTable, key: str, time: datetime) -> datetime | None:
    """A moment, absolute or as a negative duration before ``time``; None where absent.

    Raises:
        Refused: it lies after ``time``, or is neither.
    """
    written = table.moment(key)
    if written is None:
        return None
    where = table.where(key)
    if isinstance(written, str) and written.startswith("-"):
        try:
            return time - timedelta(seconds=parse_duration(written[1:], where))
        except OverflowError as error:
            raise Refused(where, written, "it lies before the year 1", "Give a shorter time.") from error
    found = _absolute(written, where)
    if found > time:
        raise Refused(where, found.isoformat(), f"it lies after the description's {time.isoformat()}", "Correct it.")
    return found


def _pool(table: StrictTable) -> tuple[NodePool, int]:
    name = table.required("name")
    pool = NodePool(
        name=name,
        consolidate_after=table.text("consolidate_after") or DEFAULT_CONSOLIDATE_AFTER,
        consolidation_policy=table.text("consolidation_policy"),
        budgets=_budgets(table),
        limits=table.texts_by_key("limits"),
        weight=table.whole("weight", 1),
        replicas=table.whole("replicas", 0),
        gpu_kind=table.text("gpu_kind"),
        node_gpus=_node_gpus(table),
        slice_minutes=table.number("slice_minutes", 0.0, _MOST_SLICE_MINUTES),
        sharing_factor=table.whole("sharing_factor", 1, _MOST_SHARES) or 1,
        owned=table.flag("owned", default=False),
        taints=_taints(table),
    )
    count = table.whole("nodes", 0, _MOST_NODES) or 0
    manager = table.text("field_manager")
    table.refuse_unknown()
    held = {field: value for field in WRITABLE_FIELDS if (value := field_of(pool, field)) is not None}
    _check_fields(table, pool, held)
    if manager is not None:
        pool.field_managers.update(dict.fromkeys(held, (manager,)))
    return pool, count


def _node_gpus(table: StrictTable) -> tuple[int, ...]:
    sizes = table.wholes("node_gpus") or (8,)
    if max(sizes) > _MOST_NODE_GPUS:
        limit = f"a node has {_MOST_NODE_GPUS} GPUs at most"
        raise Refused(table.where("node_gpus"), sizes, limit, "Correct the number.")
    return sizes


def _check_fields(table: StrictTable, pool: NodePool, held: Mapping[str, FieldValue]) -> None:
    for field, value in held.items():
        try:
            check_field(field, value)
        except Refused as error:
            raise Refused(table.where(_KEY_OF_FIELD[field]), error.value, error.limit, error.remedy) from error
    if pool.replicas is not None and (pool.weight is not None or pool.gpu_limit is not None):
        limit = "a static pool takes neither a weight nor GPU limits"
        raise Refused(table.where("replicas"), pool.replicas, limit, "Leave them out, or leave replicas out.")
    for resource, quantity in pool.limits.items():
        where = f"{table.where('limits')}.{resource}"
        if parse_quantity(quantity, where) >= _BEYOND_QUANTITIES:
            raise Refused(where, quantity, "a quantity is below 2^63", "Leave the limit out for none.")


def _budgets(table: StrictTable) -> tuple[Budget, ...] | None:
    entries = table.tables("budgets")
    if entries is None:
        return None
    budgets = []
    for entry in entries:
        budgets.append(
            Budget(entry.required("nodes"), entry.texts("reasons"), entry.text("schedule"), entry.text("duration"))
        )
        entry.refuse_unknown()
    return tuple(budgets)


def _taints(table: StrictTable) -> tuple[Taint, ...]:
    taints = []
    for entry in table.tables("taints") or ():
        effect = entry.required("effect")
        if effect not in _EFFECTS:
            raise Refused(entry.where("effect"), effect, f"it is one of {', '.join(_EFFECTS)}", "Use one of them.")
        taints.append(Taint(entry.required("key"), effect, entry.text("value")))
        entry.refuse_unknown()
    return tuple(taints)


def _plain_nodes(pool: NodePool, count: int, time: datetime) -> list[Node]:
    gpus = pool.largest_node_gpus
    return [
        Node(name=f"{pool.name}-{n}", pool=pool.name, gpus=gpus, created=time, gpu_kind=pool.gpu_kind)
        for n in range(1, count + 1)
    ]


def _node(table: StrictTable, pools: Mapping[str, NodePool], time: datetime) -> Node:
    name = table.required("name")
    pool = pools.get(table.required("pool"))
    if pool is None:
        known = ", ".join(sorted(pools))
        raise Refused(table.where("pool"), table.text("pool"), f"described pools are {known}", "Use one of them.")
    node = Node(
        name=name,
        pool=pool.name,
        gpus=table.whole("gpus", 1) or pool.largest_node_gpus,
        created=_moment(table, "created", time) or time,
        ready=table.flag("ready", default=True),
        gpu_kind=table.text("gpu_kind") or pool.gpu_kind,
        cordoned=table.flag("cordoned", default=False),
    )
    table.refuse_unknown()
    return node


def _workload(table: StrictTable, time: datetime) -> Workload:
    gpus = table.number("gpus", 0.0, _MOST_GPUS)
    if gpus is None:
        raise Refused(table.where("gpus"), None, "it must be given", "Add gpus = 1.")
    submit = _moment(table, "submit", time) or time
    node = table.text("node")
    start = _moment(table, "start", time)
    if start is not None and (node is None or start < submit):
        raise Refused(table.where("start"), start.isoformat(), "work starts on a node, after its submission", "Fix it.")
    workload = Workload(
        id=table.required("id"),
        gpus=gpus,
        submit=submit,
        node=node,
        start=submit if start is None and node is not None else start,
        pool=table.text("pool"),
        job_id=table.text("job_id"),
        job_source=table.text("job_source"),
        user=table.text("user"),
        namespace=table.text("namespace"),
        name=table.text("name"),
        urgent=table.flag("urgent", default=False),
        placeholder=table.flag("placeholder", default=False),
    )
    table.refuse_unknown()
    return workload
