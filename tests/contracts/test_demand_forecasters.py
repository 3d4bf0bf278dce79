"""What everything that answers "how many GPUs will this pool want" must keep, with and without a model."""

from copy import deepcopy
from datetime import timedelta

import numpy as np
import pytest

from advisor.errors import Refused
from advisor.forecast.demand import DemandForecaster, DemandModel
from tests.builders import a_clockwork_series, a_demand_series
from training.demand import DemandFitSettings, fit_demand

SETTINGS = DemandFitSettings(horizons_minutes=(5, 30, 60), rounds=20, threads=2)
POOLS = [a_clockwork_series(9), a_clockwork_series(9, pool="other", seed=2)]
NOW = POOLS[0].time_at(len(POOLS[0]) - 1)


@pytest.fixture(scope="module")
def fitted() -> DemandModel:
    return fit_demand(POOLS, NOW, SETTINGS)


@pytest.fixture(scope="module", params=["model", "loaded model", "no model"])
def forecaster(request, fitted, tmp_path_factory) -> DemandForecaster:
    if request.param == "no model":
        return DemandForecaster(None, None, SETTINGS.horizons_minutes)
    if request.param == "model":
        return DemandForecaster(fitted, "1")
    folder = tmp_path_factory.mktemp("demand")
    fitted.save(folder)
    return DemandForecaster(DemandModel.load(folder), "1")


@pytest.fixture(params=["known", "other", "unseen", "idle", "no pending", "short", "relative"])
def series(request):
    rng = np.random.default_rng(3)
    return {
        "known": POOLS[0],
        "other": POOLS[1],
        "unseen": a_clockwork_series(9, pool="unseen", seed=5),
        "idle": a_demand_series(np.zeros(2592), pool="clockwork", pending=np.zeros(2592)),
        "no pending": a_demand_series(rng.integers(0, 9, 2592).astype(float), pool="clockwork"),
        "short": a_clockwork_series(0.1),
        "relative": a_clockwork_series(9, calendar_known=False),
    }[request.param]


def newest(series):
    return series.time_at(len(series) - 1)


def test_quantiles_are_ordered_finite_and_not_negative(forecaster, series):
    for horizon in forecaster.forecast(series, newest(series)).horizons:
        assert np.isfinite(horizon.gpus).all()
        assert (np.diff(horizon.gpus) >= 0).all()
        assert horizon.gpus[0] >= 0


def test_rises_are_probabilities_that_grow_with_time_and_shrink_with_size(forecaster, series):
    table = np.array(forecaster.rise(series, newest(series)).probabilities)

    assert ((table >= 0) & (table <= 1)).all()
    assert (np.diff(table, axis=0) >= 0).all()
    assert (np.diff(table, axis=1) <= 0).all()


def test_equal_questions_get_equal_answers(forecaster, series):
    now = newest(series)

    assert forecaster.forecast(series, now) == forecaster.forecast(series, now)
    assert forecaster.rise(series, now) == forecaster.rise(series, now)


def test_asking_changes_nothing(forecaster, series):
    before = deepcopy((series.running, series.pending, dict(series.state)))

    forecaster.forecast(series, newest(series))
    forecaster.rise(series, newest(series))

    np.testing.assert_equal((series.running, series.pending, dict(series.state)), before)


def test_future_cannot_be_seen(forecaster, series):
    now = series.time_at(len(series) // 2) + timedelta(seconds=30)

    assert forecaster.forecast(series, now) == forecaster.forecast(series.until(now), now)
    assert forecaster.rise(series, now) == forecaster.rise(series.until(now), now)


def test_every_horizon_says_who_was_served(forecaster, series):
    forecast = forecaster.forecast(series, newest(series))

    assert [horizon.horizon_minutes for horizon in forecast.horizons] == [5, 30, 60]
    assert all(horizon.served for horizon in forecast.horizons)
    assert (forecast.model_version is not None) == any(h.served == "model" for h in forecast.horizons)


def test_model_answers_the_same_after_the_way_over_the_disk(fitted, series, tmp_path):
    fitted.save(tmp_path)
    loaded = DemandModel.load(tmp_path)

    for ask in (DemandForecaster.forecast, DemandForecaster.rise):
        assert ask(DemandForecaster(fitted), series, newest(series)) == ask(
            DemandForecaster(loaded), series, newest(series)
        )


@pytest.mark.parametrize("pool", POOLS)
def test_many_rises_at_once_are_those_of_one_at_a_time(fitted, pool):
    forecaster = DemandForecaster(fitted)
    asked = np.array([2300, 2401, 2590])

    together = forecaster.rises_at(pool, asked)

    for row, at in zip(together, asked, strict=True):
        alone = forecaster.rise(pool, pool.time_at(int(at)))
        np.testing.assert_allclose(row, alone.probabilities, rtol=1e-12)


def test_many_rises_of_a_pool_without_a_model_are_refused(fitted):
    with pytest.raises(Refused, match="no model has been fitted for this pool"):
        DemandForecaster(fitted).rises_at(a_clockwork_series(9, pool="unseen"), np.array([5]))
    with pytest.raises(Refused, match="Fit a model"):
        DemandForecaster().rises_at(POOLS[0], np.array([5]))
