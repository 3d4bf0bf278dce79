"""A world as a Prometheus keeps it: as series, as answers to queries, as OpenMetrics text for ``promtool``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Protocol, TextIO

import numpy as np

from advisor.telemetry.prometheus.samples import Series
from tests.telemetry_world.dcgm import Dcgm, Glitch, exporter_pod
from tests.telemetry_world.dialects import Dialect
from tests.telemetry_world.kube_state import KUBE_STATE
from tests.telemetry_world.openmetrics import write_families
from tests.telemetry_world.scrapes import Row, Scrapes, series_of
from tests.telemetry_world.world import World

__all__ = ["DCGM_JOB", "KSM_JOB", "Fault", "Telemetry", "Written"]

KSM_JOB = "kube-state-metrics"
DCGM_JOB = "nvidia-dcgm-exporter"
_KSM_TARGET = {
    "job": KSM_JOB,
    "instance": "10.0.9.12:8080",
    "namespace": "monitoring",
    "pod": "kube-state-metrics-7d9c5b-x2x4l",
    "container": "kube-state-metrics",
    "service": KSM_JOB,
}


class Fault(Protocol):
    """Something that changes what is kept of a series."""

    def changed(self, series: Series) -> Iterable[Series]:
        """What becomes of ``series``: nothing, less of it, or more."""
        ...


@dataclass(frozen=True, slots=True)
class Written:
    """How much text was written."""

    lines: int
    bytes: int


@dataclass(frozen=True)
class Telemetry:
    """What is kept of ``world`` in ``dialect``, scraped every ``interval`` seconds.

    ``then`` is another dialect that holds from a moment on; ``replicas`` are values of the label ``replica_label``
    where several servers scrape the same targets, each at moments of its own. ``faults`` are applied in order.
    """

    world: World
    dialect: Dialect
    interval: float = 60.0
    faults: Sequence[Fault] = ()
    then: tuple[float, Dialect] | None = None
    replicas: Sequence[str] = ("",)
    replica_label: str = "prometheus_replica"
    _views: dict[str, list[_View]] = field(default_factory=dict, init=False, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Check that the world's GPUs are cut the dialect's way."""
        if self.dialect.sharing is not self.world.spec.sharing:
            raise ValueError(f"{self.dialect.name} needs a world of {self.dialect.sharing}")

    def scrapes(self, replica: str = "") -> Scrapes:
        """When one server scrapes."""
        return Scrapes(self.world.start, self.world.end, self.interval, salt=replica)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Every metric there is."""
        found = [name for replica in self.replicas for view in self._of(replica) for name in view.names]
        return tuple(dict.fromkeys(found))

    def family(self, name: str) -> list[Series]:
        """All series of one metric."""
        found: list[Series] = []
        for replica in self.replicas:
            for view in self._of(replica):
                for series in view.family(name):
                    kept = [_labelled(series, self.replica_label, replica)]
                    for fault in self.faults:
                        kept = [one for before in kept for one in fault.changed(before)]
                    found += [one for one in kept if len(one.times)]
        return found

    def raw(self, names: str, **labels: str) -> list[Series]:
        """Every sample of the metrics that match the regular expression ``names``, where ``labels`` match theirs."""
        return [
            series
            for name in self.names
            if re.fullmatch(names, name)
            for series in self.family(name)
            if all(re.fullmatch(wanted, series.labels.get(label, "")) for label, wanted in labels.items())
        ]

    def as_series(self, names: str, start: float, end: float, step: float) -> list[Series]:
        """As a range query of ``last_over_time(...[step])`` answers: at each step the last sample since the one before.

        Steps are ``start``, ``start + step`` and so on, none past ``end``; a step without a sample is left out.
        """
        steps = start + step * np.arange(int(np.floor((end - start) / step)) + 1)
        found = (_at_steps(series, steps, step) for series in self.raw(names))
        return [series for series in found if len(series.times)]

    def write(self, path: Path, names: str = ".*") -> Written:
        """Write OpenMetrics text to ``path``, one block for each metric, and say how much it was."""
        with path.open("w", encoding="utf-8") as file:
            return self.write_to(file, names)

    def write_to(self, file: TextIO, names: str = ".*") -> Written:
        """Write OpenMetrics text to an open file."""
        families = ((name, self.family(name)) for name in self.names if re.fullmatch(names, name))
        return Written(*write_families(families, file))

    def glitches(self) -> tuple[Glitch, ...]:
        """Every sample of dcgm that is no measurement and has to be dropped."""
        return tuple(glitch for replica in self.replicas for view in self._of(replica) for glitch in view.glitches())

    def _of(self, replica: str) -> list[_View]:
        if replica not in self._views:
            whole = self.scrapes(replica)
            views = [_View(self.world, self.dialect, whole, None, None if self.then is None else self.then[0])]
            if self.then is not None:
                views.append(_View(self.world, self.then[1], whole, self.then[0], None))
            self._views[replica] = views
        return self._views[replica]


@dataclass
class _View:
    """One server's view in one dialect, from ``since`` on and before ``until``."""

    world: World
    dialect: Dialect
    scrapes: Scrapes
    since: float | None
    until: float | None

    @cached_property
    def _dcgm(self) -> Dcgm:
        return Dcgm(self.world, self.dialect, self.scrapes)

    @property
    def names(self) -> tuple[str, ...]:
        return ("up", *KUBE_STATE, *self._dcgm.names)

    def family(self, name: str) -> Iterator[Series]:
        for series in self._family(name):
            yield self._cut(series)

    def glitches(self) -> tuple[Glitch, ...]:
        since, until = self.since or -np.inf, self.until or np.inf
        return tuple(glitch for glitch in self._dcgm.glitches() if since <= glitch.time < until)

    def _family(self, name: str) -> Iterator[Series]:
        if name == "up":
            yield from self._up()
        elif name in KUBE_STATE:
            times = self.scrapes.of(KSM_JOB)
            for series in series_of(name, KUBE_STATE[name](self.world), times):
                yield self._scraped(series, _KSM_TARGET)
        elif name in self._dcgm.names:
            for series in self._dcgm.family(name):
                yield self._scraped(series, _exporter(series.labels[self.dialect.host_label]))

    def _up(self) -> Iterator[Series]:
        yield from series_of("up", [Row(_KSM_TARGET, 0, None, 1)], self.scrapes.of(KSM_JOB))
        for node in self.world.nodes:
            row = Row(_exporter(node.name), node.created, node.removed, 1)
            yield from series_of("up", [row], self.scrapes.of(node.name))

    def _scraped(self, series: Series, target: Mapping[str, str]) -> Series:
        """``series`` with its target's labels: where both have one, Prometheus keeps one of them as it is told to."""
        if self.dialect.honor_labels:
            return series._replace(labels={"job": target["job"], "instance": target["instance"], **series.labels})
        moved = {f"exported_{key}" if key in target else key: value for key, value in series.labels.items()}
        return series._replace(labels={**moved, **target})

    def _cut(self, series: Series) -> Series:
        first = 0 if self.since is None else int(np.searchsorted(series.times, self.since))
        last = len(series.times) if self.until is None else int(np.searchsorted(series.times, self.until))
        return series._replace(times=series.times[first:last], values=series.values[first:last])


def _exporter(node: str) -> dict[str, str]:
    pod = exporter_pod(node)
    return {
        "job": DCGM_JOB,
        "instance": f"{node}:9400",
        "namespace": "gpu-operator",
        "pod": pod,
        "container": "exporter",
        "service": DCGM_JOB,
    }


def _labelled(series: Series, label: str, value: str) -> Series:
    return series._replace(labels={**series.labels, label: value}) if value else series


def _at_steps(series: Series, steps: np.ndarray, step: float) -> Series:
    last = np.searchsorted(series.times, steps, "right") - 1
    there = (last >= 0) & (series.times[np.maximum(last, 0)] > steps - step) if len(series.times) else last >= 0
    return Series(series.labels, steps[there], np.asarray(series.values[last[there]], dtype=np.float64))
