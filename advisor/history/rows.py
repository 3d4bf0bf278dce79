"""A job as one row of plain numbers and text, the same in the database and in a snapshot.

Times are whole microseconds since 1970-01-01 UTC: exact for every :class:`datetime`, ordered as the
times are, and several times faster to write and read than the database's own date types.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from advisor.domain.accounts import EndTold, JobAccount, JobRun
from advisor.domain.jobs import Job, Outcome
from advisor.domain.usage import ComputeSource, GpuUsage

__all__ = [
    "ACCOUNT_COLUMNS",
    "COLUMNS",
    "SOURCED",
    "USAGE_COLUMNS",
    "Row",
    "account_of",
    "account_row",
    "from_microseconds",
    "job_of",
    "row_of",
    "to_microseconds",
]

Row = tuple[Any, ...]
"""One value per name of :data:`COLUMNS`, or of :data:`SOURCED`; None where unknown."""

USAGE_COLUMNS: tuple[str, ...] = (
    "usage_compute_mean",
    "usage_compute_p95",
    "usage_compute_peak",
    "usage_compute_source",
    "usage_memory_peak_bytes",
    "usage_energy_joules",
    "usage_idle_share",
    "usage_estimated",
)
"""The last of :data:`COLUMNS`: all None where nothing was measured; the last of them is None nowhere else."""

COLUMNS: tuple[str, ...] = (
    "id",
    "submit_us",
    "gpus",
    "start_us",
    "end_us",
    "outcome",
    "last_seen_us",
    "user",
    "namespace",
    "name",
    "image",
    "gpu_kind",
    "pool",
    "cpus",
    "nodes",
    "priority",
    "time_limit_seconds",
    "start_assumed",
    "calendar_known",
    "scheduled_us",
    "created_by",
    "restarts",
    "evictions",
    "paused_seconds",
    "image_pull_seconds",
    "told_by_node",
    *USAGE_COLUMNS,
)
"""What a source tells of a job."""

SOURCED: tuple[str, ...] = (*COLUMNS, "source")
"""The same and whose job it is: everything that is kept of it."""

ACCOUNT_COLUMNS: tuple[str, ...] = ("end_told", "runs")
"""How a source came to know of a job, beside its row: who told its end, None for itself, and its runs where several."""

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_OUTCOMES = {str(outcome): outcome for outcome in Outcome}
_COMPUTE_SOURCES = {str(source): source for source in ComputeSource}
_BEFORE_USAGE, _TOLD = len(COLUMNS) - len(USAGE_COLUMNS), len(COLUMNS)
_NOT_MEASURED: Row = (None,) * len(USAGE_COLUMNS)


def to_microseconds(moment: datetime) -> int:
    """Whole microseconds from 1970-01-01 UTC to ``moment`` (aware); negative before."""
    return (moment - _EPOCH) // _MICROSECOND


def from_microseconds(count: int) -> datetime:
    """The UTC moment ``count`` microseconds after 1970-01-01 UTC."""
    return _EPOCH + timedelta(microseconds=count)


def _count(moment: datetime | None) -> int | None:
    return None if moment is None else (moment - _EPOCH) // _MICROSECOND


def _moment(count: int | None) -> datetime | None:
    return None if count is None else _EPOCH + timedelta(microseconds=count)


def _number(value: float | None) -> float | None:
    return None if value is None else float(value)


def row_of(job: Job) -> Row:
    """``job`` as a row in the order of :data:`COLUMNS`."""
    return (
        job.id,
        to_microseconds(job.submit),
        float(job.gpus),
        _count(job.start),
        _count(job.end),
        None if job.outcome is None else str(job.outcome),
        _count(job.last_seen),
        job.user,
        job.namespace,
        job.name,
        job.image,
        job.gpu_kind,
        job.pool,
        _number(job.cpus),
        job.nodes,
        job.priority,
        _number(job.time_limit_seconds),
        job.start_assumed,
        job.calendar_known,
        _count(job.scheduled),
        job.created_by,
        job.restarts,
        job.evictions,
        float(job.paused_seconds),
        _number(job.image_pull_seconds),
        ",".join(job.told_by_node) or None,
        *(_NOT_MEASURED if job.usage is None else _usage_row(job.usage)),
    )


def _usage_row(usage: GpuUsage) -> Row:
    return (
        _number(usage.compute_mean),
        _number(usage.compute_p95),
        _number(usage.compute_peak),
        None if usage.compute_source is None else str(usage.compute_source),
        _number(usage.memory_peak_bytes),
        _number(usage.energy_joules),
        _number(usage.idle_share),
        usage.estimated,
    )


def job_of(row: Row) -> Job:
    """The job of a row in the order of :data:`SOURCED`, or of :data:`COLUMNS`: then it has no source.

    Raises:
        Refused: the row breaks a rule of :class:`~advisor.domain.jobs.Job`.
    """
    identity, submit, gpus, start, end, outcome, last_seen, *told = row[:_BEFORE_USAGE]
    user, namespace, name, image, gpu_kind, pool, cpus, nodes, priority, time_limit_seconds, *more = told
    start_assumed, calendar_known, scheduled, *runs = more
    created_by, restarts, evictions, paused_seconds, image_pull_seconds, told_by_node = runs
    return Job(
        id=identity,
        submit=from_microseconds(submit),
        gpus=gpus,
        start=_moment(start),
        end=_moment(end),
        outcome=None if outcome is None else _OUTCOMES[outcome],
        last_seen=_moment(last_seen),
        user=user,
        namespace=namespace,
        name=name,
        image=image,
        gpu_kind=gpu_kind,
        pool=pool,
        cpus=cpus,
        nodes=nodes,
        priority=priority,
        time_limit_seconds=time_limit_seconds,
        start_assumed=start_assumed,
        calendar_known=calendar_known,
        scheduled=_moment(scheduled),
        created_by=created_by,
        restarts=restarts,
        evictions=evictions,
        paused_seconds=paused_seconds,
        image_pull_seconds=image_pull_seconds,
        told_by_node=() if told_by_node is None else tuple(told_by_node.split(",")),
        usage=_usage_of(row[_BEFORE_USAGE:_TOLD]),
        source=row[_TOLD] if len(row) > _TOLD else None,
    )


def _usage_of(values: Row) -> GpuUsage | None:
    *numbers, source, memory_peak_bytes, energy_joules, idle_share, estimated = values
    if estimated is None:
        return None
    compute_mean, compute_p95, compute_peak = numbers
    return GpuUsage(
        compute_mean=compute_mean,
        compute_p95=compute_p95,
        compute_peak=compute_peak,
        compute_source=None if source is None else _COMPUTE_SOURCES[source],
        memory_peak_bytes=memory_peak_bytes,
        energy_joules=energy_joules,
        idle_share=idle_share,
        estimated=estimated,
    )


def account_row(account: JobAccount) -> Row:
    """What is kept of ``account``, in the order of :data:`ACCOUNT_COLUMNS`."""
    told = None if account.end_told is EndTold.ITSELF else str(account.end_told)
    if len(account.runs) <= 1:
        # One run is the job's own start and end.
        return (told, None)
    runs = [[_count(run.start), _count(run.end), run.failed, run.restarts] for run in account.runs]
    return (told, json.dumps(runs, separators=(",", ":")))


def account_of(values: Row) -> JobAccount:
    """The account of values in the order of :data:`ACCOUNT_COLUMNS`."""
    told, text = values
    runs = tuple(
        JobRun(start=from_microseconds(start), end=_moment(end), failed=failed, restarts=restarts)
        for start, end, failed, restarts in (() if text is None else json.loads(text))
    )
    return JobAccount(runs=runs, end_told=EndTold.ITSELF if told is None else EndTold(told))
