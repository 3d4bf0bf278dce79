"""Pods and Jobs as kube-state-metrics told of them, with the ends that nobody told of inferred or left open."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from advisor.domain.asks import ContainerAsk, GpuNode, effective_ask, physical_gpus
from advisor.domain.jobs import Outcome
from advisor.telemetry.pods import TAKEN_BY_THE_SYSTEM, CreatorRecord, PodRecord
from advisor.telemetry.prometheus.kube_creators import Creators, moment_of
from advisor.telemetry.prometheus.kube_facts import Facts, KubeFacts
from advisor.telemetry.prometheus.kube_queries import NODE_LABELS
from advisor.telemetry.tally import RejectionTally

__all__ = ["KubeRecords", "Watch"]

Floats = NDArray[np.float64]

_TERMINAL = {"Succeeded": Outcome.COMPLETED, "Failed": Outcome.FAILED}
_COMPLETED = "Completed"
_ASKS = "kube_pod_container_resource_requests"
_INIT_ASKS = "kube_pod_init_container_resource_requests"
_GPU = "nvidia_com_gpu"
_STARTED = "kube_pod_container_state_started"
_OWNED = "label_slice_advisor_io_owned"
_MISSED_SCRAPES = 2.5


@dataclass(frozen=True, slots=True)
class Watch:
    """When kube-state-metrics was looked at: ``scrapes`` in Unix seconds, ascending, and the usual seconds between."""

    scrapes: Floats
    interval: float

    @classmethod
    def of(cls, stamps: Floats) -> Watch:
        """From the moments of samples, however often each comes; what is no number is none."""
        scrapes = np.unique(stamps[np.isfinite(stamps)])
        gaps = np.diff(scrapes)
        return cls(scrapes, float(np.median(gaps)) if gaps.size else 60.0)

    def after(self, moment: float) -> float | None:
        """The first look after ``moment``, None where there was none."""
        place = int(np.searchsorted(self.scrapes, moment + 0.5 * self.interval, side="left"))
        return float(self.scrapes[place]) if place < self.scrapes.size else None

    def before(self, moment: float) -> float | None:
        """The last look before ``moment``, None where there was none."""
        place = int(np.searchsorted(self.scrapes, moment, side="left"))
        return float(self.scrapes[place - 1]) if place else None

    def missed(self, moment: float) -> bool:
        """Whether nobody looked for a while after ``moment``: what vanished then may have lived on."""
        following = self.after(moment)
        return following is not None and following - moment > _MISSED_SCRAPES * self.interval


class _Ending(NamedTuple):
    """End and outcome, when it was last seen where the end is not known, and Kubernetes' word for it.

    ``vanished`` says that nobody told the end: the pod was no longer there.
    """

    ended: float | None
    outcome: Outcome | None
    seen: float | None
    reason: str | None
    vanished: bool = False


@dataclass(frozen=True, kw_only=True)
class KubeRecords:
    """Makes records of ``facts``.

    ``last_seen`` is the last sample of each pod (by uid) that had not ended by then, exact to the scrape, and
    ``last_of_nodes`` that of each node that is gone;
    ``first_lost`` is when each pod (by uid) was first told to have lost its node: nobody knows what it does then.
    ``gpus_of_node`` is how many GPUs a node has by another count, where its labels do not say how they are shared.
    Of ``labels``, asked of pods, ``user_labels`` name the user: the first that is there.
    """

    facts: KubeFacts
    watch: Watch
    last_seen: Mapping[str, float]
    last_of_nodes: Mapping[str, float] = field(default_factory=dict)
    first_lost: Mapping[str, float] = field(default_factory=dict)
    gpus_of_node: Mapping[str, int] = field(default_factory=dict)
    user_labels: Sequence[str] = ()
    labels: Sequence[str] = ()

    def pods(self, tally: RejectionTally) -> Iterator[PodRecord]:
        """Every pod of which enough is known; the others are counted."""
        creators = Creators(self.facts)
        for uid, facts in self.facts.pods.items():
            created = facts.value("kube_pod_created")
            if created is None:
                tally.add("pod_without_creation", f"{facts.namespace}/{facts.name}")
                continue
            yield self._pod(uid, facts, created, creators.of(facts, created))

    def _pod(self, uid: str, facts: Facts, created: float, creator: CreatorRecord | None) -> PodRecord:
        # While it waits a pod is told of without a node.
        node_name = next((labels[0] for labels in facts.ever("kube_pod_info") if labels[0]), "")
        node = self.facts.nodes.get(node_name)
        gpu_node = self._gpu_node(node, node_name)
        started = facts.least(self._start_metric)
        ending = self._end(uid, facts, started)
        labels = self._labels(facts)
        scheduled = facts.least("kube_pod_status_scheduled_time")
        return PodRecord(
            uid=uid,
            namespace=facts.namespace,
            name=facts.name,
            created=moment_of(created),
            gpus=physical_gpus(_asked(facts), gpu_node),
            scheduled=None if not scheduled else moment_of(max(scheduled, created)),
            started=None if not started else moment_of(max(started, created)),
            ended=None if ending.ended is None else moment_of(ending.ended),
            outcome=ending.outcome,
            vanished=ending.vanished,
            last_seen=None if ending.seen is None else moment_of(ending.seen),
            reason=ending.reason,
            restarts=int(sum(v for v, _ in facts.told.get("kube_pod_container_status_restarts_total", {}).values())),
            creator=creator,
            gpu_kind=gpu_node.gpu_kind,
            pool=_label(node, "label_karpenter_sh_nodepool"),
            node=node_name or None,
            user=next((labels[name] for name in self.user_labels if labels.get(name)), None),
            image=_image(facts),
            # Containers are told of once a kubelet has the pod.
            told_by_node=("gpu_kind", "image"),
            placeholder=labels.get(_OWNED) == "true",
            labels=labels,
        )

    @cached_property
    def _start_metric(self) -> str:
        """What says when containers began to run; where nothing does, when the kubelet first saw their pods."""
        told = any(_STARTED in pod.told for pod in self.facts.pods.values())
        return _STARTED if told else "kube_pod_start_time"

    def _labels(self, facts: Facts) -> dict[str, str]:
        told = facts.ever("kube_pod_labels")
        return dict(zip(self.labels, told[0], strict=True)) if told else {}

    def _end(self, uid: str, facts: Facts, started: float | None) -> _Ending:
        phases = {labels[0] for labels in facts.ever("kube_pod_status_phase")}
        reasons = [labels[0] for labels in facts.ever("kube_pod_status_reason")]
        reasons += [labels[0] for labels in facts.ever("kube_pod_status_disruption_reason")]
        word = _word(facts)
        taken = next((reason for reason in reasons if reason in TAKEN_BY_THE_SYSTEM), None)
        reason = taken or next(iter(reasons), word)
        terminal = next((outcome for phase, outcome in _TERMINAL.items() if phase in phases), None)
        seen = self.last_seen.get(uid)
        if terminal is None and uid in self.first_lost:
            return _Ending(None, Outcome.CENSORED, self._before_it_was_lost(uid, facts), reason)
        if terminal is None:
            with_node = seen is not None and self._went_with_its_node(facts, seen)
            end, outcome, last = self._vanished(seen, word, started, taken=taken is not None or with_node)
            return _Ending(end, outcome, last, reason, vanished=end is not None)
        told = facts.value("kube_pod_completion_time")
        end = told or seen
        if end is None:
            # It was seen for the first time when it had ended already, and when is not told.
            return _Ending(None, Outcome.CENSORED, facts.value("kube_pod_created"), reason)
        if taken is not None and terminal is Outcome.FAILED:
            return _Ending(None, Outcome.CENSORED, end, reason)
        return _Ending(end, terminal, None, reason)

    def _before_it_was_lost(self, uid: str, facts: Facts) -> float | None:
        """When a pod was last seen on a node that still answered."""
        before, created = self.watch.before(self.first_lost[uid]), facts.value("kube_pod_created")
        return max((moment for moment in (before, created) if moment is not None), default=None)

    def _went_with_its_node(self, facts: Facts, seen: float) -> bool:
        """Whether its node was not seen for longer than the pod itself: work that ends leaves its node behind."""
        nodes = [self.last_of_nodes.get(labels[0]) for labels in facts.ever("kube_pod_info")]
        return any(last is not None and last <= seen + self.watch.interval for last in nodes)

    def _vanished(
        self, seen: float | None, word: str | None, started: float | None, *, taken: bool
    ) -> tuple[float | None, Outcome | None, float | None]:
        if seen is None:
            return None, Outcome.CENSORED, started
        if self.watch.after(seen) is None:
            return None, None, seen
        if taken or self.watch.missed(seen):
            return None, Outcome.CENSORED, seen
        if started and word is not None:
            return seen, Outcome.COMPLETED if word == _COMPLETED else Outcome.FAILED, None
        return seen, Outcome.CANCELLED, None

    def _gpu_node(self, node: Facts | None, name: str) -> GpuNode:
        """What is known of a node's GPUs: by its labels, else by what is allocatable over what is there."""
        labels = {column.removeprefix("label_"): value for column in NODE_LABELS if (value := _label(node, column))}
        shares, there = 0.0, self.gpus_of_node.get(name, 0)
        if node is not None and there:
            told = node.told.get("kube_node_status_allocatable", {})
            shares = max((told[key][0] for key in ((_GPU,), (f"{_GPU}_shared",)) if key in told), default=0.0)
        # What does not come out even was not counted whole.
        even = there > 0 and shares % there == 0
        return GpuNode.of_labels(labels, int(shares // there) if even else 1)


def _word(facts: Facts) -> str | None:
    """Why the containers that hold its GPUs ended, a failure before all else; None where one of them was not told to.

    A helper beside them may end long before. Where no container is known to ask for GPUs all of them count.
    """
    ended = facts.ever("kube_pod_container_status_terminated_reason")
    words = {labels[:-1]: labels[-1] for labels in reversed(ended)}
    holders = {labels[1:] for labels in facts.ever(_ASKS)} or set(words)
    if not holders <= words.keys():
        return None
    told = [words[holder] for holder in sorted(holders)]
    return next((word for word in told if word != _COMPLETED), told[0] if told else None)


def _label(node: Facts | None, name: str) -> str | None:
    if node is None:
        return None
    place = NODE_LABELS.index(name)
    return next((labels[place] for labels in node.ever("kube_node_labels") if labels[place]), None)


def _image(facts: Facts) -> str | None:
    images = [labels[-2] or labels[-1] for labels in facts.ever("kube_pod_container_info")]
    return min(images) if images else None


def _asked(facts: Facts) -> dict[str, float]:
    """What the pod asks for by resource, as the scheduler counts it.

    In which order its init containers stand is not told: a sidecar is taken to be there before all of them.
    """
    sidecars = {labels[:-1] for labels in facts.ever("kube_pod_init_container_info") if labels[-1] == "Always"}
    containers: dict[str, list[ContainerAsk]] = {}
    for (resource, *container), (amount, _) in facts.told.get(_INIT_ASKS, {}).items():
        sidecar = tuple(container) in sidecars
        asks = containers.setdefault(resource, [])
        asks.insert(0 if sidecar else len(asks), ContainerAsk(amount, init=True, sidecar=sidecar))
    for (resource, *_), (amount, _) in facts.told.get(_ASKS, {}).items():
        containers.setdefault(resource, []).append(ContainerAsk(amount))
    return {resource: effective_ask(asks) for resource, asks in containers.items()}
