"""What the phases of the pod list mean for a job, on a small list of our own."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

from advisor.domain.ingest import JobBatch
from advisor.domain.jobs import Outcome
from advisor.telemetry.times import ANCHOR
from advisor.telemetry.traces import TraceFile, TraceFormat

HEADER = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,deletion_time,scheduled_time\n"
)


def read(folder: Path, *pods: str) -> JobBatch:
    """Each pod as ``name,gpus,milli,phase,created,deleted,scheduled``."""
    lines = []
    for pod in pods:
        name, gpus, milli, phase, created, deleted, scheduled = pod.split(",")
        lines.append(f"{name},12500,16384,{gpus},{milli},V100M32,LS,{phase},{created},{deleted},{scheduled}\n")
    path = folder / "pods.csv"
    path.write_text(HEADER + "".join(lines))
    return TraceFile(path, TraceFormat.OPENB).read(None, datetime(2026, 1, 1, tzinfo=UTC))


def at(seconds: int) -> datetime:
    return ANCHOR + timedelta(seconds=seconds)


def test_each_phase_is_the_end_it_stands_for(tmp_path):
    batch = read(
        tmp_path,
        "done,1,1000,Succeeded,0,100,5",
        "broke,1,1000,Failed,0,100,5",
        "deleted,1,1000,Running,0,100,5",
        "never,1,1000,Pending,10,100,",
        "last,1,1000,Succeeded,0,900,5",
        "stays,1,1000,Running,0,900,5",
        "waits,1,1000,Pending,0,900,",
        "endless,1,1000,Running,0,,5",
    )
    jobs = {job.id: job for job in batch.jobs}
    ends = {name: (str(job.outcome), job.start, job.end, job.last_seen) for name, job in jobs.items()}
    assert ends == {
        "done": ("completed", at(5), at(100), None),
        "broke": ("failed", at(5), at(100), None),
        "deleted": ("cancelled", at(5), at(100), None),
        "never": ("cancelled", None, at(100), None),
        "last": ("completed", at(5), at(900), None),
        "stays": ("censored", at(5), None, at(900)),
        "waits": ("censored", None, None, at(900)),
        "endless": ("censored", at(5), None, at(900)),
    }
    assert jobs["done"].wait_seconds == 5.0
    assert jobs["never"].outcome is Outcome.CANCELLED
    assert (jobs["done"].gpu_kind, jobs["done"].cpus, jobs["done"].calendar_known) == ("V100M32", 12.5, False)


def test_gpus_are_shares_of_one_or_whole_ones(tmp_path):
    batch = read(
        tmp_path,
        "share,1,460,Succeeded,0,100,5",
        "eight,8,1000,Succeeded,0,100,5",
        "none,0,0,Succeeded,0,100,5",
        "odd,2,460,Succeeded,0,100,5",
        "split,3,500,Succeeded,0,100,5",
        "bad,one,1000,Succeeded,0,100,5",
        "strange,1,1000,Evicted,0,100,5",
    )
    assert {job.id: job.gpus for job in batch.jobs} == {"share": 0.46, "eight": 8.0, "odd": 0.92}
    assert {each.reason: each.count for each in batch.rejections} == {
        "no_gpus": 1,
        "fractional_gpus": 1,
        "bad_number": 1,
        "unknown_outcome:Evicted": 1,
    }
