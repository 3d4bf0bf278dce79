"""Jobs as one immutable Parquet file named by its content: what training reads, and nothing else.

The digest is of the jobs and not of the file's bytes: the same jobs, in whatever order they come and
whichever library version writes them, have the same digest.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from advisor.domain.jobs import Job
from advisor.errors import Refused, Transient, sentences
from advisor.history.rows import SOURCED, Row, job_of, row_of

__all__ = ["DIGEST_SHOWN", "Snapshot", "jobs_digest", "read_snapshot", "write_snapshot"]

# Counts up whenever columns or their meaning change, so that digests of different meanings never meet.
_FORMAT = "gsa-jobs-3"
DIGEST_SHOWN = 16
"""Digits of a digest that people are shown, and that name a file."""
_ROW_GROUP = 100_000
_TYPES = {
    "gpus": pa.float64(),
    "cpus": pa.float64(),
    "time_limit_seconds": pa.float64(),
    "nodes": pa.int64(),
    "priority": pa.int64(),
    "restarts": pa.int64(),
    "evictions": pa.int64(),
    "paused_seconds": pa.float64(),
    "image_pull_seconds": pa.float64(),
    "usage_compute_mean": pa.float64(),
    "usage_compute_p95": pa.float64(),
    "usage_compute_peak": pa.float64(),
    "usage_memory_peak_bytes": pa.float64(),
    "usage_energy_joules": pa.float64(),
    "usage_idle_share": pa.float64(),
    "usage_estimated": pa.bool_(),
    "start_assumed": pa.bool_(),
    "calendar_known": pa.bool_(),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A written snapshot: where it lies, the SHA-256 of its content in hexadecimal, and how many jobs it holds."""

    path: Path
    digest: str
    rows: int


def write_snapshot(jobs: Iterable[Job], folder: Path) -> Snapshot:
    """Write ``jobs`` into ``folder`` as ``jobs-<digest>.parquet``; jobs that lie there already are left alone.

    The file appears whole or not at all: it is written under another name and then renamed.

    Raises:
        Transient: the folder cannot be written.
    """
    rows = _rows(jobs)
    columns = _columns(rows)
    digest = _digest(columns)
    path = folder / f"jobs-{digest[:DIGEST_SHOWN]}.parquet"
    if not path.exists():
        table = pa.table([_array(name, columns[name]) for name in SOURCED], names=list(SOURCED))
        table = table.replace_schema_metadata({"format": _FORMAT, "digest": digest})
        try:
            _write_atomically(table, path)
        except OSError as error:
            trouble = f"the snapshot {path} cannot be written: {error}"
            raise Transient(sentences(trouble, "Free space or choose a folder.")) from error
    return Snapshot(path=path, digest=digest, rows=len(rows))


def jobs_digest(jobs: Iterable[Job]) -> str:
    """What :func:`write_snapshot` calls these jobs, without writing them."""
    return _digest(_columns(_rows(jobs)))


def read_snapshot(path: Path) -> list[Job]:
    """The jobs of a snapshot, ordered by submission, then id, then source; its content is checked against its digest.

    Raises:
        Refused: there is no such file, it is not a snapshot, or its content is not what was written.
    """
    try:
        table = pq.read_table(path)
    except (OSError, pa.ArrowException) as error:
        raise Refused(
            "snapshot", str(path), f"it cannot be read: {error}", "Write a new one with gsa train."
        ) from error
    described = {key.decode(): value.decode() for key, value in (table.schema.metadata or {}).items()}
    if described.get("format") != _FORMAT:
        raise Refused(
            "snapshot", str(path), f"its format is {described.get('format')!r}, not {_FORMAT!r}", "Write a new one."
        )
    columns = {name: _values(table.column(name)) for name in SOURCED}
    if _digest(columns) != described.get("digest"):
        raise Refused("snapshot", str(path), "its content is not what was written", "Delete it and write a new one.")
    return [job_of(row) for row in zip(*columns.values(), strict=True)]


def _rows(jobs: Iterable[Job]) -> list[Row]:
    """By submission, then id, then source; jobs that share all three by everything else too."""
    rows = sorted([(*row_of(job), job.source) for job in jobs], key=_place)
    if any(_place(one) == _place(other) for one, other in pairwise(rows)):
        rows.sort(key=lambda row: (_place(row), json.dumps(row)))
    return rows


def _place(row: Row) -> tuple[object, ...]:
    return (row[1], row[0], row[-1] or "")


def _columns(rows: list[Row]) -> dict[str, list[object]]:
    if not rows:
        return {name: [] for name in SOURCED}
    return {name: list(values) for name, values in zip(SOURCED, zip(*rows, strict=True), strict=True)}


def _digest(columns: dict[str, list[object]]) -> str:
    content = hashlib.sha256(_FORMAT.encode())
    for name in SOURCED:
        # JSON writes a float as the shortest text that reads back equal, and escapes all but ASCII.
        content.update(json.dumps([name, columns[name]], separators=(",", ":")).encode("ascii"))
    return content.hexdigest()


def _array(name: str, values: list[object]) -> pa.Array:
    if name.endswith("_us"):
        return pa.array(values, type=pa.int64()).cast(pa.timestamp("us", tz="UTC"))
    return pa.array(values, type=_TYPES.get(name, pa.string()))


def _values(column: pa.ChunkedArray) -> list[object]:
    values: list[object] = (column.cast(pa.int64()) if pa.types.is_timestamp(column.type) else column).to_pylist()
    return values


def _write_atomically(table: pa.Table, path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(prefix=".jobs-", suffix=".parquet", dir=path.parent)
    unfinished = Path(name)
    try:
        with os.fdopen(handle, "wb") as file:
            pq.write_table(table, file, compression="zstd", row_group_size=_ROW_GROUP)
            file.flush()
            os.fsync(file.fileno())
        # mkstemp keeps the file to its owner; a snapshot is as readable as any file made here.
        unfinished.chmod(0o644)
        unfinished.replace(path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise
