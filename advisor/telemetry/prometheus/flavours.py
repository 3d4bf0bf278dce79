"""How servers of the Prometheus HTTP API differ, as far as reading history goes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

__all__ = ["BuildInfo", "Flavour", "flavour_of", "prefix"]

Flavour = str
"""``prometheus``, ``thanos``, ``mimir`` or ``victoriametrics``."""

ALWAYS: Mapping[Flavour, Mapping[str, str]] = {
    "prometheus": {},
    # Replicas as one, nothing where a store is missing, and samples as they were scraped: a downsampled one has no
    # value at a moment. 0s means raw.
    "thanos": {"dedup": "true", "partial_response": "false", "max_source_resolution": "0s"},
    "mimir": {},
    # Without nocache it moves start and end to fit its cache; the other denies an answer without some storage node.
    "victoriametrics": {"nocache": "1", "deny_partial_response": "1"},
}
"""Parameters sent with every query, by flavour."""


@dataclass(frozen=True, slots=True)
class BuildInfo:
    """What a server says of itself; ``version`` and ``application`` are None where it does not."""

    flavour: Flavour
    version: str | None = None
    application: str | None = None


def flavour_of(build: Mapping[str, object], headers: Mapping[str, str]) -> Flavour:
    """The flavour of a server by the build it names and the headers of that answer.

    VictoriaMetrics sends a header of its own and names no build, or a Prometheus one; Mimir names its application;
    Thanos, unlike Prometheus, has not come to version 1.

    >>> flavour_of({"version": "2.42.0"}, {}), flavour_of({"version": "0.36.1"}, {})
    ('prometheus', 'thanos')
    """
    application = str(build.get("application", "")).lower()
    if "x-server-hostname" in headers or "victoria" in application:
        return "victoriametrics"
    if "mimir" in application or "cortex" in application:
        return "mimir"
    if "thanos" in application or str(build.get("version", "")).removeprefix("v").startswith("0."):
        return "thanos"
    return "prometheus"


def prefix(flavour: Flavour, url: str) -> str:
    """What stands between ``url`` and ``api/v1`` for queries: Mimir serves below ``/prometheus`` unless told otherwise.

    >>> prefix("mimir", "http://mimir:8080"), prefix("mimir", "https://host/tenant/prometheus")
    ('prometheus/', '')
    """
    return "prometheus/" if flavour == "mimir" and not urlsplit(url).path.strip("/") else ""
