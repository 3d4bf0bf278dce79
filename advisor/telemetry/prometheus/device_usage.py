"""What ended jobs did with their GPUs, from samples of which each is asked for once, however often one reads."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import NamedTuple, TypeAlias

from advisor.domain.accounts import EndTold
from advisor.domain.ingest import Rejection
from advisor.domain.jobs import Job
from advisor.domain.usage import GpuUsage
from advisor.telemetry.dcgm import normalise
from advisor.telemetry.dcgm.names import QUANTITIES
from advisor.telemetry.dcgm.scales import Pins
from advisor.telemetry.dcgm.tracks import Carried
from advisor.telemetry.dcgm.usage import JobPods, PodSpan, UsageMeter
from advisor.telemetry.gangs import Work
from advisor.telemetry.prometheus.client import PrometheusClient
from advisor.telemetry.prometheus.ranges import Window
from advisor.telemetry.prometheus.samples import Series
from advisor.telemetry.prometheus.selectors import Selector, any_of
from advisor.telemetry.tally import RejectionTally, further

__all__ = ["DeviceUsage", "Known", "Progress"]

Progress: TypeAlias = Callable[[str, int, int], None]
"""Told of a stage, and how much of how much of it is done."""

_SAMPLES_AT_A_TIME = 2_000_000
_LEAST_POINTS = 60


class Known(NamedTuple):
    """What is known when usage is asked for: all work ``found``, and between which two moments that is complete."""

    found: Sequence[Work]
    begin: datetime
    end: datetime


class _Measured(NamedTuple):
    """What a job that ran from ``start`` until it was ``gone`` did with its GPUs; None where that was never shown.

    It is not ``whole`` while its last samples are still to come; ``told`` is who told its end.
    """

    start: datetime
    gone: datetime
    told: EndTold
    usage: GpuUsage | None
    whole: bool


@dataclass(slots=True)
class _Metered:
    """A meter that was fed all samples from ``begun`` on, up to the stamp ``fed`` (Unix seconds)."""

    meter: UsageMeter
    begun: datetime
    fed: int | None = None
    carried: Carried = field(default_factory=Carried)
    dropped: RejectionTally = field(default_factory=RejectionTally)
    broken: bool = False


class DeviceUsage:
    """Adds up what jobs do while they run, so that one that ends after weeks is known by its last samples.

    Whoever keeps it from reading to reading asks for no sample twice, but where a job ends that had begun before the
    first sample asked for, or that had vanished and is back: then all are asked for from its start on, once.
    """

    def __init__(self, step_seconds: int, pins: Pins, *, stays: bool) -> None:
        """Samples are taken every ``step_seconds``; ``pins`` are units the user knows.

        ``stays``: it is asked again and again. It then reads on at every reading, while pods are known.
        """
        self._step = step_seconds
        self._pins = pins
        self._stays = stays
        self._metered: _Metered | None = None
        self._measured: dict[str, _Measured] = {}
        self._keys: dict[str, str] = {}

    def of(
        self, client: PrometheusClient, ended: Sequence[Work], known: Known, progress: Progress | None
    ) -> tuple[dict[str, GpuUsage], tuple[Rejection, ...]]:
        """The usage of the ``ended`` jobs by id, and the samples that had to be dropped since the meter began.

        Raises:
            Refused, Transient: as the client says; what was read until then is kept.
        """
        self._name(known.found)
        asked = [work for work in ended if not self._is_measured(work)]
        back = [work for work in asked if self._had_vanished(work)]
        others = [work for work in asked if not self._had_vanished(work)]
        if back:
            self._measure(_Metered(UsageMeter(self._step), _begin(back, known)), client, back, known, progress)
        if others or (self._stays and self._metered is not None):
            self._measure(self._going_on(others, known), client, others, known, progress)
        self._let_go(ended, known.found)
        found = {work.job.id: self._measured.get(self._key(work)) for work in ended}
        usages = {job: one.usage for job, one in found.items() if one is not None and one.usage is not None}
        return usages, () if self._metered is None else self._metered.dropped.rejections()

    def _is_measured(self, work: Work) -> bool:
        """Whether all samples of its life were added up."""
        measured = self._measured.get(self._key(work))
        return measured is not None and measured.whole and measured[:2] == _life(work.job)

    def _had_vanished(self, work: Work) -> bool:
        """Whether it was measured as a job that had vanished: what it did since then went to nobody."""
        measured = self._measured.get(self._key(work))
        return measured is not None and measured.told is EndTold.NOBODY and measured[:2] != _life(work.job)

    def _going_on(self, asked: Sequence[Work], known: Known) -> _Metered:
        """The meter that was fed since these began, or a new one."""
        metered = self._metered
        if metered is None or metered.broken or (asked and _begin(asked, known) < metered.begun):
            begin = _begin(asked, known) if asked else known.end
            metered = self._metered = _Metered(UsageMeter(self._step), begin)
        return metered

    def _measure(
        self,
        metered: _Metered,
        client: PrometheusClient,
        asked: Sequence[Work],
        known: Known,
        progress: Progress | None,
    ) -> None:
        """Feed it until the ``asked`` jobs had ended, or as far as is known."""
        end = known.end
        if not self._stays:
            end = min(max(_life(work.job)[1] for work in asked) + timedelta(seconds=self._step), end)
        # Those that still run, or ended long ago, are known too: they are no strangers on the devices they share.
        metered.meter.know(_pods_of(work, self._key(work)) for work in known.found if work.job.start is not None)
        window = _window(metered, end, self._step)
        if window is not None:
            self._feed(metered, client, window, progress)
        for work in asked:
            key, (start, gone) = self._key(work), _life(work.job)
            whole = gone <= known.begin or (metered.fed is not None and metered.fed >= gone.timestamp())
            told = work.account.end_told
            self._measured[key] = _Measured(start, gone, told, metered.meter.usage(key), whole)

    def _let_go(self, ended: Sequence[Work], found: Sequence[Work]) -> None:
        """Add nothing more to jobs that ended and are not asked about any more."""
        asked = {self._key(work) for work in ended}
        over = {key for work in found if work.job.gone_at is not None and (key := self._key(work)) not in asked}
        there = {self._key(work) for work in found} - over
        self._measured = {key: measured for key, measured in self._measured.items() if key in there}
        if self._metered is not None:
            for key in over:
                self._metered.meter.take(key)

    def _feed(self, metered: _Metered, client: PrometheusClient, window: Window, progress: Progress | None) -> None:
        before = client.rejections
        for piece, series in _device_series(client, window, metered.dropped):
            # Whatever breaks here may have added half of a chunk: better all of it once more.
            metered.broken = True
            chunk = normalise(series, metered.carried, self._pins)
            metered.meter.feed(chunk)
            metered.carried, metered.fed, metered.broken = chunk.carried, piece.end, False
            for each in chunk.rejections:
                metered.dropped.add(each.reason, each.example, each.count)
            if progress is not None:
                progress("reading devices", (piece.end - window.start) // window.step + 1, window.points)
        metered.fed = window.end
        for each in further(before, client.rejections):
            metered.dropped.add(each.reason, each.example, each.count)

    def _name(self, found: Collection[Work]) -> None:
        """Call each piece of work as it was called before: the id of a gang may change with its first pods gone."""
        keys: dict[str, str] = {}
        used: set[str] = set()
        for work in found:
            before = (self._keys[pod.uid] for pod in work.pods if pod.uid in self._keys)
            key = next((key for key in before if key not in used), work.job.id)
            used.add(key)
            keys |= {pod.uid: key for pod in work.pods}
        lost = set(self._keys.values()) - used
        if self._metered is not None:
            for key in lost:
                self._metered.meter.forget(key)
        self._keys = keys

    def _key(self, work: Work) -> str:
        return self._keys[work.pods[0].uid] if work.pods else work.job.id


def _begin(asked: Sequence[Work], known: Known) -> datetime:
    """From when on samples are needed."""
    return max(min(_life(work.job)[0] for work in asked), known.begin)


def _life(job: Job) -> tuple[datetime, datetime]:
    """When a job that ended began to run, and when it was gone."""
    begun = job.submit if job.start is None else job.start
    return begun, begun if job.gone_at is None else job.gone_at


def _window(metered: _Metered, end: datetime, step: int) -> Window | None:
    """The stamps that were not fed yet, up to ``end``; None where there are none.

    There are none where all ended before what is read, and only their pods are still told of.
    """
    if metered.fed is None:
        return Window.over(metered.begun, end, step) if end > metered.begun else None
    last = Window.over(end, end, step).end
    return Window(metered.fed + step, last, step) if last > metered.fed else None


def _device_series(
    client: PrometheusClient, window: Window, dropped: RejectionTally
) -> Iterator[tuple[Window, list[Series]]]:
    """The series of all devices, chunk by chunk, in order of time; what the client left out of them is ``dropped``."""
    begin, end = (datetime.fromtimestamp(edge, UTC) for edge in (window.start - window.step, window.end))
    every = Selector(any_of(sorted(QUANTITIES)))
    names = client.series_names([every], begin, end)
    if not names:
        return
    # One metric a query: over-time functions drop the name on some servers.
    queries = [f"last_over_time({client.text(Selector(name))}[{window.step}s])" for name in names]
    devices = _devices(client, names, end, dropped)
    points = _LEAST_POINTS if devices is None else max(_SAMPLES_AT_A_TIME // max(devices, 1), _LEAST_POINTS)
    for piece, answers in zip(window.chunks(points), client.ranges(queries, window, points), strict=False):
        yield piece, [_named(series, name) for name, answer in zip(names, answers, strict=True) for series in answer]


def _devices(client: PrometheusClient, names: Sequence[str], at: datetime, dropped: RejectionTally) -> int | None:
    """About how many series all the metrics have at one moment; None where the server's count is no number."""
    told = client.instant(f"count({client.text(Selector(any_of(names)))})", at)
    if not told:
        return 0
    count = float(told[0].values[0])
    if math.isfinite(count) and count >= 0.0:
        return int(count)
    dropped.add("value_is_no_number", f"the count of the series of all devices: {count:g}")
    return None


def _named(series: Series, name: str) -> Series:
    return Series({**series.labels, "__name__": name}, series.times, series.values)


def _pods_of(work: Work, key: str) -> JobPods:
    spans = [
        PodSpan(
            pod.namespace,
            pod.name,
            pod.uid,
            pod.started.timestamp(),
            None if pod.gone is None else pod.gone.timestamp(),
        )
        for pod in work.pods
        if pod.started is not None
    ]
    return JobPods(key, tuple(spans), work.job.gpus)
