import json

import numpy as np
import pytest

from advisor.errors import Refused
from tests.builders import NOON, a_clockwork_series, a_demand_series
from training.demand_backtest import SERVED, DemandEvaluation, evaluate_demand
from training.demand_replay import DemandReplay, daily_means, pinball
from training.demand_rows import DemandFitSettings, rows_of

QUICK = DemandEvaluation(refit_days=3.0, fit=DemandFitSettings(rounds=20))


@pytest.fixture(scope="module")
def report():
    return evaluate_demand([a_clockwork_series(14), a_demand_series(np.zeros(14 * 288), pool="idle")], [5, 60], QUICK)


def test_model_that_foresees_beats_every_baseline(report):
    five = report.pools["clockwork"][5]

    assert five.served == "model"
    assert five.skill > 0.3
    assert five.pinball["model"]["0.9"] < five.pinball["constant"]["0.9"]
    assert five.n > 1000


def test_losses_of_all_are_of_the_same_moments(report):
    five = report.pools["clockwork"][5]

    assert {"model", "constant", "persistence", "seasonal", SERVED} <= set(five.pinball)
    assert five.pinball[SERVED] == five.pinball["model"]
    assert five.pinball["persistence"]["0.5"] == pytest.approx(five.mae["persistence"] / 2)


def test_coverage_is_a_bracket_that_holds_the_level_where_all_is_an_atom(report):
    idle = report.pools["idle"][60]

    assert idle.coverage["0.9"] == (0.0, 1.0)
    assert idle.served == "constant"
    assert idle.skill is None


def test_report_is_plain_json_in_the_documented_shape(report):
    document = json.loads(json.dumps(report.to_json(), allow_nan=False))

    sixty = document["pools"]["clockwork"]["horizons"]["60"]
    assert set(sixty) == {"n", "pinball", "mae", "coverage", "skill", "served"}
    assert set(sixty["coverage"]) == {"0.8", "0.9", "0.95", "0.99"}
    assert document["protocol"]["split_time"].startswith("2026-03-12")
    assert document["protocol"]["refits"] == 4


def surged(series, since):
    """The same pool, had it wanted 800 GPUs more from a moment on."""
    running = series.running + 800.0 * (series.unix > since)
    return a_demand_series(running, pool=series.pool, pending=np.zeros(len(series)))


def test_no_booster_learns_from_an_outcome_after_its_cut():
    series = a_clockwork_series(6)
    cut = NOON.timestamp() + 4 * 86_400

    def boosters(one):
        replay = DemandReplay(rows_of([one], 5)[0], DemandFitSettings(horizons_minutes=(60,), rounds=10))
        fitted, groups = replay.fit(cut)
        return fitted[groups["clockwork"]][60].booster.text

    assert boosters(series) == boosters(surged(series, cut))


def test_no_forecast_depends_on_what_came_after_it():
    """Forecasts and verdicts between two cuts are the same whether or not the rest has happened yet."""
    series = a_clockwork_series(8)
    start = NOON.timestamp()
    end = start + 5 * 86_400

    def forecasts(one):
        replay = DemandReplay(rows_of([one], 5)[0], DemandFitSettings(horizons_minutes=(60,), rounds=10))
        replay.advance(start + 3 * 86_400, start + 4 * 86_400)
        (scored,) = replay.advance(start + 4 * 86_400, end)
        return scored

    one, two = forecasts(series), forecasts(surged(series, end))
    assert one.served == two.served
    for name, found in one.quantiles.items():
        np.testing.assert_array_equal(found, two.quantiles[name])


def test_verdicts_and_levels_use_only_outcomes_that_had_come_to_pass():
    series = a_clockwork_series(10)
    start = NOON.timestamp()
    cut = start + 7 * 86_400

    def learnt(one):
        replay = DemandReplay(rows_of([one], 5)[0], DemandFitSettings(horizons_minutes=(60,), rounds=10))
        replay.advance(start + 4 * 86_400, start + 9 * 86_400)
        return replay.verdict("clockwork", 60, cut), replay.levels("clockwork", 60, cut)

    (verdict, levels), (other_verdict, other_levels) = learnt(series), learnt(surged(series, cut))
    assert verdict == other_verdict
    np.testing.assert_array_equal(levels, other_levels)


def test_progress_counts_refits():
    seen = []

    evaluate_demand([a_clockwork_series(6)], [60], QUICK, lambda done, total: seen.append((done, total)))

    assert seen == [(number + 1, len(seen)) for number in range(len(seen))]


def test_relative_times_and_gaps_are_stated():
    series = a_clockwork_series(6, calendar_known=False, notes=("made up",))
    running = series.running.copy()
    running[100:106] = np.nan
    gappy = a_demand_series(running, pool="gappy", calendar_known=False, notes=("made up",))

    assumed = evaluate_demand([gappy], [60], QUICK).protocol.assumed

    assert "made up" in assumed
    assert any("relative" in said for said in assumed)
    assert "samples that are gaps, neither learnt from nor scored: 6" in assumed


@pytest.mark.parametrize(
    "series, horizons, said",
    [
        ([a_clockwork_series(1)], [60], "days of history must lie before the split"),
        ([a_demand_series([])], [60], "no sample"),
        ([a_clockwork_series(6)], [7], "7 min"),
    ],
)
def test_what_cannot_be_evaluated_is_refused(series, horizons, said):
    with pytest.raises(Refused, match=said):
        evaluate_demand(series, horizons, QUICK)


@pytest.mark.parametrize("split", [0.0, 1.0, 2.0])
def test_split_outside_the_series_is_refused(split):
    with pytest.raises(Refused, match="split"):
        DemandEvaluation(split=split)


def test_pinball_charges_the_miss_by_its_side():
    loss = pinball(np.array([10.0]), np.array([[8.0, 12.0]]), (0.9, 0.9))

    assert loss.tolist() == [[pytest.approx(1.8), pytest.approx(0.2)]]


def test_daily_means_are_of_each_day_in_order():
    assert daily_means(np.array([1.0, 3.0, 5.0]), np.array([7, 7, 9])).tolist() == [2.0, 5.0]


@pytest.mark.traces
def test_half_a_month_of_a_busy_pool_is_forecast_better_than_by_its_constant(traces, tmp_path):
    """Helios Earth vcTJs: mean quantile loss at 80-99 % against the pool's own unconditional quantiles."""
    from advisor.telemetry.series import read_series  # noqa: PLC0415 - only where the traces are

    mapping = tmp_path / "m.toml"
    mapping.write_text(
        '[series]\ntime = "time"\npool = "vcTJs"\nrunning = "running_gpu_num"\npending = "pending_gpu_num"\n'
        'idle = "idle_gpu_num"\n',
        encoding="utf-8",
    )
    (series,) = read_series(traces / "helios-earth" / "vcTJs.csv.gz", mapping)
    fortnight = series.between(0, 15 * 1440)

    scores = evaluate_demand([fortnight], [10], DemandEvaluation(refit_days=3.0)).pools["vcTJs"][10]

    levels = ("0.8", "0.9", "0.95", "0.99")
    relative = [scores.pinball["model"][level] / scores.pinball["constant"][level] for level in levels]
    assert np.mean(relative) < 0.95
    assert scores.mae["model"] <= 1.01 * scores.mae["persistence"]
    for level in levels:
        below, upto = scores.coverage[level]
        assert below - 0.01 <= float(level) <= upto + 0.01
