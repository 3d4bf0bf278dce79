"""The generated workload: labelled, repeatable, and shaped like work."""

from __future__ import annotations

from datetime import timedelta
from itertools import pairwise

import numpy as np
import pytest

from advisor.domain.jobs import Outcome
from advisor.errors import Refused
from advisor.telemetry.synthetic import synthetic_workload
from tests.builders import NOON

BATCH = synthetic_workload(1, NOON)


def test_the_same_seed_gives_the_same_jobs_and_another_gives_others():
    assert synthetic_workload(1, NOON) == BATCH
    assert synthetic_workload(2, NOON).jobs != BATCH.jobs


def test_it_says_that_it_is_generated():
    assert BATCH.synthetic
    assert BATCH.source == "synthetic"
    assert "no real cluster" in BATCH.notes[0]


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_three_weeks_hold_work_of_every_kind(seed):
    jobs = synthetic_workload(seed, NOON).jobs
    assert 7_000 <= len(jobs) <= 15_000
    assert {job.pool for job in jobs} == {"a100", "t4"}
    assert {job.outcome for job in jobs} >= {None, Outcome.COMPLETED, Outcome.FAILED, Outcome.CANCELLED}
    assert any(job.gpus == 16 and job.nodes == 2 for job in jobs)
    assert len({job.id for job in jobs}) == len(jobs)


def test_nothing_happens_after_its_end_and_what_runs_then_still_runs():
    times = [time for job in BATCH.jobs for time in (job.submit, job.start, job.end) if time is not None]
    assert NOON - timedelta(days=21) <= min(times)
    assert max(times) <= NOON
    running = [job for job in BATCH.jobs if job.outcome is None]
    assert running
    assert all(job.end is None for job in running)


def test_a_workload_that_ends_later_goes_on_from_the_same_jobs():
    later = synthetic_workload(1, NOON + timedelta(hours=30))
    shared = [job.as_of(NOON) for job in later.jobs if job.submit <= NOON]
    overlap = [job for job in BATCH.jobs if job.submit >= NOON - timedelta(days=21) + timedelta(hours=30)]
    assert shared == overlap


def test_no_two_days_are_alike():
    by_day: dict[object, set[object]] = {}
    for job in BATCH.jobs:
        by_day.setdefault(job.submit.date(), set()).add((job.submit.time(), job.user))
    days = list(by_day.values())
    assert all(len(one & other) < 0.1 * len(one) for one, other in pairwise(days))


def test_nights_and_weekends_are_quieter():
    by_day = np.bincount([job.submit.weekday() for job in BATCH.jobs], minlength=7)
    by_hour = np.bincount([job.submit.hour for job in BATCH.jobs], minlength=24)
    assert by_day[5:].mean() < 0.7 * by_day[:5].mean()
    assert by_hour[0:6].mean() < 0.5 * by_hour[8:18].mean()


def test_durations_recur_within_a_template_and_have_a_heavy_tail():
    logs: dict[str, list[float]] = {}
    for job in BATCH.jobs:
        if job.outcome is Outcome.COMPLETED and job.name is not None:
            logs.setdefault(job.name, []).append(np.log(job.duration_seconds))
    everything = np.concatenate([np.array(each) for each in logs.values()])
    within = np.mean([np.std(each) for each in logs.values() if len(each) > 30])
    assert within < 0.75 * everything.std()
    assert np.exp(np.quantile(everything, 0.99)) > 15 * np.exp(np.median(everything))


@pytest.mark.parametrize("wrong", [{"days": 0}, {"days": 1000}, {"seed": -1}])
def test_impossible_arguments_are_refused(wrong):
    with pytest.raises(Refused):
        synthetic_workload(**{"seed": 1, "end": NOON, **wrong})
