"""Turn after turn into a store, while what a server tells of comes and goes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from advisor.domain.jobs import Job, Outcome
from advisor.features.intake import Intake
from advisor.features.replay import EventKind
from advisor.history.store import HistoryStore
from advisor.settings import PrometheusOptions
from advisor.telemetry.collector import collect
from advisor.telemetry.prometheus.client import PrometheusClient
from advisor.telemetry.prometheus.source import PrometheusSource
from tests.builders import NOON
from tests.metrics_server import MetricsStandIn, Told, a_node_told, a_pod_told

BEGUN, DAY, HOUR = NOON.timestamp(), 86_400.0, 3600.0


@pytest.fixture
def store() -> Iterator[HistoryStore]:
    with HistoryStore.open("sqlite://") as opened:
        yield opened


def after(days: float) -> datetime:
    return NOON + timedelta(days=days)


def turns(store: HistoryStore, series: Sequence[Told], moments: Iterable[float], days: float = 5.0) -> list[Job]:
    """What is known after turns at these ``moments``, in days from the begin; so many ``days`` are looked back."""
    options = PrometheusOptions.model_validate(
        {"url": "http://127.0.0.1:9090", "flavour": "prometheus", "days": days, "step_seconds": 600}
    )
    transport = MetricsStandIn([*a_node_told(), *series]).transport()
    now = NOON
    for moment in moments:
        now = after(moment)
        collect(PrometheusSource(PrometheusClient(options, transport=transport), options, ()), store, now)
    return store.jobs(now)


def test_a_gang_keeps_its_identity_when_its_first_pods_are_no_longer_told_of(store):
    pods = [
        *a_pod_told("bert-0", BEGUN, BEGUN + 3 * DAY),
        *a_pod_told("bert-1", BEGUN + 2 * DAY, BEGUN + 11 * DAY),
    ]

    (early,) = turns(store, pods, [4.0])
    (late,) = turns(store, pods, range(5, 14))

    assert (late.id, late.submit) == (early.id, NOON)
    assert (late.start, late.end) == (early.start, after(11))
    assert (late.outcome, late.gpus, late.paused_seconds) == (Outcome.COMPLETED, 2, 0)


def test_an_object_made_anew_long_after_is_another_job_all_the_same(store):
    pods = [*a_pod_told("bert-0", BEGUN, BEGUN + DAY), *a_pod_told("bert-1", BEGUN + 7 * DAY, BEGUN + 8 * DAY)]

    old, new = turns(store, pods, range(1, 10))

    assert (old.submit, old.end, new.submit, new.end) == (NOON, after(1), after(7), after(8))


def test_what_was_known_of_a_job_stays_known_when_only_its_last_part_is_told_of(store):
    """Three runs, each after a failure; the first two have long gone when the last one ends."""
    made = Told("kube_job_created", BEGUN, {"namespace": "ml", "job_name": "train"}, BEGUN, BEGUN + 20 * DAY)
    runs = [(0.0, 0.5), (0.75, 3.0), (3.25, 12.0)]
    pods = [
        told
        for number, (begin, end) in enumerate(runs)
        for told in a_pod_told(
            f"train-{number}",
            BEGUN + begin * DAY,
            BEGUN + end * DAY,
            "Job/train",
            last="Failed" if number < 2 else "Succeeded",
        )
    ]

    (job,) = turns(store, [made, *pods], range(1, 15))

    assert (job.submit, job.scheduled, job.start) == (NOON, NOON + timedelta(seconds=60), NOON + timedelta(seconds=90))
    assert (job.end, job.outcome, job.restarts, job.evictions) == (after(12), Outcome.COMPLETED, 2, 0)
    assert job.paused_seconds == 2 * (0.25 * DAY + 90)


def test_turns_that_see_parts_come_to_what_one_reading_of_everything_does(store):
    pods = [
        *a_pod_told("a", BEGUN, BEGUN + 2 * DAY, last="Failed"),
        *a_pod_told("b", BEGUN + 0.1 * DAY, BEGUN + 2.5 * DAY, last="Failed"),
        *a_pod_told("c", BEGUN + 2.52 * DAY, BEGUN + 9 * DAY, last="Failed"),
        *a_pod_told("d", BEGUN + 9.04 * DAY, BEGUN + 9.5 * DAY),
    ]
    parts = turns(store, pods, [0.5 * turn for turn in range(1, 24)])

    with HistoryStore.open("sqlite://") as at_once:
        assert parts == turns(at_once, pods, [11.5], days=15.0)


def test_a_container_that_began_anew_does_not_move_the_start_of_its_job(store):
    """What is told of a container is its present run alone."""
    pods = a_pod_told("notebook", BEGUN, BEGUN + 9 * DAY, "StatefulSet/notebook")
    started = next(each for each in pods if each.metric == "kube_pod_container_state_started")
    pods.remove(started)
    anew = replace(started, value=BEGUN + 2 * DAY, begin=BEGUN + 2 * DAY)
    restarts = Told("kube_pod_container_status_restarts_total", 1, started.labels, BEGUN + 2 * DAY, BEGUN + 9 * DAY)

    (job,) = turns(store, [*pods, replace(started, end=BEGUN + 2 * DAY), anew, restarts], range(1, 11))

    assert (job.start, job.end, job.restarts) == (NOON + timedelta(seconds=90), after(9), 1)


class TestAShardOfKubeStateMetricsThatWasAway:
    """The other shards were looked at all the while, so its pods seem to have vanished."""

    AWAY = (1.01, 1.2)

    def pods(self, **more: str) -> list[Told]:
        begin, end = (BEGUN + days * DAY for days in self.AWAY)
        told = a_pod_told("train-0", BEGUN, BEGUN + 3 * DAY, **more)
        return [replace(each, end=min(each.end, begin)) for each in told if each.begin < begin] + [
            replace(each, begin=max(each.begin, end)) for each in told
        ]

    def test_its_pods_were_taken_for_cancelled_and_are_alive_again(self, store):
        (gone,) = turns(store, self.pods(), [1.1])
        assert gone.outcome is Outcome.CANCELLED
        assert after(1.0) < gone.end <= after(1.01)

        (back,) = turns(store, self.pods(), [1.3])

        assert (back.outcome, back.end, back.start) == (None, None, gone.start)
        assert turns(store, self.pods(), [3.5])[0].end == after(3)

    def test_a_pod_that_ended_while_it_was_away_ended_then(self, store):
        (gone,) = turns(store, self.pods(), [1.1])
        ended = [*a_pod_told("train-0", BEGUN, BEGUN + 0.999 * DAY, last="Failed", stays=DAY)]

        (known,) = turns(store, ended, [1.3])

        assert (gone.outcome, known.outcome) == (Outcome.CANCELLED, Outcome.FAILED)
        assert known.end == after(0.999)

    def test_an_end_that_was_told_is_not_given_up_for_one_that_is_concluded(self, store):
        (ended,) = turns(store, a_pod_told("train-0", BEGUN, BEGUN + DAY, "StatefulSet/s", stays=2 * DAY), [1.1])

        vanished = a_pod_told("train-0", BEGUN, BEGUN + 1.15 * DAY, "StatefulSet/s", last="")

        assert turns(store, vanished, [1.3]) == [ended]


def test_what_a_node_tells_of_a_job_that_waited_is_no_correction_of_what_it_asked_for(store):
    """A state that is fed with the history takes it in as it comes, and is not built anew."""
    image = {"uid": "uid-train-0", "namespace": "ml", "pod": "train-0", "container": "main", "image": "torch:2"}
    pods = [
        replace(told, labels={**told.labels, "node": "" if told.begin < BEGUN + DAY else "n1"})
        if told.metric == "kube_pod_info"
        else told
        for told in a_pod_told("train-0", BEGUN, BEGUN + 3 * DAY)
        if told.metric not in ("kube_pod_status_scheduled_time", "kube_pod_container_state_started")
    ]
    begun = BEGUN + DAY
    pods += [
        Told("kube_pod_info", 1, {**image, "node": "n1"}, begun, BEGUN + 3 * DAY),
        Told("kube_pod_container_info", 1, image, begun, BEGUN + 3 * DAY),
        Told("kube_pod_status_scheduled_time", begun, image, begun, BEGUN + 3 * DAY),
        Told("kube_pod_container_state_started", begun + 60, image, begun + 60, BEGUN + 3 * DAY),
    ]
    intake, events = Intake(), []
    for moment in (0.5, 1.5, 3.5):
        (job,) = turns(store, pods, [moment])
        intake.tell([replace(job, source="prometheus")])
        events += [told.event.kind for told in intake.events(after(moment))]

    assert (job.nodes, job.gpu_kind, job.image, job.told_by_node) == (
        1,
        "NVIDIA-H100",
        "torch:2",
        ("gpu_kind", "image", "nodes"),
    )
    assert events == [EventKind.SUBMITTED, EventKind.STARTED, EventKind.ENDED]
    assert intake.exact
