"""What a metrics server has of what history needs, what each absence costs, and how it is mended."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from advisor.domain.units import counted
from advisor.telemetry.dcgm import normalise
from advisor.telemetry.dcgm.names import QUANTITIES, Quantity, metric_names
from advisor.telemetry.dcgm.scales import DecidedBy, Pins
from advisor.telemetry.dcgm.tracks import Chunk
from advisor.telemetry.prometheus.client import PrometheusClient
from advisor.telemetry.prometheus.clusters import clusters_seen
from advisor.telemetry.prometheus.kube_history import watched
from advisor.telemetry.prometheus.kube_queries import (
    JOB_READINGS,
    NODE_LABELS,
    NODE_READINGS,
    POD_READINGS,
    Reading,
    label_column,
)
from advisor.telemetry.prometheus.ranges import Window
from advisor.telemetry.prometheus.samples import Series
from advisor.telemetry.prometheus.selectors import Matcher, Selector, any_of

__all__ = ["Finding", "Health", "examine"]

_LOOK = timedelta(hours=1)
_CLUSTER = "cluster"
_ESSENTIAL = frozenset({"kube_pod_created", "kube_pod_status_phase", "kube_pod_container_resource_requests"})
_KSM = "Scrape kube-state-metrics 2.x, and keep them where its --metric-allowlist or a relabelling drops them."
_SPORADIC = frozenset({"kube_pod_status_reason", "kube_pod_container_status_terminated_reason"})
"""Told only where something has happened."""
_NODE_LABELS_REMEDY = (
    "Give kube-state-metrics --metric-labels-allowlist=nodes=[karpenter.sh/nodepool,nvidia.com/gpu.product,...]."
)
_USER_LABELS_REMEDY = (
    "Allow a label that names users with --metric-labels-allowlist=pods=[...], and name it in telemetry.user_labels."
)
_COSTS = {
    Quantity.SM_ACTIVE: "how busy GPUs are is read from a coarser measure",
    Quantity.ENGINE_ACTIVE: "MIG instances have no measure of compute",
    Quantity.UTILISATION: "GPUs without profiling counters have no measure of compute",
    Quantity.MEMORY_USED: "the memory of jobs is not known, so sharing cannot be advised",
    Quantity.ENERGY: "energy is added up from power",
    Quantity.POWER: "energy is known only where it is counted",
    Quantity.XID: "errors of GPUs are not seen",
}
_COMPUTE = (Quantity.SM_ACTIVE, Quantity.ENGINE_ACTIVE, Quantity.UTILISATION)


class Health(StrEnum):
    """How bad a finding is: well, worth knowing, costs something, or nothing can be read at all."""

    WELL = "ok"
    NOTE = "note"
    LACKS = "missing"
    FATAL = "fatal"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing looked at: what was ``found`` of it, what its absence ``costs``, and the ``remedy``."""

    what: str
    health: Health
    found: str
    costs: str = ""
    remedy: str = ""


def examine(
    client: PrometheusClient, now: datetime, user_labels: Sequence[str], step_seconds: int, pins: Pins
) -> tuple[Finding, ...]:
    """Look at the hour before ``now``.

    ``user_labels`` are labels of pods that name users, as Kubernetes calls them; ``step_seconds`` lie between two
    samples asked for.

    Raises:
        Refused, Transient: the server will not, or cannot, answer at all.
    """
    build = client.build_info()
    server = Finding(what="server", health=Health.WELL, found=" ".join(filter(None, (build.flavour, build.version))))
    look = _Look(client, now, step_seconds)
    scrapes = look.scrapes()
    if scrapes.what == _CLUSTER:
        # Of a cluster that is not there everything would be missing.
        return (server, scrapes)
    return (
        server,
        scrapes,
        look.clusters(),
        *look.kube_state(),
        look.node_labels(),
        look.user_labels(user_labels),
        look.names(),
        *look.devices(pins),
    )


