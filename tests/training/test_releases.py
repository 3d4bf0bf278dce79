"""What running jobs release, as it was foreseen and as it came; and what that is worth to a forecast of demand."""

from datetime import timedelta

import numpy as np
import pytest

from advisor.domain.forecasts import DurationDistribution
from advisor.domain.reports import ReleaseScores
from advisor.features.demand import SeriesGrid, series_from_jobs
from advisor.features.demand_pools import PoolKey, pooled
from advisor.features.demand_releases import ReleasesNow
from advisor.forecast.demand import DemandForecaster, DemandModel
from advisor.forecast.demand_gate import MODEL, LowerVerdict, judged_lower
from tests.builders import NOON, a_job
from training.backtest import Predicted
from training.demand import fit_demand
from training.demand_lower import known_releases
from training.demand_rows import DemandFitSettings, rows_of
from training.release_rows import release_rows
from training.release_study import ReleaseStudy

DAY = 86_400


def series_of(jobs, hours, step=5):
    grid = SeriesGrid(start=NOON, end=NOON + timedelta(hours=hours), step_minutes=step)
    return series_from_jobs(jobs, "default", grid, grid.end)


def test_releases_are_of_the_jobs_that_run_at_a_sample():
    """One job of 2 GPUs runs for 20 min, one of 4 for an hour, of which nothing was predicted."""
    jobs = [
        a_job("a", submit=NOON, start=NOON, seconds=1200.0, gpus=2.0),
        a_job("b", submit=NOON, start=NOON + timedelta(minutes=5), seconds=3600.0, gpus=4.0),
    ]
    rows = release_rows(jobs, {0: DurationDistribution.point(1200.0)}, series_of(jobs, 2), [10, 30])

    assert rows[30].true[:8].tolist() == [2.0, 2.0, 2.0, 2.0, 0.0, 0.0, 0.0, 4.0]
    assert rows[10].true[:4].tolist() == [0.0, 0.0, 2.0, 2.0]
    assert rows[30].expected[:5] == pytest.approx([2.0, 2.0, 2.0, 2.0, 0.0], abs=0.1)
    assert rows[10].expected[0] == pytest.approx(0.0, abs=0.1)
    assert rows[10].unforeseen[:3].tolist() == [0.0, 4.0, 4.0]


def test_what_had_not_ended_by_the_last_sample_is_no_true_release():
    jobs = [a_job("a", submit=NOON, start=NOON, seconds=None, gpus=2.0)]

    assert release_rows(jobs, {}, series_of(jobs, 1), [30])[30].true.sum() == 0.0


@pytest.fixture(scope="module")
def world():
    """Bursts of one to five nodes whose length is told at the start by nothing in the series, only by the law."""
    rng = np.random.default_rng(2)
    jobs, laws, minute = [], {}, 0.0
    while minute < 12 * 1440:
        seconds = float(rng.choice([1800.0, 14_400.0]))
        laws[len(jobs)] = DurationDistribution.point(seconds)
        moment = NOON + timedelta(minutes=minute)
        size = 8.0 * float(rng.integers(1, 6))
        jobs.append(a_job(f"j{len(jobs)}", submit=moment, start=moment, seconds=seconds, gpus=size))
        minute += float(rng.exponential(40.0))
    return jobs, laws


def test_predicted_releases_sharpen_the_lower_quantiles_where_durations_are_known(world):
    jobs, laws = world
    series = series_of(jobs, 12 * 24)
    (rows,), _ = rows_of([series], 15)
    cuts = tuple(NOON.timestamp() + d * DAY for d in (8.0, 12.0))
    study = ReleaseStudy(cuts=cuts, since=NOON.timestamp() + DAY, settings=DemandFitSettings(rounds=60))

    scores = study.scores(rows, release_rows(jobs, laws, series, [30]))[30]

    assert scores.pinball["true"]["0.1"] < 0.75 * scores.pinball["without"]["0.1"]
    assert scores.share_of_gain("0.1") > 0.7
    assert scores.correlation > 0.9


def test_durations_that_say_nothing_are_worth_nothing(world):
    jobs, _ = world
    series = series_of(jobs, 12 * 24)
    (rows,), _ = rows_of([series], 15)
    cuts = tuple(NOON.timestamp() + d * DAY for d in (8.0, 12.0))
    study = ReleaseStudy(cuts=cuts, since=NOON.timestamp() + DAY, settings=DemandFitSettings(rounds=60))

    scores = study.scores(rows, release_rows(jobs, {}, series, [30]))[30]

    assert abs(scores.share_of_gain("0.1")) < 0.35
    assert scores.correlation is None


