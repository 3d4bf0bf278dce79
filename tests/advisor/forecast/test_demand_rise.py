import numpy as np
import pytest

from advisor.forecast.demand_rise import (
    RISE_HORIZONS,
    RISE_LEVELS,
    RiseFrequencies,
    exceedances,
    monotone,
    rise_horizons,
)
from tests.builders import a_demand_series


def test_horizons_are_those_that_samples_can_answer():
    assert rise_horizons(5) == RISE_HORIZONS
    assert rise_horizons(60) == (60, 120, 240)
    assert rise_horizons(7) == (7,)


def test_exceedances_count_every_level_up_to_the_rise():
    assert exceedances(np.array([0.0, 2.0, 99.0])).sum(axis=1).tolist() == [0, 2, RISE_LEVELS]


def test_frequencies_are_those_of_the_hour_where_it_is_well_known():
    hour = (np.arange(60 * 288) // 12) % 24
    series = a_demand_series(np.where(hour == 5, 16.0, 0.0))

    table = RiseFrequencies.from_history(series, (60,)).probabilities(series, np.array([4 * 12, 10 * 12]))

    assert table[0, 0, 1] > 0.9  # an hour later there are two nodes more, on all days but what all hours lend
    assert table[0, 0, 2] == 0
    assert table[1, 0, 0] < 0.02


def test_hour_with_few_days_is_drawn_towards_all_hours():
    hour = (np.arange(2 * 288) // 12) % 24
    series = a_demand_series(np.where(hour == 5, 16.0, 0.0))

    table = RiseFrequencies.from_history(series, (60,)).probabilities(series, np.array([4 * 12]))

    assert 0.2 < table[0, 0, 1] < 0.6


def test_pool_nobody_has_seen_rises_nowhere():
    series = a_demand_series([np.nan, np.nan])

    assert RiseFrequencies.from_history(series, (5,)).probabilities(series, np.array([1])).sum() == 0
    assert RiseFrequencies.from_history(a_demand_series([]), (5,)).table.shape == (24, 1, RISE_LEVELS)


def test_relative_times_have_the_same_frequencies_at_every_hour():
    rng = np.random.default_rng(4)
    series = a_demand_series(rng.choice([0.0, 8.0], 1000), calendar_known=False)

    found = RiseFrequencies.from_history(series, (5, 60)).probabilities(series, np.array([3, 700]))

    np.testing.assert_array_equal(found[0], found[1])


def test_monotone_table_never_falls_with_time_nor_rises_with_level():
    table = monotone(np.random.default_rng(1).random((5, 4, 8)))

    assert (np.diff(table, axis=1) >= 0).all()
    assert (np.diff(table, axis=2) <= 0).all()


@pytest.mark.parametrize("probabilities", [np.array([[0.9, 0.5], [0.9, 0.6]])])
def test_what_is_already_monotone_is_left_alone(probabilities):
    np.testing.assert_array_equal(monotone(probabilities), probabilities)
