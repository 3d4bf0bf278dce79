"""Asks a Prometheus server what kube-state-metrics told over a stretch of time."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from advisor.telemetry.prometheus.client import Query
from advisor.telemetry.prometheus.kube_facts import Facts, KubeFacts
from advisor.telemetry.prometheus.kube_queries import (
    HOUR,
    JOB_READINGS,
    NODE_READINGS,
    POD_READINGS,
    label_reading,
    query_of,
)
from advisor.telemetry.prometheus.kube_records import KubeRecords, Watch
from advisor.telemetry.prometheus.ranges import Window
from advisor.telemetry.prometheus.samples import Series
from advisor.telemetry.prometheus.selectors import Matcher, Selector, any_of
from advisor.telemetry.tally import RejectionTally

__all__ = ["KubeQuestions", "Queries", "read_kube_records", "watched"]

Floats = NDArray[np.float64]

_TERMINAL = ("Succeeded", "Failed")
_OWNED = "label_slice_advisor_io_owned"
_REASON = "kube_pod_status_reason"
_NODE_LOST = "NodeLost"
_LONGEST_LOST = 24 * HOUR
"""How far back the moment is looked up at which a node that stays lost was first told to be."""
_AT_A_TIME = 100
_WATCHED = ("kube_node_info", "kube_pod_info")
"""What shows that kube-state-metrics was scraped: the first that exists."""


class Queries(Protocol):
    """What is asked of the client."""

    def ranges(self, queries: Sequence[Query], window: Window) -> Iterator[tuple[list[Series], ...]]:
        """The series of each query, chunk by chunk in order of time."""
        ...

    def instant(self, query: Query, at: datetime) -> list[Series]:
        """The series of a query at one moment; where it selects a range, its samples as they were stored."""
        ...

    def text(self, selector: Selector) -> str:
        """A selector as PromQL, narrowed to the cluster asked for."""
        ...

    def last_stamp(self, selector: Selector, seconds: int) -> str:
        """PromQL for the moment of the last sample of each series within so many seconds."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class KubeQuestions:
    """What to ask: from ``start`` to ``now``, scrapes about ``step_seconds`` apart.

    ``user_labels`` are columns of labels of pods (``label_user``) that name users, the first that is there counting.
    """

    start: datetime
    now: datetime
    step_seconds: int
    user_labels: tuple[str, ...] = ()

    @property
    def labels(self) -> tuple[str, ...]:
        """Labels of pods to ask for, as kube-state-metrics writes them."""
        return (*self.user_labels, _OWNED)


def read_kube_records(queries: Queries, asked: KubeQuestions, tally: RejectionTally) -> KubeRecords:
    """Everything that was told, ready to be made into pods and Jobs.

    Raises:
        Refused, Transient: as the client says.
    """
    facts = KubeFacts(tally)
    readings = (*POD_READINGS, label_reading(asked.labels), *NODE_READINGS, *JOB_READINGS)
    texts = [query_of(reading, queries.text) for reading in readings]
    hours = Window.over(asked.start, asked.now, HOUR)
    for answers in queries.ranges(texts, hours):
        for reading, answer in zip(readings, answers, strict=True):
            facts.add(reading, answer)
    # Hours end on the hour: the one that has begun is asked about by itself.
    for reading, text in zip(readings, texts, strict=True):
        facts.add(reading, queries.instant(text, asked.now))
    last = _LastSeen(queries, hours, asked.now)
    last_seen = last.of_pods(facts)
    return KubeRecords(
        facts=facts,
        watch=watched(queries, asked.start, asked.now, asked.step_seconds),
        last_seen=last_seen,
        last_of_nodes=last.of_nodes(facts),
        first_lost=last.first_lost(facts, last_seen),
        labels=asked.labels,
        user_labels=asked.user_labels,
    )


def watched(queries: Queries, start: datetime, now: datetime, step_seconds: int) -> Watch:
    """When kube-state-metrics was looked at between two moments, if that is asked every ``step_seconds``."""
    window = Window.over(start, now, step_seconds)
    for metric in _WATCHED:
        query = f"max({queries.last_stamp(Selector(metric), 2 * step_seconds)})"
        stamps = [series.values for (answer,) in queries.ranges([query], window) for series in answer]
        stamps += [series.values for series in queries.instant(query, now)]
        if stamps:
            return Watch.of(np.concatenate(stamps))
    return Watch.of(np.empty(0))


