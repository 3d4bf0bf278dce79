"""Which samples are looked up to the second, where hours do not say enough."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

import numpy as np
import pytest

from advisor.telemetry.prometheus.kube_history import KubeQuestions, read_kube_records
from advisor.telemetry.prometheus.ranges import Window
from advisor.telemetry.prometheus.samples import Series
from advisor.telemetry.prometheus.selectors import Selector
from advisor.telemetry.tally import RejectionTally

HOUR = 3600.0
NOW = datetime.fromtimestamp(10 * HOUR, UTC)
POD = {"uid": "u1", "namespace": "ml", "pod": "train-0"}


class OnePod:
    """A server that knows one pod, shown each minute of five hours, and when its node was said to be lost."""

    def __init__(self, lost: Sequence[float]) -> None:
        minutes = np.arange(60.0, 5 * HOUR, 60.0)
        self._series = {
            "kube_pod_status_phase": self._of(minutes, phase="Running"),
            "kube_pod_status_reason": self._of(minutes, np.isin(minutes, lost).astype(float), reason="NodeLost"),
        }

    def _of(self, times: np.ndarray, values: np.ndarray | None = None, **labels: str) -> Series:
        return Series({**POD, **labels}, times, np.ones_like(times) if values is None else values)

    def ranges(self, queries: Sequence[str], window: Window) -> Iterator[tuple[list[Series], ...]]:
        del window
        yield tuple(self._hourly(query) for query in queries)

    def _hourly(self, query: str) -> list[Series]:
        found = [series for metric, series in self._series.items() if f"({metric}" in query]
        hours = np.arange(HOUR, 6 * HOUR, HOUR)
        return [
            Series(
                one.labels,
                hours,
                np.array([one.values[(one.times > h - HOUR) & (one.times <= h)].max() for h in hours]),
            )
            for one in found
        ]

    def instant(self, query: str, at: datetime) -> list[Series]:
        metric, _, rest = query.partition("[")
        if metric not in self._series:
            return []
        one, seconds = self._series[metric], float(rest.removesuffix("s]"))
        kept = (one.times > at.timestamp() - seconds) & (one.times <= at.timestamp())
        return [Series(one.labels, one.times[kept], one.values[kept])]

    def text(self, selector: Selector) -> str:
        return selector.metric

    def last_stamp(self, selector: Selector, seconds: int) -> str:
        return f"stamp of {selector.metric} in {seconds}"


@pytest.mark.parametrize(
    "lost, first",
    [
        # It stays lost over hours, up to the last sample of all.
        (np.arange(2.5 * HOUR, 5 * HOUR, 60.0), {"u1": 2.5 * HOUR}),
        # The node came back, and its pod with it.
        (np.arange(2.5 * HOUR, 3 * HOUR, 60.0), {}),
        ((), {}),
    ],
)
def test_a_node_is_lost_from_when_that_is_told_and_until_it_is_no_longer(lost, first):
    asked = KubeQuestions(start=datetime.fromtimestamp(0, UTC), now=NOW, step_seconds=60)
    records = read_kube_records(OnePod(lost), asked, RejectionTally())
    assert records.last_seen == {"u1": 5 * HOUR - 60}
    assert records.first_lost == first
