"""One look: observe, diff, guard, act, report. What is next is returned, never slept.

In Observe and Recommend nothing is written. In Apply each object is decided, looked at again, decided
again, and written only where both decisions agree.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime

from advisor.cluster.port import Applied, ClusterPort, ClusterWrite, SliceSetting, WarmCapacity
from advisor.domain.decisions import DecisionRecord, Verdict
from advisor.domain.nodepools import ClusterSnapshot, Node, NodePool
from advisor.domain.plans import Advice, Change, Mode, PoolAdvice
from advisor.errors import Refused, Stale, Transient
from advisor.reconciler.actions import BUFFER, NODE_POOL, SETTING, applied_to, diff, kind_of, wanted_limit
from advisor.reconciler.guards import GuardContext, GuardRules, judged, reasons_not_to_write
from advisor.reconciler.pacing import RecentWants, stepped
from advisor.reconciler.patches import buffer_manifests, pool_manifest, pool_patch, slice_manifest

__all__ = ["PoolProposal", "ReconcileInputs", "ReconcileReport", "complete_advice", "propose", "reconcile"]

_INTERVAL_SECONDS = 300.0
_RETRY_SECONDS = 30.0


def _never(pool: str, name: str) -> datetime | None:
    del pool, name
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconcileInputs:
    """What a look needs beside advice and cluster.

    ``last_applied`` answers when a field of a pool was last changed by this program, from the ledger.
    ``wants`` is what the look before returned; None for a single look by hand, which has no memory and
    leaves the quiet while out. ``namespace`` is where our own objects live. ``cluster_assumed`` says that nobody
    described the cluster, so that what is set on it was assumed, and each change says so.
    """

    now: datetime
    history_as_of: datetime | None
    telemetry_as_of: datetime | None = None
    rules: GuardRules = field(default_factory=GuardRules)
    last_applied: Callable[[str, str], datetime | None] = _never
    wants: RecentWants | None = None
    paused: bool = False
    namespace: str = "gpu-slice-advisor"
    interval_seconds: float = _INTERVAL_SECONDS
    cluster_assumed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolProposal:
    """What is proposed for one pool: judged changes, each with where it is headed, and the manifests of the allowed."""

    pool: NodePool
    changes: tuple[Change, ...]
    wanted: tuple[Change, ...]
    kept_back: Mapping[tuple[str, str], tuple[str, ...]]
    patch: dict[str, object] | None
    manifests: tuple[dict[str, object], ...]

    def of(self, objects: str) -> tuple[Change, ...]:
        """The allowed changes of one kind of object; of our own objects all of an object or none."""
        allowed = tuple(change for change in self.changes if kind_of(change) == objects and change.allowed)
        whole = objects == NODE_POOL or all(change.allowed for change in self.changes if kind_of(change) == objects)
        return allowed if whole else ()

    def writable(self, objects: str) -> tuple[Change, ...]:
        """Those of :meth:`of` that this program may make itself."""
        return tuple(change for change in self.of(objects) if not self.kept_back[change.object, change.field])


@dataclass(frozen=True, slots=True, kw_only=True)
class ReconcileReport:
    """What came of one look: the advice with its changes, an entry of the ledger for each, and when to look again."""

    advice: Advice
    decisions: tuple[DecisionRecord, ...]
    wants: RecentWants
    next_look_seconds: float


def propose(advice: PoolAdvice, snapshot: ClusterSnapshot, mode: Mode, inputs: ReconcileInputs) -> PoolProposal:
    """Diff, pace and judge one pool; pure.

    Raises:
        Refused: the cluster has no NodePool of that name.
    """
    pool, nodes = snapshot.pool(advice.pool), snapshot.nodes_of(advice.pool)
    wanted = diff(advice, pool, nodes)
    context = GuardContext(
        now=inputs.now,
        mode=mode,
        pool=pool,
        observed_at=snapshot.time,
        history_as_of=inputs.history_as_of,
        telemetry_as_of=inputs.telemetry_as_of,
        skilled=advice.demand.skilled,
        busy_gpus=_busy_gpus(snapshot, nodes),
        wants=inputs.wants,
        paused=inputs.paused,
        rules=inputs.rules,
    )
    changes, kept_back = [], {}
    for one in wanted:
        its = replace(context, last_applied=inputs.last_applied(pool.name, one.field))
        change = judged(_from_assumed(stepped(one, pool, inputs.rules.largest_step), inputs), its)
        changes.append(change)
        kept_back[change.object, change.field] = reasons_not_to_write(change, its)
    proposal = PoolProposal(
        pool=pool, changes=tuple(changes), wanted=wanted, kept_back=kept_back, patch=None, manifests=()
    )
    return _with_manifests(proposal, inputs)


def complete_advice(advice: Advice, snapshot: ClusterSnapshot, inputs: ReconcileInputs) -> Advice:
    """The advice with the changes, patch and manifests of every pool that the cluster has; pure."""
    proposals = _proposals(advice, snapshot, inputs)
    pools = tuple(_completed(pool, proposals[pool.pool]) for pool in advice.pools)
    return replace(advice, pools=pools, cluster_assumed=inputs.cluster_assumed)


def reconcile(advice: Advice, cluster: ClusterPort, inputs: ReconcileInputs) -> ReconcileReport:
    """One look at the cluster with this advice in hand.

    A write that fails is reported and tried again at a later look; it stops no other pool, nor does a pool
    of which nothing can be proposed.

    Raises:
        Transient: the cluster cannot be observed.
        Refused: the cluster does not let itself be observed.
    """
    snapshot = cluster.observe()
    found = _proposals(advice, snapshot, inputs)
    proposals = {name: one for name, one in found.items() if isinstance(one, PoolProposal)}
    written: dict[tuple[str, str], _Outcome] = {}
    if any(_to_write(proposal) for proposal in proposals.values()):
        written = _act(advice, proposals, cluster, inputs)
    decisions = tuple(
        _record(change, headed, proposal, written, advice, inputs)
        for proposal in proposals.values()
        for change, headed in zip(proposal.changes, proposal.wanted, strict=True)
    )
    pools = tuple(_completed(pool, found[pool.pool]) for pool in advice.pools)
    soon = any(outcome.soon for outcome in written.values())
    return ReconcileReport(
        advice=replace(advice, pools=pools, cluster_assumed=inputs.cluster_assumed),
        decisions=decisions,
        wants=_remembered(advice, snapshot, inputs),
        next_look_seconds=min(_RETRY_SECONDS, inputs.interval_seconds) if soon else inputs.interval_seconds,
    )


def _from_assumed(change: Change, inputs: ReconcileInputs) -> Change:
    if not inputs.cluster_assumed or change.old is None:
        return change
    said = f"that {change.old} is set now was assumed, since no cluster was described"
    return replace(change, reasons=(*change.reasons, said))


def _with_manifests(proposal: PoolProposal, inputs: ReconcileInputs) -> PoolProposal:
    patch = pool_patch(proposal.pool, proposal.of(NODE_POOL))
    manifests: list[dict[str, object]] = []
    for write in _own_writes(proposal.pool, proposal.of(BUFFER), proposal.of(SETTING)):
        if isinstance(write, WarmCapacity):
            manifests.extend(buffer_manifests(proposal.pool, write.buffer, inputs.namespace))
        else:
            manifests.append(slice_manifest(proposal.pool, write.minutes, inputs.namespace))
    return replace(proposal, patch=None if patch is None else pool_manifest(patch), manifests=tuple(manifests))


def _own_writes(
    pool: NodePool, buffer: Sequence[Change], setting: Sequence[Change]
) -> list[WarmCapacity | SliceSetting]:
    after = applied_to(pool, [*buffer, *setting])
    writes: list[WarmCapacity | SliceSetting] = []
    if buffer and after.warm is not None:
        writes.append(WarmCapacity(pool=pool.name, buffer=after.warm))
    if setting and after.slice_minutes is not None:
        writes.append(SliceSetting(pool=pool.name, minutes=after.slice_minutes))
    return writes


def _to_write(proposal: PoolProposal) -> bool:
    return any(proposal.writable(kind) for kind in (NODE_POOL, BUFFER, SETTING))


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What became of a write; ``soon`` where the same may well succeed in a moment."""

    verdict: Verdict
    reason: str
    soon: bool = False


