"""Slurm's accounting as jobs: what is read, what stands for what, what is left out and why."""

from __future__ import annotations

import gzip
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.domain.ingest import PARTITIONS, JobBatch
from advisor.domain.jobs import Job, Outcome
from advisor.errors import Refused
from advisor.history.store import HistoryStore
from advisor.telemetry.slurm import SACCT_COMMAND, SlurmFile
from tests.builders import NOON

NOW = datetime(2026, 4, 1, tzinfo=UTC)
HOUR = timedelta(hours=1)
COLUMNS = (
    "JobID", "State", "Submit", "Start", "End", "Elapsed", "Timelimit", "AllocTRES", "ReqTRES", "NNodes", "AllocCPUS",
    "ReqCPUS", "Priority", "User", "Account", "Partition", "JobName",
)  # fmt: skip
SUBMIT, START, END = "2026-03-02T12:00:00", "2026-03-02T13:00:00", "2026-03-02T14:00:00"
GOOD = {
    "JobID": "100", "State": "COMPLETED", "Submit": SUBMIT, "Start": START, "End": END, "Elapsed": "01:00:00",
    "Timelimit": "02:00:00", "AllocTRES": "cpu=8,gres/gpu:a100=4,gres/gpu=4,node=1", "ReqTRES": "cpu=8,gres/gpu=4",
    "NNodes": "1", "AllocCPUS": "8", "ReqCPUS": "8", "Priority": "4294901758", "User": "ada", "Account": "vision",
    "Partition": "a100", "JobName": "train",
}  # fmt: skip
WAITING = {"State": "PENDING", "Start": "Unknown", "End": "Unknown", "Elapsed": "00:00:00", "AllocTRES": ""}


def line(**cells: str) -> str:
    """One line: the good one but for ``cells``."""
    return "|".join({**GOOD, **cells}[column] for column in COLUMNS)


def text_of(*lines: str) -> str:
    return "\n".join(["|".join(COLUMNS), *lines, ""])


def read_text(folder: Path, text: str, now: datetime = NOW, **how: str) -> JobBatch:
    path = folder / "jobs.txt"
    path.write_bytes(text.encode())
    return SlurmFile(path, **how).read(None, now)


def read(folder: Path, *lines: str, **how: str) -> JobBatch:
    return read_text(folder, text_of(*lines), **how)


def rejected(batch: JobBatch) -> dict[str, int]:
    return {each.reason: each.count for each in batch.rejections}


def test_every_column_finds_its_field(tmp_path):
    batch = read(tmp_path, line(), zone="UTC")
    assert batch == JobBatch(
        source="slurm",
        jobs=(
            Job(
                id="100", submit=NOON, start=NOON + HOUR, end=NOON + 2 * HOUR, outcome=Outcome.COMPLETED, gpus=4.0,
                gpu_kind="a100", user="ada", namespace="vision", pool="a100", name="train", cpus=8.0, nodes=1,
                priority=4294901758, time_limit_seconds=7200.0, told_by_node=("gpu_kind",),
            ),
        ),
        watermark=NOON + 2 * HOUR,
        notes=(PARTITIONS,),
    )  # fmt: skip


@pytest.mark.parametrize(
    "cells, kind, cpus, told",
    [
        ({"ReqTRES": "cpu=8,gres/gpu:a100=4"}, "a100", 8, ()),
        ({"AllocCPUS": "64"}, "a100", 8, ("gpu_kind",)),
        ({"AllocCPUS": "64", "ReqCPUS": ""}, "a100", 64, ("cpus", "gpu_kind")),
        ({"AllocTRES": "gres/gpu=4"}, None, 8, ()),
        ({"ReqTRES": "gres/gpu:a100=x"}, "a100", 8, ("gpu_kind",)),
        ({**WAITING, "ReqTRES": "gres/gpu:a100=4", "AllocCPUS": "0"}, "a100", 8, ()),
    ],
)
def test_what_a_job_asked_for_is_told_from_what_it_was_given(tmp_path, cells, kind, cpus, told):
    (job,) = read(tmp_path, line(**cells)).jobs
    assert (job.gpu_kind, job.cpus, job.nodes, job.told_by_node) == (kind, cpus, 1, told)


