"""Snapshots: named by content, whole or absent, checked when read."""

from __future__ import annotations

import random
from dataclasses import replace
from datetime import timedelta

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from advisor.domain.jobs import Outcome
from advisor.domain.usage import GpuUsage
from advisor.errors import Refused, Transient
from advisor.history.snapshot import jobs_digest, read_snapshot, write_snapshot
from tests.builders import NOON, a_job, a_usage

JOBS = [
    a_job("a", gpus=0.5, namespace="x", nodes=2, cpus=8.0, priority=-5, time_limit_seconds=3600.0),
    a_job("b", seconds=None, source="slurm"),
    a_job("c", seconds=None, start=None, calendar_known=False),
    a_job("d", seconds=None, outcome=Outcome.CENSORED, last_seen=NOON + timedelta(hours=1), start_assumed=True),
    a_job(
        "e",
        scheduled=NOON,
        created_by="Job/e",
        restarts=1,
        evictions=2,
        paused_seconds=60.0,
        image_pull_seconds=12.5,
        usage=a_usage(energy_joules=9e6),
    ),
    a_job("f", usage=GpuUsage(estimated=True)),
    a_job("g", gpu_kind="H100", nodes=1, told_by_node=("gpu_kind", "nodes")),
]


def test_the_same_jobs_in_any_order_are_the_same_snapshot(tmp_path):
    shuffled = random.Random(1).sample(JOBS, len(JOBS))
    first, second = write_snapshot(JOBS, tmp_path), write_snapshot(shuffled, tmp_path)
    assert first == second
    assert first.rows == len(JOBS)
    assert [path.name for path in tmp_path.iterdir()] == [first.path.name]
    assert first.path.name == f"jobs-{first.digest[:16]}.parquet"
    assert read_snapshot(first.path) == JOBS
    assert [job.source for job in read_snapshot(first.path)] == [job.source for job in JOBS]


def test_two_sources_with_one_id_do_not_make_the_order_matter(tmp_path):
    twins = [a_job("a", source="one"), a_job("a", source="two"), a_job("a"), a_job("a", gpus=2.0)]
    assert write_snapshot(twins, tmp_path).digest == write_snapshot(twins[::-1], tmp_path).digest


def test_whose_job_it_is_is_part_of_the_content(tmp_path):
    mine, other = [replace(job, source="one") for job in JOBS], [replace(job, source="two") for job in JOBS]
    first = write_snapshot([*mine, *other], tmp_path)
    assert {job.identity for job in read_snapshot(first.path)} == {job.identity for job in (*mine, *other)}
    assert len({write_snapshot(jobs, tmp_path).digest for jobs in (JOBS, mine, other)}) == 3


@pytest.mark.parametrize(
    "change",
    [
        {"gpus": 1.0},
        {"namespace": None},
        {"calendar_known": False},
        {"end": NOON + timedelta(seconds=601)},
        {"scheduled": NOON},
        {"told_by_node": ("nodes",)},
        {"usage": GpuUsage()},
        {"usage": GpuUsage(idle_share=0.5)},
    ],
)
def test_any_difference_is_another_snapshot(tmp_path, change):
    other = [replace(JOBS[0], **change), *JOBS[1:]]
    assert write_snapshot(other, tmp_path).digest != write_snapshot(JOBS, tmp_path).digest


def test_jobs_have_the_digest_of_their_snapshot_in_any_order(tmp_path):
    assert jobs_digest(reversed(JOBS)) == write_snapshot(JOBS, tmp_path).digest
    assert jobs_digest([replace(JOBS[0], user="eve"), *JOBS[1:]]) != jobs_digest(JOBS)


def test_the_digest_never_changes_between_versions(tmp_path):
    # A change of this value means that snapshots and model cards made before no longer match: count _FORMAT up.
    digest = write_snapshot(JOBS, tmp_path).digest
    assert digest == "230f4b7291f32275030d7ebb21ad6d887a6267a9f71ac0e52d2a57eb6242c8e7"


def test_no_jobs_are_a_snapshot_too(tmp_path):
    snapshot = write_snapshot([], tmp_path)
    assert snapshot.rows == 0
    assert read_snapshot(snapshot.path) == []


def test_a_snapshot_that_was_altered_is_refused(tmp_path):
    snapshot = write_snapshot(JOBS, tmp_path)
    table = pq.read_table(snapshot.path)
    altered = table.set_column(2, "gpus", pa.array([9.0] * len(JOBS)))
    pq.write_table(altered.replace_schema_metadata(table.schema.metadata), snapshot.path)
    with pytest.raises(Refused, match="not what was written"):
        read_snapshot(snapshot.path)


def test_what_is_no_snapshot_is_refused(tmp_path):
    other, text = tmp_path / "other.parquet", tmp_path / "text.parquet"
    pq.write_table(pa.table({"x": [1]}), other)
    text.write_text("no parquet")
    for path in (other, text, tmp_path / "absent.parquet"):
        with pytest.raises(Refused, match="snapshot"):
            read_snapshot(path)


def test_a_folder_that_cannot_be_written_leaves_no_trace(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(Transient, match="cannot be written"):
        write_snapshot(JOBS, tmp_path / "file")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
