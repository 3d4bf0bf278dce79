"""Runs of one Slurm job, joined, and what they are as a job of ours."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import NamedTuple

from advisor.domain.jobs import Job, Outcome
from advisor.telemetry.interpret import Unfit
from advisor.telemetry.slurm_fields import Fate

__all__ = ["EarlierRun", "SacctRun", "job_of", "joined", "knowledge", "overdue"]

_OUTCOMES = {
    Fate.COMPLETED: Outcome.COMPLETED,
    Fate.FAILED: Outcome.FAILED,
    Fate.CANCELLED: Outcome.CANCELLED,
    Fate.CUT_OFF: Outcome.CENSORED,
    Fate.REQUEUED: Outcome.CENSORED,
}
# Slurm ends a job within minutes of its limit; one that "runs" a day beyond it is a record nobody closed.
_GRACE = timedelta(days=1)


class EarlierRun(NamedTuple):
    """A run of a job before its last one; ``taken`` says that the system ended it."""

    start: datetime
    end: datetime
    taken: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SacctRun:
    """One line of accounting: one run of a job, or its waiting for one.

    ``root`` is the array it is a task of (or the job itself), ``elapsed_seconds`` how long Slurm says it
    ran without suspensions. Times are None where Slurm knows none.
    """

    row: int
    id: str
    root: str
    throttle: int | None
    fate: Fate
    submit: datetime
    start: datetime | None
    end: datetime | None
    elapsed_seconds: float | None
    time_limit_seconds: float | None
    gpus: float
    gpu_kind: str | None
    user: str | None
    namespace: str | None
    pool: str | None
    name: str | None
    cpus: float | None
    nodes: int | None
    priority: int | None
    told_by_node: tuple[str, ...] = ()
    earlier: tuple[EarlierRun, ...] = ()

    @property
    def waits(self) -> bool:
        """Whether it has neither started nor ended."""
        if self.fate is Fate.REQUEUED:
            return self.end is None
        return self.fate is Fate.WAITS or (self.fate is Fate.RUNS and self.start is None)


def knowledge(run: SacctRun) -> int:
    """How much a line knows of its run, to choose between two of the same: 0 waiting, 1 running, 2 ended.

    That it was revoked says nothing beside a line of the cluster that took it.
    """
    if run.waits or run.fate is Fate.REVOKED:
        return 0
    return 1 if run.fate is Fate.RUNS else 2


def joined(runs: Sequence[SacctRun]) -> SacctRun:
    """One run that stands for all ``runs`` of a job, given in order: the last, waiting since the first submission.

    Of ``earlier`` ones those count of which start and end are known.
    """
    return replace(runs[-1], submit=runs[0].submit, earlier=tuple(_spans(runs[:-1])))


def _spans(runs: Sequence[SacctRun]) -> Iterator[EarlierRun]:
    for run in runs:
        try:
            start, end = _life(run)
        except Unfit:
            continue
        if start is not None and end is not None and end > start:
            yield EarlierRun(start, end, taken=run.fate in {Fate.CUT_OFF, Fate.REQUEUED})


def overdue(run: SacctRun, last_event: datetime) -> bool:
    """Whether a run is said to go on long after its time limit: what Slurm calls a runaway job."""
    if run.fate is not Fate.RUNS or run.start is None or run.time_limit_seconds is None:
        return False
    return run.start + timedelta(seconds=run.time_limit_seconds) + _GRACE < last_event


def job_of(run: SacctRun, now: datetime) -> Job:
    """``run`` as a job, as far as it is known.

    A run that ended without ever having begun is a job cancelled before its start, whatever ended it.

    Raises:
        Unfit: its times contradict each other or its state, or lie after ``now``.
    """
    start, end = _life(run)
    outcome = _OUTCOMES.get(run.fate) if end is not None else None
    if end is not None and start is None:
        outcome = Outcome.CANCELLED
    _check(run, start, end)
    latest = max(moment for moment in (run.submit, start, end) if moment is not None)
    if latest > now:
        raise Unfit("future_time", f"{latest.isoformat()} lies after {now.isoformat()}: is the zone right?")
    censored = outcome is Outcome.CENSORED
    begun = min([start, *(each.start for each in run.earlier)]) if start is not None else _begun_before(run, end)
    return Job(
        id=run.id,
        submit=run.submit,
        start=begun,
        end=None if censored else end,
        last_seen=end if censored else None,
        outcome=outcome,
        paused_seconds=_paused(run, start, end),
        restarts=sum(not each.taken for each in run.earlier) if run.earlier else None,
        evictions=sum(each.taken for each in run.earlier) if run.earlier else None,
        gpus=run.gpus,
        gpu_kind=run.gpu_kind,
        user=run.user,
        namespace=run.namespace,
        pool=run.pool,
        name=run.name,
        cpus=run.cpus,
        nodes=run.nodes,
        priority=run.priority,
        time_limit_seconds=run.time_limit_seconds,
        told_by_node=run.told_by_node,
    )


def _begun_before(run: SacctRun, end: datetime | None) -> datetime | None:
    """When a job began whose last run did not; None where it waits, as it did before its first run."""
    starts = [each.start for each in run.earlier]
    return None if end is None else min([start for start in starts if start <= end], default=None)


def _paused(run: SacctRun, start: datetime | None, end: datetime | None) -> float:
    """Seconds between the runs of a job, and from the last of them to its end where it was waiting again."""
    last = end if start is None else start
    if last is None:
        return 0.0
    paused, until = 0.0, None
    for begin, stop in sorted([*((each.start, each.end) for each in run.earlier if each.start <= last), (last, last)]):
        if until is not None:
            paused += max((begin - until).total_seconds(), 0.0)
        until = stop if until is None else max(until, stop)
    return paused


def _life(run: SacctRun) -> tuple[datetime | None, datetime | None]:
    """Start and end, each None where there is none."""
    if run.waits:
        return None, None
    if run.fate is Fate.RUNS:
        return run.start, None
    start, end = run.start, run.end
    if run.fate is Fate.REVOKED:
        start = None
    elif end is None:
        end = _end_reckoned(run)
    elif start is None and run.elapsed_seconds:
        start = end - timedelta(seconds=run.elapsed_seconds)
    if end is None:
        raise Unfit("no_end", f"{run.fate.name.lower()} without an end")
    if start is None and run.fate is Fate.COMPLETED:
        raise Unfit("no_start", "completed without a start")
    # Slurm gives a job that was cancelled while it waited its end for a start, or a start that was only planned.
    if run.fate is Fate.CANCELLED and start is not None and start >= end:
        start = None
    return start, end


def _end_reckoned(run: SacctRun) -> datetime | None:
    """The end of a run of which only the length is known: what Slurm counted, else the limit it was ended at."""
    length = run.elapsed_seconds
    if not length and run.fate is Fate.CUT_OFF:
        length = run.time_limit_seconds
    return run.start + timedelta(seconds=length) if run.start is not None and length else None


def _check(run: SacctRun, start: datetime | None, end: datetime | None) -> None:
    if start is not None and start < run.submit:
        raise Unfit("start_before_submit", f"start {start.isoformat()} before submit {run.submit.isoformat()}")
    begun = run.submit if start is None else start
    if end is not None and end < begun:
        raise Unfit("end_before_start", f"end {end.isoformat()} before {begun.isoformat()}")
    if end is not None and end == start:
        raise Unfit("not_positive_duration", f"start and end are both {end.isoformat()}")
