"""The OpenB pod list: one Kubernetes pod a row, times in seconds from an unknown moment.

What its phases mean for a job, as the data show it:

- ``Succeeded`` and ``Failed`` ended by themselves at their deletion.
- ``Running`` says how the pod stood when it was deleted: somebody cancelled it, and its GPUs became free.
- ``Pending`` was deleted without ever having been scheduled: cancelled, no start.
- A pod that was not yet gone when the list was cut carries the list's last time as its deletion, or none.
  Where that is the only sign of an end (``Running``, ``Pending``), the end is not known: censored.
"""

from __future__ import annotations

from advisor.domain.jobs import Outcome
from advisor.telemetry.mapping import TableMapping, TimeKind, TimeRule
from advisor.telemetry.tables import TraceTable
from advisor.telemetry.times import number

__all__ = ["OPENB_COLUMNS", "OPENB_MAPPING", "OPENB_NOTES", "prepare_openb"]

OPENB_COLUMNS = (
    "name",
    "cpu_milli",
    "num_gpu",
    "gpu_milli",
    "gpu_spec",
    "pod_phase",
    "creation_time",
    "deletion_time",
    "scheduled_time",
)
"""The columns read."""

_STILL_THERE = "still there"
_UNKNOWN = -1.0

OPENB_MAPPING = TableMapping(
    columns={
        "id": "name",
        "submit": "creation_time",
        "start": "scheduled_time",
        "end": "deletion_time",
        "gpus": "gpus",
        "cpus": "cpus",
        "gpu_kind": "gpu_spec",
        "outcome": "pod_phase",
    },
    gpus_divisor=1000.0,
    time=TimeRule(kind=TimeKind.RELATIVE),
    outcomes={
        "Succeeded": Outcome.COMPLETED,
        "Failed": Outcome.FAILED,
        "Running": Outcome.CANCELLED,
        "Pending": Outcome.CANCELLED,
        _STILL_THERE: Outcome.CENSORED,
    },
)
"""How the prepared list is read."""

OPENB_NOTES = (
    "pods deleted while Running count as cancelled, pods deleted while Pending as cancelled before their start",
    "pods that lasted to the end of the list are censored there",
    "pods without GPUs are left out (no_gpus)",
)
"""What reading the list takes for granted."""


def prepare_openb(table: TraceTable) -> TraceTable:
    """The list with GPUs (in thousandths) and CPUs worked out, and pods marked that were still there at its end."""
    at = {name: table.header.index(name) for name in OPENB_COLUMNS}
    last = max((_value(cells[at["deletion_time"]]) for _, cells in table.rows), default=_UNKNOWN)
    rows = []
    for row, cells in table.rows:
        prepared = [*cells, _gpu_milli(cells[at["num_gpu"]], cells[at["gpu_milli"]]), _cpus(cells[at["cpu_milli"]])]
        if cells[at["pod_phase"]] in {"Running", "Pending"} and _value(cells[at["deletion_time"]]) in {last, _UNKNOWN}:
            prepared[at["pod_phase"]] = _STILL_THERE
        rows.append((row, prepared))
    return TraceTable((*table.header, "gpus", "cpus"), rows)


def _value(text: str) -> float:
    try:
        return number(text)
    except ValueError:
        return _UNKNOWN


def _gpu_milli(count: str, milli_each: str) -> str:
    """The product of both; what is no number is passed on as it stands, to be counted and shown."""
    try:
        return repr(number(count) * (number(milli_each) if number(count) else 0.0))
    except ValueError:
        return f"{count} x {milli_each}"


def _cpus(milli: str) -> str:
    try:
        return repr(number(milli) / 1000.0)
    except ValueError:
        return ""
