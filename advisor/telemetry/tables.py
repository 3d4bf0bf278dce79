"""Tables in files, as rows of text: CSV (also gzipped) and Parquet."""

from __future__ import annotations

import csv
import gzip
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import pyarrow as pa
import pyarrow.parquet as pq

from advisor.errors import Refused
from advisor.telemetry.tally import RejectionTally

__all__ = ["TableFile", "TraceTable", "faults_refused", "open_text"]

_GZIP = b"\x1f\x8b"
_PARQUET = b"PAR1"


@dataclass(frozen=True, slots=True)
class TraceTable:
    """A table as text: ``rows`` are (number below the header, cells), each as long as ``header``."""

    header: tuple[str, ...]
    rows: list[tuple[int, list[str]]]


class TableFile:
    """One file that holds a table; what kind it is, is read off its first bytes."""

    def __init__(self, path: Path) -> None:
        """Look at the beginning of the file.

        Raises:
            Refused: there is no such file, or it cannot be read.
        """
        self._path = path
        with faults_refused(path), path.open("rb") as file:
            self._begins = file.read(4)

    def header(self) -> tuple[str, ...]:
        """The names of the columns, without surrounding blanks.

        Raises:
            Refused: the file is damaged or empty.
        """
        with faults_refused(self._path):
            names = pq.read_schema(self._path).names if self._is_parquet else self._csv_header()
        if not names:
            raise Refused("trace", str(self._path), "the file is empty", "Give a file with a header and jobs.")
        return tuple(name.strip() for name in names)

    def read(self, columns: Sequence[str], tally: RejectionTally) -> TraceTable:
        """The rows, reduced to ``columns`` of the header and in their order.

        Rows that cannot be split into as many cells as the header has are counted in ``tally``.

        Raises:
            Refused: the file is damaged, or it holds no rows.
        """
        positions = [self.header().index(column) for column in columns]
        with faults_refused(self._path):
            rows = self._parquet_rows(positions) if self._is_parquet else self._csv_rows(positions, tally)
        if not rows and not tally.total:
            raise Refused("trace", str(self._path), "the file holds no rows", "Give a file with at least one job.")
        return TraceTable(tuple(columns), rows)

    @property
    def _is_parquet(self) -> bool:
        return self._begins == _PARQUET

    def _csv_header(self) -> list[str]:
        with open_text(self._path) as file:
            return next(csv.reader(file), [])

    def _csv_rows(self, positions: list[int], tally: RejectionTally) -> list[tuple[int, list[str]]]:
        with open_text(self._path) as file:
            reader = csv.reader(line.replace("\0", "") for line in file)
            width = len(next(reader, []))
            rows = []
            for at, cells in enumerate(_readable(reader, tally), start=1):
                if len(cells) == width:
                    rows.append((at, [cells[position] for position in positions]))
                elif cells:
                    tally.add("wrong_column_count", f"row {at}: {len(cells)} cells under {width} headings: {cells}")
        return rows

    def _parquet_rows(self, positions: list[int]) -> list[tuple[int, list[str]]]:
        names = pq.read_schema(self._path).names
        table = pq.read_table(self._path, columns=[names[position] for position in positions])
        columns = [self._as_text(names[position], table.column(names[position])) for position in positions]
        return [(at, list(cells)) for at, cells in enumerate(zip(*columns, strict=True), start=1)]

    def _as_text(self, name: str, column: pa.ChunkedArray) -> list[str]:
        """The cells as CSV would hold them; null is empty text."""
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        if pa.types.is_duration(column.type) or pa.types.is_nested(column.type):
            raise Refused(
                f"column {name}", str(column.type), f"{self._path.name} holds it as a type without plain text",
                "Write it as a number or as text.",
            )  # fmt: skip
        return ["" if text is None else text for text in column.cast(pa.string()).to_pylist()]


def open_text(path: Path, newline: str = "") -> IO[str]:
    """The file as text, unpacked where it is gzipped; ``newline`` as for :func:`open`.

    A byte that is not UTF-8 spoils one name, not the file.
    """
    with path.open("rb") as file:
        packed = file.read(2) == _GZIP
    if packed:
        return gzip.open(path, "rt", encoding="utf-8-sig", errors="replace", newline=newline)
    return path.open(encoding="utf-8-sig", errors="replace", newline=newline)


@contextmanager
def faults_refused(path: Path, what: str = "trace") -> Iterator[None]:
    """What reading a file may raise, as a refusal of ``what`` was given."""
    try:
        yield
    except (OSError, EOFError, zlib.error, csv.Error, pa.ArrowException) as error:
        why = getattr(error, "strerror", None) or str(error) or type(error).__name__
        raise Refused(what, str(path), f"the file cannot be read: {why}", "Check path and file.") from error


def _readable(reader: Iterator[list[str]], tally: RejectionTally) -> Iterator[list[str]]:
    """The rows that can be split at all; the reader goes on behind one that cannot."""
    while True:
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            tally.add("unreadable_row", f"line {getattr(reader, 'line_num', '?')}: {error}")
            yield []
        else:
            yield cells