class _Look:
    """Asks about one hour."""

    def __init__(self, client: PrometheusClient, now: datetime, step_seconds: int) -> None:
        self._client = client
        self._now = now
        self._step = step_seconds
        readings = (*POD_READINGS, *NODE_READINGS, *JOB_READINGS)
        self._readings = readings
        metrics = {reading.metric for reading in readings} | {"kube_pod_labels"} | set(QUANTITIES)
        self._there = set(client.series_names([Selector(any_of(sorted(metrics)))], now - _LOOK, now))

    def scrapes(self) -> Finding:
        """Whether, and how often, kube-state-metrics is looked at."""
        watch = watched(self._client, self._now - _LOOK, self._now, self._step)
        if not watch.scrapes.size:
            wrong = self._client.wrong_cluster(self._now - _LOOK, self._now)
            found, remedy = wrong or ("no sample in the last hour", "Install kube-state-metrics and scrape it.")
            return Finding(
                what="kube-state-metrics" if wrong is None else _CLUSTER,
                health=Health.FATAL,
                found=found,
                costs="there is no history of jobs at all",
                remedy=remedy,
            )
        ago = max(self._now.timestamp() - float(watch.scrapes[-1]), 0.0)
        late = ago > 5 * watch.interval
        return Finding(
            what="kube-state-metrics",
            health=Health.LACKS if late else Health.WELL,
            found=f"a sample each {watch.interval:.0f} s, the last {ago:.0f} s ago",
            costs="what happens now is not seen" if late else "",
            remedy="See why its scrapes fail (up == 0)." if late else "",
        )

    def clusters(self) -> Finding:
        """Whether what is read is of one cluster."""
        seen = clusters_seen(self._client, self._now - _LOOK, self._now)
        return Finding(
            what="clusters",
            health=Health.LACKS if seen.mixed else Health.NOTE if seen.number is None else Health.WELL,
            found=str(seen),
            costs=seen.costs,
            remedy=seen.remedy,
        )

    def kube_state(self) -> Iterator[Finding]:
        """Each metric of kube-state-metrics whose absence costs something."""
        for reading in self._readings:
            if reading.costs is None or reading.metric == "kube_node_labels":
                continue
            yield self._metric(reading)

    def _metric(self, reading: Reading) -> Finding:
        if reading.metric in self._there:
            return Finding(what=reading.metric, health=Health.WELL, found="there")
        fatal = reading.metric in _ESSENTIAL
        # A cluster without Jobs has no metrics of Jobs, and one without trouble none of trouble.
        nothing_to_tell = reading.of == "job" or reading.metric in _SPORADIC
        health = Health.FATAL if fatal else Health.NOTE if nothing_to_tell else Health.LACKS
        return Finding(
            what=reading.metric,
            health=health,
            found="not in the last hour" + (", perhaps for want of cause" if nothing_to_tell else ""),
            costs=reading.costs or "",
            remedy=_KSM,
        )

    def node_labels(self) -> Finding:
        """Labels of nodes that say pools, kinds and shares."""
        there = [label for label in NODE_LABELS if self._values(label, "kube_node_labels")]
        lacking = [label for label in NODE_LABELS if label not in there]
        needed = {"label_karpenter_sh_nodepool", "label_nvidia_com_gpu_product"} - set(there)
        return Finding(
            what="labels of nodes",
            health=Health.LACKS if needed else Health.WELL,
            found=f"{len(there)} of {len(NODE_LABELS)}" + (f"; not {', '.join(lacking)}" if lacking else ""),
            costs="pools, GPU kinds or shares of time-sliced GPUs are not known" if needed else "",
            remedy=_NODE_LABELS_REMEDY if needed else "",
        )

    def user_labels(self, labels: Sequence[str]) -> Finding:
        """Labels of pods that name users."""
        there = [label for label in labels if self._values(label_column(label), "kube_pod_labels")]
        return Finding(
            what="labels of users",
            health=Health.WELL if there else Health.NOTE,
            found=", ".join(there) if there else f"none of {', '.join(labels) or 'none asked for'}",
            costs="" if there else "namespaces stand in for users",
            remedy="" if there else _USER_LABELS_REMEDY,
        )

    def names(self) -> Finding:
        """Whether Prometheus renames labels of pods."""
        renamed = self._values("exported_pod", "kube_pod_created")
        return Finding(
            what="names of pods",
            health=Health.WELL,
            found="in exported_pod: honor_labels is off, which is understood" if renamed else "as they are",
        )

    def devices(self, pins: Pins) -> Iterator[Finding]:
        """What dcgm-exporter tells, in which units, and whose work it is."""
        names = sorted(name for name in self._there if name in QUANTITIES)
        if not names:
            yield Finding(
                what="dcgm-exporter",
                health=Health.LACKS,
                found="no sample in the last hour",
                costs="what jobs do with their GPUs is not known; history of jobs is not affected",
                remedy="Install dcgm-exporter (it is part of the GPU operator) and scrape it.",
            )
            return
        chunk = self._chunk(names, pins)
        yield from _quantities(chunk, names)
        yield _attribution(chunk)
        for each in chunk.rejections:
            yield Finding(
                what=f"samples dropped: {each.reason}",
                health=Health.NOTE,
                found=f"{each.count:,} in the last hour",
                costs=f"for instance {each.example}",
            )

    def _chunk(self, names: Sequence[str], pins: Pins) -> Chunk:
        window = Window.over(self._now - _LOOK, self._now, self._step)
        queries = [f"last_over_time({self._client.text(Selector(name))}[{self._step}s])" for name in names]
        found: list[Series] = []
        for answers in self._client.ranges(queries, window):
            for name, answer in zip(names, answers, strict=True):
                found += [one._replace(labels={**one.labels, "__name__": name}) for one in answer]
        return normalise(found, pins=pins)

    def _values(self, label: str, metric: str) -> list[str]:
        known = Selector(metric, (Matcher(label, "!=", ""),))
        return self._client.label_values(label, [known], self._now - _LOOK, self._now)