def test_share_of_a_gain_that_is_none_is_not_told():
    losses = {"without": {"0.1": 1.0}, "predicted": {"0.1": 0.9}, "true": {"0.1": 0.995}}
    assert ReleaseScores(n=1, pinball=losses, correlation=None).share_of_gain("0.1") is None

    half = {**losses, "true": {"0.1": 0.8}}
    assert ReleaseScores(n=1, pinball=half, correlation=None).share_of_gain("0.1") == pytest.approx(0.5)


@pytest.mark.parametrize(
    "key, pools",
    [
        (PoolKey.POOL, ["a100", "gold"]),
        (PoolKey.GPU_KIND, ["a100", "default"]),
        (PoolKey.NAMESPACE, ["default", "team"]),
        (PoolKey.CLUSTER, ["cluster", "cluster"]),
    ],
)
def test_jobs_are_taken_together_by_what_is_asked(key, pools):
    jobs = [a_job("1", gpu_kind="a100"), a_job("2", pool="gold", namespace="team")]

    assert sorted(job.pool or job.gpu_kind for job in pooled(jobs, key)) == pools


@pytest.fixture(scope="module")
def told(world):
    """A demand model that was told what the world's jobs would release, and its series."""
    jobs, laws = world
    series = series_of(jobs, 12 * 24)
    predicted = Predicted(tuple(jobs), laws, NOON.timestamp() + DAY)
    settings = DemandFitSettings(horizons_minutes=(30,), rounds=60, rises=False)
    until = series.time_at(len(series) - 1)
    return fit_demand([series], until, settings, releases=known_releases(predicted, [series], (30,))), series


def test_gate_lets_releases_speak_where_they_save_loss(told):
    model, _ = told
    lower = model.pools["default"].horizons[30].lower

    assert lower.served
    assert lower.saving > 0.2
    assert DemandForecaster(model).told_of_releases("default") == (30,)


def test_forecast_falls_lower_where_running_jobs_are_about_to_end(told):
    model, series = told
    if model.pools["default"].horizons[30].verdict.served != MODEL:
        pytest.skip("the model is not served on this world, so nothing below its median is")
    forecaster = DemandForecaster(model)
    now = next(series.time_at(at) for at in range(len(series) - 1, 0, -1) if series.demand[at] >= 24)
    gpus = np.array([series.demand[int((now - series.start).total_seconds() / 300)]])

    ends, stays = (forecaster.forecast(series, now, {30: ReleasesNow(gpus, np.array([p]))}) for p in (0.999, 0.001))

    assert ends.horizons[0].quantile(0.1) < stays.horizons[0].quantile(0.1)
    assert ends.horizons[0].quantile(0.9) == stays.horizons[0].quantile(0.9)
    said = "30 min ahead: below the median the forecast follows what running jobs are predicted to give back"
    assert f"{said}: {0.999 * gpus[0]:.1f} of their {gpus[0]:g} GPUs" in ends.reasons
    assert f"{said}: {0.001 * gpus[0]:.1f} of their {gpus[0]:g} GPUs" in stays.reasons


def test_of_releases_nothing_is_said_where_nothing_runs(told):
    model, series = told
    nothing = {30: ReleasesNow(np.array([]), np.array([]))}
    forecast = DemandForecaster(model).forecast(series, series.time_at(len(series) - 1), nothing)
    assert not any("give back" in reason for reason in forecast.reasons)


def test_model_that_knows_releases_reads_back_the_same(told, tmp_path):
    model, series = told
    model.save(tmp_path)
    again = DemandModel.load(tmp_path)
    now = series.time_at(len(series) - 1)
    releases = {30: ReleasesNow(np.array([16.0]), np.array([0.5]))}

    assert again.pools["default"].horizons[30].lower == model.pools["default"].horizons[30].lower
    one, two = (DemandForecaster(m).forecast(series, now, releases) for m in (model, again))
    assert one == two


def test_releases_on_few_days_or_by_chance_do_not_speak():
    day = np.ones(3)
    week = np.ones(8)
    noise = np.tile([0.5, -0.5], 4)

    assert judged_lower(day * 0.1, day) == LowerVerdict(served=False, days=3, saving=None)
    assert not judged_lower(week - noise, week).served
    assert judged_lower(week * 0.9, week).served
