import numpy as np
import pytest

from advisor.forecast.demand_gate import MODEL, judged

WEEKS = np.ones(14)
JITTER = np.tile([0.9, 1.1], 7)


def test_model_that_saves_loss_is_served():
    verdict = judged(WEEKS * 0.8 * JITTER, {"persistence": WEEKS * 1.5, "constant": WEEKS})

    assert verdict.served == MODEL
    assert verdict.best_baseline == "constant"
    assert verdict.skill == pytest.approx(0.2)
    assert verdict.reason is None


def test_fifteen_days_of_a_model_worse_than_last_weeks_value_are_refused():
    """Field report A24."""
    verdict = judged(
        np.full(15, 1.1), {"seasonal": np.full(15, 1.0) * np.resize(JITTER, 15), "constant": np.full(15, 3.0)}
    )

    assert verdict.served == "seasonal"
    assert verdict.skill < 0
    assert verdict.reason == "no skill against seasonal"


def test_with_few_days_a_little_evidence_against_the_model_is_not_enough():
    baseline = {"constant": np.array([1.0, 1.0, 1.0])}

    doubtful = judged(np.array([0.5, 1.9, 0.7]), baseline)
    bad = judged(np.array([1.5, 1.6, 1.4]), baseline)

    assert doubtful.served == MODEL
    assert bad.served == "constant"


def test_full_window_of_the_same_evidence_is_enough():
    losses = np.tile([0.5, 1.9, 0.7], 5)[:14]

    assert judged(losses, {"constant": WEEKS}).served == "constant"


def test_model_that_only_equals_its_baseline_is_not_served():
    verdict = judged(WEEKS, {"constant": WEEKS})

    assert (verdict.served, verdict.t, verdict.skill) == ("constant", 0.0, 0.0)


def test_one_day_is_too_few_to_judge():
    verdict = judged(np.array([0.1]), {"constant": np.array([1.0])})

    assert verdict.served == "constant"
    assert verdict.skill is None
    assert verdict.reason == "scored on 1 days, needs 2"


def test_baseline_that_could_not_speak_is_left_out():
    verdict = judged(WEEKS * 0.5, {"seasonal": np.full(14, np.nan), "constant": WEEKS})

    assert verdict.best_baseline == "constant"


def test_saving_without_scatter_is_certain_and_finite():
    assert np.isfinite(judged(WEEKS * 0.5, {"constant": WEEKS}).t)
