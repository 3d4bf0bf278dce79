"""Tables as jobs: what is read, what is derived, what is left out and why."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from advisor.domain.ingest import JobBatch
from advisor.domain.jobs import Job, Outcome
from advisor.errors import Refused
from advisor.telemetry.mapping import TableMapping, mapping_from
from advisor.telemetry.traces import TraceFile, TraceFormat
from tests.builders import NOON

NOW = datetime(2027, 1, 1, tzinfo=UTC)
COLUMNS = {"id": "id", "submit": "at", "start": "began", "end": "over", "gpus": "gpus", "outcome": "state"}
OUTCOMES = {"completed": ["ok"], "failed": ["bad"], "cancelled": ["killed"], "censored": ["running"]}
MINUTE = timedelta(minutes=1)


def read(folder: Path, text: str, *, now: datetime = NOW, **sections) -> JobBatch:
    """What the CSV ``text`` is under a mapping of ``sections``; the columns above unless said otherwise."""
    path = folder / "jobs.csv"
    path.write_text(text)
    if not sections:
        sections = {"columns": COLUMNS, "outcomes": OUTCOMES}
    return TraceFile(path, TraceFormat.TABLE, mapping_from(sections)).read(None, now)


def rejected(batch: JobBatch) -> dict[str, tuple[int, str]]:
    return {each.reason: (each.count, each.example) for each in batch.rejections}


GOOD = "ok,2026-03-02 12:00,2026-03-02 12:01,2026-03-02 12:11,1,ok\n"


def test_every_column_finds_its_field(tmp_path):
    columns = {
        "id": "i",
        "submit": "t",
        "duration": "d",
        "gpus": "g",
        "user": "u",
        "namespace": "v",
        "name": "n",
        "image": "img",
        "gpu_kind": "k",
        "pool": "p",
        "cpus": "c",
        "nodes": "m",
        "outcome": "o",
    }
    text = ",".join(columns.values()) + "\n7,2026-03-02T12:00Z,1.5,500,ada,vc,train,img:1,a100,big,8,2,ok\n"
    batch = read(
        tmp_path, text, columns=columns, units={"duration": "min", "gpus": "milli"}, outcomes={"completed": ["ok"]}
    )
    assert batch.jobs == (
        Job(
            id="7",
            submit=NOON,
            start=NOON,
            start_assumed=True,
            end=NOON + timedelta(seconds=90),
            outcome=Outcome.COMPLETED,
            gpus=0.5,
            user="ada",
            namespace="vc",
            name="train",
            image="img:1",
            gpu_kind="a100",
            pool="big",
            cpus=8.0,
            nodes=2,
        ),
    )
    assert batch.rejections == ()
    assert batch.watermark == NOON + timedelta(seconds=90)
    assert batch.notes == ("no start column: every job is taken as started at its submission",)


@pytest.mark.parametrize(
    "row, reason, said",
    [
        ("x,soon,,2026-03-02 12:11,1,ok", "bad_time", "submit 'soon'"),
        ("x,,2026-03-02 12:01,2026-03-02 12:11,1,ok", "bad_time", "submit ''"),
        ("x,2026-03-02 12:00,when,2026-03-02 12:11,1,ok", "bad_time", "start 'when'"),
        ("x,2026-03-02 12:00,2026-03-02 12:01,2026-02-30 12:11,1,ok", "bad_time", "end '2026-02-30 12:11'"),
        ("x,2026-03-02 12:00,2026-03-02 11:59,2026-03-02 12:11,1,ok", "start_before_submit", "11:59"),
        ("x,2026-03-02 12:00,2026-03-02 12:01,2026-03-02 12:00,1,ok", "end_before_start", "12:00"),
        ("x,2026-03-02 12:00,2026-03-02 12:01,2026-03-02 12:01,1,ok", "not_positive_duration", "both"),
        ("x,2026-03-02 12:00,2026-03-02 12:01,2026-03-02 12:01,1,running", "not_positive_duration", "both"),
        ("x,2026-03-02 12:00,2026-03-02 12:01,,1,ok", "no_end", "completed"),
        ("x,2026-03-02 12:00,,2026-03-02 12:11,1,bad", "no_start", "failed"),
        ("x,2026-03-02 12:00,,2026-03-02 11:11,1,killed", "end_before_start", "11:11"),
        ("x,2026-03-02 12:00,2026-03-02 12:01,2026-03-02 12:11,0,ok", "no_gpus", "gpus '0'"),
        ("x,2026-03-02 12:00,2026-03-02 12:01,2026-03-02 12:11,-1,ok", "bad_number", "gpus '-1'"),
        ("x,2026-03-02 12:00,2026-03-02 12:01,2026-03-02 12:11,nan,ok", "bad_number", "gpus 'nan'"),
        ("x,2026-03-02 12:00,2026-03-02 12:01,2026-03-02 12:11,,ok", "bad_number", "gpus ''"),
        ("x,2026-03-02 12:00,2026-03-02 12:01,2026-03-02 12:11,1e9,ok", "bad_number", "gpus '1e9'"),
        ("x,2026-03-02 12:00,2026-03-02 12:01,2026-03-02 12:11,1.5,ok", "fractional_gpus", "whole GPUs"),
        ("x,2026-03-02 12:00,2026-03-02 12:01,2026-03-02 12:11,1,odd", "unknown_outcome:odd", "'odd'"),
        ("x,2026-03-02 12:00,2026-03-02 12:01,2026-03-02 12:11,1,", "unknown_outcome:", "''"),
        ("x,2027-03-02 12:00,2027-03-02 12:01,2027-03-02 12:11,1,ok", "future_time", "2027"),
        ("x,2026-12-31 12:00,2026-12-31 12:01,2027-01-02 12:11,1,ok", "future_time", "2027-01-02"),
        (",2026-03-02 12:00,2026-03-02 12:01,2026-03-02 12:11,1,ok", "no_id", "empty"),
        ("ok,2026-03-02 12:00,2026-03-02 12:01,2026-03-02 12:11,1,ok", "duplicate_id", "'ok'"),
        ("x,2026-03-02 12:00", "wrong_column_count", "2 cells under 6 headings"),
    ],
)
def test_a_bad_row_is_counted_with_its_reason_and_stops_nothing(tmp_path, row, reason, said):
    batch = read(tmp_path, f"id,at,began,over,gpus,state\n{GOOD}{row}\n{row}\n{GOOD.replace('ok,', 'last,', 1)}")
    assert [job.id for job in batch.jobs] == ["ok", "last"]
    [(name, (count, example))] = rejected(batch).items()
    assert (name, count) == (reason, 2)
    assert example.startswith("row 2: ")
    assert said in example


@pytest.mark.parametrize(
    "duration, reason",
    [
        ("0", "not_positive_duration"),
        ("-5", "not_positive_duration"),
        ("nan", "bad_number"),
        ("inf", "bad_number"),
        ("1e300", "bad_number"),
        ("5 s", "bad_number"),
    ],
)
def test_a_duration_must_be_a_positive_number(tmp_path, duration, reason):
    text = f"at,took\n2026-03-02 12:00,60\n2026-03-02 12:00,{duration}\n"
    batch = read(tmp_path, text, columns={"submit": "at", "duration": "took"})
    assert len(batch.jobs) == 1
    assert list(rejected(batch)) == [reason]


def test_a_table_of_which_nothing_is_a_job_is_refused_with_every_reason_its_count_and_an_example(tmp_path):
    text = "id,at,began,over,gpus,state\n" + 3 * GOOD.replace(",ok\n", ",PASS\n") + GOOD.replace("2026", "2028")
    with pytest.raises(Refused) as refused:
        read(tmp_path, text)
    assert "none of 4 rows is a job: 3 x unknown_outcome:PASS (row 1: outcome 'PASS'" in refused.value.limit
    assert "; 1 x future_time (row 4: " in refused.value.limit


def test_a_column_of_free_text_does_not_become_a_list_of_reasons(tmp_path):
    rows = "".join(GOOD.replace("ok,", f"{n},", 1).replace(",ok\n", f",word {n}\n") for n in range(100))
    batch = read(tmp_path, f"id,at,began,over,gpus,state\n{GOOD}{rows}")
    counts = {reason: count for reason, (count, _) in rejected(batch).items()}
    assert len(counts) == 21
    assert counts["unknown_outcome:(other words)"] == 80
    assert sum(counts.values()) == 100


@pytest.mark.parametrize("mapped, missing", [("submit", "columns.submit"), ("gpus", "columns.gpus")])
def test_a_column_the_file_lacks_is_refused_before_a_row_is_read(tmp_path, mapped, missing):
    with pytest.raises(Refused, match="no such column among id, at") as caught:
        read(tmp_path, f"id,at,began,over,gpus,state\n{GOOD}", columns={**COLUMNS, mapped: "x"}, outcomes=OUTCOMES)
    assert caught.value.field == missing


def test_a_column_that_is_there_twice_is_refused(tmp_path):
    with pytest.raises(Refused, match="2 such column"):
        read(tmp_path, "at,at,took\n1,2,3\n", columns={"submit": "at", "duration": "took"})


def test_the_start_follows_from_end_and_duration(tmp_path):
    text = "at,over,took\n2026-03-02 12:00,2026-03-02 12:11,60\n"
    batch = read(tmp_path, text, columns={"submit": "at", "end": "over", "duration": "took"})
    [job] = batch.jobs
    assert (job.start, job.start_assumed, job.wait_seconds) == (NOON + 10 * MINUTE, False, 600.0)
    assert not any("start" in note for note in batch.notes)


def test_a_job_cancelled_before_it_started_has_no_duration(tmp_path):
    text = "id,at,began,over,took,state\n1,2026-03-02 12:00,,2026-03-02 12:11,0,killed\n"
    columns = {"id": "id", "submit": "at", "start": "began", "end": "over", "duration": "took", "outcome": "state"}
    [job] = read(tmp_path, text, columns=columns, outcomes=OUTCOMES).jobs
    assert (job.start, job.end, job.outcome) == (None, NOON + 11 * MINUTE, Outcome.CANCELLED)
    assert job.duration_seconds is None


@pytest.mark.parametrize("blank", ["", "NaN", "NaT", "None", "null", "Unknown", "N/A"])
def test_a_job_without_end_was_last_seen_at_the_last_event_of_the_file(tmp_path, blank):
    rows = (
        f"{GOOD}a,2026-03-02 11:00,2026-03-02 11:01,{blank},1,running\nb,2026-03-02 12:05,{blank},{blank},1,running\n"
    )
    batch = read(tmp_path, f"id,at,began,over,gpus,state\n{rows}")
    ended, runs, waits = batch.jobs
    assert ended.outcome is Outcome.COMPLETED
    assert (runs.outcome, runs.last_seen, runs.start) == (Outcome.CENSORED, NOON + 11 * MINUTE, NOON - 59 * MINUTE)
    assert (waits.outcome, waits.last_seen, waits.start) == (Outcome.CENSORED, NOON + 11 * MINUTE, None)
    assert "jobs without an end, last seen at the last event of the file (censored): 2" in batch.notes


def test_a_job_that_started_with_the_last_event_of_the_file_tells_nothing(tmp_path):
    text = f"id,at,began,over,gpus,state\n{GOOD}a,2026-03-02 12:05,2026-03-02 12:20,,1,running\n"
    batch = read(tmp_path, text)
    assert [job.id for job in batch.jobs] == ["ok"]
    assert list(rejected(batch)) == ["not_positive_duration"]


def test_a_censored_job_with_an_end_was_last_seen_then(tmp_path):
    [job] = read(tmp_path, f"id,at,began,over,gpus,state\n{GOOD.replace(',ok', ',running')}").jobs
    assert (job.end, job.last_seen, job.outcome) == (None, NOON + 11 * MINUTE, Outcome.CENSORED)


def test_without_an_outcome_column_a_missing_end_is_censored(tmp_path):
    text = "at,over\n2026-03-02 12:00,2026-03-02 12:11\n2026-03-02 12:01,\n"
    first, second = read(tmp_path, text, columns={"submit": "at", "end": "over"}).jobs
    assert (first.outcome, second.outcome) == (Outcome.COMPLETED, Outcome.CENSORED)


def test_equal_rows_are_different_jobs_with_ids_that_last(tmp_path):
    columns = {"submit": "at", "duration": "took"}
    row, other = "2026-03-02 12:00,60\n", "2026-03-02 12:00,61\n"
    first = read(tmp_path, f"at,took\n{row}{row}{other}", columns=columns)
    moved = read(tmp_path, f"extra,at,took\nx,{other}y,{row}z,{row}", columns=columns)
    assert len({job.id for job in first.jobs}) == 3
    assert sorted(first.jobs, key=lambda job: job.id) == sorted(moved.jobs, key=lambda job: job.id)
    assert "no id column: jobs are recognised by the content of their rows" in first.notes


def test_numbers_that_only_describe_are_unknown_where_they_make_no_sense(tmp_path):
    text = "at,took,c,n,u\n" + "".join(f"2026-03-02 12:00,60,{odd},{odd},\n" for odd in ("", "x", "-1", "1e12", "inf"))
    columns = {"submit": "at", "duration": "took", "cpus": "c", "nodes": "n", "user": "u"}
    jobs = read(tmp_path, text, columns=columns).jobs
    assert len(jobs) == 5
    assert {(job.cpus, job.nodes, job.user) for job in jobs} == {(None, None, None)}


def test_intervals_go_on_behind_a_row_that_is_left_out(tmp_path):
    text = "gap,took\n0,60\n30,zero\n30,60\n"
    batch = read(tmp_path, text, columns={"submit": "gap", "duration": "took"}, time={"kind": "interval"})
    first, second = batch.jobs
    assert second.submit - first.submit == timedelta(seconds=60)
    assert not first.calendar_known


def test_relative_times_of_a_trace_keep_duration_and_claim_no_calendar(tmp_path):
    """Field report A26: no origin, so duration is kept and calendar features stay off; with one they are on."""
    text = "start_time,duration\n500000,3600\n"
    columns = {"submit": "start_time", "duration": "duration"}
    relative = read(tmp_path, text, columns=columns, time={"kind": "relative"})
    anchored = read(
        tmp_path,
        text,
        columns=columns,
        time={"kind": "relative", "origin": "2026-03-02T12:00", "zone": "Europe/Berlin"},
    )
    assert (relative.jobs[0].duration_seconds, relative.jobs[0].calendar_known) == (3600.0, False)
    assert any("calendar features stay off" in note for note in relative.notes)
    assert anchored.jobs[0].submit == NOON - timedelta(hours=1) + timedelta(seconds=500000)
    assert anchored.jobs[0].calendar_known


def test_relative_times_read_as_unix_times_are_refused_with_the_remedy(tmp_path):
    """Field report A26: the trace must not land in January 1970."""
    with pytest.raises(Refused, match=r'set time\.kind = "relative"'):
        read(
            tmp_path,
            "t,d\n500000,3600\n",
            columns={"submit": "t", "duration": "d"},
            time={"kind": "unix"},
        )


def test_local_times_around_a_clock_change_are_read_by_a_rule_and_said(tmp_path):
    """Field report A15: neither raised nor dropped."""
    text = "at,took\n2025-10-26 02:30,3600\n2025-03-30 02:30,3600\n2025-07-01 02:30,3600\n"
    batch = read(tmp_path, text, columns={"submit": "at", "duration": "took"}, time={"zone": "Europe/Berlin"})
    assert [job.submit.isoformat() for job in batch.jobs] == [
        "2025-10-26T00:30:00+00:00",
        "2025-03-30T01:30:00+00:00",
        "2025-07-01T00:30:00+00:00",
    ]
    assert sum("in Europe/Berlin" in note for note in batch.notes) == 2


def test_progress_is_told_up_to_the_last_row(tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_text("at,took\n" + "2026-03-02 12:00,60\n" * 4500)
    told = []
    mapping = mapping_from({"columns": {"submit": "at", "duration": "took"}})
    TraceFile(path, TraceFormat.TABLE, mapping, progress=lambda *step: told.append(step)).read(None, NOW)
    assert told == [(2000, 4500), (4000, 4500), (4500, 4500)]


@pytest.mark.parametrize("trace_format", list(TraceFormat))
def test_a_mapping_belongs_to_a_table_and_to_nothing_else(tmp_path, trace_format):
    mapping = None if trace_format is TraceFormat.TABLE else mapping_from({"columns": {"submit": "t", "end": "e"}})
    with pytest.raises(Refused) as refused:
        TraceFile(tmp_path / "any", trace_format, mapping)
    assert "mapping" in str(refused.value)
    assert "--mapping" in refused.value.remedy
    assert "None" not in str(refused.value)


def test_a_source_may_be_named_but_not_with_nothing(tmp_path):
    assert TraceFile(tmp_path / "any", TraceFormat.PHILLY).name == "philly"
    assert TraceFile(tmp_path / "any", TraceFormat.PHILLY, source="west").name == "west"
    with pytest.raises(Refused, match="source"):
        TraceFile(tmp_path / "any", TraceFormat.PHILLY, source=" ")


def test_text_that_is_no_table_is_refused_as_such_and_not_printed_whole(tmp_path):
    path = tmp_path / "README.md"
    path.write_text("words, " * 500 + "\nmore words\n")
    with pytest.raises(Refused, match=r"README.md does not look like a table of that format") as caught:
        TraceFile(path, TraceFormat.PHILLY).read(None, NOW)
    assert len(str(caught.value)) < 600


def test_a_table_without_a_mapping_is_told_every_format(tmp_path):
    with pytest.raises(Refused, match=r"philly, philly-users, openb.*--mapping FILE"):
        TraceFile(tmp_path / "jobs.csv", TraceFormat.TABLE)


def test_a_wrong_column_of_a_mapping_is_to_be_corrected_there(tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_text("at,took\n1,2\n")
    mapping = TableMapping(columns={"submit": "at", "duration": "lasted"})
    with pytest.raises(Refused, match=r"columns.duration: 'lasted' .*among at, took") as caught:
        TraceFile(path, TraceFormat.TABLE, mapping).read(None, NOW)
    assert caught.value.remedy == "Correct the name in the mapping."


def test_a_file_that_is_not_of_the_known_layout_is_refused(tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_text("a,b\n1,2\n")
    for trace_format in (TraceFormat.PHILLY, TraceFormat.PHILLY_USERS, TraceFormat.OPENB):
        with pytest.raises(Refused, match=r"does not look like a table of that format: .* and has a, b"):
            TraceFile(path, trace_format).read(None, NOW)