def test_odd_states_and_limits_are_neither_a_crash_nor_a_label_of_zero_seconds(tmp_path):
    """Field report A11: unlimited and completed; cancelled before its start; censored at its limit."""
    ended, cancelled, timed_out = read(
        tmp_path,
        line(JobID="1", Timelimit="UNLIMITED", Elapsed="1-02:03:04", End="2026-03-03T15:03:04"),
        line(JobID="2", Timelimit="Partition_Limit", State="CANCELLED by 1001", Start="None", Elapsed="00:00:00"),
        line(JobID="3", Timelimit="2-00:00:00", State="TIMEOUT", End="Unknown", Elapsed=""),
    ).jobs
    assert (ended.duration_seconds, ended.time_limit_seconds) == (93_784.0, None)
    assert (cancelled.outcome, cancelled.start, cancelled.end) == (Outcome.CANCELLED, None, NOON + 2 * HOUR)
    assert cancelled.duration_seconds is None
    assert (timed_out.outcome, timed_out.duration_seconds) == (Outcome.CENSORED, None)
    assert timed_out.elapsed_seconds(NOW) == 172_800.0


@pytest.mark.parametrize("missing, length", [("End", "1-02:03:04"), ("Start", "1-02:03:04")])
def test_a_time_that_is_missing_follows_from_the_length(tmp_path, missing, length):
    cells = {"Start": START, "End": "2026-03-03T15:03:04", missing: "Unknown"}
    [job] = read(tmp_path, line(Elapsed=length, **cells)).jobs
    assert (job.start, job.duration_seconds) == (NOON + HOUR, 93_784.0)


def test_gpus_are_read_from_every_way_of_counting_them(tmp_path):
    """Field report A12: 4 of a kind; 3 mixed; 2 of no known kind; unknown, with a warning; 8 requested."""
    batch = read(
        tmp_path,
        line(JobID="1", AllocTRES="gres/gpu:a100=4,gres/gpu=4", ReqTRES=""),
        line(JobID="2", AllocTRES="gres/gpu:v100=2,gres/gpu:t4=1", ReqTRES=""),
        line(JobID="3", AllocTRES="gres/gpu=2", ReqTRES=""),
        line(JobID="4", AllocTRES="cpu=8,node=1", ReqTRES="cpu=8", Partition="gpu-long"),
        line(JobID="5", AllocTRES="", ReqTRES="gres/gpu=8"),
    )
    assert [(job.id, job.gpus, job.gpu_kind) for job in batch.jobs] == [
        ("1", 4.0, "a100"), ("2", 3.0, None), ("3", 2.0, None), ("5", 8.0, None),
    ]  # fmt: skip
    assert rejected(batch) == {"gpus_not_tracked": 1}
    assert any("gpu-long names a GPU: the site does not seem to track GPUs" in note for note in batch.notes)
    assert "lines that name GPUs of several kinds, all counted and the kind left open: 1" in batch.notes


@pytest.mark.parametrize("partition", ["a100", "cpu", "long", "bigmem"])
def test_a_job_without_gpus_where_they_are_counted_or_none_are_to_be_expected_wants_none(tmp_path, partition):
    batch = read(tmp_path, line(), line(JobID="2", AllocTRES="cpu=8", ReqTRES="cpu=8", Partition=partition))
    assert rejected(batch) == {"no_gpus": 1}
    assert not any("track" in note for note in batch.notes)


@pytest.mark.parametrize("partition", ["gpu", "GPU_short", "p100", "a100-80g", "h100", "dgx", "mi250", "rtx3090"])
def test_a_partition_is_known_to_be_for_gpus_by_its_name(tmp_path, partition):
    batch = read(tmp_path, line(Partition="x"), line(JobID="2", AllocTRES="", ReqTRES="", Partition=partition))
    assert rejected(batch) == {"gpus_not_tracked": 1}


