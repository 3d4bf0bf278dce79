"""Demand series from a file: a table with a row a moment, read by a mapping that says which column is what.

::

    [series]
    time = "time"
    zone = "UTC"                      # of times that carry none; also the zone of hours and weekdays
    kind = "timestamp"                # timestamp (default), unix or relative
    unit = "s"                        # of unix and relative times: ms, s (default), min, h, d
    origin = "2026-03-01T00:00:00Z"   # of relative times; without it calendar features stay off
    pool = "vcMod"                    # a name, or column = "..." to read it from each row
    running = "running_gpu_num"
    pending = "pending_gpu_num"       # optional; without it demand is what ran
    idle = "idle_gpu_num"             # optional, as is capacity
    running_jobs = "running_job_num"  # optional, as are pending_jobs, running_small_gpus, pending_small_gpus
    state = ["any_other_column"]      # optional further state
    gpus_per_node = 8
"""

from __future__ import annotations

import tomllib
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from advisor.errors import Refused
from advisor.features.demand import KNOWN_STATE, DemandSeries
from advisor.features.demand_calendar import seconds_from_local, zone_named
from advisor.features.demand_holes import without_holes

__all__ = ["SeriesMapping", "read_series", "read_series_mapping"]

Floats = NDArray[np.float64]
Seconds = NDArray[np.int64]

_UNITS = {"ms": 0.001, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86_400.0}
_KINDS = ("timestamp", "unix", "relative")
_GPU_ROWS = ("running", "pending", "idle", "capacity")
_TEXT_KEYS = {"time", "zone", "kind", "unit", "origin", "pool", "column", *_GPU_ROWS, *KNOWN_STATE}
_KEYS = _TEXT_KEYS | {"state", "gpus_per_node"}
_MOST_SAMPLES = 20_000_000
_ANCHOR = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True, kw_only=True)
class SeriesMapping:
    """Which column is what. ``rows`` are our names to theirs; ``pool_column`` wins over ``pool``."""

    time: str
    rows: Mapping[str, str]
    pool: str = "default"
    pool_column: str | None = None
    zone: str = "UTC"
    kind: str = "timestamp"
    unit_seconds: float = 1.0
    origin: datetime | None = None
    node_gpus: int = 8

    @property
    def columns(self) -> tuple[str, ...]:
        """Every column that must be in the file."""
        own = (self.time, *self.rows.values())
        return own if self.pool_column is None else (*own, self.pool_column)


def read_series_mapping(path: Path) -> SeriesMapping:
    """The mapping in the TOML file at ``path``.

    Raises:
        Refused: the file cannot be read, or says something that has no meaning here.
    """
    try:
        document = tomllib.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise Refused("mapping", str(path), "the file cannot be read", "Check the path.") from error
    except (ValueError, RecursionError) as error:
        raise Refused("mapping", str(path), f"it is not TOML: {error}", "Correct the file.") from error
    unknown = sorted(set(document) - {"series"})
    if unknown or not isinstance(document.get("series"), dict):
        raise Refused("mapping", unknown, "a demand series has one section, [series]", "Write its keys there.")
    return _mapping_from(document["series"])


def read_series(path: Path, mapping_path: Path) -> list[DemandSeries]:
    """Every pool's demand in the table at ``path``, on an even grid in UTC, pools in order of name.

    Missing moments and cells that cannot be read are gaps; what was assumed is in each series' notes.

    Raises:
        Refused: the file or the mapping cannot be read, or they do not fit each other.
    """
    mapping = read_series_mapping(mapping_path)
    table = _table(path, mapping)
    if mapping.pool_column is None:
        return [_series(table, mapping.pool, mapping)]
    pools = table[mapping.pool_column].fillna("").str.strip()
    return [_series(table[pools == name], str(name), mapping) for name in sorted(set(pools) - {""})]


