from __future__ import annotations

from dataclasses import fields, replace
from datetime import timedelta

import pytest

from advisor.domain.jobs import Job, Outcome, pool_of
from advisor.errors import Refused
from tests.builders import NOON, a_job, a_job_of_every_field, a_usage

MINUTE = timedelta(minutes=1)


def test_a_finished_job_knows_its_wait_and_duration() -> None:
    job = a_job(start=NOON + MINUTE, end=NOON + 3 * MINUTE)

    assert job.wait_seconds == 60
    assert job.duration_seconds == 120


def test_an_assumed_start_says_nothing_about_waiting() -> None:
    assert a_job(start_assumed=True).wait_seconds is None


def test_waiting_ends_with_a_node_and_starting_up_with_the_start() -> None:
    job = a_job(scheduled=NOON + MINUTE, start=NOON + 4 * MINUTE)

    assert (job.wait_seconds, job.startup_seconds) == (60, 180)
    assert a_job(start=NOON + MINUTE).startup_seconds is None
    assert a_job(scheduled=NOON, start=None).startup_seconds is None
    assert a_job(scheduled=NOON + MINUTE, start=None).wait_seconds == 60


def test_an_assumed_start_says_nothing_about_starting_up() -> None:
    assert a_job(scheduled=NOON, start_assumed=True).startup_seconds is None


def test_what_a_job_used_is_known_once_it_is_gone() -> None:
    job = a_job(usage=a_usage(), restarts=2, seconds=60.0)

    assert job.as_of(NOON + MINUTE) == job
    before = job.as_of(NOON)
    assert before is not None
    assert (before.usage, before.restarts) == (None, None)


def test_starting_up_is_known_bit_by_bit() -> None:
    job = a_job(scheduled=NOON + MINUTE, start=NOON + 3 * MINUTE, image_pull_seconds=90.0, created_by="Job/train")

    waits, starts, runs = (job.as_of(NOON + n * MINUTE) for n in (0, 1, 3))

    assert waits is not None
    assert (waits.scheduled, waits.created_by) == (None, "Job/train")
    assert starts is not None
    assert (starts.scheduled, starts.start, starts.image_pull_seconds) == (job.scheduled, None, None)
    assert runs is not None
    assert (runs.start, runs.image_pull_seconds) == (job.start, 90.0)


ASKED = {"id", "source", "submit", "gpus", "user", "namespace", "name", "image", "gpu_kind", "pool", "cpus", "nodes",
         "priority", "time_limit_seconds", "calendar_known", "created_by"}  # fmt: skip
AFTERWARDS = {"start", "end", "outcome", "last_seen", "start_assumed", "scheduled", "restarts", "evictions",
              "paused_seconds", "image_pull_seconds", "usage", "told_by_node"}  # fmt: skip


def test_a_job_as_it_was_asked_for_holds_nothing_of_what_became_of_it() -> None:
    job, bare = a_job_of_every_field(), Job(id="bare", submit=NOON + MINUTE, gpus=1.0)
    names = {field.name for field in fields(Job)}

    asked = job.as_asked()

    assert names == ASKED | AFTERWARDS, "a new field of a job is known when it is submitted, or afterwards: say which"
    assert all(getattr(job, name) != getattr(bare, name) for name in names), "a field that is not set is not tried"
    assert {name for name in names if getattr(asked, name) == getattr(job, name)} == ASKED - {"image"}
    assert {name for name in names if getattr(asked, name) == getattr(bare, name)} == AFTERWARDS | {"image"}


def test_before_anything_has_happened_a_job_is_known_as_it_was_asked_for() -> None:
    job = a_job_of_every_field(start_assumed=False)

    assert job.as_of(job.submit) == job.as_asked()


def test_as_of_hides_everything_later() -> None:
    job = a_job(start=NOON + MINUTE, end=NOON + 5 * MINUTE)

    waiting, running, ended = (job.as_of(NOON + n * MINUTE) for n in (0, 2, 5))

    assert job.as_of(NOON - MINUTE) is None
    assert waiting is not None
    assert waiting.start is None
    assert waiting.outcome is None
    assert running is not None
    assert running.start == job.start
    assert running.end is None
    assert running.elapsed_seconds(NOON + 2 * MINUTE) == 60
    assert ended == job


