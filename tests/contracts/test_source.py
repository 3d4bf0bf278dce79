"""What every source of job events promises, run over all of them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from advisor.clock import ManualClock
from advisor.cluster.reflector import Pace
from advisor.history.store import HistoryStore
from advisor.settings import PrometheusOptions
from advisor.telemetry.kubernetes.source import KubernetesSource
from advisor.telemetry.mapping import mapping_from
from advisor.telemetry.prometheus.client import PrometheusClient
from advisor.telemetry.prometheus.source import PrometheusSource
from advisor.telemetry.slurm import SlurmFile
from advisor.telemetry.source import Source
from advisor.telemetry.synthetic import SyntheticSource
from advisor.telemetry.traces import TraceFile, TraceFormat
from tests.kube_objects import StillCluster, a_container, job_object, node_object, owned_by, pod_object
from tests.metrics_server import MetricsStandIn, Told, a_job_told, a_node_told

NOW = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
MAPPING = mapping_from({"columns": {"submit": "at", "duration": "took"}})
PHILLY = """timestamp,duration,num_gpus,gpu_time,cluster
2017-10-09 07:01:55,66.0,1,66.0,aa
2017-10-08 06:13:03,2951.0,2,5902.0,bb
2017-10-08 06:13:03,2951.0,2,5902.0,bb
2017-10-08 06:13:03,zero,2,5902.0,bb
2036-10-08 06:13:03,10.0,2,20.0,bb
"""
USERS = """u_id,user,gpu_num,cpu_num,node_num,interval,run_time,wall_time,new_status
0,1,1,0,1,0,1389,0,Killed
1,2,8,0,4,395,14405,0,Failed
2,3,1,0,1,257,66,0,Pass
3,3,1,0,1,257,66,0,Lost
"""
PODS = """name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time
p0,12000,16384,1,1000,,LS,Running,0,900,0
p1,6000,12288,1,460,,LS,Failed,10,500,20
p2,6000,12288,0,0,,LS,Failed,10,500,20
"""
SACCT = """JobID|State|Submit|Start|End|AllocTRES|ReqTRES
1|COMPLETED|2026-02-27T12:00:00|2026-02-27T12:01:00|2026-02-27T13:00:00|gres/gpu=2|gres/gpu=2
1.batch|COMPLETED|2026-02-27T12:01:00|2026-02-27T12:01:00|2026-02-27T13:00:00|gres/gpu=2|
2|PREEMPTED|2026-02-27T12:00:00|2026-02-27T12:01:00|2026-02-27T13:00:00|gres/gpu=2|gres/gpu=2
2|RUNNING|2026-02-27T13:00:00|2026-03-01T13:00:00|Unknown|gres/gpu=2|gres/gpu=2
3|TIMEOUT|2026-03-01T12:00:00|2026-03-01T12:01:00|2026-03-02T11:00:00|gres/gpu=2|gres/gpu=2
4_[1-3%2]|PENDING|2026-03-02T11:00:00|Unknown|Unknown||gres/gpu=1
5|CANCELLED by 7|2026-03-02T11:00:00|None|2026-03-02T11:30:00||gres/gpu=1
6|COMPLETED|2026-03-03T11:00:00|2026-03-03T11:00:00|2026-03-03T12:00:00|gres/gpu=2|gres/gpu=2
7|COMPLETED|never|never|never|gres/gpu=2|gres/gpu=2
"""
TABLE = "at,took\n2026-02-27 12:00,60\n2026-02-27 12:00,60\n2026-03-02 09:00,60\n2026-03-03 12:00,60\nnever,60\n"


def a_file(trace_format: TraceFormat, text: str) -> Callable[[Path], Source]:
    def make(folder: Path) -> Source:
        path = folder / f"{trace_format}.csv"
        path.write_text(text)
        return TraceFile(path, trace_format, MAPPING if trace_format is TraceFormat.TABLE else None)

    return make


def accounting(folder: Path) -> Source:
    path = folder / "jobs.txt"
    path.write_text(SACCT)
    return SlurmFile(path)


def a_cluster(_: Path) -> Source:
    """The objects of a cluster that nothing happens to while it is read."""
    day = 86_400.0
    jobs = [job_object("train", created=-4 * day), job_object("late", created=-3600)]
    done = {"created": -4 * day, "scheduled": -4 * day + 5, "started": -4 * day + 60, "finished": -3 * day}
    pods = [
        pod_object("train-1", **done, meta={"ownerReferences": owned_by("Job", "train")}),
        pod_object("late-1", created=-3600, started=-3000, meta={"ownerReferences": owned_by("Job", "late")}),
        pod_object("half", created=-7200, spec={"containers": [a_container("500m")]}),
        pod_object("after", created=3600),
    ]
    clock = ManualClock(NOW)
    lists = {"pods": pods, "jobs": jobs, "nodes": [node_object(created=-5 * day)]}
    return KubernetesSource(StillCluster(lists), Pace(clock, lambda _: None, lambda: 0.0))


def a_metrics_server(_: Path) -> Source:
    """A server that holds a job of each fate, with samples that are none among those of their GPUs."""
    now, day = NOW.timestamp(), 86_400.0
    series = [
        *a_node_told(),
        *a_job_told(now - 3 * day, 5 * 3600.0),
        *a_job_told(now - 1.2 * day, 0.9 * day, "long", "GPU-b"),
        *a_job_told(now - 3600.0, day, "runs", "GPU-c"),
        Told("kube_pod_status_phase", 1, {"namespace": "ml", "pod": "nobody", "phase": "Running"}),
        Told("DCGM_FI_DEV_GPU_UTIL", 4e9, {"UUID": "GPU-b"}, now - day),
        Told("DCGM_FI_DEV_FB_USED", "N/A", {"UUID": "GPU-b"}, now - day),
    ]
    held = PrometheusOptions(url="http://127.0.0.1:9090", flavour="prometheus", days=5.0, step_seconds=600)
    client = PrometheusClient(held, transport=MetricsStandIn(series).transport())
    return PrometheusSource(client, held, ("created-by",))


SOURCES: dict[str, Callable[[Path], Source]] = {
    "philly": a_file(TraceFormat.PHILLY, PHILLY),
    "philly-users": a_file(TraceFormat.PHILLY_USERS, USERS),
    "openb": a_file(TraceFormat.OPENB, PODS),
    "table": a_file(TraceFormat.TABLE, TABLE),
    "slurm": accounting,
    "kubernetes": a_cluster,
    "prometheus": a_metrics_server,
    "synthetic": lambda _: SyntheticSource(1, days=2),
}


@pytest.fixture(params=sorted(SOURCES))
def source(request: pytest.FixtureRequest, tmp_path: Path) -> Source:
    return SOURCES[request.param](tmp_path)


def test_it_brings_jobs_under_its_own_name(source):
    batch = source.read(None, NOW)
    assert batch.jobs
    assert batch.source == source.name


def test_reading_twice_gives_the_same_batch(source):
    assert source.read(None, NOW) == source.read(None, NOW)


def test_every_job_has_an_id_of_its_own(source):
    jobs = source.read(None, NOW).jobs
    assert len({job.id for job in jobs}) == len(jobs)


def test_nothing_happens_after_now(source):
    batch = source.read(None, NOW)
    for job in batch.jobs:
        times = (job.submit, job.start, job.end, job.last_seen)
        assert all(time is None or time <= NOW for time in times)
    assert batch.watermark is not None
    assert batch.watermark <= NOW


def test_what_is_left_out_is_counted_with_an_example(source):
    for rejection in source.read(None, NOW).rejections:
        assert rejection.count > 0
        assert rejection.reason
        assert rejection.example


def test_reading_on_from_the_watermark_loses_nothing(source):
    with HistoryStore.open("sqlite://") as at_once, HistoryStore.open("sqlite://") as in_steps:
        at_once.append(source.read(None, NOW), NOW)
        for days in (1, 0):
            now = NOW - timedelta(days=days)
            in_steps.append(source.read(in_steps.watermark(source.name), now), now)
        assert in_steps.jobs(NOW, since=NOW - timedelta(days=1)) == at_once.jobs(NOW, since=NOW - timedelta(days=1))


def test_appending_what_it_brings_twice_changes_nothing(source):
    with HistoryStore.open("sqlite://") as store:
        store.append(source.read(None, NOW), NOW)
        before = (store.status(), store.jobs(NOW))
        store.append(source.read(store.watermark(source.name), NOW), NOW)
        assert (store.status(), store.jobs(NOW)) == before
