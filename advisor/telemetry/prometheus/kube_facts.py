"""What kube-state-metrics has said of each pod, Job and node over a stretch of time, gathered from hourly answers."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from advisor.telemetry.prometheus.kube_queries import Reading
from advisor.telemetry.prometheus.samples import Series
from advisor.telemetry.tally import RejectionTally

__all__ = ["Facts", "KubeFacts", "Labels"]

Labels: TypeAlias = tuple[str, ...]
"""Values of a reading's own labels, in its order; empty where a label is absent."""

JOB_CREATED = "kube_job_created"
JOB_CREATED_FIRST = "kube_job_created, the first of an hour"
_MOMENTS = ("kube_job_status_start_time", "kube_job_status_completion_time")
_CONDITIONS = ("kube_job_complete", "kube_job_failed", "kube_job_status_suspended")

_MOST = 1e11
"""No moment (Unix seconds: the year 5138), count or amount that it tells of is larger."""


@dataclass(slots=True)
class Facts:
    """What was said of one thing: metric to labels to the largest (or least) value and the last time it was told.

    ``namespace`` and ``name`` are its own, whatever Prometheus calls them.
    """

    namespace: str
    name: str
    told: dict[str, dict[Labels, tuple[float, float]]] = field(default_factory=lambda: defaultdict(dict))

    def tell(self, metric: str, labels: Labels, value: float, at: float, *, least: bool = False) -> None:
        """That a metric had ``value`` at ``at``; the largest (or ``least``) and the latest stay."""
        before = self.told[metric].get(labels)
        if before is not None:
            value = min(value, before[0]) if least else max(value, before[0])
            at = max(at, before[1])
        self.told[metric][labels] = (value, at)

    def value(self, metric: str) -> float | None:
        """The value of a metric, whatever its labels; of several the largest."""
        found = self.told.get(metric)
        return max(value for value, _ in found.values()) if found else None

    def least(self, metric: str) -> float | None:
        """The least value of a metric over its labels."""
        found = self.told.get(metric)
        return min(value for value, _ in found.values()) if found else None

    def ever(self, metric: str) -> list[Labels]:
        """The labels under which a metric was above zero, those told last first."""
        found = self.told.get(metric, {})
        positive = [(at, labels) for labels, (value, at) in found.items() if value > 0]
        return [labels for _, labels in sorted(positive, key=lambda pair: (-pair[0], pair[1]))]

    def last_told(self, metric: str, without: Collection[str] = ()) -> float | None:
        """When a metric was last above zero (Unix seconds, end of the hour), its first label none of ``without``."""
        told = self.told.get(metric, {}).items()
        times = [at for labels, (value, at) in told if value > 0 and (not labels or labels[0] not in without)]
        return max(times) if times else None


class _Namesakes:
    """Jobs that had one name, one after the other: hour by hour what was said of whichever was there.

    kube-state-metrics tells Jobs of one name apart only by when they were created.
    """

    def __init__(self) -> None:
        self._told: list[tuple[str, Labels, Series]] = []

    def add(self, metric: str, labels: Labels, series: Series) -> None:
        """What one series of a metric said."""
        self._told.append((metric, labels, series))

    def apart(self, namespace: str, name: str) -> dict[float | None, Facts]:
        """The facts of each, by when it was created; None where that was never told."""
        first, last = self._created(JOB_CREATED_FIRST), self._created(JOB_CREATED)
        found: dict[float | None, Facts] = {}
        for metric, labels, series in self._told:
            for at, value in zip(series.times.tolist(), series.values.tolist(), strict=True):
                created = last.get(at)
                # Of two within an hour the rest is told of the later one; of the earlier one its pods have to tell.
                which = value if metric == JOB_CREATED_FIRST else created
                facts = found.setdefault(which, Facts(namespace, name))
                if created is None or first.get(at, created) == created or not _of_another(metric, value, created):
                    facts.tell(metric, labels, value, at)
        if len(found) > 1:
            # An hour in which its creation was not told says nothing that others do not.
            found.pop(None, None)
        return found

    def _created(self, metric: str) -> dict[float, float]:
        """When the first, or the last, that was there in each hour was created."""
        told = (series for each, _, series in self._told if each == metric)
        return {at: value for one in told for at, value in zip(one.times.tolist(), one.values.tolist(), strict=True)}


def _of_another(metric: str, value: float, created: float) -> bool:
    """Whether what was told in an hour of two Jobs may be of the one before that which was ``created`` then."""
    return metric in _CONDITIONS or (metric in _MOMENTS and value < created)


class KubeFacts:
    """Gathers answers; ``pods`` by uid, ``nodes`` by name, and :attr:`jobs`."""

    def __init__(self, tally: RejectionTally) -> None:
        self.pods: dict[str, Facts] = {}
        self._named: dict[tuple[str, str], _Namesakes] = defaultdict(_Namesakes)
        self.nodes: dict[str, Facts] = {}
        self._tally = tally

    @property
    def jobs(self) -> dict[tuple[str, str], dict[float | None, Facts]]:
        """Kubernetes Jobs by namespace and name, and those of one name by when they were created."""
        return {key: namesakes.apart(*key) for key, namesakes in self._named.items()}

    def add(self, reading: Reading, answer: Iterable[Series]) -> None:
        """What one chunk answered to ``reading``. Chunks come in order of time."""
        for series in self._sound(reading, answer):
            labels = tuple(_own(series.labels, name) for name in reading.labels)
            if reading.of == "job":
                namespace = _own(series.labels, "namespace")
                told = JOB_CREATED_FIRST if reading.least else reading.metric
                self._named[namespace, series.labels.get("job_name", "")].add(told, labels, series)
                continue
            facts = self._node(series.labels) if reading.of == "node" else self._pod(series.labels)
            if facts is None:
                self._tally.add("series_without_uid", f"{reading.metric}{dict(series.labels)}")
                continue
            value = float(series.values.min() if reading.least else series.values.max())
            positive = series.times[series.values > 0]
            at = float(positive[-1]) if positive.size else -math.inf
            facts.tell(reading.metric, labels, value, at, least=reading.least)

    def _sound(self, reading: Reading, answer: Iterable[Series]) -> Iterator[Series]:
        """The series without samples that kube-state-metrics never wrote: one of them must not stop a whole reading."""
        for series in answer:
            sound = (series.values >= 0.0) & (series.values <= _MOST)
            if not sound.all():
                example = f"{reading.metric}{dict(series.labels)}: {series.values[~sound][0]:g}"
                self._tally.add("value_out_of_range", example, int((~sound).sum()))
            if sound.any():
                yield Series(series.labels, series.times[sound], series.values[sound])

    def _node(self, labels: Mapping[str, str]) -> Facts:
        name = labels.get("node", "")
        return self.nodes.setdefault(name, Facts("", name))

    def _pod(self, labels: Mapping[str, str]) -> Facts | None:
        namespace = _own(labels, "namespace")
        uid = labels.get("uid")
        if not uid:
            return None
        pod = _own(labels, "pod")
        found = self.pods.get(uid)
        if found is None:
            found = self.pods[uid] = Facts(namespace, pod)
        elif labels.get("exported_pod"):
            # Where Prometheus came to rename half-way, the plain labels may be those of the scrape target.
            found.namespace, found.name = namespace, pod
        return found


def _own(labels: Mapping[str, str], name: str) -> str:
    """A label of the thing itself: where Prometheus renames it, the plain one is that of the scrape target."""
    return labels.get(f"exported_{name}") or labels.get(name, "")