def test_gpus_per_node_are_counted_on_every_node_and_allocated_ones_once(tmp_path):
    header = "JobID|State|Submit|Start|End|ReqGRES|AllocGRES|NNodes"
    rows = f"1|COMPLETED|{SUBMIT}|{START}|{END}|gpu:a100:4||2\n2|COMPLETED|{SUBMIT}|{START}|{END}|gpu:4|gpu:8|2\n"
    assert [job.gpus for job in read_text(tmp_path, f"{header}\n{rows}").jobs] == [8.0, 8.0]


def test_of_several_partitions_that_a_waiting_job_would_take_the_first_is_its_pool(tmp_path):
    [job] = read(tmp_path, line(**WAITING, Partition="long,short")).jobs
    assert job.pool == "long"


def test_jobs_of_several_clusters_are_refused_since_their_ids_may_be_the_same(tmp_path):
    header, row = text_of(line()).splitlines()
    assert len(read_text(tmp_path, f"Cluster|{header}\nwest|{row}\n").jobs) == 1
    with pytest.raises(Refused, match="clusters east, west"):
        read_text(tmp_path, f"Cluster|{header}\nwest|{row}\neast|{row}\n")


def test_usage_that_is_not_read_is_said(tmp_path):
    header, row = text_of(line()).splitlines()
    batch = read_text(tmp_path, f"TRESUsageInAve|{header}\ngres/gpuutil=93|{row}\n")
    assert any("TRESUsageIn columns are not read" in note for note in batch.notes)
    assert batch.jobs[0].gpus == 4.0


def test_parts_of_gpus_are_left_out(tmp_path):
    batch = read(tmp_path, line(), line(JobID="2", AllocTRES="gres/shard=2", ReqTRES="gres/shard=2"))
    assert rejected(batch) == {"shared_gpus": 1}


def test_waiting_arrays_are_as_many_jobs_as_they_have_tasks(tmp_path):
    """Field report A13: 10, 100 and 6 tasks of 2 GPUs wait, and 40 GPUs could be used at once."""
    ask = {**WAITING, "ReqTRES": "cpu=1,gres/gpu=2"}
    batch = read(
        tmp_path,
        line(JobID="8123_[1-10]", **ask),
        line(JobID="8124_[0-99%4]", **ask),
        line(JobID="8125_[1,4,9-15:2]", **ask),
    )
    assert len(batch.jobs) == 116
    assert len({job.id for job in batch.jobs}) == 116
    assert {(job.gpus, job.start, job.outcome) for job in batch.jobs} == {(2.0, None, None)}
    assert [job.id for job in batch.jobs][-6:] == ["8125_1", "8125_4", "8125_9", "8125_11", "8125_13", "8125_15"]
    [note] = [note for note in batch.notes if "throttles" in note]
    assert note == "tasks of arrays that wait: 116, for 232 GPUs, of which their throttles let 40 be used at once"


def test_a_file_of_which_no_job_names_a_gpu_says_where_a_site_may_have_to_count_them(tmp_path):
    batch = read(tmp_path, line(AllocTRES="cpu=2", ReqTRES="cpu=2", Partition="batch"))
    assert batch.jobs == ()
    assert any("AccountingStorageTRES=gres/gpu" in note for note in batch.notes)


def test_tasks_of_an_array_that_run_use_up_its_throttle(tmp_path):
    batch = read(
        tmp_path,
        line(JobID="8124_0", State="RUNNING", End="Unknown", AllocTRES="gres/gpu=2"),
        line(JobID="8124_[1-99%4]", **{**WAITING, "ReqTRES": "gres/gpu=2"}),
    )
    assert any("let 6 be used at once" in note for note in batch.notes)


