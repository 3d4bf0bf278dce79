"""Whatever stands in a table, each of its rows becomes one job or is counted under one reason."""

from __future__ import annotations

import csv
import tempfile
from datetime import UTC, datetime
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from advisor.domain.ingest import JobBatch
from advisor.errors import Refused
from advisor.telemetry.mapping import TableMapping, mapping_from
from advisor.telemetry.traces import TraceFile, TraceFormat

NOW = datetime(2026, 1, 1, tzinfo=UTC)
LIFE = ("id", "submit", "start", "end", "duration", "gpus", "user", "outcome")
DETAILS = ("cpus", "nodes", "priority", "time_limit", "scheduled", "restarts", "gpu_utilisation", "gpu_memory_peak")
FIELDS = (*LIFE, *DETAILS)
CELLS = st.one_of(
    st.sampled_from(["", "0", "1", "-1", "nan", "inf", "1e400", "9" * 30, "1_0", "ok", "killed", "running", "Z"]),
    st.sampled_from(["2025-01-01 00:00", "2025-01-01T00:01:00+05:00", "0001-01-01", "9999-12-31T23:59:59.999999"]),
    st.integers(min_value=-(10**13), max_value=10**13).map(str),
    st.floats().map(repr),
    st.text(max_size=6),
)
KINDS = st.sampled_from(["timestamp", "unix", "relative"])


def _read(path: Path, mapping: TableMapping) -> JobBatch | None:
    """The batch, None where not one row is a job: that, and nothing else, is refused as a whole."""
    try:
        return TraceFile(path, TraceFormat.TABLE, mapping).read(None, NOW)
    except Refused as refused:
        if "is a job" not in refused.limit:
            raise
        return None


@given(
    st.lists(st.lists(CELLS, min_size=len(FIELDS), max_size=len(FIELDS)), min_size=1, max_size=8),
    KINDS,
    st.sampled_from(["ms", "h"]),
    st.booleans(),
    st.sampled_from(["UTC", "Australia/Lord_Howe"]),
)
def test_no_row_is_lost_and_none_stops_the_others(rows, kind, unit, with_id, zone):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "jobs.csv"
        with path.open("w", encoding="utf-8", errors="replace", newline="") as file:
            csv.writer(file).writerows([FIELDS, *rows])
        columns = {name: name for name in FIELDS if with_id or name != "id"}
        mapping = mapping_from(
            {
                "columns": columns,
                "units": {"duration": unit},
                "time": {"kind": kind, "zone": zone},
                "outcomes": {"completed": ["ok"], "cancelled": ["killed"], "censored": ["running"]},
            }
        )
        batch = _read(path, mapping)
        if batch is None:
            return
        assert len(batch.jobs) + sum(each.count for each in batch.rejections) == len(rows)
        assert all(job.end is None or job.end <= NOW for job in batch.jobs)


@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(1, 10**6)), min_size=1, max_size=8))
def test_good_rows_are_read_exactly_whatever_their_order(rows):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "jobs.csv"
        path.write_text("t,d\n" + "".join(f"{submit},{duration}\n" for submit, duration in rows))
        mapping = mapping_from(
            {"columns": {"submit": "t", "duration": "d"}, "time": {"kind": "relative", "origin": "2020-01-01T00:00Z"}}
        )
        jobs = TraceFile(path, TraceFormat.TABLE, mapping).read(None, NOW).jobs
        origin = datetime(2020, 1, 1, tzinfo=UTC)
        assert [((job.submit - origin).total_seconds(), job.duration_seconds) for job in jobs] == rows
