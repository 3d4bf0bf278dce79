"""The report on durations: the measured answers of every predictor, over all jobs and over groups of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from advisor.domain.reports import DurationReport, DurationScores, RunProtocol
from advisor.forecast.baselines import MEDIAN_OF_5
from training.metrics import Marks, running_scores_of, scores_of

__all__ = ["ScoredJobs", "duration_report"]

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

_DECADES = 10.0 ** np.arange(-9, 13)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoredJobs:
    """What the scored jobs are told apart by, one entry a job.

    ``weeks`` is the week of the submission, counted from 0 at the split; ``warm`` whether jobs of the same
    owner and GPU count had ended; ``keys`` the most specific history that anything was known of.
    """

    weeks: Floats
    warm: Bools
    gpus: Floats
    keys: Sequence[str]


def duration_report(marks: Mapping[str, Marks], jobs: ScoredJobs, protocol: RunProtocol) -> DurationReport:
    """Every predictor of ``marks`` scored on the same ``jobs``, with the baseline as who is served."""
    week_count = int(jobs.weeks.max()) + 1 if jobs.weeks.size else 0

    def by(groups: Mapping[str, Bools]) -> dict[str, dict[str, DurationScores]]:
        return {
            name: {
                group: scores_of(mine.of(chosen), jobs.weeks[chosen], week_count) for group, chosen in groups.items()
            }
            for name, mine in marks.items()
        }

    seconds = next(iter(marks.values())).seconds if marks else np.empty(0)
    return DurationReport(
        protocol=protocol,
        scores={name: scores_of(mine, jobs.weeks, week_count) for name, mine in marks.items()},
        by_history=by({"warm": jobs.warm, "cold": ~jobs.warm}),
        by_gpus=by({f"{size:g}": jobs.gpus == size for size in np.unique(jobs.gpus)}),
        by_decade=by(_decades(seconds)),
        by_key=by(_keys(jobs.keys)),
        running={name: running_scores_of(mine) for name, mine in marks.items()},
        served=MEDIAN_OF_5,
    )


def _decades(seconds: Floats) -> dict[str, Bools]:
    """The jobs of every power of ten of seconds, named by its lower bound."""
    places = np.searchsorted(_DECADES, seconds, side="right") - 1
    return {f"{_DECADES[place]:.15g}": places == place for place in np.unique(places)}


def _keys(keys: Sequence[str]) -> dict[str, Bools]:
    """The jobs of every key, the most specific first."""
    every = np.array(keys, dtype=np.str_)
    return {str(key): every == key for key in sorted(set(keys), key=_specific_first)}


def _specific_first(key: str) -> tuple[int, str]:
    place = 0 if "+" in key else {"gpus": 2, "all": 3}.get(key, 1)
    return place, key
