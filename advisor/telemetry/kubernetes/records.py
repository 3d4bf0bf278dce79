"""Objects as records of pods and creators: what they are part of, which node they ran on, and how they ended."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cached_property

from advisor.cluster.reflector import Held
from advisor.domain.asks import GpuNode
from advisor.telemetry.kubernetes.creators import CreatorObject, QueuedWorkload
from advisor.telemetry.kubernetes.endings import ending_of
from advisor.telemetry.kubernetes.nodes import NodeObject
from advisor.telemetry.kubernetes.pods import OwnerRef, PodObject
from advisor.telemetry.pods import GANG_KINDS, CreatorRecord, PodRecord

__all__ = ["Records"]

_DEEPEST = 8
_CLOCKS_DIFFER = timedelta(seconds=5)


@dataclass(frozen=True)
class Records:
    """What is known of pods, creators and nodes (each by uid), and of queueing, as records; made once, then read."""

    pods: Mapping[str, Held[PodObject]]
    creators: Mapping[str, Held[CreatorObject]]
    nodes: Mapping[str, Held[NodeObject]]
    queued: Sequence[QueuedWorkload] = ()

    def pod_records(self) -> Iterator[PodRecord]:
        """Every pod."""
        for uid, held in self.pods.items():
            yield self._pod(held, self._creator_of_pod.get(uid))

    def creator_records(self) -> Iterator[CreatorRecord]:
        """Jobs that are part of nothing larger and tell of themselves, whether or not a pod of theirs is known.

        One that was deleted before it had ended is left to its pods: when it stopped is theirs to tell.
        """
        for uid, held in self.creators.items():
            job = held.value
            if job.kind == "Job" and self._outermost(job.owner) is None and (held.there or job.outcome is not None):
                yield self._creator(OwnerRef(job.kind, job.name, uid), job.namespace, job.created)

    def open_pods(self) -> set[str]:
        """Pods (by uid) of work that may go on: an object behind them, or another pod of it, is still there."""
        there = {uid for uid, held in self.creators.items() if held.there}
        there |= {outer.uid for uid, outer in self._outer_of_pod.items() if self.pods[uid].there}
        return {uid for uid, outer in self._outer_of_pod.items() if outer.uid in there}

    def nodes_lost(self) -> int:
        """Pods that ran on nodes of which nothing is known any more."""
        return sum(
            held.value.node is not None and held.value.node not in self._node_by_name for held in self.pods.values()
        )

    def _pod(self, held: Held[PodObject], creator: CreatorRecord | None) -> PodRecord:
        pod = held.value
        node = self._node_by_name.get(pod.node or "")
        gpus = node.gpus if node is not None else GpuNode(gpu_kind=pod.gpu_kind)
        ending = ending_of(held)
        return PodRecord(
            uid=pod.uid,
            namespace=pod.namespace,
            name=pod.name,
            created=pod.created,
            gpus=pod.ask.physical(gpus),
            # Moments of different clocks: seconds before its creation are its creation.
            scheduled=None if pod.scheduled is None else max(pod.scheduled, pod.created),
            started=None if pod.started is None else max(pod.started, pod.created),
            ended=ending.ended,
            outcome=ending.outcome,
            last_seen=ending.last_seen,
            reason=pod.reason,
            restarts=pod.restarts,
            image_pull_seconds=pod.image_pull_seconds,
            creator=creator,
            gpu_kind=pod.gpu_kind or gpus.gpu_kind,
            pool=(None if node is None else node.pool) or pod.pool,
            node=pod.node,
            cpus=pod.ask.cpus,
            priority=pod.priority,
            time_limit_seconds=pod.time_limit_seconds,
            user=pod.user,
            image=pod.ask.image,
            told_by_node=() if pod.gpu_kind is not None else ("gpu_kind",),
            placeholder=pod.placeholder,
        )

    @cached_property
    def _node_by_name(self) -> dict[str, NodeObject]:
        """The newest node of each name."""
        return {node.name: node for node in sorted((n.value for n in self.nodes.values()), key=lambda n: n.created)}

    @cached_property
    def _evictions(self) -> dict[str, int]:
        found: dict[str, int] = defaultdict(int)
        for workload in self.queued:
            for uid in workload.owners:
                found[uid] += workload.evictions
        return found

    @cached_property
    def _outer_of_pod(self) -> dict[str, OwnerRef]:
        """The outermost object of batch work behind each pod that is part of any."""
        found = ((uid, self._outermost(held.value.owner)) for uid, held in self.pods.items())
        return {uid: outer for uid, outer in found if outer is not None}

    @cached_property
    def _pods_of(self) -> dict[str, list[PodObject]]:
        """Pods by the uid of the outermost object behind them."""
        found: dict[str, list[PodObject]] = defaultdict(list)
        for uid, outer in self._outer_of_pod.items():
            found[outer.uid].append(self.pods[uid].value)
        return found

    @cached_property
    def _creator_of_pod(self) -> dict[str, CreatorRecord]:
        made: dict[str, CreatorRecord] = {}
        found: dict[str, CreatorRecord] = {}
        for uid, outer in self._outer_of_pod.items():
            if outer.uid not in made:
                first = min(pod.created for pod in self._pods_of[outer.uid])
                made[outer.uid] = self._creator(outer, self.pods[uid].value.namespace, first)
            found[uid] = made[outer.uid]
        return found

    def _outermost(self, owner: OwnerRef | None) -> OwnerRef | None:
        """The last object of batch work up the chain of owners, as far as it is known."""
        found = None
        for _ in range(_DEEPEST):
            if owner is None:
                break
            if owner.kind in GANG_KINDS:
                found = owner
            held: Held[CreatorObject] | Held[PodObject] | None = self.creators.get(owner.uid) or self.pods.get(
                owner.uid
            )
            owner = None if held is None else held.value.owner
        return found

    def _creator(self, named: OwnerRef, namespace: str, first_pod: datetime) -> CreatorRecord:
        """The record of an object; of one that was not read only its name is known, and when its first pod came."""
        held = self.creators.get(named.uid)
        evictions = self._evictions.get(named.uid, 0)
        if held is None:
            return CreatorRecord(
                kind=named.kind,
                namespace=namespace,
                name=named.name,
                created=first_pod,
                uid=named.uid,
                evictions=evictions,
            )
        creator = held.value
        return CreatorRecord(
            kind=creator.kind,
            namespace=creator.namespace,
            name=creator.name,
            created=creator.created,
            uid=creator.uid,
            started=None if creator.started is None else max(creator.started, creator.created),
            ended=creator.ended,
            outcome=creator.outcome,
            parallelism=creator.parallelism,
            completions=creator.completions,
            gpus_per_pod=None if creator.ask is None else creator.ask.physical(GpuNode(gpu_kind=creator.gpu_kind)),
            cpus_per_pod=None if creator.ask is None else creator.ask.cpus,
            gpu_kind=creator.gpu_kind,
            suspended=creator.suspended and creator.outcome is None,
            evictions=evictions,
            partial=creator.outcome is not None and evictions > self._earlier_runs(creator),
            time_limit_seconds=creator.time_limit_seconds,
            user=creator.user,
            image=None if creator.ask is None else creator.ask.image,
        )

    def _earlier_runs(self, creator: CreatorObject) -> int:
        """Runs that are known from before the one its status tells of: an object resumed begins its times anew."""
        if creator.started is None:
            return 0
        spans = sorted(
            (pod.created, ending.ended or ending.last_seen or pod.created)
            for pod in self._pods_of.get(creator.uid, ())
            if creator.started - pod.created > _CLOCKS_DIFFER
            for ending in (ending_of(self.pods[pod.uid]),)
        )
        runs, until = 0, None
        for begin, end in spans:
            runs += until is None or begin > until
            until = end if until is None else max(until, end)
        return runs