def test_an_array_cancelled_while_it_waited_is_cancelled_task_by_task(tmp_path):
    batch = read(tmp_path, line(JobID="8_[1-3%1]", State="CANCELLED by 5", Start="None", Elapsed="00:00:00"))
    assert [(job.id, job.outcome, job.start) for job in batch.jobs] == [
        (f"8_{task}", Outcome.CANCELLED, None) for task in (1, 2, 3)
    ]
    assert not any("throttles" in note for note in batch.notes)


def test_an_array_of_millions_is_left_out_and_said(tmp_path):
    batch = read(tmp_path, line(), line(JobID="8_[0-4000000]", **WAITING))
    assert len(batch.jobs) == 1
    [rejection] = batch.rejections
    assert rejection.reason == "array_too_large"
    assert "stands for 4000001 tasks; at most 100000 are read" in rejection.example


def test_steps_are_neither_jobs_nor_rejected_and_the_job_keeps_its_gpus(tmp_path):
    steps = [line(JobID=f"100.{step}", AllocTRES="gres/gpu=1", State="odd") for step in ("batch", "extern", "0")]
    batch = read(tmp_path, line(), *steps)
    assert [(job.id, job.gpus) for job in batch.jobs] == [("100", 4.0)]
    assert batch.rejections == ()


def test_parts_of_a_heterogeneous_job_are_jobs_and_said(tmp_path):
    batch = read(tmp_path, line(JobID="123+0"), line(JobID="123+1"), line(JobID="123+0.batch"))
    assert [job.id for job in batch.jobs] == ["123+0", "123+1"]
    assert "parts of heterogeneous jobs, read as jobs of their own: 2" in batch.notes


@pytest.mark.parametrize("state", ["TIMEOUT", "NODE_FAIL", "PREEMPTED", "REQUEUED"])
def test_what_the_system_ended_lasted_at_least_so_long(tmp_path, state):
    [job] = read(tmp_path, line(State=state)).jobs
    assert (job.outcome, job.end, job.last_seen) == (Outcome.CENSORED, None, NOON + 2 * HOUR)


@pytest.mark.parametrize("state", ["FAILED", "OUT_OF_MEMORY", "BOOT_FAIL", "DEADLINE"])
def test_what_failed_has_an_end(tmp_path, state):
    [job] = read(tmp_path, line(State=state)).jobs
    assert (job.outcome, job.duration_seconds) == (Outcome.FAILED, 3600.0)


@pytest.mark.parametrize("state", ["DEADLINE", "FAILED", "NODE_FAIL", "PREEMPTED", "CANCELLED"])
def test_what_ended_without_having_started_was_cancelled_before_its_start(tmp_path, state):
    [job] = read(tmp_path, line(State=state, Start="Unknown", Elapsed="00:00:00")).jobs
    assert (job.outcome, job.start, job.end) == (Outcome.CANCELLED, None, NOON + 2 * HOUR)


@pytest.mark.parametrize("start", [END, "2026-03-02T15:00:00"])
def test_a_start_that_was_only_planned_is_none(tmp_path, start):
    [job] = read(tmp_path, line(State="CANCELLED by 0", Start=start, Elapsed="00:00:00")).jobs
    assert (job.outcome, job.start, job.end) == (Outcome.CANCELLED, None, NOON + 2 * HOUR)


def test_work_that_another_cluster_took_never_ran_here(tmp_path):
    [job] = read(tmp_path, line(State="REVOKED", Start=END)).jobs
    assert (job.outcome, job.start, job.end) == (Outcome.CANCELLED, None, NOON + 2 * HOUR)
    [job] = read(tmp_path, line(), line(State="REVOKED", Start=END)).jobs
    assert (job.outcome, job.duration_seconds) == (Outcome.COMPLETED, 3600.0)


@pytest.mark.parametrize("state", ["RUNNING", "SUSPENDED", "COMPLETING", "CONFIGURING", "STOPPED"])
def test_what_goes_on_has_no_end(tmp_path, state):
    [job] = read(tmp_path, line(State=state, End="2026-12-31T00:00:00")).jobs
    assert (job.start, job.end, job.outcome, job.last_seen) == (NOON + HOUR, None, None, None)


