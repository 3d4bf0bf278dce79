"""A cluster in memory that answers writes as the API server does.

What was measured on a real API server with Karpenter's CRDs and is kept here: limits merge key by key
while budgets are one atomic list; the same value is co-owned, another value conflicts, a forced one
changes hands; leaving out what one alone owned removes it (a limit becomes unlimited, budgets fall back
to 10 %, ``consolidateAfter`` is required and refuses); a write that changes nothing keeps the version.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from advisor.clock import Clock
from advisor.cluster.fields import (
    BUDGETS,
    CONSOLIDATE_AFTER,
    CONSOLIDATION_POLICY,
    DEFAULT_BUDGETS,
    DEFAULT_CONSOLIDATE_AFTER,
    DEFAULT_POLICY,
    GPU_LIMIT,
    REPLICAS,
    WEIGHT,
    WRITABLE_FIELDS,
    FieldValue,
    field_of,
)
from advisor.cluster.port import (
    FIELD_MANAGER,
    Applied,
    ClusterWrite,
    FieldConflict,
    PoolPatch,
    WarmCapacity,
)
from advisor.domain.nodepools import GPU_RESOURCE, ClusterSnapshot, NodePool
from advisor.errors import Refused, Stale

__all__ = ["MemoryCluster"]


@dataclass(slots=True)
class _Shared:
    """The cluster itself, which several managers may write to."""

    snapshot: ClusterSnapshot
    clock: Clock
    owners: dict[str, dict[str, frozenset[str]]]
    version: int
    versions: dict[str, int] = field(default_factory=dict)


class MemoryCluster:
    """One field manager's view of a cluster in memory; :meth:`seen_by` gives another manager's view of the same."""

    def __init__(self, snapshot: ClusterSnapshot, clock: Clock, manager: str = FIELD_MANAGER) -> None:
        """Start from ``snapshot``; its pools' ``field_managers`` say who owns what, nobody where they are silent."""
        owners = {
            pool.name: {name: frozenset(managers) for name, managers in pool.field_managers.items()}
            for pool in snapshot.pools
        }
        versions = {pool.name: at for at, pool in enumerate(snapshot.pools, start=1)}
        self._shared = _Shared(_defaulted(snapshot), clock, owners, len(versions), versions)
        self._manager = manager

    def seen_by(self, manager: str) -> MemoryCluster:
        """The same cluster, written to under another name."""
        other = object.__new__(MemoryCluster)
        other._shared, other._manager = self._shared, manager
        return other

    def observe(self) -> ClusterSnapshot:
        """The cluster at the clock's time."""
        shared = self._shared
        pools = tuple(
            replace(
                pool,
                resource_version=str(shared.versions[pool.name]),
                field_managers={name: tuple(sorted(who)) for name, who in shared.owners[pool.name].items()},
            )
            for pool in shared.snapshot.pools
        )
        return replace(shared.snapshot, time=shared.clock.now(), pools=pools)

    def replace_snapshot(self, snapshot: ClusterSnapshot) -> None:
        """Let time and other people happen: new pools, nodes and work, while owners and versions live on.

        Pools that are new have no owner; a pool whose fields differ gets a new version.
        """
        shared = self._shared
        before = {pool.name: pool for pool in shared.snapshot.pools}
        shared.snapshot = _defaulted(snapshot)
        for pool in shared.snapshot.pools:
            shared.owners.setdefault(pool.name, {})
            if before.get(pool.name) != pool:
                self._bump(pool.name)

    def apply(self, write: ClusterWrite) -> Applied:
        """Write all of it or nothing; see :class:`advisor.cluster.port.ClusterPort`."""
        pool = self._pool(write.pool)
        if isinstance(write, PoolPatch):
            return self._apply_patch(pool, write)
        if isinstance(write, WarmCapacity):
            return self._apply_own(pool, replace(pool, warm=write.buffer), "warm capacity")
        return self._apply_own(pool, replace(pool, slice_minutes=write.minutes), "slice length")

    def _apply_own(self, before: NodePool, after: NodePool, what: str) -> Applied:
        # An object of our own has its own version; the NodePool's stays.
        changed = before != after
        if changed:
            self._put(after)
            self._shared.version += 1
        return Applied(resource_version=str(self._shared.version), changed=(what,) if changed else ())

    def _apply_patch(self, pool: NodePool, patch: PoolPatch) -> Applied:
        version = str(self._shared.versions[pool.name])
        if patch.expected_resource_version not in (None, version):
            raise Stale(
                f"NodePool {pool.name} is at version {version}, not {patch.expected_resource_version}: "
                "it changed since it was read; observe again"
            )
        owners = self._shared.owners[pool.name]
        conflicts = self._conflicts(pool, patch, owners)
        if conflicts and not patch.force:
            return Applied(resource_version=version, conflicts=conflicts)
        released = [name for name, who in owners.items() if self._manager in who and name not in patch.fields]
        alone = [name for name in released if owners[name] == {self._manager}]
        after = _validated(pool, _written(pool, patch.fields, alone))
        claimed = self._claims(owners, patch, released)
        changed = tuple(name for name in WRITABLE_FIELDS if field_of(pool, name) != field_of(after, name))
        if changed:
            self._put(replace(after, last_changed=self._shared.clock.now()))
        if changed or claimed != owners:
            self._shared.owners[pool.name] = claimed
            self._bump(pool.name)
        return Applied(resource_version=str(self._shared.versions[pool.name]), changed=changed)

    def _conflicts(
        self, pool: NodePool, patch: PoolPatch, owners: Mapping[str, frozenset[str]]
    ) -> tuple[FieldConflict, ...]:
        # Spelling counts: "32" and "32000m" are one quantity, and yet a conflict.
        return tuple(
            FieldConflict(name, manager)
            for name, value in patch.fields.items()
            if value != field_of(pool, name)
            for manager in sorted(owners.get(name, frozenset()) - {self._manager})
        )

    def _claims(
        self, owners: Mapping[str, frozenset[str]], patch: PoolPatch, released: list[str]
    ) -> dict[str, frozenset[str]]:
        claimed = dict(owners)
        for name in released:
            claimed[name] = claimed[name] - {self._manager}
        pool = self._pool(patch.pool)
        for name, value in patch.fields.items():
            others = claimed.get(name, frozenset()) if value == field_of(pool, name) else frozenset[str]()
            claimed[name] = others | {self._manager}
        return {name: who for name, who in claimed.items() if who}

    def _pool(self, name: str) -> NodePool:
        for pool in self._shared.snapshot.pools:
            if pool.name == name:
                return pool
        raise Refused("pool", name, "this cluster has no NodePool of that name", "Apply creates no NodePool; make it.")

    def _put(self, changed: NodePool) -> None:
        snapshot = self._shared.snapshot
        pools = tuple(changed if pool.name == changed.name else pool for pool in snapshot.pools)
        self._shared.snapshot = replace(snapshot, pools=pools)

    def _bump(self, pool: str) -> None:
        self._shared.version += 1
        self._shared.versions[pool] = self._shared.version


def _defaulted(snapshot: ClusterSnapshot) -> ClusterSnapshot:
    """What the API server itself fills in; versions and owners are kept apart from the objects."""
    return replace(
        snapshot,
        pools=tuple(
            replace(
                pool,
                consolidate_after=pool.consolidate_after or DEFAULT_CONSOLIDATE_AFTER,
                consolidation_policy=pool.consolidation_policy or DEFAULT_POLICY,
                budgets=DEFAULT_BUDGETS if pool.budgets is None else pool.budgets,
                resource_version="",
                field_managers={},
            )
            for pool in snapshot.pools
        ),
    )


def _written(pool: NodePool, fields: Mapping[str, FieldValue], removed: list[str]) -> dict[str, Any]:
    """Every writable field as it would be after the apply, before the server's own validation."""
    after: dict[str, Any] = {name: field_of(pool, name) for name in WRITABLE_FIELDS}
    for name in removed:
        after[name] = None
    if BUDGETS in removed:
        after[BUDGETS] = DEFAULT_BUDGETS
    if CONSOLIDATION_POLICY in removed:
        after[CONSOLIDATION_POLICY] = DEFAULT_POLICY
    after.update(fields)
    return after


def _validated(pool: NodePool, after: Mapping[str, Any]) -> NodePool:
    """The pool with these fields, once it passes the rules that span fields.

    Raises:
        Refused: as the CRD's own rules word it.
    """
    if after[CONSOLIDATE_AFTER] is None:
        raise Refused(CONSOLIDATE_AFTER, None, "Required value", "Apply the value that shall stay.")
    if (after[REPLICAS] is None) != (pool.replicas is None):
        raise Refused(
            REPLICAS,
            after[REPLICAS],
            "Cannot transition NodePool between static (replicas set) and dynamic (replicas unset) provisioning modes",
            "Make a second NodePool.",
        )
    if after[REPLICAS] is not None and after[WEIGHT] is not None:
        raise Refused(WEIGHT, after[WEIGHT], "'weight' is not supported on static NodePools", "Leave it out.")
    if after[REPLICAS] is not None and after[GPU_LIMIT] is not None:
        raise Refused(
            GPU_LIMIT, after[GPU_LIMIT], "only 'limits.nodes' is supported on static NodePools", "Limit its nodes."
        )
    limits = {name: value for name, value in pool.limits.items() if name != GPU_RESOURCE}
    if after[GPU_LIMIT] is not None:
        limits[GPU_RESOURCE] = str(after[GPU_LIMIT])
    return replace(
        pool,
        consolidate_after=after[CONSOLIDATE_AFTER],
        consolidation_policy=after[CONSOLIDATION_POLICY],
        budgets=after[BUDGETS],
        limits=limits,
        weight=after[WEIGHT],
        replicas=after[REPLICAS],
    )
