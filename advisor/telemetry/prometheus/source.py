"""A Prometheus server as a source of jobs: their pods from kube-state-metrics, what they used from dcgm-exporter."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from advisor.domain.ingest import JobBatch, Rejection
from advisor.domain.jobs import Job
from advisor.domain.units import counted
from advisor.domain.usage import GpuUsage
from advisor.errors import Refused
from advisor.settings import PrometheusOptions
from advisor.telemetry.dcgm import normalise
from advisor.telemetry.dcgm.names import QUANTITIES
from advisor.telemetry.dcgm.scales import Pins
from advisor.telemetry.dcgm.tracks import Carried
from advisor.telemetry.dcgm.usage import JobPods, PodSpan, UsageMeter
from advisor.telemetry.gangs import Work, uids_of, work_of
from advisor.telemetry.prometheus.census import gpus_by_node
from advisor.telemetry.prometheus.client import PrometheusClient
from advisor.telemetry.prometheus.kube_history import KubeQuestions, read_kube_records
from advisor.telemetry.prometheus.kube_queries import label_column
from advisor.telemetry.prometheus.kube_records import Watch
from advisor.telemetry.prometheus.ranges import Window
from advisor.telemetry.prometheus.samples import Series
from advisor.telemetry.prometheus.selectors import Selector, any_of
from advisor.telemetry.tally import RejectionTally

__all__ = ["PrometheusSource", "PrometheusTurns"]

Progress = Callable[[str, int, int], None]
"""Told of a stage, and how much of how much of it is done; 0 of 0 where nobody knows."""

_SAMPLES_AT_A_TIME = 2_000_000
_MOST_OPEN = timedelta(days=1)


@dataclass(frozen=True)
class PrometheusSource:
    """Reads the last ``options.days`` of a server; answers the questions of ``Source``.

    ``user_labels`` are labels of pods that name users, as Kubernetes calls them; ``pins`` are units the user knows.
    Pods are always asked about over all those days, and further back where the last reading is longer ago, since what
    became of a job is often told by its earlier pods; samples of devices only over the time of the jobs that have ended
    since the last reading.
    """

    client: PrometheusClient
    options: PrometheusOptions
    user_labels: Sequence[str]
    pins: Pins = field(default_factory=Pins)
    progress: Progress | None = None

    @property
    def name(self) -> str:
        """``prometheus``, and the cluster asked for."""
        return _name(self.options)

    def read(self, since: datetime | None, now: datetime) -> JobBatch:
        """Every job that was there after ``since`` and up to ``now``, see :class:`advisor.telemetry.source.Source`.

        Raises:
            Refused: the server will not answer, or has nothing of kube-state-metrics.
            Transient: it cannot be reached now.
        """
        tally, before, begin = RejectionTally(), self.client.rejections, self._begin(since, now)
        asked = KubeQuestions(
            start=begin,
            now=now,
            step_seconds=self.options.step_seconds,
            user_labels=tuple(dict.fromkeys(map(label_column, self.user_labels))),
        )
        self._tell("asking about pods", 0, 0)
        records = read_kube_records(self.client, asked, tally)
        if not records.watch.scrapes.size:
            raise self._nothing_there(begin, now)
        there = gpus_by_node(self.client, records.facts, asked.start, now)
        found = work_of(replace(records, gpus_of_node=there).pods(tally), (), tally)
        news = [work for work in found if _after(work.job, since)]
        usages, dropped = self._usages(news, found, (begin, now))
        return JobBatch(
            source=self.name,
            jobs=tuple(replace(work.job, usage=usages.get(work.job.id)) for work in news),
            rejections=(*tally.rejections(), *dropped, *_further(before, self.client.rejections)),
            watermark=now,
            notes=self.client.notes,
            overlapping=True,
            accounts={work.job.id: work.account for work in news},
            reaches_back_to=begin,
            seen_at=_open_at(records.watch),
            pods=uids_of(news),
        )

    def _nothing_there(self, begin: datetime, now: datetime) -> Refused:
        """Why nothing of kube-state-metrics was found: the cluster asked for, or the server itself."""
        options, span = self.options, f"in the last {counted(self.options.days, 'day')}"
        wrong = self.client.wrong_cluster(begin, now)
        if wrong is not None:
            return Refused("cluster", options.cluster, *wrong)
        limit = f"it has no samples of kube-state-metrics {span}"
        return Refused("prometheus.url", options.url, limit, "Run gsa doctor prometheus to see what it has.")

    def _begin(self, since: datetime | None, now: datetime) -> datetime:
        """From when pods are asked about: what was open at the last reading is told of however long that is ago."""
        days = now - timedelta(days=self.options.days)
        return days if since is None else min(days, since - _MOST_OPEN)

    def _usages(
        self, news: Sequence[Work], found: Sequence[Work], span: tuple[datetime, datetime]
    ) -> tuple[dict[str, GpuUsage], tuple[Rejection, ...]]:
        """What the ended among the ``news`` did with their GPUs, and samples that had to be dropped."""
        ended = [work for work in news if work.job.gone_at is not None and work.job.start is not None]
        if not ended:
            return {}, ()
        begin = max(min(_started(work.job) for work in ended), span[0])
        end = min(max(_gone(work.job) for work in ended) + timedelta(seconds=self.options.step_seconds), span[1])
        if end <= begin:
            # All of them ended before what is read, and only their pods are still told of.
            return {}, ()
        meter = UsageMeter(self.options.step_seconds)
        # Those that still run, or ended long ago, are known too: they are no strangers on the devices they share.
        meter.know(_pods_of(work) for work in found if work.job.start is not None)
        dropped = RejectionTally()
        carried = Carried()
        for series in self._device_series(begin, end):
            chunk = normalise(series, carried, self.pins)
            carried = chunk.carried
            meter.feed(chunk)
            for each in chunk.rejections:
                dropped.add(each.reason, each.example, each.count)
        usages = {work.job.id: usage for work in ended if (usage := meter.take(work.job.id)) is not None}
        return usages, dropped.rejections()

    def _device_series(self, begin: datetime, end: datetime) -> Iterator[list[Series]]:
        """The series of all devices, chunk by chunk, in order of time."""
        window = Window.over(begin, end, self.options.step_seconds)
        every = Selector(any_of(sorted(QUANTITIES)))
        names = self.client.series_names([every], begin, end)
        if not names:
            return
        # One metric a query: over-time functions drop the name on some servers.
        queries = [f"last_over_time({self.client.text(Selector(name))}[{window.step}s])" for name in names]
        points = max(_SAMPLES_AT_A_TIME // max(self._devices(names, end), 1), 60)
        done = 0
        for answers in self.client.ranges(queries, window, points):
            done = min(done + points, window.points)
            self._tell("reading devices", done, window.points)
            yield [_named(series, name) for name, answer in zip(names, answers, strict=True) for series in answer]

    def _devices(self, names: Sequence[str], at: datetime) -> int:
        """About how many series all the metrics have at one moment."""
        told = self.client.instant(f"count({self.client.text(Selector(any_of(names)))})", at)
        return int(told[0].values[0]) if told else 0

    def _tell(self, stage: str, done: int, of: int) -> None:
        if self.progress is not None:
            self.progress(stage, done, of)


@dataclass(frozen=True, slots=True)
class PrometheusTurns:
    """The same source for a process that stays: each reading has a client of its own.

    What a client has remarked and dropped is then that of one reading; secrets are read anew, and the server is asked
    anew what it is.
    """

    options: PrometheusOptions
    user_labels: Sequence[str]
    pins: Pins = field(default_factory=Pins)

    @property
    def name(self) -> str:
        """That of :class:`PrometheusSource`."""
        return _name(self.options)

    def read(self, since: datetime | None, now: datetime) -> JobBatch:
        """As :meth:`PrometheusSource.read`."""
        with PrometheusClient(self.options) as client:
            return PrometheusSource(client, self.options, self.user_labels, self.pins).read(since, now)


def _name(options: PrometheusOptions) -> str:
    return "prometheus" if options.cluster is None else f"prometheus/{options.cluster}"


def _further(before: Sequence[Rejection], now: Sequence[Rejection]) -> Iterator[Rejection]:
    """What was left out since ``before``: a client that stays counts on."""
    counted = {each.reason: each.count for each in before}
    for each in now:
        count = each.count - counted.get(each.reason, 0)
        if count:
            yield replace(each, count=count)


def _named(series: Series, name: str) -> Series:
    return Series({**series.labels, "__name__": name}, series.times, series.values)


def _open_at(watch: Watch) -> datetime:
    """When pods without an end were there for certain: about the last look."""
    return datetime.fromtimestamp(float(watch.scrapes[-1]) - 0.5 * watch.interval, UTC)


def _after(job: Job, since: datetime | None) -> bool:
    gone = job.gone_at
    return since is None or gone is None or gone > since - _MOST_OPEN


def _started(job: Job) -> datetime:
    return job.submit if job.start is None else job.start


def _gone(job: Job) -> datetime:
    return job.submit if job.gone_at is None else job.gone_at


def _pods_of(work: Work) -> JobPods:
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
    return JobPods(work.job.id, tuple(spans), work.job.gpus)