@pytest.mark.parametrize("state", ["PENDING", "REQUEUE_HOLD", "RESV_DEL_HOLD", "CONFIGURING"])
def test_what_waits_has_no_start(tmp_path, state):
    [job] = read(tmp_path, line(**{**WAITING, "State": state})).jobs
    assert (job.submit, job.start, job.end, job.outcome) == (NOON, None, None, None)


def test_a_start_that_is_planned_for_a_waiting_job_is_not_taken_for_one(tmp_path):
    [job] = read(tmp_path, line(**{**WAITING, "Start": "2026-12-31T00:00:00"})).jobs
    assert job.start is None


def test_a_run_a_day_beyond_its_limit_was_lost_by_slurm(tmp_path):
    open_ended = {"State": "RUNNING", "End": "Unknown"}
    batch = read(
        tmp_path,
        line(JobID="1", **open_ended),
        line(JobID="2", Timelimit="UNLIMITED", **open_ended),
        line(JobID="3", Submit="2026-03-05T12:00:00", Start="2026-03-05T13:00:00", End="2026-03-05T14:00:00"),
        line(JobID="4", Submit="2026-03-04T12:00:00", Start="2026-03-04T13:00:00", **open_ended),
    )
    runaway, unlimited, _, runs = batch.jobs
    assert (runaway.outcome, runaway.last_seen) == (Outcome.CENSORED, NOON + 3 * HOUR)
    assert (unlimited.outcome, runs.outcome) == (None, None)
    assert "jobs a day beyond their time limit, censored there (runaway jobs): 1" in batch.notes


def test_runs_of_one_job_are_one_job_that_paused_between_them(tmp_path):
    again = {"Submit": "2026-03-02T14:00:00", "Start": "2026-03-02T15:00:00", "End": "2026-03-02T16:00:00"}
    batch = read(tmp_path, line(**again), line(State="PREEMPTED"), line(JobID="7"))
    job, other = batch.jobs
    assert (job.submit, job.start, job.end) == (NOON, NOON + HOUR, NOON + 4 * HOUR)
    assert (job.outcome, other.id) == (Outcome.COMPLETED, "7")
    assert (job.paused_seconds, job.duration_seconds, job.wait_seconds) == (3600, 7200, 7200)
    assert (job.evictions, job.restarts, other.evictions) == (1, 0, None)
    assert "jobs that ran more than once, begun with their first run and paused between two: 1" in batch.notes


NEVER_BEGAN = {"State": "CANCELLED", "Start": "None", "Elapsed": "00:00:00"}
LATE = {"Submit": "2026-03-02T18:00:00", "Start": "2026-03-02T19:00:00", "End": "2026-03-02T20:00:00"}


@pytest.mark.parametrize(
    "second, last, hours, outcome, times",
    [
        # Two requeues, one of them by the job's own failure.
        ({"State": "FAILED"}, {}, (3, 4), Outcome.COMPLETED, (1, 1)),
        # Cancelled while it waited for its third run: until then it was paused.
        ({"State": "NODE_FAIL"}, NEVER_BEGAN, (2, 5), Outcome.CANCELLED, (0, 2)),
        # A run that never began, and one that nobody knows the end of, are none.
        (NEVER_BEGAN, {}, (2, 5), Outcome.COMPLETED, (0, 1)),
        ({"State": "PREEMPTED", "End": "Unknown", "Timelimit": "UNLIMITED", "Elapsed": ""}, {}, (2, 5),
         Outcome.COMPLETED, (0, 1)),
        # Cut off for good: it ran at least so long.
        ({"State": "REQUEUED"}, {"State": "TIMEOUT"}, (3, 4), Outcome.CENSORED, (0, 2)),
    ],
)  # fmt: skip
def test_gaps_between_runs_are_pauses_and_no_run_time(tmp_path, second, last, hours, outcome, times):
    again = {"Submit": END, "Start": "2026-03-02T15:00:00", "End": "2026-03-02T16:00:00", **second}
    (job,) = read(tmp_path, line(State="PREEMPTED"), line(**again), line(**{**LATE, **last}), zone="UTC").jobs
    assert (job.start, job.gone_at, job.outcome) == (NOON + HOUR, NOON + 8 * HOUR, outcome)
    assert (job.run_seconds / 3600, job.paused_seconds / 3600) == hours
    assert (job.restarts, job.evictions) == times