@pytest.mark.parametrize("scheduled", [None, NOON + MINUTE], ids=["by its start", "by its node"])
def test_what_a_node_told_is_known_once_there_is_one(scheduled):
    learnt = {"gpu_kind": "H100", "nodes": 2, "told_by_node": ("gpu_kind", "nodes")}
    job = a_job(scheduled=scheduled, start=NOON + MINUTE, cpus=8.0, **learnt)

    waiting, running = job.as_of(NOON), job.as_of(NOON + MINUTE)

    assert waiting is not None
    assert (waiting.gpu_kind, waiting.nodes, waiting.told_by_node, waiting.cpus) == (None, None, (), 8.0)
    assert running is not None
    assert (running.gpu_kind, running.nodes, running.told_by_node) == ("H100", 2, job.told_by_node)
    asked = job.as_asked()
    assert (asked.gpu_kind, asked.nodes, asked.told_by_node, asked.cpus) == (None, None, (), 8.0)


def test_a_censored_job_lasted_at_least_until_it_was_last_seen() -> None:
    job = a_job(seconds=None, outcome=Outcome.CENSORED, last_seen=NOON + 10 * MINUTE)

    assert job.duration_seconds is None
    assert job.elapsed_seconds(NOON + 60 * MINUTE) == 600
    before = job.as_of(NOON + MINUTE)
    assert before is not None
    assert before.last_seen is None


def test_a_job_cancelled_before_it_started_has_no_duration() -> None:
    job = a_job(start=None, end=NOON + MINUTE, outcome=Outcome.CANCELLED)

    assert job.duration_seconds is None


@pytest.mark.parametrize(
    "field,change",
    [
        ("gpus", {"gpus": 0.0}),
        ("gpus", {"gpus": float("nan")}),
        ("gpus", {"gpus": -1.0}),
        ("id", {"name": ""}),
        ("start", {"start": NOON - MINUTE}),
        ("end", {"end": NOON - MINUTE}),
        ("start", {"start": None, "end": NOON + MINUTE, "outcome": Outcome.COMPLETED}),
        ("outcome", {"seconds": None, "outcome": Outcome.CENSORED}),
        ("outcome", {"seconds": None, "outcome": Outcome.FAILED}),
        ("scheduled", {"scheduled": NOON - MINUTE}),
        ("scheduled", {"scheduled": NOON + MINUTE}),
        ("scheduled", {"scheduled": NOON + MINUTE, "start": None, "end": NOON, "outcome": Outcome.CANCELLED}),
        ("restarts", {"restarts": -1}),
        ("told_by_node", {"told_by_node": ("user",)}),
        ("told_by_node", {"told_by_node": ("nodes", "cpus")}),
        ("image_pull_seconds", {"image_pull_seconds": -1.0}),
        ("image_pull_seconds", {"image_pull_seconds": float("nan")}),
    ],
)
def test_impossible_jobs_are_refused_by_field(field: str, change: dict[str, object]) -> None:
    arguments = dict(change)
    name = str(arguments.pop("name", "job-1"))
    with pytest.raises(Refused) as refused:
        a_job(name, **arguments)
    assert refused.value.field == field


def test_a_job_belongs_to_its_pool_then_its_gpu_kind_then_the_default() -> None:
    def job(**more: str) -> Job:
        return a_job(**more)

    assert pool_of(job(pool="batch", gpu_kind="a100")) == "batch"
    assert pool_of(job(gpu_kind="a100")) == "a100"
    assert pool_of(job()) == "default"


def test_pauses_are_waited_and_not_run():
    """A14: admitted after 10 min, evicted after an hour, back an hour later, done after half an hour more."""
    admitted, done = NOON + 10 * MINUTE, NOON + 160 * MINUTE
    job = a_job(scheduled=admitted, start=admitted, seconds=None, end=done, outcome=Outcome.COMPLETED, evictions=1)
    paused = replace(job, paused_seconds=3600.0)
    assert (paused.duration_seconds, paused.wait_seconds) == (5400.0, 4200.0)
    assert paused.elapsed_seconds(done) == 5400.0
    assert paused.as_of(NOON + 20 * MINUTE).paused_seconds == 0.0


@pytest.mark.parametrize("seconds", [-1.0, float("nan"), 1e9])
def test_a_pause_lies_within_the_run(seconds):
    with pytest.raises(Refused, match="paused_seconds"):
        a_job(paused_seconds=seconds)