def _quantities(chunk: Chunk, names: Sequence[str]) -> Iterator[Finding]:
    for quantity, costs in _COSTS.items():
        mine = [name for name in names if QUANTITIES[name] is quantity]
        if mine:
            yield _recognised(chunk, quantity, mine)
            continue
        others = quantity in _COMPUTE and any(QUANTITIES[name] in _COMPUTE for name in names)
        yield Finding(
            what=quantity.name.lower(),
            health=Health.NOTE if others or quantity not in (*_COMPUTE, Quantity.MEMORY_USED) else Health.LACKS,
            found=f"no {metric_names(quantity)[0]} in the last hour",
            costs=costs,
            remedy=f"Add {metric_names(quantity)[0]} to the metrics file of dcgm-exporter.",
        )


def _recognised(chunk: Chunk, quantity: Quantity, names: Sequence[str]) -> Finding:
    scales = [(pool, scale) for pool, scale in chunk.scales.items() if pool.name in names]
    said = [
        f"{pool.name} in {scale.unit if scale.unit is not None else 'an open unit'} ({scale.by})"
        for pool, scale in scales
    ]
    unclear = [scale for _, scale in scales if scale.unit is None or scale.doubt is not None]
    doubts = [scale.doubt for scale in unclear if scale.doubt is not None]
    undecided = any(scale.by is DecidedBy.NOTHING for scale in unclear)
    return Finding(
        what=quantity.name.lower(),
        health=Health.LACKS if undecided else Health.NOTE if unclear else Health.WELL,
        found="; ".join(said) or ", ".join(names),
        costs="; ".join(doubts) or ("its samples are left out until the unit is clear" if undecided else ""),
        remedy="Pin the unit in the settings, [dcgm]." if unclear else "",
    )


def _attribution(chunk: Chunk) -> Finding:
    devices = len(chunk.tracks)
    with_pods = sum(bool(track.pods) for track in chunk.tracks)
    shared = [track for track in chunk.tracks if len(track.pods) > 1]
    own = sum(any(pod.own for pod in track.pods) for track in shared)
    said = f"{counted(devices, 'GPU')}, {with_pods} with pods"
    if shared:
        said += f", {len(shared)} shared, of which {own} with values of each pod"
    return Finding(
        what="pods on GPUs",
        health=Health.WELL if with_pods else Health.LACKS,
        found=said,
        costs="" if with_pods else "what each job does with its GPUs is not known",
        remedy="" if with_pods else "Run dcgm-exporter with DCGM_EXPORTER_KUBERNETES=true.",
    )
