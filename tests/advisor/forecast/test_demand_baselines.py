from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from advisor.errors import Defect
from advisor.forecast.demand_baselines import BASELINES, LEVELS, BaselineTables, baseline_quantiles
from tests.builders import NOON, a_demand_series

MEDIAN = LEVELS.index(0.5)


def forecast(name, series, at, horizon):
    tables = BaselineTables.from_history(series, horizon)
    return baseline_quantiles(name, tables, series, np.array([at]), horizon)[0]


def hourly(days, **more):
    """Demand that equals the hour of the day (UTC), sampled hourly from a Monday noon."""
    hours = (np.arange(days * 24) + 12) % 24
    return a_demand_series(hours.astype(float), step_minutes=60, **more)


def test_persistence_stays_what_it_is():
    assert (forecast("persistence", a_demand_series([3.0, 5.0]), 1, 5) == 5).all()


def test_constant_adds_the_quantiles_of_all_changes():
    series = a_demand_series(np.tile([8.0, 8.0, 8.0, 16.0], 50))

    found = forecast("constant", series, 0, 5)

    assert found[MEDIAN] == 8
    assert found[-1] == 16
    assert found[0] == 0


def test_constant_does_not_speak_before_twelve_changes():
    assert np.isnan(forecast("constant", a_demand_series([1.0] * 12), 5, 5)).all()
    assert not np.isnan(forecast("constant", a_demand_series([1.0] * 13), 5, 5)).any()


def test_hour_of_day_knows_what_happens_at_this_hour():
    series = hourly(40)

    found = forecast("hour_of_day", series, 10, 60)  # 22:00: one more until 23:00

    assert (found == series.demand[10] + 1).all()
    midnight = forecast("hour_of_day", series, 11, 60)
    assert (midnight == 0).all()


def test_hour_with_too_few_days_uses_all_hours():
    series = hourly(10)

    found = forecast("hour_of_day", series, 10, 60)

    np.testing.assert_array_equal(found, forecast("constant", series, 10, 60))


def test_seasonal_is_the_same_hour_yesterday_and_last_week():
    series = hourly(9)
    at = 8 * 24

    found = forecast("seasonal", series, at, 180)

    assert (found == 15).all()


def test_seasonal_of_a_day_ahead_reads_nothing_later_than_now():
    """For a whole day ahead "yesterday" is now; the hour up to it is all known."""
    values = np.arange(600, dtype=float)
    series = a_demand_series(values, step_minutes=5)

    found = forecast("seasonal", series, 400, 1440)

    assert found.max() == 400


def test_seasonal_needs_a_day_of_history():
    assert np.isnan(forecast("seasonal", hourly(1), 5, 60)).all()


def test_seasonal_follows_local_clocks_across_a_change():
    """Field report A15: on the day clocks went back, the same local time yesterday is 25 hours ago."""
    start = datetime(2025, 10, 24, tzinfo=UTC)
    values = np.arange(24 * 4, dtype=float)
    series = a_demand_series(values, step_minutes=60, start=start, zone="Europe/Berlin")
    at = int((datetime(2025, 10, 26, 10, tzinfo=UTC) - start) / timedelta(hours=1))

    assert (forecast("seasonal", series, at, 60) == at + 1 - 25).all()


def test_seasonal_of_a_day_with_23_hours_reads_nothing_later_than_now():
    """Field report A15: a day ahead over the change of spring, the same local time lies an hour after now."""
    start = datetime(2025, 3, 28, tzinfo=UTC)
    series = a_demand_series(np.arange(24 * 4, dtype=float), step_minutes=60, start=start, zone="Europe/Berlin")
    at = int((datetime(2025, 3, 29, 10, tzinfo=UTC) - start) / timedelta(hours=1))

    assert forecast("seasonal", series, at, 1440).max() == at


def test_smoothing_halves_a_step_in_an_hour():
    series = a_demand_series([0.0] * 200 + [8.0] * 13)
    tables = BaselineTables(np.zeros(10), np.zeros((24, 10)), np.zeros(10))

    found = baseline_quantiles("smoothing", tables, series, np.array([211]), 60)[0]

    assert found[MEDIAN] == pytest.approx(4.0, rel=0.01)


@pytest.mark.parametrize("name", BASELINES)
def test_gap_now_means_no_forecast_or_one_without_nan_inside(name):
    running = np.tile([8.0, 16.0], 400)
    running[500] = np.nan
    series = a_demand_series(running)

    found = forecast(name, series, 500, 30)

    assert np.isnan(found).all() or not np.isnan(found).any()


@pytest.mark.parametrize("name", BASELINES)
def test_demand_is_never_negative(name):
    series = a_demand_series(np.tile([0.0, 40.0, 0.0], 300), start=NOON)

    assert (forecast(name, series, 0, 5)[~np.isnan(forecast(name, series, 0, 5))] >= 0).all()


def test_relative_times_have_one_table_for_all_hours():
    series = hourly(40, calendar_known=False)

    np.testing.assert_array_equal(forecast("hour_of_day", series, 10, 60), forecast("constant", series, 10, 60))


def test_tables_survive_json_with_their_gaps():
    tables = BaselineTables.from_history(a_demand_series([1.0, 2.0]), 5)

    again = BaselineTables.from_json(tables.to_json())

    assert np.isnan(again.changes).all()
    np.testing.assert_array_equal(again.by_hour, tables.by_hour)


def test_unknown_baseline_is_a_defect():
    with pytest.raises(Defect, match="oracle"):
        forecast("oracle", a_demand_series([1.0] * 20), 3, 5)
