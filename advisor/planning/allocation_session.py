"""One allocation under way: what is left of every pool while requests are served in order."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import timedelta

from advisor.domain.gpus import GpuShare
from advisor.domain.nodepools import ClusterSnapshot, Workload
from advisor.domain.slices import Allocation, Decision
from advisor.domain.units import shown_duration
from advisor.errors import Refused
from advisor.planning.batches import BatchBook, shown_members
from advisor.planning.deferral import Gap, Promise, promise, reserve
from advisor.planning.eligibility import PoolFit, PoolSize, ceiling_of, eligible_pools
from advisor.planning.fleet import Fleet, Need, Outlook, build_fleet
from advisor.planning.grants import Task, consecutive_slices
from advisor.planning.placement import choose_rows, preference, shown_extension

__all__ = ["AllocationSession"]

Fits = tuple[PoolFit, ...]


def _needs(fit: PoolFit) -> tuple[Need, ...]:
    return tuple(Need(gpus=part) for part in fit.parts) or (Need(shares=fit.shares),)


@dataclass(slots=True)
class AllocationSession:
    """Serves requests one by one; every answer takes what it grants or promises out of the pools.

    No batch is opened in a gap, since its later members would run into the gang.
    """

    snapshot: ClusterSnapshot
    outlook: Outlook
    sizes: dict[str, PoolSize]
    fleets: dict[str, Fleet]
    book: BatchBook
    gaps: dict[str, list[Gap]] = field(default_factory=dict)
    postponed: list[tuple[Task, Fits]] = field(default_factory=list)

    @classmethod
    def begin(cls, snapshot: ClusterSnapshot, outlook: Outlook) -> AllocationSession:
        """The cluster as it stands, before any request is served."""
        by_node: dict[str, list[Workload]] = {}
        for workload in snapshot.workloads:
            if workload.node is not None:
                by_node.setdefault(workload.node, []).append(workload)
        sizes, fleets = {}, {}
        for pool in snapshot.pools:
            size = ceiling_of(pool, snapshot, outlook.terms)
            nodes = list(snapshot.nodes_of(pool.name))
            grows = outlook.terms.elastic and pool.replicas is None
            headroom = max(0, size.gpus - sum(node.gpus for node in nodes)) if grows else 0
            sizes[pool.name] = size
            fleets[pool.name] = build_fleet(pool, nodes, by_node, headroom, outlook)
        return cls(snapshot, outlook, sizes, fleets, BatchBook(outlook.now))

    def decide(self, task: Task) -> Allocation:
        """Serve one request at its turn.

        A gang that is blocked behind another one where no node can be added is only noted: it gets its
        estimate from :meth:`estimate_postponed`, once everything else has its place.
        """
        request = task.request
        try:
            fits = eligible_pools(request, self.snapshot, self.sizes, self.outlook.terms, self.outlook.now)
        except Refused as refusal:
            return _refused(task, refusal)
        joined = self._join(task, fits) if self.outlook.terms.batch_when_idle else None
        placed = joined or self._place(task, fits) or self._fill_gap(task, fits) or self._join(task, fits)
        if placed is not None:
            return placed
        promised = self._promise(task, fits)
        if request.gpus > 1 and not promised.launch and promised.fleet.pool.name in self.gaps:
            self.postponed.append((task, fits))
            return Allocation(request_id=request.id, decision=Decision.DEFERRED)
        return self._defer(task, promised)

    def estimate_postponed(self) -> Iterator[Allocation]:
        """When the gangs that were passed over are expected to start, in their order."""
        for task, fits in self.postponed:
            yield self._defer(task, self._promise(task, fits))

    def _place(self, task: Task, fits: Fits) -> Allocation | None:
        """Idle shares, in the pool and on the nodes that suit best."""
        options = []
        for fit in fits:
            fleet = self.fleets[fit.pool]
            rows = choose_rows(fleet, _needs(fit), task.survival, task.request.gpu_kind)
            if rows is not None:
                options.append((preference(fleet, rows[0], task.survival), fit, rows))
        if not options:
            return None
        key, fit, rows = min(options, key=lambda option: option[0])
        fleet = self.fleets[fit.pool]
        shares: list[GpuShare] = []
        for row, need in zip(rows, _needs(fit), strict=True):
            shares.extend(fleet.take(row, need, 0.0, task.seconds))
            fleet.ended[row] *= 1.0 - task.survival
        where = ", ".join(fleet.names[row] for row in rows)
        reason = (
            f"{where}: of the nodes with room the one kept up least longer ({shown_extension(key)}), then the fullest"
        )
        granted = self._granted(task, fleet, shares, reason)
        if granted.slice_count == 1 and task.request.gpus <= 1:
            self.book.open(task, fleet, granted.slices)
        return granted

    def _fill_gap(self, task: Task, fits: Fits) -> Allocation | None:
        """Shares that a waiting gang cannot use yet."""
        for fit in fits:
            for gap in self.gaps.get(fit.pool, []):
                shares = gap.fill(_needs(fit)[0], task) if len(_needs(fit)) == 1 else None
                if shares is not None:
                    reason = f"{shares[0].node}: expected to end before gang {gap.gang} can start there"
                    return self._granted(task, gap.fleet, shares, reason)
        return None

    def _granted(self, task: Task, fleet: Fleet, shares: Sequence[GpuShare], reason: str) -> Allocation:
        length, whose = task.length(fleet.pool.name)
        count = length.slices_for(task.seconds)
        granted = min(count, self.outlook.terms.longest_grant)
        slices = consecutive_slices(shares, length, granted, self.outlook.now)
        text = (
            f"{count} slice{'s' if count > 1 else ''} of {shown_duration(length.seconds)} ({whose}) for a predicted "
            f"{shown_duration(task.seconds)} at the {self.outlook.terms.duration_level:.0%} level"
        )
        if granted < count:
            text += f"; the first {granted} now, the rest by renewal"
        return Allocation(
            request_id=task.request.id,
            decision=Decision.PLACED,
            slices=slices,
            slice_count=count,
            reasons=(reason, text),
        )

    def _join(self, task: Task, fits: Fits) -> Allocation | None:
        """A slice that another tiny task leaves room in."""
        found = self.book.join(task, fits)
        if found is None:
            return None
        batch, start = found
        reason = (
            f"shares one slice, after {shown_members(batch.members[:-1])} in about {shown_duration(start)}: the sum "
            f"stays within {shown_duration(batch.limit_seconds)} at {self.outlook.terms.batch_z:g} standard deviations"
        )
        return Allocation(
            request_id=task.request.id,
            decision=Decision.PLACED,
            slices=batch.slices,
            slice_count=1,
            reasons=(reason,),
        )

    def _promise(self, task: Task, fits: Fits) -> Promise:
        """The earliest expected start over the pools; of equal ones the first by name."""
        terms = self.outlook.terms
        options = [
            promise(
                self.fleets[fit.pool],
                _needs(fit),
                task.request.gpu_kind,
                terms.start_latency_of(fit.pool),
                wait=terms.wait_for_release,
            )
            for fit in fits
        ]
        return min(options, key=lambda option: option.seconds)

    def _defer(self, task: Task, promised: Promise) -> Allocation:
        """Deferred until the promised time, or refused where that is too late for the deadline."""
        now = self.outlook.now
        if math.isinf(promised.seconds):
            return Allocation(request_id=task.request.id, decision=Decision.DEFERRED, reasons=(promised.reason,))
        start = now + timedelta(seconds=promised.seconds)
        deadline = task.request.deadline
        if deadline is not None and start + timedelta(seconds=task.seconds) > deadline:
            limit = f"it can start at about {start.isoformat()} and is expected to take {shown_duration(task.seconds)}"
            return _refused(
                task, Refused("deadline", deadline.isoformat(), limit, "Move it later or make the task urgent.")
            )
        idle = reserve(promised, task, now)
        pool = promised.fleet.pool.name
        if idle:
            self.gaps.setdefault(pool, []).append(Gap(promised.fleet, task.request.id, promised.seconds, idle))
        return Allocation(
            request_id=task.request.id,
            decision=Decision.DEFERRED,
            slice_count=task.length(pool)[0].slices_for(task.seconds),
            deferred_until=start,
            reasons=(f"{pool}: {promised.reason}",),
            launch_pool=pool if promised.launch else None,
            launch_nodes=len(promised.launch),
        )


def _refused(task: Task, refusal: Refused) -> Allocation:
    return Allocation(request_id=task.request.id, decision=Decision.REFUSED, reasons=(str(refusal),))
