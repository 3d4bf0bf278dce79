"""Fits duration models: history in, an immutable :class:`~advisor.forecast.duration.DurationModel` out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from advisor.domain.jobs import Job
from advisor.domain.units import utc
from advisor.forecast.duration_model import DurationModel
from training.calibrate import calibration_questions
from training.duration_table import Progress, duration_table
from training.forests import DurationSettings, fit_forests
from training.model_replay import ModelReplay

__all__ = ["DurationSettings", "fit_durations"]


def fit_durations(
    jobs: Sequence[Job], now: datetime, settings: DurationSettings | None = None, progress: Progress | None = None
) -> DurationModel | None:
    """A calibrated model of what ``jobs`` had shown by ``now``; None where too few had ended to learn from.

    Nothing that happened after ``now`` is used: jobs that were still running then count as such. The
    calibration is that of a first model, fitted on what came before the window it is drawn from.

    Raises:
        Refused: settings that cannot be fitted with, or a time without zone.
    """
    chosen = settings or DurationSettings()
    moment = utc(now, "now")
    table = duration_table(jobs, moment, progress, newest=chosen.jobs_needed)
    model = fit_forests(table, moment.timestamp(), chosen)
    if model is None:
        return None
    replay = ModelReplay(jobs, table, moment)
    return replace(model, questions=calibration_questions(table, replay, moment.timestamp(), chosen))
