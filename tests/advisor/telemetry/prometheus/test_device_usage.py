"""What jobs did with their GPUs, added up turn after turn: the same as read at once, and no sample asked for twice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import timedelta

import httpx
import pytest

from advisor.domain.ingest import JobBatch
from advisor.domain.usage import GpuUsage
from advisor.errors import Transient
from advisor.settings import PrometheusOptions
from advisor.telemetry.dcgm.scales import Pins
from advisor.telemetry.prometheus.client import PrometheusClient
from advisor.telemetry.prometheus.device_usage import DeviceUsage
from advisor.telemetry.prometheus.source import PrometheusSource, PrometheusTurns
from tests.builders import NOON
from tests.metrics_server import MetricsStandIn, Told, a_node_told, a_pod_told, serving

BEGUN, DAY, HOUR, STEP = NOON.timestamp(), 86_400.0, 3600.0, 600


def a_busy_pod(name: str, begin: float, end: float, *loads: float, **more: str) -> list[Told]:
    """A pod with a GPU of its own from day to day, whose load (in percent) changes in equal parts of its life."""
    device = {"UUID": f"GPU-{name}", "Hostname": "n1", "DCGM_FI_DRIVER_VERSION": "550", "namespace": "ml", "pod": name}
    edges = [BEGUN + DAY * (begin + (end - begin) * part / len(loads)) for part in range(len(loads) + 1)]
    told = a_pod_told(name, edges[0], edges[-1], more.pop("owner", f"Job/{name}"), **more)
    for load, first, last in zip(loads, edges, edges[1:], strict=False):
        told += [Told("DCGM_FI_DEV_GPU_UTIL", load, device, first, last - 1.0)]
    return told


@dataclass
class Counting(MetricsStandIn):
    """Keeps every stamp at which values of devices were asked for; ``breaks`` at the requests of these numbers."""

    stamps: list[int] = field(default_factory=list)
    breaks: Sequence[int] = ()
    asked: int = 0

    def answer(self, path: str, form: dict[str, list[str]]) -> tuple[int, bytes]:
        if path.endswith("query_range") and "DCGM" in form["query"][0] and form["step"] == [str(STEP)]:
            self.asked += 1
            if self.asked in self.breaks:
                raise httpx.ReadError("gone")
            start, end, step = (int(form[key][0]) for key in ("start", "end", "step"))
            self.stamps += range(start, end + step, step)
        return super().answer(path, form)


class Turns:
    """A process that reads again and again; ``days`` is how far back it looks."""

    def __init__(self, series: Sequence[Told], *, days: float = 12.0, breaks: Sequence[int] = ()) -> None:
        self.server = Counting([*a_node_told(), *series], breaks=breaks)
        self.options = PrometheusOptions.model_validate(
            {"url": "http://127.0.0.1:9090", "flavour": "prometheus", "days": days, "step_seconds": STEP, "retries": 0}
        )
        self.since: float | None = None
        self.usage = DeviceUsage(STEP, Pins(), stays=True)
        self.known: dict[str | None, GpuUsage] = {}

    def read(self, day: float) -> JobBatch:
        client = PrometheusClient(self.options, transport=self.server.transport(), sleep=lambda _: None)
        since = None if self.since is None else NOON + timedelta(days=self.since)
        batch = PrometheusSource(client, self.options, (), usage=self.usage).read(since, NOON + timedelta(days=day))
        self.since = day
        self.known |= used(batch)
        return batch


def used(batch: JobBatch) -> dict[str | None, GpuUsage]:
    """By the name of the job; sums of the same samples in other pieces differ in their last bit."""
    found = {job.name: job.usage for job in batch.jobs if job.usage is not None}
    return {name: replace(one, compute_mean=round(one.compute_mean or 0.0, 9)) for name, one in found.items()}


def at_once(series: Sequence[Told], day: float) -> dict[str | None, GpuUsage]:
    return used(Turns(series).read(day))


HOURLY = [f"short-{number}" for number in range(8)]
SERIES = [
    *a_busy_pod("long", 0.0, 10.0, 20, 60, 100),
    *(told for number, name in enumerate(HOURLY) for told in a_busy_pod(name, 9 + number / 24, 9.03 + number / 24, 50)),
    *a_busy_pod("other", 9.5, 10.4, 30, 90),
]


def test_turns_add_up_what_one_reading_does_and_ask_for_every_sample_once():
    turns = Turns(SERIES)
    for number in range(24):
        turns.read(9.0 + number / 12)

    assert turns.known == at_once(SERIES, 11.0)
    assert turns.known["long"].compute_mean == pytest.approx(0.6, abs=0.001)
    stamps = sorted(turns.server.stamps)
    twice = len(stamps) - len(set(stamps))
    # Those of the short jobs were asked for before the long one ended, which had begun before them all.
    assert twice <= 1.1 * DAY / STEP
    assert len(stamps) <= (11.5 + 1.1) * DAY / STEP


def test_the_day_after_the_end_of_a_long_job_costs_its_own_samples_alone():
    turns = Turns(SERIES)
    turns.read(10.01)
    first = len(turns.server.stamps)
    assert first >= 10 * DAY / STEP

    batches = [turns.read(10.01 + number / 288) for number in range(1, 13)]

    assert len(turns.server.stamps) - first <= 12 / 288 * DAY / STEP + 1
    # It is told of each time, since a turn before may not have come into the history.
    assert {used(batch)["long"] for batch in batches} == {turns.known["long"]}


def test_what_goes_on_is_read_on_where_the_last_reading_stopped():
    turns = Turns(SERIES)
    turns.read(10.01)
    first = len(turns.server.stamps)

    turns.read(10.5)

    new = turns.server.stamps[first:]
    assert turns.known["other"] == at_once(SERIES, 10.5)["other"]
    assert min(new) == max(turns.server.stamps[:first]) + STEP
    assert len(new) <= 0.5 * DAY / STEP + 1


def test_a_server_that_goes_away_costs_no_sample_and_counts_none_twice():
    breaking = Turns(SERIES, breaks=(2,))
    breaking.read(9.1)
    with pytest.raises(Transient):
        breaking.read(10.01)
    breaking.read(10.5)
    assert breaking.known == at_once(SERIES, 10.5)


def test_a_gang_that_is_called_otherwise_once_its_first_pods_have_gone_keeps_what_it_did():
    series = [
        *a_busy_pod("a", 0, 3, 100, owner="PyTorchJob/bert"),
        *a_busy_pod("b", 2, 9, 20, owner="PyTorchJob/bert"),
        *a_busy_pod("early", 0, 0.5, 10),
    ]
    turns = Turns(series, days=5.0)
    for number in range(21):
        turns.read(0.6 + number / 2)
    ids = {job.id for job in Turns(series, days=5.0).read(9.5).jobs if job.name == "bert"}

    assert ids != {job.id for job in Turns(series).read(9.5).jobs if job.name == "bert"}
    assert turns.known["bert"] == at_once(series, 9.5)["bert"]
    assert turns.known["bert"].compute_mean == pytest.approx(0.44, abs=0.001)


def test_a_job_that_had_vanished_and_is_back_is_measured_whole():
    told = a_busy_pod("train", 0, 3, 20, 100)
    away = (BEGUN + 1.01 * DAY, BEGUN + 1.2 * DAY)
    series = [
        part
        for each in told
        for part in (
            [each]
            if each.metric.startswith("DCGM")
            else [replace(each, end=min(each.end, away[0])), replace(each, begin=max(each.begin, away[1]))]
        )
        if part.begin < part.end
    ]
    turns = Turns(series)
    for day in (1.1, 1.3, 3.5):
        turns.read(day)
    assert turns.known == at_once(series, 3.5)


def test_reading_twice_tells_the_same_in_a_process_that_stays():
    with serving(MetricsStandIn([*a_node_told(), *SERIES, Told("DCGM_FI_DEV_GPU_UTIL", 4e9, {"UUID": "x"})])) as server:
        options = PrometheusOptions.model_validate(
            {"url": server.url, "flavour": "prometheus", "days": 2.0, "step_seconds": STEP}
        )
        turns = PrometheusTurns.of(options, (), Pins())
        now = NOON + timedelta(days=10.01)
        first = turns.read(None, now)
        assert any(each.reason == "out_of_range" for each in first.rejections)
        assert turns.read(None, now) == first


@pytest.mark.parametrize("count", ["NaN", "+Inf", "-1"])
def test_a_count_of_devices_that_is_no_number_is_unknown_and_counted(count):
    class Odd(MetricsStandIn):
        def answer(self, path: str, form: dict[str, list[str]]) -> tuple[int, bytes]:
            status, body = super().answer(path, form)
            if form.get("query", [""])[0].startswith("count(") and path.endswith("/query"):
                odd = b'[{"metric": {}, "value": [1, "%s"]}]' % count.encode()
                body = b'{"status": "success", "data": {"resultType": "vector", "result": ' + odd + b"}}"
            return status, body

    turns = Turns([])
    turns.server = Odd([*a_node_told(), *SERIES])

    batch = turns.read(10.5)

    assert turns.known == at_once(SERIES, 10.5)
    assert [(each.reason, each.count) for each in batch.rejections] == [("value_is_no_number", 1)]
    assert "count" in batch.rejections[0].example
