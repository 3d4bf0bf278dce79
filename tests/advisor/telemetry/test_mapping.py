"""A mapping is checked wholly before any row is read; each mistake names what is allowed."""

from __future__ import annotations

import tomllib
from datetime import UTC, datetime, timedelta

import pytest

from advisor.domain.jobs import Outcome
from advisor.errors import Refused
from advisor.telemetry.mapping import TimeKind, mapping_from, read_mapping

COMPLETE = """
[columns]
id = "job_id"
submit = "submitted"
start = "started"
end = "ended"
duration = "seconds"
gpus = "num_gpus"
user = "user"
namespace = "vc"
name = "job_name"
gpu_kind = "gpu_type"
cpus = "cpu"
outcome = "state"

[units]
duration = "min"
gpus = "milli"

[time]
kind = "timestamp"
zone = "Europe/Berlin"
origin = "2017-08-07T10:03:01Z"

[outcomes]
completed = ["Pass", "COMPLETED"]
failed = ["Failed", 1]
cancelled = ["Killed", "CANCELLED"]
censored = ["RUNNING"]
"""


def test_everything_that_may_be_said_is_understood(tmp_path):
    path = tmp_path / "mapping.toml"
    path.write_text(COMPLETE)

    mapping = read_mapping(path)

    assert mapping.columns["gpu_kind"] == "gpu_type"
    assert (mapping.duration_unit, mapping.gpus_divisor) == (timedelta(minutes=1), 1000.0)
    assert (mapping.time.kind, mapping.time.zone.key, mapping.time.zone_stated) == (
        TimeKind.TIMESTAMP,
        "Europe/Berlin",
        True,
    )
    assert mapping.outcomes == {
        "Pass": Outcome.COMPLETED,
        "COMPLETED": Outcome.COMPLETED,
        "Failed": Outcome.FAILED,
        "1": Outcome.FAILED,
        "Killed": Outcome.CANCELLED,
        "CANCELLED": Outcome.CANCELLED,
        "RUNNING": Outcome.CENSORED,
    }


def test_what_is_left_out_has_the_stated_default():
    mapping = mapping_from({"columns": {"submit": "t", "duration": "d"}})
    assert (mapping.duration_unit, mapping.gpus_divisor) == (timedelta(seconds=1), 1.0)
    assert (mapping.time.kind, mapping.time.zone.key, mapping.time.zone_stated) == (TimeKind.TIMESTAMP, "UTC", False)
    assert mapping.time.calendar_known


@pytest.mark.parametrize(
    "text, expected",
    [
        ('origin = "2017-08-07T12:03:01+02:00"', datetime(2017, 8, 7, 10, 3, 1, tzinfo=UTC)),
        ('origin = "2017-08-07 12:03:01"\nzone = "Europe/Berlin"', datetime(2017, 8, 7, 10, 3, 1, tzinfo=UTC)),
        ("origin = 2017-08-07T10:03:01Z", datetime(2017, 8, 7, 10, 3, 1, tzinfo=UTC)),
    ],
)
def test_the_origin_is_a_moment_in_utc(text, expected):
    sections = tomllib.loads(f'[columns]\nsubmit = "t"\nduration = "d"\n[time]\nkind = "relative"\n{text}')
    assert mapping_from(sections).time.origin == expected


@pytest.mark.parametrize("kind", ["relative", "interval"])
def test_relative_times_without_origin_know_no_calendar(kind):
    columns = {"submit": "t", "duration": "d"}
    assert not mapping_from({"columns": columns, "time": {"kind": kind}}).time.calendar_known


