"""The measures of a duration forecast: what each is called, what it says, and which way is better."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from advisor.domain.reports import DurationScores
from dashboards.charts.quality import factor_off
from dashboards.formats import UNKNOWN, count, percent

__all__ = ["ERROR", "MEASURES", "PROMISED", "WITHIN_2X", "Measure", "coverage", "pinball"]

PROMISED = ("0.5", "0.8", "0.9", "0.95")
"""Levels whose coverage is shown."""


@dataclass(frozen=True, slots=True)
class Measure:
    """A figure of the scores; ``badness`` says how far one is from the best there could be."""

    label: str
    meaning: str
    of: Callable[[DurationScores], float | None]
    show: Callable[[float | None], str]
    badness: Callable[[float], float]


def _less_is_better(value: float) -> float:
    return value


def _more_is_better(value: float) -> float:
    return -value


def _number(value: float | None) -> str:
    return UNKNOWN if value is None else f"{value:.3f}"


def _percent(level: str) -> str:
    return f"{float(level) * 100:g} %"


def pinball(level: str) -> Measure:
    """The loss of the quantile at ``level``."""
    return Measure(
        f"P{float(level) * 100:g} loss",
        f"Pinball loss of ln seconds at the {_percent(level)} quantile: less is better.",
        lambda scores: scores.pinball_log.get(level),
        _number,
        _less_is_better,
    )


def coverage(level: str) -> Measure:
    """How many jobs ended by their quantile at ``level``."""
    return Measure(
        f"Ended by P{float(level) * 100:g}",
        f"Share of jobs that ended by their {_percent(level)} quantile; best is {_percent(level)}.",
        lambda scores: scores.coverage.get(level),
        percent,
        lambda share: abs(share - float(level)),
    )


ERROR = Measure(
    "Typical error",
    "The factor by which the median is off, on average of the logarithms; less is better.",
    lambda scores: scores.log_mae,
    factor_off,
    _less_is_better,
)
WITHIN_2X = Measure(
    "Within a factor of 2",
    "Share of jobs between half and twice the median; more is better.",
    lambda scores: scores.within_2x,
    percent,
    _more_is_better,
)
MEASURES = {
    "How close": (
        ERROR,
        Measure(
            "Within 25 %",
            "Share of jobs whose median is within 25 % of the actual duration; more is better.",
            lambda scores: scores.within_25_percent,
            percent,
            _more_is_better,
        ),
        WITHIN_2X,
        Measure(
            "Typical, within a factor of 2",
            "The same for the typical duration, the centre of the heaviest window of that width; more is better.",
            lambda scores: scores.typical_within_2x,
            percent,
            _more_is_better,
        ),
        Measure(
            "CRPS",
            "Continuous ranked probability score of ln seconds, of the whole distribution; less is better.",
            lambda scores: scores.crps_log,
            _number,
            _less_is_better,
        ),
        *(pinball(level) for level in ("0.5", "0.9", "0.95")),
    ),
    "How honest": (
        *(coverage(level) for level in PROMISED),
        Measure(
            "Crossing answers",
            "Answers in which a higher quantile lies below a lower one; anything but 0 is a defect.",
            lambda scores: scores.crossings,
            count,
            _less_is_better,
        ),
        Measure(
            "Impossible answers",
            "Answers with a duration at or below zero; anything but 0 is a defect.",
            lambda scores: scores.not_positive,
            count,
            _less_is_better,
        ),
    ),
}
