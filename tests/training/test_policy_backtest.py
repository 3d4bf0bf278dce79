"""A history under every policy: the same work and charges, forecasts without future, differences with intervals."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import Any

import numpy as np
import pytest

from advisor.domain.backtests import BacktestReport, PolicyScores
from advisor.domain.jobs import Job, Outcome
from advisor.errors import Refused
from advisor.planning.costs import Prices
from tests.advisor.simulator.worlds import replayed, some_work
from tests.builders import NOON, a_job
from tests.docs.json_shapes import differences as shape_differences
from tests.docs.json_shapes import documented
from training import policy_runs
from training.backtest import BacktestSettings
from training.policies import ALWAYS, KEEP_ALIVES, MORE, ContestTerms, entrants, static_nodes
from training.policy_backtest import PolicyBacktest, backtest_policies, contest_of
from training.policy_scores import differences, measures_of, scores_of_runs


def a_history(count: int = 240) -> list[Job]:
    """Work of two people over five days: short single-GPU jobs, now and then a long one, now and then of 8 GPUs."""
    random = np.random.default_rng(5)
    jobs = []
    for number in range(count):
        submit = NOON + timedelta(minutes=30.0 * number + float(random.uniform(0, 20)))
        seconds = float(random.lognormal(6.5, 1.5)) if number % 3 else float(random.lognormal(9.0, 1.0))
        gpus = 8.0 if number % 11 == 0 else 1.0
        jobs.append(
            a_job(f"job-{number}", submit=submit, seconds=seconds, gpus=gpus, user="ada" if number % 3 else "bo")
        )
    return jobs


@pytest.fixture(scope="module")
def history() -> list[Job]:
    return a_history()


def settings(**more: Any) -> PolicyBacktest:
    return PolicyBacktest(terms=ContestTerms(**more), workers=1)


@pytest.fixture(scope="module")
def report(history) -> BacktestReport:
    return backtest_policies(history, settings(checkpointable=0.5))


def test_every_policy_replays_the_same_held_out_jobs(report):
    assert set(report.policies) == set(ALWAYS)
    assert {scores.jobs for scores in report.policies.values()} == {72}


def test_the_document_has_the_described_shape_and_only_finite_numbers(report):
    document = json.loads(json.dumps(report.to_json(), allow_nan=False))
    assert shape_differences(documented("gsa backtest"), document) == []


def test_a_policy_that_gives_every_task_a_node_pays_most_and_knowing_the_truth_waits_no_longer_by_much(report):
    policies = report.policies
    assert policies["traditional"].paid_over_useful > policies["karpenter"].paid_over_useful
    assert policies["clairvoyant"].mean_wait_minutes <= 1.5 * policies["advisor_checkpointing"].mean_wait_minutes + 0.5
    assert policies["traditional"].fill_rate < policies["karpenter"].fill_rate


def test_utilisation_and_paid_over_useful_are_each_others_inverse_and_cost_follows_the_price(history, report):
    scores = report.policies["karpenter"]
    assert scores.gpu_utilisation * scores.paid_over_useful == pytest.approx(1.0)
    dear = backtest_policies(history, replace(settings(checkpointable=0.5), prices=Prices(per_gpu_hour=25.0)))
    assert dear.policies["karpenter"].cost == pytest.approx(10.0 * scores.cost)


def test_only_marked_jobs_are_stopped_or_moved(history):
    terms = {"quota_nodes": 2, "switch_seconds": 30.0}
    unmarked = backtest_policies(history, settings(**terms)).policies
    assert unmarked["advisor"].preemptions + unmarked["advisor"].moves == 0
    all_marked = backtest_policies(history, settings(checkpointable=1.0, **terms)).policies
    assert all_marked["advisor"] == all_marked["advisor_checkpointing"] == unmarked["advisor_checkpointing"]


def test_the_best_keep_alive_is_the_fastest_that_costs_no_more_than_ours(report):
    ours, best = report.policies["advisor"], report.policies["keep_alive_best"]
    curve = report.curves["keep_alive"]
    assert [point.setting["keep_alive_seconds"] for point in curve] == list(KEEP_ALIVES)
    affordable = [point for point in curve if point.paid_over_useful <= ours.paid_over_useful]
    expected = min(affordable or curve, key=lambda one: one.mean_wait_minutes if affordable else one.paid_over_useful)
    assert best == expected


def test_the_same_settings_give_the_same_report_in_one_process_and_in_two(history, report):
    again = backtest_policies(history, replace(settings(checkpointable=0.5), workers=2))
    assert again == report


def test_a_seed_shakes_submissions_of_one_second_together_and_the_first_not_at_all():
    jobs = [some_work(float(100 * (n // 2)), 1, 10, id=str(n)) for n in range(20)]
    assert policy_runs._shaken(jobs, 0) == list(enumerate(jobs))
    shaken = policy_runs._shaken(jobs, 3)
    assert sorted(place for place, _ in shaken) == list(range(20))
    moved = {place: job.submit - jobs[place].submit for place, job in shaken}
    assert all(abs(by) <= 60.0 for by in moved.values())
    assert all(moved[n] == moved[n + 1] for n in range(0, 20, 2))
    assert len(set(moved.values())) > 5
    assert [job.submit for _, job in shaken] == sorted(job.submit for _, job in shaken)


def test_seeds_are_averaged_and_counts_stay_whole(history):
    scores = backtest_policies(history, settings(seeds=2)).policies["karpenter"]
    assert isinstance(scores.node_starts, int)
    assert scores.jobs == 72


def test_the_future_of_the_history_changes_no_forecast(history):
    """The same jobs are held out, but what happened from the 200th submission on is cut away."""
    until = history[200].submit
    known = [job for job in (job.as_of(until) for job in history[:200]) if job is not None]
    whole, _, _ = contest_of(history, settings())
    cut, _, _ = contest_of(known, replace(settings(), durations=BacktestSettings(split=168 / 200)))
    assert cut.jobs[0].id == whole.jobs[0].id == "job-168"
    place_of = {job.id: place for place, job in enumerate(whole.jobs)}
    for name in ("model", "median_of_5"):
        for place, job in enumerate(cut.jobs):
            assert cut.foresights[name].remaining(place, 0.0) == whole.foresights[name].remaining(place_of[job.id], 0.0)


def test_what_cannot_be_replayed_is_said(history):
    waiting = a_job("waiting", submit=history[-1].submit, seconds=None, start=None)
    lost = a_job(
        "lost",
        submit=history[-1].submit,
        seconds=None,
        start=history[-1].submit,
        outcome=Outcome.CENSORED,
        last_seen=history[-1].submit + timedelta(hours=1),
    )
    assumed = backtest_policies([*history, waiting, lost], settings()).protocol.assumed
    assert "not replayed: 1 job that never ran or run still" in assumed
    assert "1 job of unknown end taken to have ended when last seen" in assumed


def test_static_capacity_holds_the_quantile_by_time_of_what_was_in_use_before_the_split():
    """One GPU throughout 100 minutes, for 4 of them 19 more, for 2 of those 20 more: 1 GPU is enough for 96 %."""
    minute = timedelta(minutes=1)
    jobs = [
        a_job("a", seconds=6000.0, gpus=1.0),
        a_job("b", submit=NOON + 10 * minute, seconds=240.0, gpus=19.0),
        a_job("c", submit=NOON + 11 * minute, seconds=120.0, gpus=20.0),
    ]
    split = (NOON + 100 * minute).timestamp()
    assert static_nodes(jobs, split, ContestTerms(), 1.0) == {"static_p95": 1, "static_p100": 5}
    assert static_nodes(jobs, split, ContestTerms(), 24.0)["static_p95"] == 3
    assert static_nodes(jobs, split, ContestTerms(quota_nodes=4), 1.0)["static_p100"] == 4


def test_a_difference_has_the_sign_of_ours_less_theirs_and_none_to_itself():
    jobs = [some_work(7200.0 * n, 1, 3000, id=str(n)) for n in range(60)]
    slow = [measures_of(replayed(*jobs), Prices(), {})]
    fast = [measures_of(replayed(*jobs, keep_alive_seconds=7200.0), Prices(), {})]
    found = differences(fast, slow)
    assert found["mean_wait_minutes"].high < 0 < found["paid_over_useful"].low
    assert found["mean_wait_minutes"].low <= found["mean_wait_minutes"].mean <= found["mean_wait_minutes"].high
    assert {one.mean for one in differences(slow, slow).values()} == {0.0}
    assert "mean_short_wait_minutes" not in found


def test_measures_by_hand():
    """Nodes start at once: the first job runs, the second waits 500 s for its GPUs on the one node there may be."""
    jobs = [some_work(0, 8, 1000), some_work(500, 8, 600)]
    run = replayed(*jobs, static_nodes=1, limit_nodes=1)
    scores = measures_of(run, Prices(per_gpu_hour=3.6), {}).scores
    assert scores == PolicyScores(
        gpu_utilisation=1.0,
        mean_wait_minutes=500 / 60 / 2,
        p95_wait_minutes=pytest.approx(0.95 * 500 / 60),
        p99_wait_minutes=pytest.approx(0.99 * 500 / 60),
        longest_wait_minutes=500 / 60,
        mean_short_wait_minutes=500 / 60,
        bounded_slowdown=(1.0 + 1100 / 600) / 2,
        fill_rate=1.0,
        cost=pytest.approx(4.0),
        paid_over_useful=1.0,
        node_starts=0,
        preemptions=0,
        moves=0,
        lost_gpu_hours=0.0,
        jobs=2,
    )
    assert scores_of_runs([measures_of(run, Prices(), {})] * 2).mean_wait_minutes == scores.mean_wait_minutes


def test_every_further_policy_runs(history):
    found = backtest_policies(history[:120], replace(settings(quota_nodes=2), more=MORE)).policies
    assert set(found) == {*ALWAYS, *MORE}


def test_an_unknown_policy_is_refused_with_those_known():
    with pytest.raises(Refused, match="least_attained_service"):
        entrants(["best"])


@pytest.mark.parametrize("wrong", [{"checkpointable": 1.5}, {"seeds": 0}, {"switch_seconds": -1.0}, {"node_gpus": 0}])
def test_terms_that_make_no_sense_are_refused(wrong):
    with pytest.raises(Refused, match=next(iter(wrong))):
        ContestTerms(**wrong)


def test_a_quota_under_the_largest_job_is_refused():
    jobs = [*a_history(40), a_job("big", submit=NOON + timedelta(days=20), gpus=64.0)]
    with pytest.raises(Refused, match="needs 8 nodes"):
        backtest_policies(jobs, settings(quota_nodes=2))


def test_a_history_of_which_nothing_ran_after_the_split_is_refused(history):
    waiting = [a_job(f"waiting-{n}", submit=history[-1].submit, seconds=None, start=None) for n in range(10)]
    with pytest.raises(Refused, match="no job after the split"):
        backtest_policies([*history[:20], *waiting], settings())