@dataclass(frozen=True, slots=True)
class _SecondLook:
    """The cluster as it is just before writing, and everything to decide by once more."""

    snapshot: ClusterSnapshot
    cluster: ClusterPort
    mode: Mode
    inputs: ReconcileInputs

    def act(self, advice: PoolAdvice, changes: Sequence[Change]) -> _Outcome:
        """Decide again, and write if it comes to the same."""
        try:
            second = propose(advice, self.snapshot, self.mode, self.inputs)
            if _steps(second.writable(kind_of(changes[0]))) != _steps(changes):
                return _Outcome(Verdict.FAILED, "the cluster changed while this was decided", soon=True)
            done = self.cluster.apply(_write(second.pool, changes, self.inputs))
        except (Stale, Transient) as error:
            return _Outcome(Verdict.FAILED, str(error), soon=True)
        except Refused as error:
            return _Outcome(Verdict.FAILED, str(error))
        if done.conflicts:
            return _Outcome(Verdict.FAILED, _conflict(done))
        return _Outcome(Verdict.APPLIED, f"written at version {done.resource_version}")


def _act(
    advice: Advice, proposals: Mapping[str, PoolProposal], cluster: ClusterPort, inputs: ReconcileInputs
) -> dict[tuple[str, str], _Outcome]:
    """Write what may be written, object by object, after a second look that must come to the same."""
    look = _SecondLook(cluster.observe(), cluster, advice.mode, inputs)
    results: dict[tuple[str, str], _Outcome] = {}
    for pool in advice.pools:
        decided = proposals.get(pool.pool)
        for kind in (NODE_POOL, BUFFER, SETTING):
            changes = () if decided is None else decided.writable(kind)
            if changes:
                outcome = look.act(pool, changes)
                results.update({(change.object, change.field): outcome for change in changes})
    return results


