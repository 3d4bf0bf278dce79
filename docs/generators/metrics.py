"""The metrics page: every name that ``/metrics`` answers, with its labels and meaning."""

from __future__ import annotations

from typing import NamedTuple

from docs.generators.markdown import code, document, table
from serving.metrics import GAUGES, REQUEST_SECONDS, REQUESTS

__all__ = ["METRICS", "metrics_page"]

_INTRODUCTION = """# Metrics

`GET /metrics` answers in the text format of Prometheus. The counter and the histogram count what this process
has answered since it started; every gauge is read from the newest advice at the moment of the scrape. A value
that is not known is absent, never zero."""


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
)
"""Every family, in the order of the declarations."""


def metrics_page() -> str:
    """The page, in the order of the declarations."""
    rows = [(code(f.name), f.kind, ", ".join(code(label) for label in f.labels), f.meaning) for f in METRICS]
    return document(_INTRODUCTION, table(("metric", "kind", "labels", "meaning"), rows))
