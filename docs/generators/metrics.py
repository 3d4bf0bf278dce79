"""The metrics page: every name that ``/metrics`` answers, with its labels and meaning."""

from __future__ import annotations

from typing import NamedTuple

from docs.generators.markdown import code, document, table
from serving.ingest_metrics import INGEST_COUNTERS, INGEST_GAUGES
from serving.metrics import GAUGES, REQUEST_SECONDS, REQUESTS

__all__ = ["METRICS", "metrics_page"]

_INTRODUCTION = """# Metrics

`GET /metrics` answers in the text format of Prometheus. Requests are counted by this process since it started;
every gauge is read from the newest advice at the moment of the scrape, and `gsa_ingest_...` from the history, so that
it tells of what any process has collected. `gsa collect --metrics-port` answers the latter alone. A value that is not
known is absent, never zero."""


class Family(NamedTuple):
    """One metric as a query names it."""

    name: str
    kind: str
    labels: tuple[str, ...]
    meaning: str


METRICS: tuple[Family, ...] = (
    Family(f"{REQUESTS[0]}_total", "counter", ("route", "method", "status"), REQUESTS[1]),
    Family(REQUEST_SECONDS[0], "histogram", ("route",), REQUEST_SECONDS[1]),
    *(Family(name, "gauge", labels, meaning) for name, (meaning, labels) in GAUGES.items()),
    *(Family(f"{name}_total", "counter", labels, meaning) for name, (meaning, labels) in INGEST_COUNTERS.items()),
    *(Family(name, "gauge", labels, meaning) for name, (meaning, labels) in INGEST_GAUGES.items()),
)
"""Every family, in the order of the declarations."""


def metrics_page() -> str:
    """The page, in the order of the declarations."""
    rows = [(code(f.name), f.kind, ", ".join(code(label) for label in f.labels), f.meaning) for f in METRICS]
    return document(_INTRODUCTION, table(("metric", "kind", "labels", "meaning"), rows))