def test_a_job_that_runs_again_has_run_before(tmp_path):
    again = {"Submit": END, "Start": "2026-03-02T15:00:00", "End": "Unknown", "State": "RUNNING"}
    (job,) = read(tmp_path, line(State="PREEMPTED"), line(**again)).jobs
    assert (job.start, job.end, job.paused_seconds) == (NOON + HOUR, None, 3600)
    assert job.elapsed_seconds(NOON + 4 * HOUR) == 7200


def test_a_job_that_waits_for_its_next_run_waits(tmp_path):
    [job] = read(tmp_path, line(State="PREEMPTED"), line(**{**WAITING, "Submit": END})).jobs
    assert (job.submit, job.start, job.outcome) == (NOON, None, None)


def test_the_same_run_from_files_that_overlap_is_one_and_no_requeue(tmp_path):
    runs = line(State="RUNNING", End="Unknown")
    for lines in ((runs, line()), (line(), runs), (line(JobID="100"), "|".join(COLUMNS), runs, line())):
        batch = read(tmp_path, *lines, zone="UTC")
        assert [(job.id, job.outcome) for job in batch.jobs] == [("100", Outcome.COMPLETED)]
        assert (batch.notes, batch.rejections) == ((PARTITIONS,), ())


def test_an_id_that_was_given_out_anew_belongs_to_its_last_job(tmp_path):
    new = {"Submit": END, "Start": "2026-03-02T15:00:00", "End": "2026-03-02T16:00:00", "User": "bob"}
    batch = read(tmp_path, line(), line(**new))
    assert [(job.user, job.submit) for job in batch.jobs] == [("bob", NOON + 2 * HOUR)]
    assert rejected(batch) == {"id_of_another_job": 1}


@pytest.mark.parametrize(
    "cells, reason",
    [
        ({"Submit": "soon"}, "bad_time"),
        ({"Submit": "Unknown"}, "bad_time"),
        ({"Start": "2026-02-30T00:00:00"}, "bad_time"),
        ({"End": "2026-04-01T00:00:01"}, "future_time"),
        ({"State": "TIMEOUT", "End": "Unknown", "Elapsed": "99-00:00:00"}, "future_time"),
        ({"Start": "2026-03-02T11:59:59"}, "start_before_submit"),
        ({"End": "2026-03-02T12:59:59"}, "end_before_start"),
        ({"End": "2026-03-02T11:00:00", "Start": "None", "State": "CANCELLED", "Elapsed": ""}, "end_before_start"),
        ({"End": START}, "not_positive_duration"),
        ({"End": START, "State": "NODE_FAIL"}, "not_positive_duration"),
        ({"End": "Unknown", "Elapsed": ""}, "no_end"),
        ({"Start": "None", "Elapsed": "00:00:00"}, "no_start"),
        ({"State": "LOST"}, "unknown_outcome:LOST"),
        ({"JobID": ""}, "no_id"),
        ({"JobID": "7_*"}, "bad_id"),
        ({"JobID": "7_[1,2,3,...]"}, "array_cut_short"),
        ({"AllocTRES": "gres/gpu=many"}, "bad_number"),
    ],
)
def test_a_bad_line_is_counted_with_its_reason_and_stops_nothing(tmp_path, cells, reason):
    batch = read(tmp_path, line(), line(**{"JobID": "7", **cells}), line(JobID="8"))
    assert [job.id for job in batch.jobs] == ["100", "8"]
    [rejection] = batch.rejections
    assert (rejection.reason, rejection.count) == (reason, 1)
    assert rejection.example.startswith("row 2: ")


