"""What this process tells Prometheus: every name, label and meaning in one place.

Requests are counted as they are answered; everything about pools and data is read from the newest
advice, and everything about sources from the history, when Prometheus asks, so that nothing can be forgotten or go
stale in a gauge.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from advisor.domain.plans import Advice, PoolAdvice
from advisor.errors import AdvisorError
from advisor.history.status import HistoryStatus
from dashboards.data import DashboardData
from serving.api.service import AdvisorService
from serving.ingest_metrics import IngestCollector

__all__ = ["GAUGES", "REQUESTS", "REQUEST_SECONDS", "Metrics"]

REQUESTS = ("gsa_http_requests", "Requests answered, by route template, method and status.")
REQUEST_SECONDS = ("gsa_http_request_seconds", "Seconds from the first byte of a request to the last of its answer.")
_BUCKETS = (0.0005, 0.001, 0.002, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)

GAUGES: dict[str, tuple[str, tuple[str, ...]]] = {
    "gsa_ready": ("1 where forecasts and advice can be answered, else 0.", ()),
    "gsa_synthetic": ("1 where the history is a generated workload, else 0.", ()),
    "gsa_slice_minutes": ("Recommended slice length; absent for a class better left unsliced.", ("pool", "class")),
    "gsa_slice_current_minutes": ("Slice length in use, where there is one.", ("pool", "class")),
    "gsa_slice_cost_ratio": ("Lost GPU-minutes per useful GPU-minute at the recommended length.", ("pool", "class")),
    "gsa_sharing_factor": ("Recommended shares of one GPU.", ("pool",)),
    "gsa_warm_gpus": ("Recommended GPUs to have ready before demand arrives.", ("pool",)),
    "gsa_keep_alive_seconds": ("Recommended seconds that an empty node stays.", ("pool",)),
    "gsa_start_latency_seconds": ("Seconds from asking for a node to a usable GPU.", ("pool",)),
    "gsa_demand_gpus": ("Forecast of GPUs running and pending.", ("pool", "horizon_minutes", "quantile")),
    "gsa_demand_now_gpus": ("GPUs running and pending now.", ("pool",)),
    "gsa_demand_skill_ratio": ("1 - loss / best baseline's loss, where it was scored.", ("pool", "horizon_minutes")),
    "gsa_changes": ("Changes proposed in the newest advice.", ("pool", "allowed")),
    "gsa_pool_without_advice": ("1 for a pool that the newest cycle could not advise on.", ("pool",)),
    "gsa_model_info": ("1 for the version served; version is empty where a baseline is.", ("model", "version")),
    "gsa_advice_age_seconds": ("Age of the newest advice.", ()),
    "gsa_history_jobs": ("Jobs in the history.", ()),
    "gsa_history_dropped_rows": (
        "Jobs, pods and samples left out of the history, over all reasons together.",
        (),
    ),
    "gsa_history_age_seconds": ("Seconds since the last event in the history.", ()),
}
"""Every gauge: what it means and its labels."""


class Metrics:
    """Counts requests, and reads the service when it is scraped."""

    def __init__(
        self, service: AdvisorService, data: DashboardData, sources: Callable[[], HistoryStatus] | None = None
    ) -> None:
        """Register everything in a registry of its own, so that two apps in one process never clash.

        ``sources`` answers what the history says of where it comes from.
        """
        self._registry = CollectorRegistry()
        labels = ("route", "method", "status")
        self._requests = Counter(*REQUESTS, labels, registry=self._registry)
        self._seconds = Histogram(*REQUEST_SECONDS, ("route",), registry=self._registry, buckets=_BUCKETS)
        self._registry.register(_AdviceCollector(service, data))
        if sources is not None:
            self._registry.register(IngestCollector(sources))

    def answered(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count one answer."""
        self._requests.labels(route, method, str(status)).inc()
        self._seconds.labels(route).observe(seconds)

    def exposition(self) -> bytes:
        """Everything in the text format of Prometheus."""
        return generate_latest(self._registry)