def _mapping_from(section: Mapping[str, Any]) -> SeriesMapping:
    for key, value in section.items():
        if key not in _KEYS:
            raise Refused(f"series.{key}", value, f"[series] knows {', '.join(sorted(_KEYS))}", "Correct or remove it.")
        if key in _TEXT_KEYS and key not in {"pool", "origin"} and not (isinstance(value, str) and value.strip()):
            raise Refused(f"series.{key}", value, "it must be text", "Write the name in quotes.")
    for key in ("time", "running"):
        if key not in section:
            raise Refused(f"series.{key}", None, "the column is required", f'Name it, for instance {key} = "{key}".')
    pool, pool_column = _pool(section)
    rows = {key: str(section[key]) for key in (*_GPU_ROWS, *KNOWN_STATE) if key in section}
    state = _state(section.get("state", []))
    _check_shared({"time": str(section["time"])} | ({"column": pool_column} if pool_column else {}) | rows, state)
    zone = str(section.get("zone", "UTC"))
    zone_named(zone)
    return SeriesMapping(
        time=str(section["time"]),
        rows=rows | {name: name for name in state},
        pool=pool,
        pool_column=pool_column,
        zone=zone,
        kind=_choice("kind", section.get("kind", "timestamp"), _KINDS),
        unit_seconds=_UNITS[_choice("unit", section.get("unit", "s"), tuple(_UNITS))],
        origin=_origin(section.get("origin")),
        node_gpus=_node_gpus(section.get("gpus_per_node", 8)),
    )


def _pool(section: Mapping[str, Any]) -> tuple[str, str | None]:
    """The pool's name, or the column it stands in: ``pool = "x"``, ``pool = {column = "c"}`` or ``column = "c"``."""
    pool: Any = section.get("pool", "default")
    column = section.get("column")
    if isinstance(pool, dict) and set(pool) == {"column"}:
        pool, column = "default", pool["column"]
    if not isinstance(pool, str) or not pool.strip() or not isinstance(column, str | None):
        raise Refused("series.pool", pool, "it is a name, or a column", 'Write pool = "name" or column = "...".')
    return pool, column


def _state(listed: object) -> list[str]:
    if not isinstance(listed, list) or not all(isinstance(name, str) for name in listed):
        raise Refused("series.state", listed, "it is a list of columns", 'Write state = ["column"].')
    return listed


def _check_shared(columns: Mapping[str, str], state: list[str]) -> None:
    """No column counts twice: GPUs that run and wait at once would double the demand.

    A further state column may not bear one of our own names either, unless it is that very column.
    """
    first: dict[str, str] = {}
    for ours, theirs in columns.items():
        other = first.setdefault(theirs, ours)
        if other != ours:
            limit = f"the column is mapped to {other} already"
            raise Refused(f"series.{ours}", theirs, limit, f"Name another column, or leave out {ours} or {other}.")
    for name in state:
        taken = first.get(name, name if name in columns and name not in ("time", "column") else None)
        if taken is not None:
            raise Refused("series.state", name, f"it is taken by {taken} already", "Leave it out of the list.")


def _choice(key: str, value: object, allowed: tuple[str, ...]) -> str:
    if value not in allowed:
        raise Refused(f"series.{key}", value, f"it is one of {', '.join(allowed)}", "Use one of them.")
    return str(value)


def _origin(value: object) -> datetime | None:
    if value is None:
        return None
    try:
        moment = value if isinstance(value, datetime) else datetime.fromisoformat(str(value))
    except ValueError as error:
        raise Refused("series.origin", value, "it is an ISO 8601 time", 'Write "2026-03-01T00:00:00Z".') from error
    return moment.replace(tzinfo=UTC) if moment.tzinfo is None else moment.astimezone(UTC)


