from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from advisor.domain.warm_rules import WarmRule, WarmRuleName
from advisor.errors import Refused
from advisor.forecast.demand import DemandForecaster, DemandModel
from advisor.forecast.demand_gate import MODEL
from tests.builders import NOON, a_clockwork_series, a_demand_series
from training.demand import DemandFitSettings, fit_demand
from training.demand_rows import rows_of

SETTINGS = DemandFitSettings(horizons_minutes=(5, 60), rounds=20, threads=2)
THOROUGH = DemandFitSettings(horizons_minutes=(5, 60), rounds=80, threads=2)


def end(series):
    return series.time_at(len(series) - 1)


@pytest.fixture(scope="module")
def clockwork():
    return a_clockwork_series(12)


@pytest.fixture(scope="module")
def fitted(clockwork) -> DemandModel:
    return fit_demand([clockwork], end(clockwork), THOROUGH)


def test_model_with_skill_is_served_and_says_how_much(fitted, clockwork):
    forecast = DemandForecaster(fitted, "7").forecast(clockwork, end(clockwork))

    five = forecast.horizons[0]
    assert five.served == MODEL
    assert five.skill > 0.3
    assert forecast.skilled
    assert forecast.model_version == "7"


def test_model_knows_when_the_next_train_of_work_comes(fitted, clockwork):
    """Two nodes come on the hour: sure five minutes before, and not half an hour before."""
    forecaster = DemandForecaster(fitted)
    last_hour = len(clockwork) - 12

    before = forecaster.forecast(clockwork, clockwork.time_at(last_hour - 1))
    earlier = forecaster.forecast(clockwork, clockwork.time_at(last_hour - 6))

    assert before.horizons[0].quantile(0.5) == before.gpus_now + 16
    assert earlier.horizons[0].quantile(0.9) == earlier.gpus_now


def test_rises_are_foreseen_by_a_model_that_beat_the_frequencies(fitted, clockwork):
    last_hour = len(clockwork) - 12
    rise = DemandForecaster(fitted).rise(clockwork, clockwork.time_at(last_hour - 1))

    assert rise.served == MODEL
    assert rise.probabilities[0][1] > 0.5
    assert rise.probabilities[0][2] < 0.1


def test_model_without_skill_is_not_served():
    """Field report A24: demand that jumps without any pattern has nothing to learn."""
    rng = np.random.default_rng(6)
    noise = a_demand_series(8.0 * rng.integers(0, 6, 12 * 288), pool="noise")

    forecast = DemandForecaster(fit_demand([noise], end(noise), SETTINGS)).forecast(noise, end(noise))

    for horizon in forecast.horizons:
        assert horizon.skill < 0.15
        assert horizon.served != MODEL or horizon.skill > -0.02


def test_pool_with_three_hours_is_recorded_with_what_it_lacks(clockwork):
    """Field report A24."""
    running = np.tile([8.0, 8.0, 16.0], 12)
    young = a_demand_series(running, pool="young", start=end(clockwork) - timedelta(minutes=5 * 35))

    model = fit_demand([clockwork, young], end(clockwork), SETTINGS)
    forecast = DemandForecaster(model).forecast(young, end(young))

    assert all(horizon.served in {"constant", "persistence"} for horizon in forecast.horizons)
    assert not forecast.skilled
    assert any("needs two seasons (2 days of history), has 3 h" in reason for reason in forecast.reasons)
    assert DemandForecaster(model).forecast(clockwork, end(clockwork)).skilled


@pytest.mark.parametrize("running", [np.full(4 * 288, 16.0), np.zeros(4 * 288)])
def test_constant_pool_fits_and_stays_constant(running):
    series = a_demand_series(running, pool="constant")

    forecast = DemandForecaster(fit_demand([series], end(series), SETTINGS)).forecast(series, end(series))

    assert all(set(horizon.gpus) == {running[0]} for horizon in forecast.horizons)
    assert all(horizon.served != MODEL for horizon in forecast.horizons)


def test_pool_that_nobody_ever_saw_does_not_stop_the_others(clockwork):
    unseen = a_demand_series(np.full(len(clockwork), np.nan), pool="unseen")

    model = fit_demand([clockwork, unseen], end(clockwork), SETTINGS)

    assert DemandForecaster(model).forecast(clockwork, end(clockwork)).skilled
    assert DemandForecaster(model).forecast(unseen, end(unseen)).horizons == ()


def test_nothing_after_until_is_learnt(clockwork):
    until = NOON + timedelta(days=8)

    whole = fit_demand([clockwork], until, SETTINGS)
    cut = fit_demand([clockwork.until(until)], until, SETTINGS)

    now = clockwork.until(until)
    assert DemandForecaster(whole).forecast(now, until) == DemandForecaster(cut).forecast(now, until)
    assert DemandForecaster(whole).rise(now, until) == DemandForecaster(cut).rise(now, until)


def test_labels_that_end_after_the_refit_are_not_learnt_from():
    """A surge after the cut is in no row whose horizon reaches past it."""
    calm = a_clockwork_series(8)
    until = NOON + timedelta(days=6)
    surged = calm.running.copy()
    surged[calm.unix > until.timestamp()] += 800.0
    surge = a_demand_series(surged, pool="clockwork", pending=np.zeros(len(surged)))

    one, other = (fit_demand([series], until, SETTINGS) for series in (calm, surge))

    known = calm.until(until)
    assert DemandForecaster(one).forecast(known, until) == DemandForecaster(other).forecast(known, until)


