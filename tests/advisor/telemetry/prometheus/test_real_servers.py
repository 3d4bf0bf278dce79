"""What real servers answer: Debian's Prometheus, and VictoriaMetrics beside it."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from advisor.errors import Refused, Transient
from advisor.settings import PrometheusOptions
from advisor.telemetry.prometheus.client import PrometheusClient
from advisor.telemetry.prometheus.ranges import Window
from advisor.telemetry.prometheus.selectors import Matcher, Selector, any_of
from tests.servers.processes import ServerProcess

pytestmark = pytest.mark.prometheus

STEP = 60
START = int(datetime(2026, 10, 1, tzinfo=UTC).timestamp())
END = START + 8 * 86_400
STAMPS = np.arange(START, END + STEP, STEP)
SEVEN_PAST = datetime.fromtimestamp(START + 7, UTC)
# VictoriaMetrics 1.79 does not find a series' only sample at its very moment.
AFTER = datetime.fromtimestamp(END + 1, UTC)
EIGHT_DAYS = timedelta(days=8)
ODD = ['a"b', "a\\b", "a\nb", "{a}", "ünï", "a|b", "a b", ".*", "\t", "'`", "a\\nb"]


def _load(index: np.ndarray) -> np.ndarray:
    """A value that tells its stamp."""
    return index % 101 / 100


def _lines() -> Iterator[str]:
    for gpu in range(2):
        for index, at in enumerate(STAMPS):
            yield f'DCGM_FI_DEV_GPU_UTIL{{UUID="GPU-{gpu}",cluster="c{gpu}"}} {index % 101 / 100 + gpu} {at}'
    for number, value in enumerate(ODD):
        text = value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        yield f'odd{{pod="{text}"}} {number} {END}'
    for kind in ("NaN", "+Inf", "-Inf"):
        yield f'edge{{kind="{kind}"}} {kind} {END}'


@pytest.fixture(scope="module")
def prometheus(prometheus_servers) -> ServerProcess:
    return prometheus_servers.load(_lines())


@pytest.fixture(scope="module")
def victoria(victoria_servers) -> ServerProcess:
    return victoria_servers.load(_lines())


@pytest.fixture(scope="module", params=["prometheus", "victoria"])
def server(request) -> ServerProcess:
    return request.getfixturevalue(request.param)


def _client(server: ServerProcess, **more) -> PrometheusClient:
    return PrometheusClient(PrometheusOptions.model_validate({"url": server.url, **more}))


def _joined(client: PrometheusClient, window: Window, most_points: int = 11_001):
    """Times and values by GPU, as they come."""
    found: dict[str, list] = {}
    for chunk in client.range(Selector("DCGM_FI_DEV_GPU_UTIL"), window, most_points):
        for series in chunk:
            found.setdefault(series.labels["UUID"], []).append(series)
    return {
        gpu: (np.concatenate([one.times for one in parts]), np.concatenate([one.values for one in parts]))
        for gpu, parts in found.items()
    }


def test_eight_days_at_a_minute_are_every_stored_sample_once_and_the_same_ten_seconds_later(server):
    """Field report A10, by a real server: 11,521 stamps, none twice, the same values when asked again."""
    with _client(server) as client:
        first = _joined(client, Window.over(SEVEN_PAST, SEVEN_PAST + EIGHT_DAYS, STEP))
        later = SEVEN_PAST + timedelta(seconds=10)
        again = _joined(client, Window.over(later, later + EIGHT_DAYS, STEP))

    assert sorted(first) == ["GPU-0", "GPU-1"]
    for number, gpu in enumerate(sorted(first)):
        times, values = first[gpu]
        assert len(times) == 11_521
        np.testing.assert_array_equal(times, STAMPS)
        np.testing.assert_allclose(values, _load(np.arange(len(STAMPS))) + number, rtol=1e-12)
        np.testing.assert_array_equal(again[gpu], first[gpu])


def test_smaller_chunks_hold_the_same_samples(server):
    window = Window(START, START + 999 * STEP, STEP)
    with _client(server) as client:
        whole, cut = _joined(client, window), _joined(client, window, 7)

    for gpu, samples in whole.items():
        np.testing.assert_array_equal(cut[gpu], samples)


def test_one_point_more_than_the_limit_would_be_refused(prometheus):
    """Field report A10: the limit that the chunks keep to is the server's own."""
    with _client(prometheus) as client:
        form = {"query": "vector(1)", "start": "0", "step": "1"}
        assert client._series("query_range", {**form, "end": "11000"})[0].times.size == 11_001
        with pytest.raises(Refused, match=r"11,000 points"):
            client._series("query_range", {**form, "end": "11001"})