def _node_gpus(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise Refused("series.gpus_per_node", value, "a node has a whole number of GPUs, at least 1", "Write 8.")
    return value


def _table(path: Path, mapping: SeriesMapping) -> pd.DataFrame:
    """The mapped columns as text."""
    try:
        if path.suffix == ".parquet":
            table = pd.read_parquet(path).astype("string")
        else:
            table = pd.read_csv(path, dtype="string", skipinitialspace=True)
    except (OSError, EOFError, ValueError, zlib.error) as error:
        raise Refused("series", str(path), f"the file cannot be read: {error}", "Check the path and file.") from error
    table.columns = [str(name).strip() for name in table.columns]
    missing = [name for name in mapping.columns if name not in table.columns]
    if missing:
        limit = f"the file has the columns {', '.join(table.columns)}"
        raise Refused("series", missing[0], limit, "Correct the name in the mapping.")
    if table.empty:
        raise Refused("series", str(path), "the file holds no rows", "Give a file with at least one moment.")
    return table[list(dict.fromkeys(mapping.columns))]


def _series(table: pd.DataFrame, pool: str, mapping: SeriesMapping) -> DemandSeries:
    unix, notes = _times(table[mapping.time], mapping)
    readable = unix >= 0
    if not readable.any():
        raise Refused("series.time", mapping.time, "none of its cells is a time", "Name the column with the times.")
    notes += [f"rows of pool {pool} without a readable time: {int((~readable).sum())}"] if not readable.all() else []
    grid = _Grid.over(unix[readable])
    rows: dict[str, Floats] = {}
    unread = 0
    for ours, theirs in mapping.rows.items():
        values = pd.to_numeric(table[theirs], errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)[readable]
        bad = ~np.isfinite(values) | (values < 0)
        unread += int(bad.sum())
        rows[ours] = grid.placed(np.where(bad, np.nan, values))
    notes += [f"{unread} cells of pool {pool} are no numbers of 0 or more: taken as gaps"] if unread else []
    if "pending" not in rows:
        notes.append(f"pool {pool} has no pending GPUs: the forecast is of running GPUs alone")
    series = DemandSeries(
        pool=pool,
        start=datetime.fromtimestamp(grid.first, UTC),
        step_minutes=grid.step // 60,
        running=rows.pop("running"),
        pending=rows.pop("pending", None),
        idle=rows.pop("idle", None),
        capacity=rows.pop("capacity", None),
        state=rows,
        node_gpus=mapping.node_gpus,
        zone=mapping.zone,
        calendar_known=mapping.kind != "relative" or mapping.origin is not None,
        notes=tuple(notes),
    )
    return without_holes(series)


@dataclass(frozen=True, slots=True)
class _Grid:
    """Even moments over irregular rows: ``place`` is each row's sample."""

    first: int
    step: int
    count: int
    place: NDArray[np.int64]

    @classmethod
    def over(cls, unix: Seconds) -> _Grid:
        """The grid of the usual distance of rows, in whole minutes."""
        moments = np.unique(unix)
        usual = float(np.median(np.diff(moments))) if moments.size > 1 else 60.0
        step = max(60, round(usual / 60.0) * 60)
        first = int(moments[0])
        place = np.round((unix - first) / step).astype(np.int64)
        count = int(place.max()) + 1
        if count > _MOST_SAMPLES:
            limit = f"from first to last row there are {count} steps of {step // 60} min"
            raise Refused("series.time", int(moments[-1]), limit, "Check the time column, its kind and its unit.")
        return cls(first, step, count, place)

    def placed(self, values: Floats) -> Floats:
        """Values on the grid; of several rows in one sample the last known one counts, and none is a gap."""
        row = np.full(self.count, np.nan)
        known = ~np.isnan(values)
        row[self.place[known]] = values[known]
        return row


def _times(cells: pd.Series[str], mapping: SeriesMapping) -> tuple[Seconds, list[str]]:
    """UTC seconds of each row, -1 where they cannot be read, and what had to be assumed."""
    if mapping.kind != "timestamp":
        counted = pd.to_numeric(cells, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
        origin = mapping.origin or _ANCHOR
        begin = origin.timestamp() if mapping.kind == "relative" else 0.0
        known = np.isfinite(counted)
        seconds = np.where(known, np.round(np.where(known, counted, 0.0) * mapping.unit_seconds + begin), -1)
        relative = mapping.kind == "relative" and mapping.origin is None
        return seconds.astype(np.int64), ["times are relative: hours and weekdays are not known"] if relative else []
    return _timestamps(cells, mapping)


def _timestamps(cells: pd.Series[str], mapping: SeriesMapping) -> tuple[Seconds, list[str]]:
    zoned = cells.str.contains(r"(?:Z|[+-]\d\d:?\d\d)\s*$", regex=True).fillna(value=False)
    seconds = np.full(len(cells), -1, dtype=np.int64)
    seconds[zoned.to_numpy()] = _unix(pd.to_datetime(cells[zoned], errors="coerce", utc=True, format="ISO8601"))
    plain = ~zoned.to_numpy()
    local = _unix(pd.to_datetime(cells[plain], errors="coerce", format="ISO8601"))
    read = seconds_from_local(local[local >= 0], zone_named(mapping.zone))
    local[local >= 0] = read.unix
    seconds[plain] = local
    notes = []
    if read.ambiguous:
        notes.append(f"times that happen twice as clocks go back, told apart by their order: {read.ambiguous}")
    if read.missing:
        notes.append(f"times that never happen as clocks go forward, read with the offset before: {read.missing}")
    return seconds, notes


def _unix(moments: pd.Series[pd.Timestamp]) -> Seconds:
    """Seconds since 1970, -1 where a moment is missing."""
    plain = moments.dt.tz_localize(None) if moments.dt.tz is not None else moments
    counted = plain.to_numpy(dtype="datetime64[s]").astype(np.int64)
    return np.where(plain.isna().to_numpy(), -1, counted)
