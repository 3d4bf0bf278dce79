"""How a table's columns, units, times and words are to be read; wholly checked before any row is.

::

    [columns]                 # ours = theirs; submit and one of duration and end are required
    submit = "submitted"      # times, numbers and the outcome each have a column of their own
    duration = "seconds"

    [units]
    duration = "s"            # ms, s (default), min, h
    gpus = "count"            # count (default), milli
    time = "s"                # ns, us, ms, s (default), min, h: of unix, relative and interval times

    [time]
    kind = "timestamp"        # timestamp (default), unix, relative, interval
    zone = "UTC"              # of times that carry none; UTC by default
    origin = "2017-08-07T10:03:01Z"   # for relative and interval
    format = "%d.%m.%Y %H:%M" # of timestamps that are not ISO 8601

    [outcomes]                # their words; needed with the outcome column
    completed = ["Pass"]
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from advisor.domain.jobs import Outcome
from advisor.errors import Refused

__all__ = ["COLUMN_FIELDS", "TableMapping", "TimeKind", "TimeRule", "mapping_from", "read_mapping", "zone_called"]

COLUMN_FIELDS = (
    "id",
    "submit",
    "start",
    "end",
    "duration",
    "gpus",
    "user",
    "namespace",
    "name",
    "image",
    "gpu_kind",
    "pool",
    "cpus",
    "nodes",
    "outcome",
)
"""What a column of a table may be mapped to."""

_LABELS = frozenset({"id", "user", "namespace", "name", "image", "gpu_kind", "pool"})

_DURATION_UNITS = {
    "ms": timedelta(milliseconds=1),
    "s": timedelta(seconds=1),
    "min": timedelta(minutes=1),
    "h": timedelta(hours=1),
}
# A timedelta has no nanoseconds; these are counted in seconds instead.
_TIME_UNITS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}
_GPU_UNITS = {"count": 1.0, "milli": 1000.0}
_SECTIONS = {
    "columns": set(COLUMN_FIELDS),
    "units": {"duration", "gpus", "time"},
    "time": {"kind", "zone", "origin", "format"},
    "outcomes": {str(outcome) for outcome in Outcome},
}


_Meaning = TypeVar("_Meaning")


class TimeKind(StrEnum):
    """How a table writes its times."""

    TIMESTAMP = "timestamp"
    UNIX = "unix"
    RELATIVE = "relative"
    INTERVAL = "interval"


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeRule:
    """How to read times: their kind, the zone of those without one, and where relative ones begin.

    ``unit_seconds`` is the size of one unit of a unix, relative or interval time. ``zone_stated`` is
    False where UTC was only assumed.
    """

    kind: TimeKind = TimeKind.TIMESTAMP
    zone: ZoneInfo = field(default_factory=lambda: ZoneInfo("UTC"))
    zone_stated: bool = False
    origin: datetime | None = None
    unit_seconds: float = 1.0
    format: str | None = None

    @property
    def calendar_known(self) -> bool:
        """Whether hour and weekday mean anything: not for times counted from an unknown moment."""
        return self.kind in {TimeKind.TIMESTAMP, TimeKind.UNIX} or self.origin is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class TableMapping:
    """Everything needed to read a table: ``columns`` are ours to theirs, ``outcomes`` their words to ours.

    ``gpus_divisor`` turns their GPU numbers into GPUs.
    """

    columns: Mapping[str, str]
    duration_unit: timedelta = _DURATION_UNITS["s"]
    gpus_divisor: float = 1.0
    time: TimeRule = field(default_factory=TimeRule)
    outcomes: Mapping[str, Outcome] = field(default_factory=dict)


def read_mapping(path: Path) -> TableMapping:
    """The mapping in the TOML file at ``path``.

    Raises:
        Refused: the file cannot be read, is not TOML, or says something that has no meaning here.
    """
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise Refused("mapping", str(path), "the file cannot be read", f"{error.strerror}: check the path.") from error
    except (ValueError, RecursionError) as error:
        raise Refused("mapping", str(path), f"it is not TOML: {error}", "Correct the file.") from error
    return mapping_from(document)


def mapping_from(document: Mapping[str, Any]) -> TableMapping:
    """The mapping that the parsed TOML ``document`` describes.

    Raises:
        Refused: an unknown section, key, unit, zone or kind, or a missing column; each names what is allowed.
    """
    _known_keys(document)
    columns = _columns(document.get("columns", {}))
    units: Mapping[str, Any] = document.get("units", {})
    outcomes = _outcomes(document.get("outcomes", {}))
    _check_outcomes(columns, outcomes)
    rule = _time_rule(document.get("time", {}), _choice("units.time", units.get("time", "s"), _TIME_UNITS))
    if rule.kind is TimeKind.INTERVAL:
        for ours in ("start", "end"):
            _refuse_if(
                ours in columns, f"columns.{ours}", columns.get(ours), "interval times give submissions only",
                "Map duration instead, or use another time.kind.",
            )  # fmt: skip
    return TableMapping(
        columns=columns,
        duration_unit=_choice("units.duration", units.get("duration", "s"), _DURATION_UNITS),
        gpus_divisor=_choice("units.gpus", units.get("gpus", "count"), _GPU_UNITS),
        time=rule,
        outcomes=outcomes,
    )


def _refuse_if(wrong: bool, field: str, value: object, limit: str, remedy: str) -> None:
    if wrong:
        raise Refused(field, value, limit, remedy)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))


def _known_keys(document: Mapping[str, Any]) -> None:
    for section, content in document.items():
        allowed = _SECTIONS.get(section)
        if allowed is None:
            raise Refused(
                "mapping", section, f"a mapping has the sections {_listed(_SECTIONS)}", "Correct or remove it."
            )
        if not isinstance(content, Mapping):
            raise Refused(section, content, "it is a section, not a value", f"Write [{section}] on a line of its own.")
        for key, value in content.items():
            _refuse_if(
                key not in allowed, f"{section}.{key}", value, f"[{section}] knows {_listed(allowed)}",
                "Correct or remove it.",
            )  # fmt: skip


def _columns(section: Mapping[str, Any]) -> dict[str, str]:
    for ours, theirs in section.items():
        _refuse_if(
            not (isinstance(theirs, str) and theirs.strip()), f"columns.{ours}", theirs,
            "it must be the name of a column, as text", "Write the name from the file's header in quotes.",
        )  # fmt: skip
    _refuse_if(
        "submit" not in section, "columns.submit", None, "the time of submission is required",
        'Name its column, for instance submit = "submitted".',
    )  # fmt: skip
    _refuse_if(
        not {"duration", "end"} & set(section), "columns.duration", None, "duration or end is required",
        'Name one of the columns, for instance duration = "seconds".',
    )  # fmt: skip
    columns = {ours: theirs.strip() for ours, theirs in section.items()}
    _check_shared(columns)
    return columns


def _check_shared(columns: Mapping[str, str]) -> None:
    """One label may say two things, such as namespace and pool; one time or number read as two would be a slip.

    Were start the column of submit too, for instance, every job would seem never to have waited.
    """
    first: dict[str, str] = {}
    for ours, theirs in columns.items():
        other = first.setdefault(theirs, ours)
        _refuse_if(
            other != ours and not {ours, other} <= _LABELS, f"columns.{ours}", theirs,
            f"the column is mapped to {other} already, and only {_listed(_LABELS)} may share one",
            f"Name another column, or leave out {ours} or {other}.",
        )  # fmt: skip


def _choice(field: str, value: object, meanings: Mapping[str, _Meaning]) -> _Meaning:
    if not isinstance(value, str) or value not in meanings:
        raise Refused(field, value, f"it is one of {', '.join(meanings)}", "Use one of them.")
    return meanings[value]


def _time_rule(section: Mapping[str, Any], unit_seconds: float) -> TimeRule:
    kind = _choice("time.kind", section.get("kind", "timestamp"), {str(kind): kind for kind in TimeKind})
    zone = zone_called("time.zone", section.get("zone", "UTC"))
    layout = section.get("format")
    _refuse_if(
        layout is not None and not (isinstance(layout, str) and "%" in layout), "time.format", layout,
        "it is a strptime layout", 'Write for instance "%d.%m.%Y %H:%M:%S", or leave it out for ISO 8601.',
    )  # fmt: skip
    return TimeRule(
        kind=kind,
        zone=zone,
        zone_stated="zone" in section,
        origin=_origin(section.get("origin"), zone),
        unit_seconds=unit_seconds,
        format=layout,
    )


def zone_called(field: str, name: object) -> ZoneInfo:
    """The time zone of an IANA ``name``, given for ``field``.

    Raises:
        Refused: it is no text, or no such zone is known.
    """
    remedy = "Write an IANA name such as UTC or Europe/Berlin."
    if not isinstance(name, str):
        raise Refused(field, name, "it must be text", remedy)
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise Refused(field, name, "no such time zone is known", remedy) from error


def _origin(value: object, zone: ZoneInfo) -> datetime | None:
    if value is None:
        return None
    try:
        moment = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
    except ValueError as error:
        raise Refused(
            "time.origin", value, "it must be an ISO 8601 time", 'Write for instance "2017-08-07T10:03:01Z".'
        ) from error
    return (moment if moment.tzinfo is not None else moment.replace(tzinfo=zone)).astimezone(UTC)


def _outcomes(section: Mapping[str, Any]) -> dict[str, Outcome]:
    words: dict[str, Outcome] = {}
    for outcome, listed in section.items():
        field = f"outcomes.{outcome}"
        if not isinstance(listed, list) or any(isinstance(w, bool) or not isinstance(w, str | int) for w in listed):
            raise Refused(field, listed, "it must be a list of words", f'Write {outcome} = ["Word", "Other word"].')
        for word in (str(each).strip() for each in listed):
            _refuse_if(
                words.get(word, outcome) != outcome, field, word, f"the word already means {words.get(word)}",
                "List it once.",
            )  # fmt: skip
            words[word] = Outcome(outcome)
    return words


def _check_outcomes(columns: Mapping[str, str], outcomes: Mapping[str, Outcome]) -> None:
    _refuse_if(
        "outcome" in columns and not outcomes, "outcomes", None, "the outcome column's words need a meaning",
        'Add [outcomes] with for instance completed = ["Pass"].',
    )  # fmt: skip
    _refuse_if(
        "outcome" not in columns and bool(outcomes), "columns.outcome", None, "[outcomes] needs an outcome column",
        "Name the column, or remove [outcomes].",
    )  # fmt: skip
