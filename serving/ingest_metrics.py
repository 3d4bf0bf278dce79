"""What Prometheus is told of the sources of jobs: read from the history, whichever process filled it."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import structlog
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from advisor.errors import AdvisorError
from advisor.history.status import HistoryStatus

__all__ = ["INGEST_COUNTERS", "INGEST_GAUGES", "IngestCollector"]

_log = structlog.get_logger(__name__)

INGEST_COUNTERS: dict[str, tuple[str, tuple[str, ...]]] = {
    "gsa_ingest_dropped": (
        "Rows, samples and objects left out of the history. Where readings overlap, those of the fullest.",
        ("source", "reason"),
    ),
}
"""Every counter without its suffix: what it means and its labels."""

INGEST_GAUGES: dict[str, tuple[str, tuple[str, ...]]] = {
    "gsa_ingest_jobs": ("Jobs of a source by how they ended, or waiting or running.", ("source", "outcome")),
    "gsa_ingest_last_success_timestamp_seconds": ("When a source was last read with any news.", ("source",)),
    "gsa_ingest_watermark_timestamp_seconds": ("Up to when a source has been read.", ("source",)),
}
"""Every gauge: what it means and its labels."""


class IngestCollector(Collector):
    """Reads the history when it is asked; where that cannot be read, nothing is told."""

    def __init__(self, status: Callable[[], HistoryStatus]) -> None:
        self._status = status

    def describe(self) -> Iterator[Metric]:
        """Nothing, so that registering reads nothing."""
        return iter(())

    def collect(self) -> Iterator[Metric]:
        """The families as of now."""
        try:
            status = self._status()
        except AdvisorError as error:
            _log.warning("sources_not_told", reason=str(error))
            return
        dropped = CounterMetricFamily("gsa_ingest_dropped", *_of(INGEST_COUNTERS["gsa_ingest_dropped"]))
        jobs, read, watermark = (GaugeMetricFamily(name, *_of(told)) for name, told in INGEST_GAUGES.items())
        for each in status.sources:
            for rejection in each.rejections:
                dropped.add_metric((each.source, rejection.reason), rejection.count)
            for outcome, count in each.outcomes.items():
                jobs.add_metric((each.source, outcome), count)
            if each.last_ingest is not None:
                read.add_metric((each.source,), each.last_ingest.timestamp())
            if each.watermark is not None:
                watermark.add_metric((each.source,), each.watermark.timestamp())
        yield from (family for family in (dropped, jobs, read, watermark) if family.samples)


def _of(told: tuple[str, tuple[str, ...]]) -> tuple[str, None, tuple[str, ...]]:
    """Meaning, no value, labels: as a family takes them."""
    meaning, labels = told
    return meaning, None, labels