def test_a_name_may_hold_the_separator(tmp_path):
    [job] = read(tmp_path, line(JobName='a|"b|c')).jobs
    assert (job.name, job.pool) == ('a|"b|c', "a100")


def test_a_separator_in_a_text_that_cannot_be_told_from_another_is_counted(tmp_path):
    text = f"Comment|{text_of(line()).splitlines()[0]}\nfine|{line()}\nnot|fine|{line(JobID='2')}\nshort\n"
    batch = read_text(tmp_path, text)
    assert (len(batch.jobs), rejected(batch)) == (1, {"wrong_column_count": 2})


@pytest.mark.parametrize("change", ["upper", "crlf", "bom", "gzip", "trailing", "blank"])
def test_the_file_may_be_written_in_many_ways(tmp_path, change):
    header, row = text_of(line()).splitlines()
    text = f"{header}\n{row}\n"
    changed = {
        "upper": f"{header.upper()}\n{row}\n",
        "crlf": text.replace("\n", "\r\n"),
        "bom": "\ufeff" + text,
        "trailing": f"{header}|\n{row}|\n",
        "blank": f"{header}\n\n{row}",
    }.get(change, text)
    path = tmp_path / "jobs.txt"
    path.write_bytes(gzip.compress(changed.encode()) if change == "gzip" else changed.encode())
    [job] = SlurmFile(path).read(None, NOW).jobs
    assert (job.id, job.name, job.end) == ("100", "train", NOON + 2 * HOUR)


def test_times_are_of_the_cluster_s_zone(tmp_path):
    [job] = read(tmp_path, line(), zone="Europe/Berlin").jobs
    assert (job.submit, job.duration_seconds) == (NOON - HOUR, 3600.0)


def test_local_times_around_a_clock_change_are_read_by_a_rule_and_said(tmp_path):
    cells = {"Submit": "2025-10-26T02:30:00", "Start": "2025-10-26T02:30:00", "End": "2025-10-26T04:00:00"}
    batch = read(tmp_path, line(**cells), zone="Europe/Berlin")
    assert batch.jobs[0].submit == datetime(2025, 10, 26, 0, 30, tzinfo=UTC)
    assert any("happen twice" in note for note in batch.notes)


def test_times_may_be_seconds_since_1970_whatever_the_zone(tmp_path):
    seconds = {"Submit": f"{NOON.timestamp():.0f}", "Start": f"{(NOON + HOUR).timestamp():.0f}", "End": "0"}
    [job] = read(tmp_path, line(State="RUNNING", **seconds), zone="Asia/Tokyo").jobs
    assert (job.submit, job.start, job.end) == (NOON, NOON + HOUR, None)


@pytest.mark.parametrize("zone", ["Mars/Base", "", "../etc/passwd"])
def test_a_zone_that_nobody_knows_is_refused(tmp_path, zone):
    with pytest.raises(Refused, match="no such time zone"):
        SlurmFile(tmp_path / "jobs.txt", zone=zone)


@pytest.mark.parametrize("column", ["JobID", "State", "Submit", "Start", "End"])
def test_a_missing_column_is_named_with_the_command_that_writes_it(tmp_path, column):
    with pytest.raises(Refused, match=f"no column {column}") as refused:
        read_text(tmp_path, text_of(line()).replace(column, "Other", 1))
    assert refused.value.remedy == f"Write it with: {SACCT_COMMAND} (one line)"


def test_a_file_that_cannot_name_gpus_is_refused(tmp_path):
    with pytest.raises(Refused, match="no column AllocTRES"):
        read_text(tmp_path, f"JobID|State|Submit|Start|End\n1|COMPLETED|{SUBMIT}|{START}|{END}\n")


@pytest.mark.parametrize("text", ["", "\n", "JobID,State\n1,2\n", "\0\x1f\x8b"])
def test_a_file_that_is_no_accounting_is_refused(tmp_path, text):
    with pytest.raises(Refused):
        read_text(tmp_path, text)


