"""The calibration a model starts its life with: questions it could not have seen the answers of."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from advisor.domain.units import SECONDS_PER_DAY
from advisor.forecast.calibration import CalibrationSettings
from advisor.forecast.live import LiveModel
from advisor.forecast.questions import Question
from training.duration_table import DurationTable
from training.forests import DurationSettings, fit_forests
from training.model_replay import ModelReplay

__all__ = ["calibration_questions", "warm_up_begins"]

Floats = NDArray[np.float64]


def warm_up_begins(submit: Floats, until: float, settings: CalibrationSettings) -> float:
    """When to begin asking so that the calibration window is full at ``until`` (all in Unix seconds).

    At least half of the submissions are left to fit on. Equals ``until`` where nothing was submitted before.
    """
    before = np.sort(submit[submit < until])
    if not before.size:
        return until
    first = before[max(before.size - settings.window, before.size // 2)]
    return float(max(first, until - settings.days * SECONDS_PER_DAY))


def calibration_questions(
    table: DurationTable, replay: ModelReplay, now: float, settings: DurationSettings
) -> tuple[Question, ...]:
    """The questions of the latest window before ``now``, answered by a model fitted before the first of them.

    Empty where too few jobs had ended by then to fit one.
    """
    begin = warm_up_begins(table.submit, now, settings.calibration)
    model = fit_forests(table, begin, settings)
    if model is None:
        return ()
    live = LiveModel(model)
    for _ in replay.run(live, now):
        pass
    return live.questions
