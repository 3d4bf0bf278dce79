"""The gate: both measures, every rival, and enough jobs to tell."""

import pytest

from advisor.domain.reports import DurationReport, DurationScores, RunProtocol
from training.quality import beats_baseline

PROTOCOL = RunProtocol(data_digest="0", rows=1, split_time=None, refits=1, seed=1, versions={}, assumed=())


def scored(log_mae, pinball, n=1000):
    return DurationScores(n=n, log_mae=log_mae, pinball_log={"0.9": pinball})


def report(**scores):
    return DurationReport(protocol=PROTOCOL, scores=scores, by_history={}, by_gpus={}, served="model")


@pytest.mark.parametrize(
    "mae,pinball,promoted", [(0.9, 0.2, True), (1.1, 0.2, False), (0.9, 0.4, False), (1.0, 0.2, False)]
)
def test_a_model_must_be_better_in_both_measures(mae, pinball, promoted):
    decision = beats_baseline(report(model=scored(mae, pinball), median_of_5=scored(1.0, 0.3)), "7")
    assert (decision.promoted, decision.version) == (promoted, "7")
    assert decision.measures["model.log_mae"] == mae
    assert decision.measures["median_of_5.pinball_90"] == 0.3
    assert decision.reasons[0] == f"log_mae: {mae:.4f} is {'not ' if mae >= 1 else ''}below the 1.0000 of median_of_5"


def test_an_incumbent_must_be_beaten_too_and_one_that_was_not_scored_is_passed_over():
    figures = report(model=scored(0.9, 0.2), median_of_5=scored(1.0, 0.3), champion=scored(0.8, 0.3))
    rivals = ("median_of_5", "champion")
    assert not beats_baseline(figures, "7", rivals=rivals).promoted
    del figures.scores["champion"]
    assert beats_baseline(figures, "7", rivals=rivals).promoted


def test_a_handful_of_jobs_proves_nothing():
    decision = beats_baseline(report(model=scored(0.1, 0.1, n=49), median_of_5=scored(1.0, 0.3, n=49)), None)
    assert not decision.promoted
    assert decision.reasons == ("only 49 jobs could be scored, and 50 are needed to tell",)
    empty = report(model=DurationScores(n=0), median_of_5=DurationScores(n=0))
    assert not beats_baseline(empty, None).promoted