def test_a_file_of_jobs_none_of_which_can_be_read_is_refused_with_the_reasons(tmp_path):
    with pytest.raises(Refused, match=r"1 x bad_time \(row 1: submit 'soon'"):
        read(tmp_path, line(Submit="soon"))


def test_a_window_in_which_no_gpu_was_asked_for_is_no_mistake(tmp_path):
    assert read(tmp_path).jobs == ()
    batch = read(tmp_path, line(AllocTRES="cpu=1", ReqTRES="cpu=1", Partition="cpu"))
    assert (batch.jobs, rejected(batch), batch.watermark) == ((), {"no_gpus": 1}, None)


def test_reading_a_later_file_changes_only_what_has_changed(tmp_path):
    waits = line(JobID="3_[1-2]", **WAITING)
    runs = line(JobID="2", State="RUNNING", End="Unknown")
    with HistoryStore.open("sqlite://") as store:
        store.append(read(tmp_path, line(), runs, waits), NOW)
        later = read(
            tmp_path, line(), line(JobID="2"), line(JobID="3_[2]", **WAITING), line(JobID="3_1"), line(JobID="4")
        )
        result = store.append(later, NOW)
        assert (result.added, result.changed, result.unchanged) == (1, 2, 2)
        assert {job.id: job.outcome for job in store.jobs(NOW)} == {
            "100": Outcome.COMPLETED, "2": Outcome.COMPLETED, "3_1": Outcome.COMPLETED, "3_2": None,
            "4": Outcome.COMPLETED,
        }  # fmt: skip


def test_a_requeued_job_read_before_and_after_is_one_job(tmp_path):
    again = {"Submit": END, "Start": "2026-03-02T15:00:00", "End": "2026-03-02T16:00:00"}
    with HistoryStore.open("sqlite://") as store:
        store.append(read(tmp_path, line(State="RUNNING", End="Unknown")), NOW)
        result = store.append(read(tmp_path, line(State="PREEMPTED"), line(**again)), NOW)
        assert (result.added, result.changed, result.rejections) == (0, 1, ())
        [job] = store.jobs(NOW)
        assert (job.submit, job.end) == (NOON, NOON + 4 * HOUR)


CELLS = {
    "JobID": ["1", "1", "2_[1-4%2]", "2_3", "3+0", "4.0", "x", "5_[1,...]", ""],
    "State": ["COMPLETED", "PENDING", "RUNNING", "CANCELLED by 1", "TIMEOUT", "REQUEUED", "REVOKED", "NODE_FAIL", "?"],
    "Submit": [SUBMIT, END, "1772452800", "Unknown", "9999-12-31T23:59:59"],
    "Start": [START, END, SUBMIT, "None", "Unknown", "0001-01-01T00:00:00", "99999999999999999999"],
    "End": [END, START, "Unknown", "", "2026-03-02T14:00:00+05:00"],
    "Elapsed": ["01:00:00", "00:00:00", "INVALID", "99999-00:00:00", ""],
    "Timelimit": ["UNLIMITED", "1-00:00:00", "00:00:00", "115740-00:00:00"],
    "AllocTRES": ["gres/gpu=2", "", "cpu=1", "gres/shard=1", "gres/gpu=", "gres/gpu:a=1,gres/gpu:b=2"],
}


@given(
    st.lists(
        st.fixed_dictionaries(
            {name: st.one_of(st.sampled_from(good), st.text(max_size=8)) for name, good in CELLS.items()}
        ),
        max_size=8,
    )
)
@settings(max_examples=150)
def test_whatever_a_file_holds_it_is_jobs_counted_reasons_or_a_refusal(tmp_path_factory, rows):
    folder = tmp_path_factory.mktemp("slurm")
    try:
        batch = read(folder, *(line(**row) for row in rows), zone="Europe/Berlin")
    except Refused:
        return
    assert len({job.id for job in batch.jobs}) == len(batch.jobs)
    for job in batch.jobs:
        assert all(time is None or time <= NOW for time in (job.submit, job.start, job.end, job.last_seen))
        assert job.duration_seconds is None or job.duration_seconds > 0
