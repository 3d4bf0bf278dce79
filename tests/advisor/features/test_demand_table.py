import numpy as np
import pytest

from advisor.features.demand import KNOWN_STATE
from advisor.features.demand_table import MEMORY_MINUTES, demand_schema, extra_state_of, feature_rows
from tests.builders import a_demand_series


def column(series, name, at=None):
    names = demand_schema(extra_state_of(series)).names
    asked = np.arange(len(series)) if at is None else np.array(at)
    return feature_rows(series, asked, extra_state_of(series))[:, names.index(name)]


def a_wild_series(size=4000, seed=3, **more):
    rng = np.random.default_rng(seed)
    running = np.maximum(np.cumsum(rng.choice([-8, -1, 0, 0, 0, 0, 1, 8], size=size)), 0.0).astype(float)
    pending = rng.choice([0.0, 0.0, 0.0, 8.0], size=size)
    running[rng.random(size) < 0.02] = np.nan
    state = {name: rng.integers(0, 5, size).astype(float) for name in KNOWN_STATE}
    return a_demand_series(running, pending=pending, idle=rng.integers(0, 9, size).astype(float), state=state, **more)


def test_recipe_has_39_columns():
    assert len(demand_schema()) == 39


def test_gpus_are_counted_in_nodes():
    series = a_demand_series([4.0, 8.0], pending=np.array([4.0, 0.0]), node_gpus=4)

    assert column(series, "demand").tolist() == [2, 2]
    assert column(series, "running").tolist() == [1, 2]


def test_columns_without_a_source_are_unknown_not_zero():
    series = a_demand_series([8.0] * 5)

    for name in ("pending", "idle", "capacity", "running_jobs", "since_anything_pending", "mean_job_size"):
        assert np.isnan(column(series, name)).all(), name


def test_capacity_is_what_runs_and_what_idles():
    series = a_demand_series([8.0, 0.0], idle=np.array([8.0, 16.0]))

    assert column(series, "capacity").tolist() == [2, 2]
    assert column(series, "demand_of_capacity").tolist() == [0.5, 0.0]


def test_times_since_count_from_the_last_event():
    series = a_demand_series([0, 8, 8, 8, 0, 0])

    assert column(series, "since_rise").tolist()[1:] == [0, 5, 10, 15, 20]
    assert column(series, "since_fall").tolist()[4:] == [0, 5]
    assert np.isnan(column(series, "since_fall")[:4]).all()
    assert column(series, "last_fall").tolist()[4:] == [1, 1]


def test_change_across_a_gap_is_no_event():
    series = a_demand_series([0, np.nan, 80, 80])

    assert np.isnan(column(series, "since_rise")).all()
    assert column(series, "rises_60_min").tolist() == [0, 0, 0, 0]


def test_relative_times_have_no_hour():
    series = a_demand_series([1.0, 2.0], calendar_known=False)

    assert np.isnan(column(series, "hour")).all()
    assert np.isnan(column(series, "weekday")).all()


def test_hour_is_that_of_the_zone():
    series = a_demand_series([1.0], zone="Asia/Kolkata")

    assert column(series, "hour").tolist() == [17.5]


def test_further_state_is_offered_as_it_is():
    series = a_demand_series([1.0, 2.0], state={"queue_age": np.array([3.0, 4.0])})

    assert column(series, "state_queue_age").tolist() == [3, 4]
    assert demand_schema(("queue_age",)).fingerprint != demand_schema().fingerprint


@pytest.mark.parametrize("at", [0, 1, 700, 2500, 3998])
def test_row_is_the_same_when_the_future_is_deleted(at):
    series = a_wild_series()

    whole = feature_rows(series, np.array([at]))
    cut = feature_rows(series.between(0, at + 1), np.array([at]))

    np.testing.assert_array_equal(whole, cut)


def test_row_needs_no_history_beyond_the_memory():
    series = a_wild_series()
    keep = MEMORY_MINUTES // 5 + 1

    whole = feature_rows(series, np.array([3999]))
    recent = feature_rows(series.between(4000 - keep, 4000), np.array([keep - 1]))

    np.testing.assert_allclose(whole, recent, rtol=1e-9, atol=1e-9)
