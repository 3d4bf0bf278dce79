"""What is stored and what is read later, as one."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.domain.accounts import EndTold, JobAccount, JobRun
from advisor.domain.jobs import Job, Outcome
from advisor.history.merging import Known, Sight, merged
from tests.builders import NOON, a_job, a_usage

HOUR = timedelta(hours=1)
WHOLE = Sight()


def at(hours: float) -> datetime:
    return NOON + hours * HOUR


def a_run(begin: float, end: float | None, **more: Any) -> JobRun:
    return JobRun(start=at(begin), end=None if end is None else at(end), **more)


def known(*runs: JobRun, ended: Outcome | None = None, told: EndTold = EndTold.ITSELF, **more: Any) -> Known:
    """A job submitted at noon that ran so, as a source tells of it that knows no other runs."""
    gaps = [after.start - before.end for before, after in pairwise(runs) if before.end is not None]
    failed = sum(run.failed for run in runs[:-1])
    fields = {
        "id": "a",
        "submit": NOON,
        "gpus": 1.0,
        "start": runs[0].start if runs else None,
        "end": runs[-1].end if ended else None,
        "outcome": ended,
        "paused_seconds": sum(gaps, timedelta()).total_seconds(),
        "restarts": failed + sum(run.restarts for run in runs),
        "evictions": max(len(runs) - 1 - failed, 0),
        **more,
    }
    return Known(Job(**fields), JobAccount(runs=runs, end_told=told))


def test_of_what_a_later_reading_does_not_reach_nothing_is_lost():
    stored = known(a_run(1, 3, failed=True, restarts=2), a_run(4, None), scheduled=at(0.5), user="ada")
    tail = known(a_run(4, 60), ended=Outcome.COMPLETED, scheduled=at(3.5))

    both = merged(stored, tail, Sight(back_to=at(50)))

    assert both.job == replace(
        tail.job, start=at(1), scheduled=at(0.5), paused_seconds=3600.0, restarts=3, evictions=0, user="ada"
    )
    assert both.account.runs == (a_run(1, 3, failed=True, restarts=2), a_run(4, 60))


def test_a_reading_that_reaches_back_far_enough_is_a_correction():
    stored = known(a_run(1, 2), a_run(4, None))
    assert merged(stored, right := known(a_run(2, None)), Sight(back_to=at(-1))) == right


def test_a_run_that_nobody_sees_any_more_though_it_should_be_seen_was_none():
    stored = known(a_run(1, 20), a_run(24, None))
    assert merged(stored, known(a_run(22, None)), Sight(back_to=at(10))).account.runs == (a_run(22, None),)


def test_a_job_stored_before_its_runs_were_keeps_its_pauses():
    stored = known(a_run(1, None), paused_seconds=900.0, restarts=4, evictions=1)
    stored = replace(stored, account=JobAccount())
    both = merged(stored, known(a_run(40, None)), Sight(back_to=at(45)))
    assert (both.job.start, both.job.paused_seconds, both.job.restarts, both.job.evictions) == (at(1), 900.0, 4, 1)


def test_a_gang_of_which_some_pods_have_gone_is_as_large_as_it_was():
    stored = known(a_run(1, None), gpus=8.0, nodes=2, cpus=64.0)
    both = merged(stored, known(a_run(1, 60), ended=Outcome.FAILED, gpus=4.0, nodes=1), Sight(back_to=at(50)))
    assert (both.job.gpus, both.job.nodes, both.job.cpus) == (8.0, 2, 64.0)


def test_what_was_measured_of_the_whole_is_not_replaced_by_what_is_measured_of_a_part():
    stored = known(a_run(1, 60), ended=Outcome.COMPLETED, usage=a_usage())
    part = known(a_run(1.5, 60), ended=Outcome.COMPLETED, usage=a_usage(compute_mean=0.1))
    assert merged(stored, part, Sight(back_to=at(50))).job.usage == a_usage()


def test_two_accounts_that_contradict_each_other_leave_what_is_stored():
    stored = known(a_run(1, 2), ended=Outcome.FAILED, told=EndTold.PODS)
    odd = known(a_run(1, 60), ended=Outcome.COMPLETED)
    odd = replace(odd, account=JobAccount(runs=(a_run(70, 80),)))
    assert merged(stored, odd, Sight(back_to=at(50))) == stored


TOLD = list(EndTold)


@pytest.mark.parametrize("then", TOLD)
@pytest.mark.parametrize("now", TOLD)
@pytest.mark.parametrize("later", [-1.0, 0.0, 1.0])
def test_which_of_two_ends_counts(then, now, later):
    """The one that was told by whoever knows best; a concluded one counts beside its like where it is no earlier."""
    rank = {EndTold.NOBODY: 0, EndTold.PODS: 1, EndTold.ITSELF: 2}
    stored = known(a_run(0, 5), ended=Outcome.CANCELLED, told=then)
    told = known(a_run(0, 5 + later), ended=Outcome.FAILED, told=now)

    expected = rank[now] > rank[then] or (now is then and (now is not EndTold.NOBODY or later >= 0))
    # Another pod of the object was seen after all known ones had ended.
    expected |= then is EndTold.PODS and later > 0

    assert merged(stored, told, WHOLE) == (told if expected else stored)


@pytest.mark.parametrize("told", [EndTold.NOBODY, EndTold.PODS])
def test_a_concluded_end_is_given_up_where_the_job_is_seen_after_it(told):
    stored = known(a_run(0, 5), ended=Outcome.CANCELLED, told=told)
    now = known(a_run(0, None))
    assert merged(stored, now, Sight(open_at=at(6))) == now


@pytest.mark.parametrize(
    "told, seen",
    [(EndTold.ITSELF, 6), (EndTold.NOBODY, 5), (EndTold.NOBODY, 4), (EndTold.NOBODY, None)],
    ids=["its own word", "seen then", "seen before", "not said when"],
)
def test_no_other_end_is_given_up_for_a_job_that_seems_to_run(told, seen):
    stored = known(a_run(0, 5), ended=Outcome.CANCELLED, told=told)
    sight = Sight(open_at=None if seen is None else at(seen))
    assert merged(stored, known(a_run(0, None)), sight) == stored


@pytest.mark.parametrize("last_seen, lost", [(4, False), (5, True), (6, True)])
def test_a_vanished_job_that_was_taken_by_the_system_is_censored(last_seen, lost):
    stored = known(a_run(0, 5), ended=Outcome.CANCELLED, told=EndTold.NOBODY)
    now = known(a_run(0, last_seen), outcome=Outcome.CENSORED, last_seen=at(last_seen))
    assert merged(stored, now, WHOLE) == (now if lost else stored)


LENGTHS = st.lists(st.integers(1, 40), min_size=2, max_size=12)


@given(LENGTHS, st.lists(st.booleans(), min_size=6, max_size=6), st.integers(4, 30), st.integers(1, 3))
def test_readings_of_parts_come_to_what_one_reading_of_everything_does(lengths, failures, window, every):
    """Hours of running and waiting by turns, looked at now and then, each look with what had not gone by its window."""
    edges, moment = [], 0
    for length in lengths[: len(lengths) // 2 * 2]:
        moment += length
        edges.append(moment)
    runs = [
        a_run(begin, end, failed=failed) for begin, end, failed in zip(edges[::2], edges[1::2], failures, strict=False)
    ]
    stored: Known | None = None
    for now in range(edges[0], edges[-1] + every, every):
        told = _seen(runs, at(now), at(now - window))
        if told is not None:
            sight = Sight(back_to=at(now - window), open_at=at(now))
            stored = told if stored is None else merged(stored, told, sight)
            assert merged(stored, told, sight) == stored

    assert stored is not None
    whole = known(*runs, ended=Outcome.COMPLETED)
    assert stored.job == whole.job
    assert _of_several(stored) == _of_several(whole)


def _seen(runs: list[JobRun], now: datetime, back_to: datetime) -> Known | None:
    """What a reading at ``now`` knows of a job that ran so: neither later runs nor those that had gone by then."""
    there = [
        run if run.end is not None and run.end <= now else replace(run, end=None, failed=False)
        for run in runs
        if run.start <= now and run.end is not None and run.end >= back_to
    ]
    if not there:
        return None
    if there[-1].end is None:
        return known(*there)
    if there[-1] == runs[-1]:
        return known(*there, ended=Outcome.COMPLETED)
    return known(*there, ended=Outcome.FAILED, told=EndTold.PODS)


def _of_several(one: Known) -> tuple[JobRun, ...]:
    return one.account.runs if len(one.account.runs) > 1 else ()


def test_a_job_may_be_known_by_nothing_but_itself():
    plain = Known(a_job("a"), JobAccount())
    assert merged(plain, plain, Sight(back_to=at(1))).job == a_job("a", restarts=None)
