"""Reports to make pages of, with every shape a page must hold."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from advisor.domain.reports import DurationReport, RunProtocol
from tests.builders import NOON, lognormal_durations
from training.duration_report import ScoredJobs, duration_report
from training.metrics import mark

LAWS = {
    "median_of_5": lognormal_durations(200.0, 0.7),
    "model": lognormal_durations(700.0, 1.4),
    "champion": lognormal_durations(500.0, 1.0),
    "challenger": lognormal_durations(2000.0, 2.0),
}


def a_duration_report(
    jobs: int = 300, *, predictors: tuple[str, ...] = tuple(LAWS), served: str = "model", **protocol: Any
) -> DurationReport:
    """Jobs of a skewed history over four weeks, none of them in the third; no job took 10 to 100 s."""
    rng = np.random.default_rng(3)
    seconds = np.exp(rng.normal(np.log(700.0), 1.5, size=jobs)) * rng.choice([1.0, 1.0, 40.0], size=jobs)
    seconds[(seconds >= 10.0) & (seconds < 100.0)] = 3.0
    keys = [
        ("user+gpus", "user", "gpus", "all")[int(place)] for place in rng.choice(4, p=[0.8, 0.1, 0.06, 0.04], size=jobs)
    ]
    scored = ScoredJobs(
        weeks=rng.choice([0.0, 1.0, 3.0], size=jobs),
        warm=np.array([key == "user+gpus" for key in keys], dtype=np.bool_),
        gpus=rng.choice([0.25, 1.0, 2.0, 8.0, 16.0], size=jobs),
        keys=keys,
    )
    marks = {name: mark([LAWS[name]] * jobs, seconds) for name in predictors}
    known: dict[str, Any] = {
        "data_digest": "0123456789abcdef",
        "rows": 10 * jobs,
        "split_time": NOON,
        "refits": 3,
        "seed": 1,
        "versions": {"lightgbm": "4.7.0", "numpy": "2.4.6", "python": "3.11.7"},
        "assumed": ("a duration counts from the start and is known from the end on",),
    }
    return replace(duration_report(marks, scored, RunProtocol(**{**known, **protocol})), served=served)