def test_an_answer_larger_than_the_server_allows_is_fetched_in_parts(prometheus_servers):
    server = prometheus_servers.load(_lines(), "--query.max-samples=3000")
    window = Window(START, START + 3999 * STEP, STEP)

    with _client(server) as client:
        chunks = list(client.range(Selector("DCGM_FI_DEV_GPU_UTIL"), window))

    assert [len(chunk) for chunk in chunks] == [2]
    for series in chunks[0]:
        np.testing.assert_array_equal(series.times, window.stamps())


def test_labels_of_any_text_are_found_by_value_and_by_set(server):
    with _client(server) as client:
        for number, value in enumerate(ODD):
            (series,) = client.instant(Selector("odd", (Matcher("pod", "=", value),)), AFTER)
            assert (series.labels["pod"], series.values.tolist()) == (value, [number])
        found = client.instant(Selector("odd", (Matcher("pod", "=~", any_of(ODD[:6])),)), AFTER)

    assert sorted(series.labels["pod"] for series in found) == sorted(ODD[:6])


def test_only_the_cluster_asked_for_is_read(server):
    with _client(server, cluster="c1") as client:
        found = _joined(client, Window(START, START + 600, STEP))
        names = client.label_values("UUID", [Selector("DCGM_.*")], SEVEN_PAST, SEVEN_PAST + EIGHT_DAYS)

    assert list(found) == names == ["GPU-1"]


def test_names_of_metrics_are_those_with_series(server):
    with _client(server) as client:
        names = client.series_names([Selector("DCGM_.*"), Selector("odd")], SEVEN_PAST, SEVEN_PAST + EIGHT_DAYS)

    assert names == ["DCGM_FI_DEV_GPU_UTIL", "odd"]


def test_a_query_longer_than_an_address_may_be_is_answered(server):
    pattern = any_of(f"GPU-{number}" for number in range(1000))
    with _client(server) as client:
        found = client.instant(Selector("DCGM_FI_DEV_GPU_UTIL", (Matcher("UUID", "=~", pattern),)), AFTER)

    assert len(found) == 2


def test_stored_infinities_and_nan_are_values(prometheus):
    with _client(prometheus) as client:
        found = client.instant(Selector("edge"), AFTER)

    values = {series.labels["kind"]: series.values[0] for series in found}
    assert math.isnan(values["NaN"])
    assert (values["+Inf"], values["-Inf"]) == (math.inf, -math.inf)


def test_a_wrong_query_is_refused_with_the_servers_words(server):
    with _client(server) as client, pytest.raises(Refused, match=r"unexpected|unparsed"):
        client.instant("up{", SEVEN_PAST)


def test_each_server_says_what_it_is(prometheus, victoria):
    with _client(prometheus) as first, _client(victoria) as second:
        assert first.build_info().flavour == "prometheus"
        assert (first.build_info().version or "")[0] in "23"
        assert second.build_info().flavour == "victoriametrics"


def test_a_range_goes_on_where_a_server_was_killed_and_came_back(prometheus_servers):
    server = prometheus_servers.load(_lines())
    coming_back = threading.Lock()
    pauses: list[float] = []

    def sleep(seconds: float) -> None:
        with coming_back:
            pauses.append(seconds)
            if not server.running:
                server.start()

    options = PrometheusOptions(url=server.url, concurrency=2)
    with PrometheusClient(options, sleep=sleep) as client:
        chunks = client.range(Selector("DCGM_FI_DEV_GPU_UTIL", (Matcher("UUID", "=", "GPU-0"),)), _whole(), 1000)
        parts = [next(chunks)]
        server.stop(at_once=True)
        parts += list(chunks)

    assert pauses
    np.testing.assert_array_equal(np.concatenate([series.times for (series,) in parts]), STAMPS)


def test_a_server_that_stays_away_is_transient(prometheus_servers):
    server = prometheus_servers.load(_lines())
    client = PrometheusClient(PrometheusOptions(url=server.url, retries=3), sleep=lambda _: None)
    with client:
        client.build_info()
        server.stop(at_once=True)
        with pytest.raises(Transient, match="asked 4 times"):
            list(client.range("up", _whole()))


def _whole() -> Window:
    return Window(START, END, STEP)
