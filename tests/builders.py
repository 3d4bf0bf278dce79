"""Builders in the domain's words: say what matters to the test, the rest is filled in."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from advisor.domain.forecasts import DurationDistribution
from advisor.domain.jobs import Job, Outcome

NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
"""A Monday noon, where most small test worlds begin."""


def a_job(name: str = "job-1", *, submit: datetime = NOON, seconds: float | None = 600.0, **more: Any) -> Job:
    """A completed one-GPU job of ten minutes; ``seconds=None`` makes one that still runs."""
    start = more.pop("start", submit)
    fields: dict[str, Any] = {"id": name, "submit": submit, "gpus": 1.0, "start": start, "user": "ada", **more}
    if seconds is not None and start is not None:
        fields.setdefault("end", start + timedelta(seconds=seconds))
        fields.setdefault("outcome", Outcome.COMPLETED)
    return Job(**fields)


def lognormal_durations(median_seconds: float, sigma: float = 1.0) -> DurationDistribution:
    """A log-normal duration distribution on a fine grid, cut at four standard deviations."""
    from scipy.stats import norm  # noqa: PLC0415 - only the tests that need it pay for the import

    edges = np.linspace(np.log(median_seconds) - 4 * sigma, np.log(median_seconds) + 4 * sigma, 161)
    cdf = norm.cdf((edges - np.log(median_seconds)) / sigma)
    cdf = (cdf - cdf[0]) / (cdf[-1] - cdf[0])
    return DurationDistribution(edges, cdf)
