"""The gate: both measures, every rival, and enough jobs to tell."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from advisor.domain.reports import DurationReport, DurationScores, HeadToHead, RunProtocol
from training.quality import may_be_served

PROTOCOL = RunProtocol(data_digest="0", rows=1, split_time=None, refits=1, seed=1, versions={}, assumed=())


def scored(log_mae, pinball, n=1000):
    return DurationScores(n=n, log_mae=log_mae, pinball_log={"0.9": pinball})


def report(**scores):
    return DurationReport(protocol=PROTOCOL, scores=scores, by_history={}, by_gpus={}, served="model")


@pytest.mark.parametrize(
    "mae,pinball,promoted", [(0.9, 0.2, True), (1.1, 0.2, False), (0.9, 0.4, False), (1.0, 0.2, False)]
)
def test_a_model_must_be_better_in_both_measures(mae, pinball, promoted):
    decision = may_be_served(report(model=scored(mae, pinball), median_of_5=scored(1.0, 0.3)), "7")
    assert (decision.promoted, decision.version) == (promoted, "7")
    assert decision.measures["model.log_mae"] == mae
    assert decision.measures["median_of_5.pinball_90"] == 0.3
    assert decision.reasons[0] == f"log_mae: {mae:.4f} is {'not ' if mae >= 1 else ''}below the 1.0000 of median_of_5"


@pytest.mark.parametrize("mae,promoted", [(0.8, True), (0.815, True), (0.83, False)])
def test_a_fresh_fit_takes_the_place_of_a_champion_it_is_no_worse_than(mae, promoted):
    figures = report(model=scored(mae, 0.2), median_of_5=scored(1.0, 0.3), champion=scored(0.8, 0.2))
    decision = may_be_served(figures, "7", "champion")
    assert (decision.promoted, decision.kept) == (promoted, False)
    said = "not more" if promoted else "more"
    assert decision.reasons[2] == f"log_mae: {mae:.4f} is {said} than 2 % above the 0.8000 of champion"


def test_a_champion_that_nothing_is_known_of_is_passed_over():
    figures = report(model=scored(0.9, 0.2), median_of_5=scored(1.0, 0.3))
    assert may_be_served(figures, "7", "champion").promoted


@pytest.mark.parametrize("rival,promoted", [(0.7, True), (0.6, False)])
def test_a_champion_fitted_on_scored_jobs_is_met_on_those_it_has_not_seen(rival, promoted):
    figures = report(model=scored(0.9, 0.2), median_of_5=scored(1.0, 0.3))
    met = HeadToHead(
        since=datetime(2026, 1, 1, tzinfo=UTC), model=scored(0.7, 0.2, n=60), rival=scored(rival, 0.2, n=60)
    )
    decision = may_be_served(replace(figures, versus={"champion": met}), "7", "champion")
    assert (decision.promoted, decision.kept) == (promoted, False)
    assert decision.measures["champion.log_mae"] == rival
    assert decision.measures["model_since_champion.log_mae"] == 0.7
    assert decision.measures["model.log_mae"] == 0.9


def test_a_champion_stays_where_too_few_jobs_have_come_to_tell():
    few = HeadToHead(since=datetime(2026, 1, 1, tzinfo=UTC), model=scored(0.7, 0.2, n=49), rival=scored(0.9, 0.2, n=49))
    figures = report(model=scored(0.9, 0.2), median_of_5=scored(1.0, 0.3))
    decision = may_be_served(replace(figures, versus={"champion": few}), "7", "champion")
    assert (decision.promoted, decision.kept) == (False, True)
    assert decision.reasons[-1].startswith("the champion stays: 49 jobs came since it was fitted")
    worse = report(model=scored(1.9, 0.2), median_of_5=scored(1.0, 0.3))
    assert not may_be_served(replace(worse, versus={"champion": few}), "7", "champion").kept


def test_a_handful_of_jobs_proves_nothing():
    decision = may_be_served(report(model=scored(0.1, 0.1, n=49), median_of_5=scored(1.0, 0.3, n=49)), None)
    assert not decision.promoted
    assert decision.reasons == ("only 49 jobs could be scored, and 50 are needed to tell",)
    empty = report(model=DurationScores(n=0), median_of_5=DurationScores(n=0))
    assert not may_be_served(empty, None).promoted
