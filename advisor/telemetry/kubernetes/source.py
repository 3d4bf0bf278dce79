"""Job history from a live cluster's API server."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import datetime, timedelta
from typing import Any, TypeVar

from advisor.cluster.objects import NotServed, ObjectReader
from advisor.cluster.reflector import Held, Pace, Reflector
from advisor.domain.accounts import JobAccount
from advisor.domain.ingest import JobBatch
from advisor.domain.start_latency import PoolStart, StartLatency
from advisor.domain.units import utc
from advisor.errors import Refused
from advisor.telemetry.gangs import Work, uids_of, work_of
from advisor.telemetry.kubernetes.creators import CreatorObject, CreatorReader, QueuedWorkload, read_queued
from advisor.telemetry.kubernetes.kinds import CLAIMS, CREATORS, JOBS, NODES, PODS, WORKLOADS
from advisor.telemetry.kubernetes.nodes import ClaimObject, NodeObject, read_claim_object, read_node_object
from advisor.telemetry.kubernetes.pods import PodObject, PodReader
from advisor.telemetry.kubernetes.records import Records
from advisor.telemetry.start_latency import node_starts
from advisor.telemetry.tally import RejectionTally

__all__ = ["KubernetesSource"]

T = TypeVar("T")

_CATCH_UP_SECONDS = 1.0
"""A watch is told at once what it has missed, and an API server ends none before a second."""
_REMEMBERED = timedelta(days=1)
_NODES_REMEMBERED = timedelta(days=7)
_COSTS = {
    NODES.plural: "pools, GPU kinds and how GPUs are shared are not known",
    JOBS.plural: "Jobs whose pods are gone are missing, and tasks of one Job are taken for a gang",
    CLAIMS.plural: "start latency is not known",
    WORKLOADS.plural: "evictions by Kueue are not counted",
}


class KubernetesSource:
    """Pods, what made them and where they ran, as jobs; see :class:`advisor.telemetry.source.Source`.

    The API server tells of what is there. What has gone is known as long as this object lives: between two reads
    :meth:`follow` takes in what comes and goes. From then on a read catches up by the watches alone, since a list would
    skip what came and went before it; without :meth:`follow` every read lists everything.
    """

    def __init__(
        self, reader: ObjectReader, pace: Pace, user_labels: Sequence[str] = (), *, name: str | None = None
    ) -> None:
        """Read through ``reader``; ``name`` stands for the cluster where its own must not.

        Raises:
            Refused: the name is empty.
        """
        if name is not None and not name.strip():
            raise Refused("name", name, "it must not be empty", "Leave it out, or give a name.")
        self._name = f"kubernetes/{reader.name if name is None else name}"
        self._pods: Reflector[PodObject] = Reflector(PODS, reader, PodReader(user_labels), pace)
        self._nodes: Reflector[NodeObject] = Reflector(NODES, reader, read_node_object, pace)
        self._claims: Reflector[ClaimObject] = Reflector(CLAIMS, reader, read_claim_object, pace)
        self._queued: Reflector[QueuedWorkload] = Reflector(WORKLOADS, reader, read_queued, pace)
        self._creators: tuple[Reflector[CreatorObject], ...] = tuple(
            Reflector(kind, reader, CreatorReader(kind.kind, user_labels), pace) for kind in CREATORS
        )
        self._clock = pace.clock
        self._followed = False
        self._began: datetime | None = None
        self._denied: dict[str, Refused] = {}
        self._absent: set[str] = set()

    @property
    def name(self) -> str:
        """``kubernetes/`` and what the cluster is called."""
        return self._name

    @property
    def restarts(self) -> int:
        """How often a list had to be read anew because the API server no longer kept the version watched."""
        return sum(reflector.restarts for reflector in self._all())

    def read(self, since: datetime | None, now: datetime) -> JobBatch:
        """Every job of which an object is there or was seen to go; what went long before ``since`` is forgotten.

        Raises:
            Refused: pods may not be listed.
            Transient: the API server cannot be asked now.
        """
        moment = utc(now, "now")
        self._catch_up()
        if since is not None:
            self._forget(utc(since, "since"))
        tally = RejectionTally()
        for reflector in self._all():
            for odd in reflector.refused.values():
                shown = f"{reflector.kind.kind} {odd.shown}: {odd.error}"
                tally.add(f"unreadable_{odd.error.field}", shown)
        records = self._records()
        known = _until(moment, work_of(records.pod_records(), records.creator_records(), tally), tally)
        return JobBatch(
            source=self._name,
            jobs=tuple(work.job for work in known),
            rejections=tally.rejections(),
            watermark=moment,
            notes=tuple(self._notes(records)),
            starts=self._starts(),
            overlapping=True,
            whole=True,
            accounts={work.job.id: work.account for work in known},
            reaches_back_to=self._began,
            seen_at=moment,
            pods=uids_of(known),
        )

    def follow(self, seconds: float) -> None:
        """Take in what changes for so many seconds, every kind that could be listed by a watch of its own.

        Raises:
            Refused: pods may not be watched.
        """
        self._followed = True
        if self._pods.version is None:
            self._list([*self._all()])
        self._watch(seconds)

    def start_latencies(self) -> tuple[StartLatency, ...]:
        """Start latency per NodePool, of the nodes that were read last and those seen to go since."""
        return StartLatency.by_pool(self._starts())

    def _starts(self) -> tuple[PoolStart, ...]:
        return node_starts(_values(self._claims), _values(self._nodes), _values(self._pods))

    def _all(self) -> tuple[Reflector[Any], ...]:
        # Pods come first: what made them and where they run is then there in the lists that follow.
        return (self._pods, self._nodes, *self._creators, self._claims, self._queued)

    def _catch_up(self) -> None:
        """Know everything up to now, by the watches where they told it and by lists of the rest."""
        began = self._clock.now()
        self._denied.clear()
        self._absent.clear()
        if self._followed:
            # What may not be watched is listed, pods too: who follows has been told.
            with suppress(Refused):
                self._watch(_CATCH_UP_SECONDS)
        self._list(
            [each for each in self._all() if each.version is None or each.contact is None or each.contact <= began]
        )

    def _list(self, reflectors: Sequence[Reflector[Any]]) -> None:
        if self._began is None:
            self._began = self._clock.now()
        for reflector in reflectors:
            self._tolerant(reflector, lambda each: each.refresh())()

    def _watch(self, seconds: float) -> None:
        """Watch every kind that was listed, each by a thread of its own."""
        watched = [reflector for reflector in self._all() if reflector.version is not None]
        with ThreadPoolExecutor(max(len(watched), 1)) as pool:
            for done in [pool.submit(self._tolerant(each, lambda r: r.follow(seconds))) for each in watched]:
                done.result()

    def _tolerant(self, reflector: Reflector[Any], act: Callable[[Reflector[Any]], None]) -> Callable[[], None]:
        """``act`` on it, where a kind that is missing or denied is remembered; but without pods there is nothing."""

        def done() -> None:
            try:
                act(reflector)
                self._denied.pop(reflector.kind.plural, None)
            except NotServed as error:
                if reflector.kind is PODS:
                    limit = "what answers there is no Kubernetes API server"
                    raise Refused("cluster", self._name, limit, "Name another kubeconfig or context.") from error
                self._absent.add(reflector.kind.plural)
            except Refused as error:
                if reflector.kind is PODS:
                    raise
                self._denied[reflector.kind.plural] = error

        return done

    def _records(self) -> Records:
        creators: dict[str, Held[CreatorObject]] = {}
        for reflector in self._creators:
            creators |= reflector.objects
        return Records(self._pods.objects, creators, self._nodes.objects, tuple(_values(self._queued)))

    def _forget(self, since: datetime) -> None:
        """Drop what went long ago, but no pod whose work goes on: its job is made of all its runs."""
        open_work = self._records().open_pods()
        self._pods.forget([uid for uid in _gone(self._pods.objects, since - _REMEMBERED) if uid not in open_work])
        for reflector in self._creators:
            reflector.forget(_gone(reflector.objects, since - _REMEMBERED))
        self._queued.forget(_gone(self._queued.objects, since - _REMEMBERED))
        self._nodes.forget(_gone(self._nodes.objects, since - _NODES_REMEMBERED))
        self._claims.forget(_gone(self._claims.objects, since - _NODES_REMEMBERED))

    def _notes(self, records: Records) -> Iterator[str]:
        for plural, error in sorted(self._denied.items()):
            costs = _COSTS.get(plural, "what its pods are part of is told by their owner's name alone")
            yield f"{plural} could not be read, so {costs}: {error}"
        missing = sorted(self._absent & set(_COSTS))
        if missing:
            costs = "; ".join(_COSTS[plural] for plural in missing)
            yield f"this cluster serves no {' and no '.join(missing)}: {costs}"
        others = sorted(self._absent - set(_COSTS))
        if others:
            yield f"kinds of batch work that are not installed here: {', '.join(others)}"
        lost = records.nodes_lost()
        if lost:
            yield f"pods on nodes that are gone: {lost}; their GPUs are taken to be whole, pool and kind are not known"


def _until(moment: datetime, found: Sequence[Work], tally: RejectionTally) -> list[Work]:
    """Work as it stood at ``moment``, of which a list that takes its time tells more; what came later is left out."""
    kept = []
    for work in found:
        job = work.job
        times = (job.submit, job.scheduled, job.start, job.end, job.last_seen)
        if not any(time is not None and time > moment for time in times):
            kept.append(work)
        elif (known := job.as_of(moment)) is not None:
            # How it came to be known is told with what came later.
            kept.append(work._replace(job=known, account=JobAccount()))
        else:
            tally.add("future_time", f"{job.namespace}/{job.name}")
    return kept


def _gone(objects: Mapping[str, Held[Any]], before: datetime) -> list[str]:
    return [uid for uid, held in objects.items() if not held.there and (held.gone or held.seen) < before]


def _values(reflector: Reflector[T]) -> list[T]:
    return [held.value for held in reflector.objects.values()]
