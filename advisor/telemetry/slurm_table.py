"""What ``sacct --parsable2`` writes, as the cells of its job lines."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from advisor.errors import Refused
from advisor.telemetry.slurm_arrays import is_step
from advisor.telemetry.tables import faults_refused, open_text
from advisor.telemetry.tally import RejectionTally

__all__ = ["GPU_COLUMNS", "SACCT_COMMAND", "SacctTable", "read_sacct"]

SACCT_COMMAND = (
    "TZ=UTC SLURM_BITSTR_LEN=0 sacct --allusers --duplicates --parsable2 --starttime=now-90days "
    "--format=JobID,State,Submit,Start,End,Elapsed,Timelimit,AllocTRES,ReqTRES,NNodes,AllocCPUS,ReqCPUS,"
    "Priority,User,Account,Partition,JobName > jobs.txt"
)
"""The command line that gives everything that is read of Slurm; the name comes last, since it may hold anything."""

GPU_COLUMNS = ("alloctres", "allocgres", "reqtres", "reqgres")
"""Where GPUs may be named, the first to be asked first; one of them is needed."""

_NEEDED = {"jobid": "JobID", "state": "State", "submit": "Submit", "start": "Start", "end": "End"}
# Cells that may hold a "|" of their own; with more than one of them nobody can tell whose it is.
_FREE_TEXT = frozenset(
    {"jobname", "admincomment", "comment", "systemcomment", "constraints", "extra", "submitline", "workdir", "wckey",
     "reason", "stdin", "stdout", "stderr", "container"}
)  # fmt: skip
_LONGEST_HEADER = 200


@dataclass(frozen=True, slots=True)
class SacctTable:
    """Job lines of one file: ``at`` says in which cell a column (in lower case) stands; rows count below the header.

    ``total`` counts all lines below the header, those of steps too.
    """

    at: Mapping[str, int]
    rows: list[tuple[int, list[str]]]
    total: int


def read_sacct(path: Path, tally: RejectionTally) -> SacctTable:
    """The job lines of the file at ``path``, plain or gzipped; steps and repeated headers are passed over.

    Lines that do not fit the header are counted in ``tally``.

    Raises:
        Refused: the file cannot be read, lacks a column (the message gives the command line that has all), or
            holds jobs of several clusters.
    """
    with faults_refused(path, "Slurm file"), open_text(path, newline="\n") as file:
        heading = next(file, "").rstrip("\r\n")
        names = [name.strip().lower() for name in heading.split("|")]
        at = {name: names.index(name) for name in names if name}
        _check(path, heading, at)
        counter = _Lines(heading, len(names), at, tally)
        rows = list(counter.jobs(file))
    if "cluster" in at:
        _check_one_cluster(path, sorted({cells[at["cluster"]].strip() for _, cells in rows}))
    return SacctTable(at, rows, counter.total)


def _check(path: Path, heading: str, at: Mapping[str, int]) -> None:
    remedy = f"Write it with: {SACCT_COMMAND} (one line)"
    if not heading:
        raise Refused("slurm", str(path), "the file is empty, without even a header", remedy)
    there = heading if len(heading) <= _LONGEST_HEADER else heading[: _LONGEST_HEADER - 1] + "…"
    missing = [name for key, name in _NEEDED.items() if key not in at]
    if not missing and not any(column in at for column in GPU_COLUMNS):
        missing = ["AllocTRES"]
    if missing:
        limit = f"{path.name} has no column {', '.join(missing)}; its header is {there}"
        raise Refused("columns", missing[0], limit, remedy)


def _check_one_cluster(path: Path, clusters: list[str]) -> None:
    if len(clusters) > 1:
        limit = f"{path.name} holds jobs of the clusters {', '.join(clusters[:10])}, whose ids may be the same"
        remedy = "Write a file for each (sacct --clusters=NAME), and read each with a --source of its own."
        raise Refused("slurm", str(path), limit, remedy)


class _Lines:
    """Goes through the lines once."""

    def __init__(self, heading: str, width: int, at: Mapping[str, int], tally: RejectionTally) -> None:
        self.total = 0
        self._heading = heading
        self._width = width
        self._id = at["jobid"]
        self._tally = tally
        free = _FREE_TEXT & at.keys()
        self._name = at["jobname"] if free == {"jobname"} else None

    def jobs(self, lines: Iterator[str]) -> Iterator[tuple[int, list[str]]]:
        """Number and cells of every job line."""
        for row, line in enumerate(lines, start=1):
            self.total = row
            text = line.rstrip("\r\n")
            if not text or text == self._heading:
                continue
            cells = text.split("|")
            if len(cells) > self._width and self._name is not None:
                cells = self._with_whole_name(cells, self._name)
            if self._id < len(cells) and is_step(cells[self._id]):
                continue
            if len(cells) != self._width:
                example = f"row {row}: {len(cells)} cells under {self._width} headings: {cells}"
                self._tally.add("wrong_column_count", example)
                continue
            yield row, cells

    def _with_whole_name(self, cells: list[str], at: int) -> list[str]:
        """The cells, those that a name with ``|`` in it was split into joined again."""
        behind = at + 1 + len(cells) - self._width
        return [*cells[:at], "|".join(cells[at:behind]), *cells[behind:]]
