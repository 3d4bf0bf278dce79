import re

import numpy as np
import pytest

from advisor.forecast import demand_gate
from advisor.forecast.demand import LEVELS, median_held
from advisor.forecast.demand_gate import MODEL, DailyLosses

WEEKS = np.ones(14)
JITTER = np.tile([0.9, 1.1], 7)


def judged(model, baselines, model_median=None, persistence_median=None):
    """The verdict where medians are equal unless said."""
    even = np.ones(len(model))
    return demand_gate.judged(
        DailyLosses(
            np.asarray(model),
            baselines,
            even if model_median is None else model_median,
            even if persistence_median is None else persistence_median,
        )
    )


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


@pytest.mark.parametrize("days", [2, 3, 7, 13, 14, 20])
def test_a_model_behind_its_baseline_is_served_only_within_one_standard_error_and_says_so(days):
    random = np.random.default_rng(days)
    for _ in range(200):
        baseline = np.ones(days)
        verdict = judged(baseline - random.normal(-0.1, 0.3, days), {"constant": baseline})

        if verdict.served == MODEL and verdict.skill <= 0:
            assert days < 14
            assert verdict.t > -1
            assert re.match(r"though it was [\d.]+ % worse than \w+: by less", verdict.reason)
            assert f"less than one standard error on {days} days" in verdict.reason
        else:
            assert (verdict.reason is None) is (verdict.served == MODEL)
            assert verdict.t <= (-1 if days < 14 else 0) or verdict.skill > 0


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
    assert verdict.reason == "scored on 1 day, needs 2"


def test_baseline_that_could_not_speak_is_left_out():
    verdict = judged(WEEKS * 0.5, {"seasonal": np.full(14, np.nan), "constant": WEEKS})

    assert verdict.best_baseline == "constant"


def test_saving_without_scatter_is_certain_and_finite():
    assert np.isfinite(judged(WEEKS * 0.5, {"constant": WEEKS}).t)


def test_constant_is_displaced_only_by_a_clearly_better_baseline():
    better = {"constant": WEEKS, "hour_of_day": WEEKS * 0.8 * JITTER}
    perhaps = {"constant": WEEKS, "hour_of_day": WEEKS * np.tile([0.2, 1.7], 7)}

    assert judged(WEEKS * 2, better).served == "hour_of_day"
    assert judged(WEEKS * 2, perhaps).served == "constant"


def test_quiet_fortnight_does_not_make_persistence_the_best():
    """Without spread it costs nothing while nothing happens."""
    verdict = judged(WEEKS * 0.5, {"persistence": WEEKS * 0.0, "constant": WEEKS})

    assert (verdict.served, verdict.best_baseline) == (MODEL, "constant")


def test_model_whose_median_is_worse_than_persistence_is_served_with_its_median_held():
    """Its upper quantiles have earned their place; the median has not."""
    worse = judged(WEEKS * 0.5, {"constant": WEEKS}, WEEKS * 1.05, WEEKS)
    level = judged(WEEKS * 0.5, {"constant": WEEKS}, WEEKS * 1.01, WEEKS)

    assert (worse.served, worse.holds_median) == (MODEL, True)
    assert (level.served, level.holds_median) == (MODEL, False)


def test_median_that_is_held_leaves_quantiles_in_order():
    gpus = np.sort(np.random.default_rng(1).uniform(0, 100, (50, len(LEVELS))), axis=1)
    now = np.linspace(0, 120, 50)

    held = median_held(gpus, now)

    assert (held[:, LEVELS.index(0.5)] == now).all()
    assert (np.diff(held, axis=1) >= 0).all()
    upper = slice(LEVELS.index(0.5) + 1, None)
    assert (held[:, upper] >= gpus[:, upper]).all()


def test_where_only_persistence_has_spoken_it_is_served():
    assert judged(WEEKS, {"persistence": WEEKS, "constant": np.full(14, np.nan)}).served == "persistence"
