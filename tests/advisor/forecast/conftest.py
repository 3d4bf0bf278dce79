"""One small fitted model and the history around it, made once."""

from __future__ import annotations

import pytest

from advisor.domain.jobs import Job
from advisor.forecast.calibration import CalibrationSettings
from advisor.forecast.duration import DurationModel
from tests.builders import a_history
from training.duration import DurationSettings, fit_durations

SMALL = DurationSettings(trees=3, leaves=31, least_jobs=50, calibration=CalibrationSettings(least=40, every=5))


@pytest.fixture(scope="session")
def history() -> list[Job]:
    return a_history(900, seed=11)


@pytest.fixture(scope="session")
def model(history: list[Job]) -> DurationModel:
    """Fitted when 600 of the 900 jobs had been submitted."""
    fitted = fit_durations(history, history[600].submit, SMALL)
    assert fitted is not None
    assert len(fitted.questions) >= SMALL.calibration.least
    return fitted
