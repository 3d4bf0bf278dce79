import gzip
from datetime import UTC, datetime

import numpy as np
import pytest

from advisor.errors import Refused
from advisor.telemetry.series import read_series, read_series_mapping

HEADER = "time,used,waiting,free,other\n"
MAPPING = 'time = "time"\nrunning = "used"\npending = "waiting"\n'


@pytest.fixture
def read(tmp_path):
    """Reads text as a CSV by the keys of a [series] section."""

    def read(table: str, keys: str = MAPPING):
        (tmp_path / "series.csv").write_text(table, encoding="utf-8")
        (tmp_path / "mapping.toml").write_text("[series]\n" + keys, encoding="utf-8")
        return read_series(tmp_path / "series.csv", tmp_path / "mapping.toml")

    return read


def rows(*lines: str) -> str:
    return HEADER + "\n".join(lines) + "\n"


def test_columns_become_a_series_in_utc(read):
    (series,) = read(
        rows("2026-03-02 12:00:00,8,0,4,1", "2026-03-02 12:01:00,8,8,4,2"),
        MAPPING + 'pool = "west"\nidle = "free"\nstate = ["other"]\ngpus_per_node = 4\n',
    )

    assert (series.pool, series.node_gpus, series.step_minutes) == ("west", 4, 1)
    assert series.start == datetime(2026, 3, 2, 12, tzinfo=UTC)
    assert series.demand.tolist() == [8, 16]
    assert series.idle.tolist() == [4, 4]
    assert series.state["other"].tolist() == [1, 2]
    assert series.notes == ()


def test_without_pending_the_series_says_that_demand_is_what_ran(read):
    (series,) = read(rows("2026-03-02 12:00:00,8,5,4,1"), 'time = "time"\nrunning = "used"\n')

    assert not series.pending_known
    assert series.demand.tolist() == [8]
    assert "running GPUs alone" in series.notes[0]


@pytest.mark.parametrize("key", ['column = "other"', 'pool = {column = "other"}'])
def test_pool_may_stand_in_a_column(read, key):
    west, east = "2026-03-02 12:00:00,8,0,4,west", "2026-03-02 12:00:00,1,0,4,east"

    found = read(rows(west, east), MAPPING + key)

    assert [(series.pool, series.running[0]) for series in found] == [("east", 1), ("west", 8)]


def test_missing_moments_and_unreadable_cells_are_gaps(read):
    (series,) = read(
        rows(
            "2026-03-02 12:00:00,8,0,4,1",
            "2026-03-02 12:05:00,x,0,4,1",
            "2026-03-02 12:10:00,8,-1,4,1",
            "2026-03-02 12:20:00,8,0,4,1",
            "2026-03-02 12:25:00,,0,4,1",
            "soon,8,0,4,1",
        )
    )

    assert series.step_minutes == 5
    assert np.isnan(series.demand).tolist() == [False, True, True, True, False, True]
    assert "rows of pool default without a readable time: 1" in series.notes
    assert any("3 cells of pool default" in note for note in series.notes)


def test_hole_of_zeros_in_every_row_is_a_gap(read):
    """A silent exporter must freeze, not scale down."""
    minutes = [f"2026-03-02 12:{m:02d}:00," + ("0,0,0,0" if 10 <= m < 40 else "40,0,24,1") for m in range(50)]

    (series,) = read(rows(*minutes), MAPPING + 'idle = "free"')

    assert np.isnan(series.demand).sum() == 30
    assert not (series.demand == 0).any()


def test_repeated_hour_of_the_autumn_is_told_apart_by_order(read):
    """Field report A15."""
    stamps = ["01:30", "02:00", "02:30", "02:00", "02:30", "03:00"]

    (series,) = read(
        rows(*(f"2025-10-26 {stamp}:00,{number},0,0,0" for number, stamp in enumerate(stamps))),
        MAPPING + 'zone = "Europe/Berlin"',
    )

    assert series.running.tolist() == [0, 1, 2, 3, 4, 5]
    assert series.step_minutes == 30
    assert any("happen twice" in note for note in series.notes)


def test_skipped_hour_of_the_spring_is_flagged(read):
    """Field report A15."""
    (series,) = read(rows("2025-03-30 02:30:00,8,0,0,0"), MAPPING + 'zone = "Europe/Berlin"')

    assert series.start == datetime(2025, 3, 30, 1, 30, tzinfo=UTC)
    assert any("never happen" in note for note in series.notes)


def test_stamps_with_an_offset_keep_it_whatever_the_zone(read):
    (series,) = read(
        rows("2026-03-02T12:00:00+02:00,8,0,0,0", "2026-03-02T10:05:00Z,9,0,0,0"), MAPPING + 'zone = "Asia/Tokyo"'
    )

    assert series.start == datetime(2026, 3, 2, 10, tzinfo=UTC)
    assert series.running.tolist() == [8, 9]


