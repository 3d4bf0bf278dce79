"""A Prometheus server as a source of jobs: their pods from kube-state-metrics, what they used from dcgm-exporter."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from advisor.domain.ingest import JobBatch
from advisor.domain.jobs import Job
from advisor.domain.units import counted
from advisor.domain.usage import GpuUsage
from advisor.errors import Refused, sentences
from advisor.settings import PrometheusOptions
from advisor.telemetry.dcgm.scales import Pins
from advisor.telemetry.gangs import Work, uids_of, work_of
from advisor.telemetry.prometheus.census import gpus_by_node
from advisor.telemetry.prometheus.client import PrometheusClient
from advisor.telemetry.prometheus.clusters import clusters_seen
from advisor.telemetry.prometheus.device_usage import DeviceUsage, Known, Progress
from advisor.telemetry.prometheus.kube_history import KubeQuestions, read_kube_records
from advisor.telemetry.prometheus.kube_queries import label_column
from advisor.telemetry.prometheus.kube_records import Watch
from advisor.telemetry.tally import RejectionTally, further

__all__ = ["PrometheusSource", "PrometheusTurns"]

_MOST_OPEN = timedelta(days=1)


@dataclass(frozen=True)
class PrometheusSource:
    """Reads the last ``options.days`` of a server; answers the questions of ``Source``.

    ``user_labels`` are labels of pods that name users, as Kubernetes calls them; ``pins`` are units the user knows.
    Pods are always asked about over all those days, and further back where the last reading is longer ago, since what
    became of a job is often told by its earlier pods; samples of devices only over the time of the jobs that have ended
    since the last reading, and of those only what ``usage`` has not added up before.
    """

    client: PrometheusClient
    options: PrometheusOptions
    user_labels: Sequence[str]
    pins: Pins = field(default_factory=Pins)
    progress: Progress | None = None
    usage: DeviceUsage | None = None

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
        for each in further(before, self.client.rejections):
            tally.add(each.reason, each.example, each.count)
        end = now if self.usage is None else min(now, _last_look(records.watch))
        usages = self._usages(news, Known(found, begin, end), tally)
        return JobBatch(
            source=self.name,
            jobs=tuple(replace(work.job, usage=usages.get(work.job.id)) for work in news),
            rejections=tally.rejections(),
            watermark=now,
            notes=(*self.client.notes, *self._mixture(begin, now)),
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

    def _mixture(self, begin: datetime, now: datetime) -> Iterator[str]:
        """That several clusters were read as one, where they were."""
        seen = clusters_seen(self.client, begin, now)
        if seen.mixed:
            yield sentences(f"clusters read as one: {seen}, so that {seen.costs}", seen.remedy)

    def _begin(self, since: datetime | None, now: datetime) -> datetime:
        """From when pods are asked about: what was open at the last reading is told of however long that is ago."""
        days = now - timedelta(days=self.options.days)
        return days if since is None else min(days, since - _MOST_OPEN)

    def _usages(self, news: Sequence[Work], known: Known, tally: RejectionTally) -> dict[str, GpuUsage]:
        """What the ended among the ``news`` did with their GPUs; samples that had to be dropped are counted."""
        ended = [work for work in news if work.job.gone_at is not None and work.job.start is not None]
        usage = DeviceUsage(self.options.step_seconds, self.pins, stays=False) if self.usage is None else self.usage
        usages, dropped = usage.of(self.client, ended, known, self.progress)
        for each in dropped:
            tally.add(each.reason, each.example, each.count)
        return usages

    def _tell(self, stage: str, done: int, of: int) -> None:
        if self.progress is not None:
            self.progress(stage, done, of)


@dataclass(frozen=True, slots=True)
class PrometheusTurns:
    """The same source for a process that stays: each reading has a client of its own.

    What a client has remarked and dropped is then that of one reading; secrets are read anew, and the server is asked
    anew what it is. What jobs do with their GPUs is added up from reading to reading.
    """

    options: PrometheusOptions
    user_labels: Sequence[str]
    usage: DeviceUsage
    pins: Pins = field(default_factory=Pins)

    @classmethod
    def of(cls, options: PrometheusOptions, user_labels: Sequence[str], pins: Pins) -> PrometheusTurns:
        """Turns of a process that begins."""
        return cls(options, user_labels, DeviceUsage(options.step_seconds, pins, stays=True), pins)

    @property
    def name(self) -> str:
        """That of :class:`PrometheusSource`."""
        return _name(self.options)

    def read(self, since: datetime | None, now: datetime) -> JobBatch:
        """As :meth:`PrometheusSource.read`."""
        with PrometheusClient(self.options) as client:
            source = PrometheusSource(client, self.options, self.user_labels, self.pins, usage=self.usage)
            return source.read(since, now)


def _name(options: PrometheusOptions) -> str:
    return "prometheus" if options.cluster is None else f"prometheus/{options.cluster}"


def _last_look(watch: Watch) -> datetime:
    """Up to when everything is known of pods."""
    return datetime.fromtimestamp(float(watch.scrapes[-1]), UTC)


def _open_at(watch: Watch) -> datetime:
    """When pods without an end were there for certain: about the last look."""
    return _last_look(watch) - timedelta(seconds=0.5 * watch.interval)


def _after(job: Job, since: datetime | None) -> bool:
    gone = job.gone_at
    return since is None or gone is None or gone > since - _MOST_OPEN
