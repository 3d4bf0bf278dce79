"""What is served when a model may not speak; what models say is in the contracts and in tests/training."""

from datetime import timedelta

import numpy as np
import pytest

from advisor.forecast.demand import FREQUENCIES, LEVELS, UNKNOWN, DemandForecaster, model_quantiles
from advisor.forecast.demand_law import ChangeClasses
from tests.builders import NOON, a_clockwork_series, a_demand_series


def at(series, index=-1):
    return series.time_at(len(series) + index if index < 0 else index)


def test_pool_without_history_has_no_horizons_and_says_so():
    nobody_looked = a_demand_series([np.nan, np.nan])

    for series in (nobody_looked, a_demand_series([])):
        forecast = DemandForecaster().forecast(series, NOON + timedelta(minutes=5))
        rise = DemandForecaster().rise(series, NOON + timedelta(minutes=5))

        assert forecast.horizons == ()
        assert not forecast.skilled
        assert "no history" in forecast.reasons[0]
        assert rise.served == UNKNOWN
        assert np.sum(rise.probabilities) == 0


def test_three_hours_of_history_get_a_baseline_that_says_what_is_missing():
    """Field report A24: three hours against a season of a day."""
    series = a_demand_series(np.tile([8.0, 8.0, 16.0], 12))

    forecast = DemandForecaster().forecast(series, at(series))

    assert {horizon.served for horizon in forecast.horizons} <= {"constant", "persistence"}
    assert {horizon.skill for horizon in forecast.horizons} == {None}
    assert not forecast.skilled
    assert "needs two seasons (2 days of history), has 3 h" in forecast.reasons


def test_horizon_beyond_all_history_falls_back_to_persistence():
    series = a_demand_series(np.tile([8.0, 8.0, 16.0], 12))

    day = DemandForecaster().forecast(series, at(series)).horizons[-1]

    assert (day.horizon_minutes, day.served) == (1440, "persistence")
    assert set(day.gpus) == {16.0}


def test_constant_pool_is_forecast_to_stay_as_it_is():
    series = a_demand_series(np.full(3000, 24.0), pending=np.zeros(3000))

    forecast = DemandForecaster().forecast(series, at(series))
    rise = DemandForecaster().rise(series, at(series))

    assert all(set(horizon.gpus) == {24.0} for horizon in forecast.horizons)
    assert rise.served == FREQUENCIES
    assert np.sum(rise.probabilities) == 0


def test_silent_telemetry_freezes_the_last_known_demand():
    """Half an hour without samples: nothing may be scaled down, so nothing has skill."""
    series = a_clockwork_series(3)
    known = series.running.copy()
    known[-6:] = np.nan
    gap = a_demand_series(known, pending=np.zeros(len(known)))

    forecast = DemandForecaster().forecast(gap, at(gap))

    assert forecast.gpus_now == known[-7]
    assert all(set(horizon.gpus) == {known[-7]} for horizon in forecast.horizons)
    assert not forecast.skilled
    assert "nothing seen of pool default for 30 min" in forecast.reasons[0]
    assert DemandForecaster().rise(gap, at(gap)).served == UNKNOWN


def test_one_missed_sample_freezes_nothing():
    series = a_clockwork_series(3)
    known = series.running.copy()
    known[-1] = np.nan

    forecast = DemandForecaster().forecast(a_demand_series(known), at(series))

    assert not any("nothing seen" in reason for reason in forecast.reasons)


def test_forecast_as_of_now_does_not_see_what_came_later():
    series = a_clockwork_series(4)
    now = at(series, 700)

    assert DemandForecaster().forecast(series, now) == DemandForecaster().forecast(series.until(now), now)
    assert DemandForecaster().rise(series, now) == DemandForecaster().rise(series.until(now), now)


def test_horizons_that_samples_cannot_answer_are_left_out():
    hourly = a_demand_series(np.tile([8.0, 16.0], 60), step_minutes=60)

    forecast = DemandForecaster().forecast(hourly, at(hourly))

    assert [horizon.horizon_minutes for horizon in forecast.horizons] == [60, 1440]


def test_series_says_that_what_waits_is_not_known():
    note = "starts are not known"

    assert note in DemandForecaster().forecast(a_demand_series([1.0] * 40, notes=(note,)), NOON).reasons


@pytest.mark.parametrize("horizon", [0, 3])
def test_quantiles_stand_at_the_declared_levels(horizon):
    series = a_clockwork_series(3)

    assert DemandForecaster().forecast(series, at(series)).horizons[horizon].levels == LEVELS


CLASSES = ChangeClasses.from_changes(np.repeat([-1.0, 0.0, 1.0], 100))
MEDIAN = LEVELS.index(0.5)


@pytest.mark.parametrize(
    "fall, rise, median", [(0.1, 0.53, 16.0), (0.1, 0.57, 24.0), (0.53, 0.1, 16.0), (0.57, 0.1, 8.0)]
)
def test_median_leaves_no_change_only_where_the_odds_are_clear(fall, rise, median):
    law = CLASSES.law(np.array([[fall, 1 - fall - rise, rise]]))

    found = model_quantiles(law, np.array([16.0]), 8, np.array(LEVELS))

    assert found[0, MEDIAN] == median
    assert (np.diff(found[0]) >= 0).all()


def test_median_that_stays_keeps_corrected_levels_on_their_side():
    """Levels moved towards the middle must not cross a median that was held back."""
    law = CLASSES.law(np.array([[0.47, 0.05, 0.48]]))
    towards_the_middle = np.array([0.4, 0.45, 0.46, 0.47, 0.5, 0.5, 0.5, 0.5, 0.5, 0.51])

    found = model_quantiles(law, np.array([16.0]), 8, towards_the_middle)

    assert found[0].tolist() == [8, 8, 8, 8, 16, 16, 16, 16, 16, 16]


def test_demand_below_nothing_is_nothing():
    law = CLASSES.law(np.array([[1.0, 0.0, 0.0]]))

    assert (model_quantiles(law, np.array([4.0]), 8, np.array(LEVELS)) == 0).all()