def test_relative_hours_have_no_calendar_until_an_origin_is_given(read):
    table = rows("0,8,0,0,0", "1,9,0,0,0")
    keys = MAPPING + 'kind = "relative"\nunit = "h"\n'

    (without,) = read(table, keys)
    (given,) = read(table, keys + 'origin = "2026-03-01T00:00:00Z"')

    assert without.step_minutes == 60
    assert not without.calendar_known
    assert given.calendar_known
    assert given.start == datetime(2026, 3, 1, tzinfo=UTC)


def test_unix_times_in_milliseconds(read):
    (series,) = read(rows("1772452800000,8,0,0,0"), MAPPING + 'kind = "unix"\nunit = "ms"')

    assert series.start == datetime(2026, 3, 2, 12, tzinfo=UTC)


def test_unsorted_rows_and_two_for_one_moment(read):
    (series,) = read(
        rows("2026-03-02 12:02:00,3,0,0,0", "2026-03-02 12:00:00,1,0,0,0", "2026-03-02 12:01:00,9,0,0,0",
             "2026-03-02 12:01:00,2,0,0,0")
    )  # fmt: skip

    assert series.running.tolist() == [1, 2, 3]


def test_gzipped_file_is_read(tmp_path):
    path = tmp_path / "series.csv.gz"
    path.write_bytes(gzip.compress(rows("2026-03-02 12:00:00,8,0,0,0").encode()))
    (tmp_path / "m.toml").write_text("[series]\n" + MAPPING, encoding="utf-8")

    assert read_series(path, tmp_path / "m.toml")[0].running.tolist() == [8]


@pytest.mark.parametrize(
    "keys, said",
    [
        (MAPPING + "colour = 3", "series.colour"),
        ('time = "time"\n', "series.running"),
        (MAPPING + 'zone = "Mars/Olympus"', "Mars/Olympus"),
        (MAPPING + 'kind = "lunar"', "series.kind"),
        (MAPPING + 'unit = "weeks"', "series.unit"),
        (MAPPING + "gpus_per_node = 0", "series.gpus_per_node"),
        (MAPPING + 'origin = "soon"', "series.origin"),
        (MAPPING + 'state = "other"', "series.state"),
        (MAPPING + "pool = 3", "series.pool"),
        (MAPPING + 'idle = "nowhere"', "nowhere"),
        (MAPPING + "idle = 3", "series.idle"),
        ('time = "free"\nrunning = "used"', "series.time"),
        ('time = "used"\nrunning = "used"', "series.running.*mapped to time already"),
        (MAPPING + 'idle = "used"', "series.idle.*mapped to running already"),
        (MAPPING + 'state = ["used"]', "series.state.*taken by running"),
        (MAPPING + 'state = ["running"]', "series.state.*taken by running"),
        ("]", "it is not TOML"),
    ],
)
def test_what_has_no_meaning_is_refused_by_name(read, keys, said):
    with pytest.raises(Refused, match=said):
        read(rows("2026-03-02 12:00:00,a lot,0,4,1"), keys)


def test_other_sections_and_missing_files_are_refused(tmp_path):
    mapping = tmp_path / "m.toml"
    mapping.write_text("[columns]\n", encoding="utf-8")

    with pytest.raises(Refused, match=r"\[series\]"):
        read_series_mapping(mapping)
    with pytest.raises(Refused, match="cannot be read"):
        read_series_mapping(tmp_path / "none.toml")
    mapping.write_text("[series]\n" + MAPPING, encoding="utf-8")
    with pytest.raises(Refused, match="cannot be read"):
        read_series(tmp_path / "none.csv", mapping)


def test_table_without_rows_is_refused(read):
    with pytest.raises(Refused, match="no rows"):
        read(HEADER)


def test_times_that_span_thousands_of_years_are_refused(read):
    table = rows("0,1,0,0,0", "1,1,0,0,0", "2,1,0,0,0", "900000000000,1,0,0,0")

    with pytest.raises(Refused, match="kind and its unit"):
        read(table, MAPPING + 'kind = "relative"\nunit = "s"')


@pytest.mark.traces
def test_earth_series_is_read_whole(traces, tmp_path):
    mapping = tmp_path / "m.toml"
    mapping.write_text(
        '[series]\ntime = "time"\npool = "vcMod"\nrunning = "running_gpu_num"\npending = "pending_gpu_num"\n'
        'idle = "idle_gpu_num"\nstate = ["running_gpu_num_noless_8", "pending_gpu_num_less_8"]\n',
        encoding="utf-8",
    )

    (series,) = read_series(traces / "helios-earth" / "vcMod.csv.gz", mapping)

    assert len(series) == 31 * 1440
    assert not np.isnan(series.demand).any()
    assert set(series.running + series.idle) == {64.0}
