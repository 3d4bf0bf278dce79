"""Cells that only describe a job: what they become, and how one that makes no sense is counted."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from advisor.domain.ingest import JobBatch
from advisor.domain.jobs import Job
from advisor.domain.usage import ComputeSource, GpuUsage
from advisor.telemetry.mapping import mapping_from
from advisor.telemetry.traces import TraceFile, TraceFormat
from tests.builders import NOON

NOW = datetime(2027, 1, 1, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
BASE = {"submit": "at", "duration": "took"}


def read(folder: Path, cells: list[str], ours: str, units: dict[str, str] | None = None) -> JobBatch:
    """One job a cell, of a minute from noon on; the cell is that of the column ``ours``."""
    path = folder / "jobs.csv"
    path.write_text("at,took,x\n" + "".join(f"2026-03-02 12:00,60,{cell}\n" for cell in cells))
    sections: dict[str, Any] = {"columns": {**BASE, ours: "x"}, "units": units or {}}
    return TraceFile(path, TraceFormat.TABLE, mapping_from(sections)).read(None, NOW)


def only(folder: Path, cell: str, ours: str, units: dict[str, str] | None = None) -> Job:
    [job] = read(folder, [cell], ours, units).jobs
    return job


@pytest.mark.parametrize(
    "ours, cell, field, value",
    [
        ("priority", "-5", "priority", -5),
        ("priority", "2000001000", "priority", 2000001000),
        ("restarts", "3", "restarts", 3),
        ("created_by", "Job/train-7", "created_by", "Job/train-7"),
        ("image", "torch:2", "image", "torch:2"),
        ("time_limit", "90", "time_limit_seconds", 90.0),
        ("time_limit", "UNLIMITED", "time_limit_seconds", None),
        ("time_limit", "Infinite", "time_limit_seconds", None),
        ("time_limit", "none", "time_limit_seconds", None),
        ("time_limit", "", "time_limit_seconds", None),
    ],
)
def test_a_cell_finds_its_field_and_nothing_is_counted(tmp_path, ours, cell, field, value):
    batch = read(tmp_path, [cell], ours)
    assert getattr(batch.jobs[0], field) == value
    assert not any("left out" in note for note in batch.notes)


@pytest.mark.parametrize(
    "units, seconds",
    [
        ({}, 90.0),
        ({"time_limit": "min"}, 5400.0),
        ({"duration": "min"}, 5400.0),
        ({"duration": "h", "time_limit": "s"}, 90.0),
    ],
)
def test_a_time_limit_has_a_unit_of_its_own_or_that_of_the_duration(tmp_path, units, seconds):
    assert only(tmp_path, "90", "time_limit", units).time_limit_seconds == seconds


@pytest.mark.parametrize("cell, units, share", [("93.5", {}, 0.935), ("0.5", {"gpu_utilisation": "ratio"}, 0.5)])
def test_utilisation_is_percent_unless_it_is_said_to_be_a_ratio(tmp_path, cell, units, share):
    usage = only(tmp_path, cell, "gpu_utilisation", units).usage
    assert usage == GpuUsage(compute_mean=share, compute_source=ComputeSource.GIVEN)


@pytest.mark.parametrize(
    "units, size", [({}, 2.0**21), ({"gpu_memory_peak": "bytes"}, 2.0), ({"gpu_memory_peak": "GiB"}, 2.0**31)]
)
def test_memory_is_in_mib_unless_said_otherwise(tmp_path, units, size):
    assert only(tmp_path, "2", "gpu_memory_peak", units).usage == GpuUsage(memory_peak_bytes=size)


def test_units_that_were_assumed_are_said_and_those_that_were_stated_are_not(tmp_path):
    assert "gpu_utilisation is read as percent" in read(tmp_path, ["50"], "gpu_utilisation").notes
    assert "gpu_memory_peak is read as MiB" in read(tmp_path, ["50"], "gpu_memory_peak").notes
    stated = read(tmp_path, ["50"], "gpu_utilisation", {"gpu_utilisation": "percent"})
    assert not any("gpu_utilisation" in note for note in stated.notes)


def test_ratios_read_as_percent_are_suspected(tmp_path):
    assert any("if they are ratios" in note for note in read(tmp_path, ["0.2", "1"], "gpu_utilisation").notes)
    assert not any("if they are ratios" in note for note in read(tmp_path, ["0.2", "7"], "gpu_utilisation").notes)
    assert not any("if they are ratios" in note for note in read(tmp_path, ["0", "0"], "gpu_utilisation").notes)


@pytest.mark.parametrize(
    "ours, cell, units, why",
    [
        ("priority", "high", {}, "it cannot be read"),
        ("priority", "1.5", {}, "no whole number"),
        ("priority", "1e300", {}, "out of any range"),
        ("restarts", "-1", {}, "out of any range"),
        ("time_limit", "soon", {}, "it cannot be read"),
        ("time_limit", "0", {}, "above 0"),
        ("time_limit", "-1", {}, "above 0"),
        ("time_limit", "1e300", {}, "centuries"),
        ("gpu_utilisation", "130", {}, "not between 0 and 100"),
        ("gpu_utilisation", "-1", {}, "not between 0 and 100"),
        ("gpu_utilisation", "93", {"gpu_utilisation": "ratio"}, 'units.gpu_utilisation = "percent"'),
        ("gpu_memory_peak", "-4", {}, "no GPU has so much"),
        ("gpu_memory_peak", "1e300", {}, "no GPU has so much"),
        ("scheduled", "when", {}, "it cannot be read"),
        ("cpus", "-1", {}, "out of any range"),
        ("nodes", "many", {}, "it cannot be read"),
    ],
)
def test_a_cell_that_makes_no_sense_is_counted_by_reason_and_costs_no_job(tmp_path, ours, cell, units, why):
    path = tmp_path / "jobs.csv"
    row = f"2026-03-02 12:00,2026-03-02 12:01,60,{cell}\n"
    path.write_text("at,began,took,x\n2026-03-02 12:00,2026-03-02 12:00,60,\n" + 2 * row)
    mapping = mapping_from({"columns": {**BASE, "start": "began", ours: "x"}, "units": units})
    batch = TraceFile(path, TraceFormat.TABLE, mapping).read(None, NOW)

    assert len(batch.jobs) == 3
    assert (
        len({(job.priority, job.restarts, job.time_limit_seconds, job.usage, job.scheduled) for job in batch.jobs}) == 1
    )
    [note] = [note for note in batch.notes if "left out" in note]
    assert note.startswith(f"2 cells of {ours} left out, ")
    assert why in note
    assert note.endswith(f"row 2, {cell!r}")


@pytest.mark.parametrize(
    "bound, wait",
    [("2026-03-02 12:01", 60.0), ("", 120.0), ("2026-03-02 11:59", 120.0), ("2026-03-02 12:03", 120.0)],
)
def test_waiting_ends_with_the_node_where_it_was_given_before_the_start(tmp_path, bound, wait):
    path = tmp_path / "jobs.csv"
    path.write_text(f"at,bound,began,over\n2026-03-02 12:00,{bound},2026-03-02 12:02,2026-03-02 12:12\n")
    columns = {"submit": "at", "scheduled": "bound", "start": "began", "end": "over"}
    batch = TraceFile(path, TraceFormat.TABLE, mapping_from({"columns": columns})).read(None, NOW)
    assert batch.jobs[0].wait_seconds == wait
    assert any("1 cell of scheduled left out" in note for note in batch.notes) == (bool(bound) and wait == 120.0)


def test_without_a_start_column_the_node_stands_in_for_the_start(tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_text("at,bound,took\n2026-03-02 12:00,2026-03-02 12:05,60\n2026-03-02 12:00,,60\n")
    mapping = mapping_from({"columns": {**BASE, "scheduled": "bound"}})
    batch = TraceFile(path, TraceFormat.TABLE, mapping).read(None, NOW)
    first, second = batch.jobs
    assert (first.start, first.end, first.start_assumed) == (NOON + 5 * MINUTE, NOON + 6 * MINUTE, True)
    assert (first.wait_seconds, first.startup_seconds) == (300.0, None)
    assert (second.start, second.wait_seconds) == (NOON, None)
    assert any("when it was given a node" in note for note in batch.notes)


def test_mapping_a_description_later_makes_no_other_job_of_a_row(tmp_path):
    path = tmp_path / "jobs.csv"
    path.write_text("at,took,util\n2026-03-02 12:00,60,50\n")
    plain, described = (
        TraceFile(path, TraceFormat.TABLE, mapping_from({"columns": columns})).read(None, NOW).jobs[0]
        for columns in (BASE, {**BASE, "gpu_utilisation": "util"})
    )
    assert plain.id == described.id
    assert described.usage is not None
