"""A job as one row of plain numbers and text, the same in the database and in a snapshot.

Times are whole microseconds since 1970-01-01 UTC: exact for every :class:`datetime`, ordered as the
times are, and several times faster to write and read than the database's own date types.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from advisor.domain.jobs import Job, Outcome

__all__ = ["COLUMNS", "Row", "from_microseconds", "job_of", "row_of", "to_microseconds"]

Row = tuple[Any, ...]
"""One value per name of :data:`COLUMNS`, None where unknown."""

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
)

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_OUTCOMES = {str(outcome): outcome for outcome in Outcome}


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
        None if job.cpus is None else float(job.cpus),
        job.nodes,
        job.priority,
        None if job.time_limit_seconds is None else float(job.time_limit_seconds),
        job.start_assumed,
        job.calendar_known,
    )


def job_of(row: Row) -> Job:
    """The job of a row in the order of :data:`COLUMNS`.

    Raises:
        Refused: the row breaks a rule of :class:`~advisor.domain.jobs.Job`.
    """
    identity, submit, gpus, start, end, outcome, last_seen, *told, time_limit_seconds, assumed, calendar_known = row
    user, namespace, name, image, gpu_kind, pool, cpus, nodes, priority = told
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
        start_assumed=assumed,
        calendar_known=calendar_known,
    )
