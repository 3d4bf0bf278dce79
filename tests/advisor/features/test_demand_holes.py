import numpy as np

from advisor.features.demand_holes import without_holes
from tests.builders import a_demand_series


def test_half_an_hour_of_zeros_in_everything_is_a_gap():
    running = np.array([40.0] * 6 + [0.0] * 6 + [40.0] * 6)
    idle = np.array([24.0] * 6 + [0.0] * 6 + [24.0] * 6)

    mended = without_holes(a_demand_series(running, pending=np.zeros(18), idle=idle))

    assert np.isnan(mended.demand).tolist() == [False] * 6 + [True] * 6 + [False] * 6
    assert mended.notes[0].endswith("taken as gaps: 6")


def test_pool_that_really_went_idle_is_believed():
    running = np.array([40.0] * 3 + [0.0] * 6)
    idle = np.array([24.0] * 3 + [64.0] * 6)

    series = a_demand_series(running, pending=np.zeros(9), idle=idle)

    assert without_holes(series) is series


def test_pool_that_scaled_to_nothing_step_by_step_is_believed():
    running = np.array([16.0, 0.0, 0.0, 0.0])
    idle = np.array([0.0, 16.0, 8.0, 0.0])

    series = a_demand_series(running, idle=idle)

    assert without_holes(series) is series


def test_without_idle_only_a_large_sudden_silence_is_suspected():
    large = a_demand_series([40.0, 0.0, 0.0, 40.0])
    small = a_demand_series([8.0, 0.0, 0.0, 8.0])

    assert np.isnan(without_holes(large).demand).tolist() == [False, True, True, False]
    assert without_holes(small) is small


def test_zeros_are_believed_after_an_hour():
    mended = without_holes(a_demand_series([40.0] + [0.0] * 20))

    assert np.isnan(mended.demand).sum() == 12
    assert (mended.demand[13:] == 0).all()


def test_verdict_on_a_sample_does_not_depend_on_what_came_later():
    running = np.array([40.0] * 4 + [0.0] * 6 + [40.0] * 4)
    whole = without_holes(a_demand_series(running)).demand

    for stop in range(1, len(running) + 1):
        cut = without_holes(a_demand_series(running[:stop])).demand
        np.testing.assert_array_equal(cut, whole[:stop])
