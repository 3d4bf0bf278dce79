"""Events handed out once each: in increments they are those of the whole, or the intake says that they are not."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.domain.jobs import Job, Outcome
from advisor.features.intake import Intake
from advisor.features.replay import EventKind, events_of
from tests.builders import NOON, a_history, a_job, a_usage

MINUTE = timedelta(minutes=1)
HISTORY = a_history(120, seed=3)
END = max(job.end for job in HISTORY if job.end is not None)


def told(intake: Intake, now, *jobs: Job, source: str = "one") -> list[tuple[str, str]]:
    intake.tell([replace(job, source=source) for job in jobs])
    return [(one.event.job.id, one.event.kind.name) for one in intake.events(now)]


def whole(jobs, now) -> list[tuple[str, str]]:
    ordered = sorted(jobs, key=lambda job: (job.submit, job.id))
    return [(event.job.id, event.kind.name) for event in events_of(ordered, now)]


@given(st.integers(0, 2**32 - 1), st.integers(1, 40))
def test_increments_in_time_hand_out_what_the_whole_would_have(seed, cuts):
    rng = np.random.default_rng(seed)
    moments = sorted(NOON + (END - NOON) * share for share in rng.random(cuts))
    intake, found = Intake(), []
    for now in moments:
        known = [job.as_of(now) for job in HISTORY]
        found += told(intake, now, *[job for job in known if job is not None])

    assert intake.exact
    assert found == whole(HISTORY, moments[-1])


def test_what_lies_ahead_waits_for_its_time():
    intake = Intake()
    assert told(intake, NOON, a_job("a", seconds=60.0)) == [("a", "SUBMITTED")]
    assert told(intake, NOON + MINUTE) == [("a", "ENDED")]
    assert told(intake, NOON + 2 * MINUTE) == []
    assert intake.exact


def test_the_same_told_again_changes_nothing():
    intake = Intake()
    told(intake, END, *HISTORY)
    assert told(intake, END, *HISTORY) == []
    assert intake.exact


def test_what_comes_after_its_turn_is_handed_out_and_the_state_no_longer_exact():
    intake = Intake()
    told(intake, NOON + 5 * MINUTE, a_job("a", submit=NOON + 4 * MINUTE, seconds=None))
    intake.tell([a_job("late", seconds=60.0)])

    found = intake.events(NOON + 5 * MINUTE)

    assert [(one.event.kind, one.late) for one in found] == [(EventKind.SUBMITTED, True), (EventKind.ENDED, True)]
    assert not intake.exact


def test_what_comes_late_but_still_in_its_turn_is_as_good_as_in_time():
    """Nothing else has happened since, so nothing was taken in before it."""
    intake = Intake()
    told(intake, NOON + 9 * MINUTE, a_job("a", seconds=None))
    assert told(intake, NOON + 9 * MINUTE, a_job("a", seconds=60.0)) == [("a", "ENDED")]
    assert intake.exact


def test_a_start_at_the_submission_that_is_seen_later_is_told():
    intake = Intake()
    told(intake, NOON, a_job("a", start=None, seconds=None))
    assert told(intake, NOON + MINUTE, a_job("a", seconds=None)) == [("a", "STARTED")]
    assert intake.exact
    assert told(intake, NOON + MINUTE, a_job("a", seconds=60.0)) == [("a", "ENDED")]


BEGUN = a_job("a", start=NOON + MINUTE, seconds=60.0, user="ada")


@pytest.mark.parametrize(
    "corrected",
    [
        replace(BEGUN, user="grace"),
        replace(BEGUN, name="late-name"),
        replace(BEGUN, gpu_kind="H100"),
        replace(BEGUN, gpu_kind="H100", told_by_node=("gpu_kind",)),
        replace(BEGUN, start=NOON + MINUTE + timedelta(seconds=1)),
        replace(BEGUN, end=NOON + 3 * MINUTE),
        replace(BEGUN, outcome=Outcome.FAILED),
        replace(BEGUN, paused_seconds=30.0),
        replace(BEGUN, usage=a_usage()),
    ],
    ids=["user", "name", "kind asked for", "kind it ran on", "start", "end", "outcome", "paused", "usage"],
)
def test_what_was_handed_out_and_is_corrected_is_not_exact(corrected):
    intake = Intake()
    told(intake, NOON + 5 * MINUTE, BEGUN)
    assert told(intake, NOON + 5 * MINUTE, corrected) == []
    assert not intake.exact


def test_a_pool_that_is_known_late_matters_to_no_duration():
    intake = Intake()
    told(intake, NOON + 5 * MINUTE, BEGUN)
    told(intake, NOON + 5 * MINUTE, replace(BEGUN, pool="a100"))
    assert intake.exact
    assert intake.jobs() == [replace(BEGUN, pool="a100")]


def test_what_becomes_known_as_a_job_fares_corrects_nothing():
    """A node and what it tells, restarts, pauses and usage come by and by, and no request ever said them."""
    waiting = replace(BEGUN, start=None, end=None, outcome=None)
    learnt = {"nodes": 1, "gpu_kind": "H100", "cpus": 8.0, "image": "torch:2"}
    given = replace(waiting, scheduled=NOON, created_by="Job/a", **learnt, told_by_node=tuple(sorted(learnt)))
    running = replace(given, start=BEGUN.start, restarts=1, evictions=1, image_pull_seconds=2.0, paused_seconds=20.0)
    ended = replace(running, end=BEGUN.end, outcome=BEGUN.outcome, paused_seconds=30.0, usage=a_usage())
    intake = Intake()

    found = [told(intake, NOON + 5 * MINUTE, job) for job in (waiting, given, running, ended)]

    assert found == [[("a", "SUBMITTED")], [], [("a", "STARTED")], [("a", "ENDED")]]
    assert intake.exact


def test_a_correction_before_its_time_is_no_correction():
    intake = Intake()
    told(intake, NOON, BEGUN)
    assert told(intake, NOON + 9 * MINUTE, replace(BEGUN, end=NOON + 3 * MINUTE)) == [("a", "STARTED"), ("a", "ENDED")]
    assert intake.exact


def test_two_sources_may_use_one_id():
    intake = Intake()
    told(intake, NOON, a_job("1", seconds=None))
    assert told(intake, NOON + MINUTE, a_job("1", submit=NOON + MINUTE, seconds=None), source="two") == [
        ("1", "SUBMITTED")
    ]
    assert [job.source for job in intake.jobs()] == ["one", "two"]


def test_time_that_moved_backwards_is_noticed():
    intake = Intake()
    told(intake, NOON + 5 * MINUTE, a_job("a", submit=NOON + 2 * MINUTE, seconds=None))
    assert not intake.beyond(NOON + 2 * MINUTE)
    assert intake.beyond(NOON + MINUTE)