class _Gauges:
    """Samples gathered by the name of their gauge; a gauge without samples is left out."""

    def __init__(self) -> None:
        self._families: dict[str, GaugeMetricFamily] = {}

    def add(self, name: str, value: float, *labels: str) -> None:
        """One sample of a declared gauge."""
        if name not in self._families:
            meaning, label_names = GAUGES[name]
            self._families[name] = GaugeMetricFamily(name, meaning, labels=label_names)
        self._families[name].add_metric(labels, value)

    def families(self) -> Iterator[Metric]:
        """Every gauge that has a sample."""
        yield from self._families.values()


class _AdviceCollector(Collector):
    """Reads readiness, history and the newest advice; what cannot be read is left out, never guessed."""

    def __init__(self, service: AdvisorService, data: DashboardData) -> None:
        self._service = service
        self._data = data

    def describe(self) -> Iterator[Metric]:
        """Nothing, so that registering asks the service for nothing."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        """The gauges as of now."""
        gauges = _Gauges()
        gauges.add("gsa_ready", float(self._ready()))
        # Before the first cycle there is no advice, and an unreadable store has no history: gsa_ready says so.
        for read in (self._history, self._advice):
            try:
                read(gauges)
            except AdvisorError:
                continue
        yield from gauges.families()

    def _ready(self) -> bool:
        try:
            return self._service.readiness().ready
        except AdvisorError:
            return False

    def _history(self, gauges: _Gauges) -> None:
        history = self._data.history()
        gauges.add("gsa_synthetic", float(history.synthetic))
        gauges.add("gsa_history_jobs", history.jobs)
        gauges.add("gsa_history_dropped_rows", history.dropped)
        if history.last is not None:
            gauges.add("gsa_history_age_seconds", (self._data.now() - history.last).total_seconds())

    def _advice(self, gauges: _Gauges) -> None:
        advice = self._service.advice()
        _add_advice(gauges, advice)
        gauges.add("gsa_advice_age_seconds", (self._service.now() - advice.time).total_seconds())


def _add_advice(gauges: _Gauges, advice: Advice) -> None:
    for model, version in sorted(advice.models.items()):
        gauges.add("gsa_model_info", 1.0, model, version or "")
    for one in advice.without_advice:
        gauges.add("gsa_pool_without_advice", 1.0, one.pool)
    for pool in advice.pools:
        _add_pool(gauges, pool)
        _add_slices(gauges, pool)
        _add_demand(gauges, pool)


def _add_pool(gauges: _Gauges, pool: PoolAdvice) -> None:
    gauges.add("gsa_sharing_factor", pool.sharing_factor, pool.pool)
    gauges.add("gsa_warm_gpus", pool.warm.warm_gpus, pool.pool)
    gauges.add("gsa_keep_alive_seconds", pool.warm.keep_alive_seconds, pool.pool)
    gauges.add("gsa_start_latency_seconds", pool.warm.start_latency_seconds, pool.pool)
    allowed = sum(change.allowed for change in pool.changes)
    gauges.add("gsa_changes", allowed, pool.pool, "true")
    gauges.add("gsa_changes", len(pool.changes) - allowed, pool.pool, "false")


def _add_slices(gauges: _Gauges, pool: PoolAdvice) -> None:
    for one in pool.slice_plan.classes:
        gauges.add("gsa_slice_cost_ratio", one.cost, pool.pool, one.name)
        if one.minutes is not None:
            gauges.add("gsa_slice_minutes", one.minutes, pool.pool, one.name)
        if one.current_minutes is not None:
            gauges.add("gsa_slice_current_minutes", one.current_minutes, pool.pool, one.name)


def _add_demand(gauges: _Gauges, pool: PoolAdvice) -> None:
    gauges.add("gsa_demand_now_gpus", pool.demand.gpus_now, pool.pool)
    for horizon in pool.demand.horizons:
        minutes = str(horizon.horizon_minutes)
        for level, gpus in zip(horizon.levels, horizon.gpus, strict=True):
            gauges.add("gsa_demand_gpus", gpus, pool.pool, minutes, f"{level:g}")
        if horizon.skill is not None:
            gauges.add("gsa_demand_skill_ratio", horizon.skill, pool.pool, minutes)