def test_number_of_threads_changes_nothing(clockwork):
    one = fit_demand([clockwork], end(clockwork), DemandFitSettings(horizons_minutes=(5, 60), rounds=20, threads=1))
    two = fit_demand([clockwork], end(clockwork), SETTINGS)

    for horizon in (5, 60):
        group = one.pools["clockwork"].group
        assert one.changes[group][horizon].booster.text == two.changes[group][horizon].booster.text


def test_relative_times_are_learnt_without_hours(clockwork):
    relative = a_clockwork_series(12, calendar_known=False)

    model = fit_demand([relative], end(relative), SETTINGS)

    assert DemandForecaster(model).forecast(relative, end(relative)).skilled


def test_row_with_a_column_that_was_never_unknown_before_gets_a_baseline(fitted, clockwork):
    """Field report A16: LightGBM would read the unknown value as zero."""
    blind = a_demand_series(clockwork.running, pool="clockwork")  # pending is not known any more

    forecast = DemandForecaster(fitted).forecast(blind, end(blind))

    assert all(horizon.served != MODEL for horizon in forecast.horizons)
    assert any("not known now" in reason for reason in forecast.reasons)


def test_series_of_another_step_gets_a_baseline(fitted):
    minutely = a_clockwork_series(2, step_minutes=1)

    forecast = DemandForecaster(fitted).forecast(minutely, end(minutely))

    assert all(horizon.served != MODEL for horizon in forecast.horizons)
    assert any("5 min apart, not 1" in reason for reason in forecast.reasons)


def test_pool_the_model_was_not_fitted_on_gets_a_baseline(fitted):
    stranger = a_clockwork_series(5, pool="stranger")

    forecast = DemandForecaster(fitted).forecast(stranger, end(stranger))

    assert not forecast.skilled
    assert "no model has been fitted for this pool yet" in forecast.reasons


def test_gaps_are_neither_learnt_from_nor_fatal(clockwork):
    running = clockwork.running.copy()
    running[500:506] = np.nan
    gappy = a_demand_series(running, pool="clockwork", pending=np.zeros(len(running)))

    (rows,), _ = rows_of([gappy], 5)
    model = fit_demand([gappy], end(gappy), SETTINGS)

    assert not np.isin(np.arange(500, 506), rows.at).any()
    assert np.isnan(rows.changes(60)[rows.at == 490]).all()
    assert DemandForecaster(model).forecast(gappy, end(gappy)).skilled


@pytest.mark.parametrize(
    "series, said",
    [
        ([], "nothing to learn from"),
        ([a_demand_series([1.0]), a_demand_series([2.0])], "a pool of its own"),
        ([a_demand_series([1.0]), a_demand_series([1.0], pool="b", step_minutes=1)], "one step"),
        ([a_demand_series([1.0], step_minutes=60)], "multiple"),
    ],
)
def test_series_that_cannot_be_learnt_from_are_refused(series, said):
    with pytest.raises(Refused, match=said):
        fit_demand(series, NOON, SETTINGS)


def test_folder_without_a_model_is_refused(tmp_path, fitted):
    with pytest.raises(Refused, match=r"demand\.json"):
        DemandModel.load(tmp_path)
    fitted.save(tmp_path)
    for booster in tmp_path.glob("change_*.txt"):
        booster.write_text("rubbish", encoding="utf-8")
    with pytest.raises(Refused, match="no LightGBM text model"):
        DemandModel.load(tmp_path)


def test_model_fitted_on_other_columns_is_refused(tmp_path, fitted):
    fitted.save(tmp_path)
    path = tmp_path / "demand.json"
    path.write_text(path.read_text(encoding="utf-8").replace('"since_rise"', '"since_dawn"'), encoding="utf-8")

    with pytest.raises(Refused, match="since_dawn"):
        DemandModel.load(tmp_path)


def test_the_rule_of_warm_capacity_is_chosen_on_the_pools_own_days_and_kept(fitted, clockwork, tmp_path):
    """Two nodes come on every hour: to foresee them is worth more than to keep them."""
    rule = fitted.pools["clockwork"].warm_rule
    assert rule.name is WarmRuleName.INDEX
    assert "keep-alive alone" in rule.reason
    fitted.save(tmp_path)
    loaded = DemandModel.load(tmp_path)
    assert loaded.pools["clockwork"].warm_rule == rule
    assert DemandForecaster(loaded).rise(clockwork, end(clockwork)).rule == rule


def test_the_plain_rule_asks_for_the_rises_of_the_last_day_beyond_what_is_free(fitted, clockwork):
    """16 GPUs more come within ten minutes in a sixth of the samples: 99 % is ready for them, 50 % is not."""
    plain = WarmRule(name=WarmRuleName.RISE_QUANTILE, quantile=0.99, reason="tried")
    calm = replace(plain, quantile=0.5)
    found = []
    for rule in (plain, calm):
        record = replace(fitted.pools["clockwork"], warm_rule=rule)
        model = replace(fitted, pools={"clockwork": record})
        found.append(DemandForecaster(model).rise(clockwork, end(clockwork)).recent_rise_nodes)
    assert found == [2, 0]