class _LastSeen:
    """Looks up the samples, as they were stored, between which something ceased to be told of, or began."""

    def __init__(self, queries: Queries, hours: Window, now: datetime) -> None:
        self._queries = queries
        self._last_hour = float(hours.end)
        self._now = now

    def of_pods(self, facts: KubeFacts) -> dict[str, float]:
        """When each pod without an end of its own was last seen not to have ended, by uid."""
        open_ended = {uid: pod for uid, pod in facts.pods.items() if _needs_an_end(pod)}
        return self._find(
            "kube_pod_status_phase",
            (Matcher("phase", "!~", any_of(_TERMINAL)),),
            "uid",
            ((uid, pod.last_told("kube_pod_status_phase", _TERMINAL)) for uid, pod in open_ended.items()),
        )

    def of_nodes(self, facts: KubeFacts) -> dict[str, float]:
        """When each node was last seen, by name."""
        told = ((name, node.last_told("kube_node_labels")) for name, node in facts.nodes.items())
        gone = ((name, at) for name, at in told if at is not None and at < self._last_hour)
        return self._find("kube_node_info", (), "node", gone)

    def first_lost(self, facts: KubeFacts, last_seen: Mapping[str, float]) -> dict[str, float]:
        """When each pod was first told to have lost its node, by uid, where that held until it was ``last_seen``."""
        lost = [(uid, _last_lost(pod)) for uid, pod in facts.pods.items() if uid in last_seen]
        first: dict[str, float] = {}
        last: dict[str, float] = {}
        for uid, times in self._samples(_REASON, (Matcher("reason", "=", _NODE_LOST),), "uid", lost, _LONGEST_LOST):
            first[uid] = min(first.get(uid, math.inf), float(times[0]))
            last[uid] = max(last.get(uid, 0.0), float(times[-1]))
        # Nodes come back, and with them pods that nobody had stopped.
        return {uid: moment for uid, moment in first.items() if last[uid] >= last_seen[uid]}

    def _find(
        self, metric: str, matchers: tuple[Matcher, ...], label: str, wanted: Iterable[tuple[str, float | None]]
    ) -> dict[str, float]:
        """The last moment at which each of those ``wanted``, by name and hour, was told of above zero."""
        found: dict[str, float] = {}
        for name, times in self._samples(metric, matchers, label, wanted, HOUR):
            found[name] = max(found.get(name, 0.0), float(times[-1]))
        return found

    def _samples(
        self,
        metric: str,
        matchers: tuple[Matcher, ...],
        label: str,
        wanted: Iterable[tuple[str, float | None]],
        seconds: int,
    ) -> Iterator[tuple[str, Floats]]:
        """When each was told of above zero in so many ``seconds`` up to the end of its hour, series by series."""
        by_hour: dict[float, list[str]] = defaultdict(list)
        for name, at in wanted:
            if at is not None:
                by_hour[at].append(name)
        for hour, names in by_hour.items():
            moment = min(datetime.fromtimestamp(hour, UTC), self._now)
            for first in range(0, len(names), _AT_A_TIME):
                some = Matcher(label, "=~", any_of(sorted(names)[first : first + _AT_A_TIME]))
                text = self._queries.text(Selector(metric, (*matchers, some)))
                for series in self._queries.instant(f"{text}[{seconds}s]", moment):
                    told = series.times[series.values > 0]
                    if told.size:
                        yield series.labels[label], told


def _last_lost(pod: Facts) -> float | None:
    """The hour in which its node was last told to be lost, None where it never was."""
    value, at = pod.told.get(_REASON, {}).get((_NODE_LOST,), (0.0, 0.0))
    return at if value > 0 else None


def _needs_an_end(pod: Facts) -> bool:
    """Whether its end has to be looked up: it never was said to have ended, or not when."""
    ended = any(labels[0] in _TERMINAL for labels in pod.ever("kube_pod_status_phase"))
    return not ended or not pod.value("kube_pod_completion_time")
