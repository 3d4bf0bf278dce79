from datetime import timedelta

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from advisor.features.demand import SeriesGrid, series_from_jobs
from advisor.features.demand_holes import without_holes
from advisor.features.demand_table import feature_rows
from advisor.forecast.demand import DemandForecaster
from advisor.forecast.demand_law import ChangeClasses, corrected_levels
from tests.builders import NOON, a_demand_series, a_job

GPUS = st.one_of(st.sampled_from([0.0, 8.0, 16.0, 64.0, 0.125]), st.floats(0, 1000))
KNOWN_OR_NOT = st.one_of(GPUS, st.just(float("nan")))
rows = arrays(np.float64, st.integers(1, 80), elements=KNOWN_OR_NOT)
changes = arrays(np.float64, st.integers(200, 400), elements=st.floats(-50, 50) | st.sampled_from([0.0, 1.0, -1.0]))
unit = st.floats(0, 1)
minutes = st.integers(0, 600)


@given(rows)
def test_any_series_gets_ordered_demand_that_is_not_negative_or_no_horizons_at_all(running):
    series = a_demand_series(running)

    forecast = DemandForecaster().forecast(series, series.time_at(len(series) - 1))

    for horizon in forecast.horizons:
        assert all(0 <= a <= b for a, b in zip(horizon.gpus, horizon.gpus[1:], strict=False))
    assert bool(forecast.horizons) == bool((~np.isnan(running)).any())


@given(rows, st.integers(0, 79))
def test_rows_do_not_change_when_the_future_is_deleted(running, at):
    series = a_demand_series(running)
    asked = min(at, len(series) - 1)

    np.testing.assert_array_equal(
        feature_rows(series, np.array([asked])), feature_rows(series.between(0, asked + 1), np.array([asked]))
    )


@given(rows)
def test_holes_only_ever_turn_zeros_into_gaps(running):
    series = a_demand_series(running)

    mended = without_holes(series)

    differs = ~((mended.demand == series.demand) | (np.isnan(mended.demand) & np.isnan(series.demand)))
    assert (series.demand[differs] == 0).all()
    assert np.isnan(mended.demand[differs]).all()


@given(changes, st.integers(0, 2**32 - 1))
def test_any_law_has_quantiles_that_never_cross_and_lie_among_what_was_seen(seen, seed):
    classes = ChangeClasses.from_changes(seen)
    weights = np.random.default_rng(seed).dirichlet(np.full(len(classes), 0.3), size=5)

    found = classes.law(weights).quantiles(np.linspace(0.001, 0.999, 31))

    assert (np.diff(found, axis=1) >= 0).all()
    assert np.isin(found, seen).all()


@given(changes, st.integers(0, 2**32 - 1))
def test_transforms_are_brackets_within_one(seen, seed):
    classes = ChangeClasses.from_changes(seen)
    weights = np.random.default_rng(seed).dirichlet(np.full(len(classes), 0.3), size=len(seen))

    lower, upper = classes.law(weights).transforms(seen)

    assert (lower >= -1e-9).all()
    assert (lower <= upper + 1e-9).all()
    assert (upper <= 1 + 1e-9).all()


@given(arrays(np.float64, (2, 50), elements=unit))
def test_corrected_levels_keep_their_order_and_their_bounds(brackets):
    levels = np.array([0.01, 0.1, 0.5, 0.9, 0.99])

    found = corrected_levels(levels, brackets.min(axis=0), brackets.max(axis=0))

    assert (np.diff(found) >= 0).all()
    assert ((found > 0) & (found < 1)).all()
    tail = np.minimum(levels, 1 - levels)
    moved = np.where(levels >= 0.5, 1 - found, found)
    assert (moved <= 3 * tail + 1e-9).all()


@given(st.lists(st.tuples(minutes, st.integers(0, 120), st.integers(0, 240), st.sampled_from([0.25, 1.0, 8.0]))))
def test_gpus_in_a_series_are_those_of_the_jobs_that_are_there(drawn):
    jobs = [
        a_job(
            f"job-{number}",
            submit=NOON + timedelta(minutes=submit),
            start=NOON + timedelta(minutes=submit + wait),
            seconds=60.0 * length,
            gpus=gpus,
        )
        for number, (submit, wait, length, gpus) in enumerate(drawn)
    ]
    grid = SeriesGrid(start=NOON, end=NOON + timedelta(minutes=900), step_minutes=15)
    now = NOON + timedelta(minutes=700)

    series = series_from_jobs(jobs, "default", grid, now)

    for at in range(len(series)):
        moment = series.time_at(at)
        assert series.demand[at] == sum(job.gpus for job in jobs if job.submit <= moment < job.end)