@pytest.mark.parametrize(
    "wrong, right, field, said",
    [
        ("[columns]", "[colums]", "mapping", "colums"),
        ('gpu_kind = "gpu_type"', 'gpu_type = "gpu_type"', "columns.gpu_type", "gpu_kind"),
        ('submit = "submitted"', "", "columns.submit", "required"),
        ('end = "ended"\nduration = "seconds"', "", "columns.duration", "duration or end is required"),
        ('submit = "submitted"', "submit = 3", "columns.submit", "name of a column"),
        ('submit = "submitted"', 'submit = " "', "columns.submit", "name of a column"),
        ('duration = "min"', 'duration = "minutes"', "units.duration", "ms, s, min, h"),
        ('duration = "min"', "duration = 60", "units.duration", "ms, s, min, h"),
        ('gpus = "milli"', 'gpus = "percent"', "units.gpus", "count, milli"),
        ('gpus = "milli"', 'memory = "gib"', "units.memory", "duration, gpu_memory_peak"),
        ('gpus = "milli"', 'gpu_memory_peak = "GB"', "units.gpu_memory_peak", "bytes, MiB, GiB"),
        ('gpus = "milli"', 'gpu_utilisation = "%"', "units.gpu_utilisation", "percent, ratio"),
        ('gpus = "milli"', 'time_limit = "days"', "units.time_limit", "ms, s, min, h"),
        ('cpus = "cpu"', 'priority = "num_gpus"', "columns.priority", "mapped to gpus already"),
        ('kind = "timestamp"', 'kind = "epoch"', "time.kind", "timestamp, unix, relative, interval"),
        ('kind = "timestamp"', 'kind = "interval"', "columns.start", "interval times give submissions only"),
        ('kind = "timestamp"', 'format = "day"', "time.format", "strptime"),
        ('zone = "Europe/Berlin"', 'zone = "Berlin"', "time.zone", "no such time zone"),
        ('zone = "Europe/Berlin"', 'zone = "Europe"', "time.zone", "no such time zone"),
        ('zone = "Europe/Berlin"', 'zone = "../UTC"', "time.zone", "no such time zone"),
        ('zone = "Europe/Berlin"', "zone = 2", "time.zone", "must be text"),
        ('zone = "Europe/Berlin"', 'timezone = "UTC"', "time.timezone", "format, kind, origin, zone"),
        ('origin = "2017-08-07T10:03:01Z"', 'origin = "yesterday"', "time.origin", "ISO 8601"),
        ('completed = ["Pass", "COMPLETED"]', 'done = ["Pass"]', "outcomes.done", "completed"),
        ('completed = ["Pass", "COMPLETED"]', 'completed = "Pass"', "outcomes.completed", "list of words"),
        ('censored = ["RUNNING"]', 'censored = ["Pass"]', "outcomes.censored", "already means completed"),
        ('outcome = "state"', "", "columns.outcome", "needs an outcome column"),
        (
            'start = "started"',
            'start = "submitted"',
            "columns.start",
            "'submitted' is refused; the column is mapped to",
        ),
        ('start = "started"', 'start = " submitted "', "columns.start", "leave out start or submit"),
        ('end = "ended"', 'end = "started"', "columns.end", "mapped to start already"),
        ('cpus = "cpu"', 'cpus = "num_gpus"', "columns.cpus", "mapped to gpus already"),
        ('user = "user"', 'user = "seconds"', "columns.user", "mapped to duration already"),
        ('outcome = "state"', 'outcome = "job_name"', "columns.outcome", "mapped to name already"),
    ],
)
def test_a_mistake_is_refused_by_name(wrong, right, field, said):
    assert wrong in COMPLETE
    with pytest.raises(Refused) as caught:
        mapping_from(tomllib.loads(COMPLETE.replace(wrong, right)))
    assert caught.value.field == field
    assert said in str(caught.value)
    assert caught.value.remedy


def test_labels_may_share_a_column():
    labels = {"id": "job", "name": "job", "namespace": "vc", "pool": "vc", "user": "vc", "gpu_kind": "vc"}
    mapping = mapping_from({"columns": {"submit": "at", "duration": "took", **labels}})
    assert mapping.columns["pool"] == mapping.columns["namespace"] == "vc"


def test_a_number_too_long_to_read_is_a_mistake_in_the_file(tmp_path):
    path = tmp_path / "mapping.toml"
    path.write_text(f"[units]\nduration = {'9' * 5000}")
    with pytest.raises(Refused, match="not TOML"):
        read_mapping(path)


def test_an_outcome_column_without_words_is_refused():
    with pytest.raises(Refused, match="words need a meaning"):
        mapping_from({"columns": {"submit": "t", "duration": "d", "outcome": "o"}})


def test_a_section_that_is_a_value_is_refused():
    with pytest.raises(Refused, match="a section, not a value"):
        mapping_from({"columns": "submit"})


@pytest.mark.parametrize("content", [b"columns]", b"\xff\xfe"])
def test_a_file_that_is_not_toml_is_refused(tmp_path, content):
    path = tmp_path / "mapping.toml"
    path.write_bytes(content)
    with pytest.raises(Refused, match="not TOML"):
        read_mapping(path)


def test_a_mapping_file_that_is_absent_is_refused(tmp_path):
    with pytest.raises(Refused, match="cannot be read"):
        read_mapping(tmp_path / "absent.toml")
