"""Outcomes are scored against two that know less, and nothing is known early."""

from dataclasses import replace
from datetime import timedelta

import pytest

from advisor.domain.forecasts import OutcomeChances
from advisor.domain.jobs import Outcome
from tests.builders import NOON, a_job
from training.outcomes import outcome_scores

ENDS = (Outcome.FAILED, Outcome.COMPLETED, Outcome.FAILED, Outcome.CANCELLED, Outcome.FAILED, Outcome.COMPLETED)
JOBS = [
    replace(a_job(f"job-{n}", submit=NOON + timedelta(hours=n), seconds=60.0), outcome=outcome)
    for n, outcome in enumerate(ENDS)
]
SPLIT = (NOON + timedelta(hours=4)).timestamp()


def chances(failed, cancelled):
    return OutcomeChances(completed=max(1.0 - failed - cancelled, 0.0), failed=failed, cancelled=cancelled)


def test_scores_are_mean_squares_beside_those_of_the_rate_and_of_the_owner():
    scores = outcome_scores(JOBS, {4: chances(0.9, 0.1), 5: chances(0.2, 0.0)}, [4, 5], SPLIT)
    failed = scores["failed"]
    assert (failed.n, failed.rate) == (2, 0.5)
    assert failed.brier == pytest.approx((0.1**2 + 0.2**2) / 2)
    # Two of the four that ended before the split failed; of the owner's latest, two of four and then three of five.
    assert failed.brier_rate == pytest.approx(0.25)
    assert failed.brier_owner == pytest.approx((0.5**2 + 0.6**2) / 2)
    assert scores["cancelled"].brier_owner == pytest.approx((0.25**2 + 0.2**2) / 2)


def test_jobs_without_a_foretold_outcome_are_left_out():
    assert outcome_scores(JOBS, {}, [4, 5], SPLIT) == {}
    assert outcome_scores(JOBS, {5: chances(0.2, 0.0)}, [4, 5], SPLIT)["failed"].n == 1


def test_an_owner_without_a_past_is_given_the_rate():
    jobs = [*JOBS[:5], replace(JOBS[5], user="newcomer")]
    scores = outcome_scores(jobs, {5: chances(0.2, 0.0)}, [5], SPLIT)["failed"]
    assert scores.brier_owner == scores.brier_rate == pytest.approx(0.25)