def _steps(changes: Sequence[Change]) -> list[tuple[object, ...]]:
    return [(change.object, change.field, change.old, change.new) for change in changes]


def _busy_gpus(snapshot: ClusterSnapshot, nodes: Sequence[Node]) -> float:
    names = {node.name for node in nodes}
    return sum(work.gpus for work in snapshot.workloads if work.node in names and not work.placeholder)


def _write(pool: NodePool, changes: Sequence[Change], inputs: ReconcileInputs) -> ClusterWrite:
    patch = pool_patch(pool, changes, take_over=inputs.rules.take_over)
    return patch if patch is not None else _own_writes(pool, *_by_kind(changes))[0]


def _by_kind(changes: Sequence[Change]) -> tuple[list[Change], list[Change]]:
    return [c for c in changes if kind_of(c) == BUFFER], [c for c in changes if kind_of(c) == SETTING]


def _conflict(done: Applied) -> str:
    claimed = ", ".join(f"{one.field} by {one.manager}" for one in done.conflicts)
    return f"nothing was written, since others have claimed {claimed}; apply the printed patch there"


def _record(
    change: Change,
    headed: Change,
    proposal: PoolProposal,
    written: Mapping[tuple[str, str], _Outcome],
    advice: Advice,
    inputs: ReconcileInputs,
) -> DecisionRecord:
    key = (change.object, change.field)
    if key in written:
        verdict = written[key].verdict
        reasons = (*change.reasons, written[key].reason)
    else:
        verdict = Verdict.RECOMMENDED if change.allowed else Verdict.REFUSED
        reasons = (*change.reasons, *(proposal.kept_back[key] if change.allowed else ()))
    return DecisionRecord(
        time=inputs.now,
        pool=proposal.pool.name,
        object=change.object,
        field=change.field,
        old=change.old,
        new=change.new,
        wanted=headed.new,
        verdict=verdict,
        mode=advice.mode,
        reasons=reasons,
        models=dict(advice.models),
    )


def _remembered(advice: Advice, snapshot: ClusterSnapshot, inputs: ReconcileInputs) -> RecentWants:
    wants = inputs.wants or RecentWants()
    pools = {pool.name: pool for pool in snapshot.pools}
    for one in advice.pools:
        wanted = wanted_limit(one, pools[one.pool]) if one.pool in pools else None
        if wanted is not None:
            wants = wants.remembering(inputs.now, one.pool, wanted, inputs.rules.quiet_minutes)
    return wants


def _proposals(advice: Advice, snapshot: ClusterSnapshot, inputs: ReconcileInputs) -> dict[str, PoolProposal | str]:
    """What is proposed for each pool, or why nothing can be."""
    known = {pool.name for pool in snapshot.pools}
    found: dict[str, PoolProposal | str] = {}
    for pool in advice.pools:
        if pool.pool not in known:
            found[pool.pool] = f"the cluster has no NodePool {pool.pool}: nothing can be proposed for it"
            continue
        try:
            found[pool.pool] = propose(pool, snapshot, advice.mode, inputs)
        except Refused as error:
            found[pool.pool] = f"nothing can be proposed for NodePool {pool.pool}: {error}"
    return found


def _completed(advice: PoolAdvice, proposal: PoolProposal | str) -> PoolAdvice:
    if isinstance(proposal, str):
        return replace(advice, changes=(), patch=None, manifests=(), reasons=(*advice.reasons, proposal))
    return replace(advice, changes=proposal.changes, patch=proposal.patch, manifests=proposal.manifests)
