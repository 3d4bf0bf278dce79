"""Reading a metrics server again and again, against reading it once."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

from advisor.domain.jobs import Job, Outcome
from advisor.settings import PrometheusOptions
from advisor.telemetry.prometheus.client import PrometheusClient
from advisor.telemetry.prometheus.source import PrometheusSource
from tests.builders import NOON
from tests.metrics_server import MetricsStandIn, Told, a_job_told, a_node_told

NOW, DAY = NOON.timestamp(), 86_400.0


def read(series: list[Told], since: timedelta | None, **more: object) -> dict[str | None, Job]:
    options = PrometheusOptions.model_validate(
        {"url": "http://127.0.0.1:9090", "flavour": "prometheus", "days": 5.0, "step_seconds": 600, **more}
    )
    client = PrometheusClient(options, transport=MetricsStandIn([*a_node_told(), *series]).transport())
    batch = PrometheusSource(client, options, ()).read(None if since is None else NOON - since, NOON)
    return {job.name: job for job in batch.jobs}


def test_what_was_open_when_a_reader_went_away_for_longer_than_it_looks_back_is_told_of():
    told = a_job_told(NOW - 12 * DAY, 0.5 * DAY)
    gone = [replace(each, end=min(each.end, NOW - 11 * DAY)) for each in told]
    watched = [Told("kube_node_info", 1, {"node": "n1"})]

    assert read([*gone, *watched], None) == {}
    found = read([*gone, *watched], timedelta(days=11.8))

    assert found["train"].outcome is Outcome.COMPLETED
    assert found["train"].end == NOON - timedelta(days=11.5)


def test_jobs_that_all_ended_before_what_is_read_are_told_of_while_their_pods_stay():
    """A quiet weekend: what is left of the jobs before it are their pods."""
    pod = {"uid": "uid-train", "namespace": "ml", "pod": "train-0"}
    started = Told("kube_pod_start_time", NOW - 3 * DAY + 60, pod, NOW - 3 * DAY)

    found = read([*a_node_told(), *a_job_told(NOW - 3 * DAY, 0.5 * DAY), started], None, days=1.0)

    assert found["train"].end == NOON - timedelta(days=2.5)
    assert found["train"].usage is None


def test_a_job_that_ended_long_before_the_last_reading_is_no_stranger_on_the_device_it_had():
    series = [
        *a_job_told(NOW - 3 * DAY, 0.5 * DAY, "before", "GPU-a"),
        *a_job_told(NOW - 6 * 3600.0, 5 * 3600.0, "after", "GPU-a"),
    ]

    once, again = read(series, None), read(series, timedelta(minutes=5))

    assert list(again) == ["after"]
    assert again["after"].usage == once["after"].usage
    assert again["after"].usage is not None
    assert not again["after"].usage.estimated
