"""What is stored of a job and what is read of it now, as one: better known, and never less.

A later reading may see only the last part of a long job, take a job for ended that is merely no longer told of, or
find one alive that had been taken for ended. Each of the three is told from a correction by what the source says of
how it came to know (:mod:`advisor.domain.accounts`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from itertools import pairwise
from typing import Any

from advisor.domain.accounts import EndTold, JobAccount, JobRun
from advisor.domain.jobs import TOLD_BY_NODES, Job, Outcome
from advisor.errors import Refused

__all__ = ["Known", "Sight", "merged"]

_CERTAINTY = {EndTold.NOBODY: 0, EndTold.PODS: 1, EndTold.ITSELF: 2}
_IF_UNKNOWN = ("user", "namespace", "name", "image", "gpu_kind", "pool", "priority", "time_limit_seconds", "created_by")
_MOST_COUNTS = ("gpus", "cpus", "nodes", "image_pull_seconds")


@dataclass(frozen=True, slots=True)
class Known:
    """A job, and how its source came to know it."""

    job: Job
    account: JobAccount


@dataclass(frozen=True, slots=True)
class Sight:
    """How far a reading sees: ``back_to`` (None: jobs are whole), and when open jobs were there (None: not said)."""

    back_to: datetime | None = None
    open_at: datetime | None = None


def merged(stored: Known, told: Known, sight: Sight) -> Known:
    """What is known of a job that is ``stored`` and is ``told`` of again, under the same id; ``stored`` if no more."""
    if sight.back_to is not None and stored.job.submit < sight.back_to:
        try:
            told = _with_what_went_before(stored, told, sight.back_to)
        except Refused:
            # The two contradict each other: what was seen in time counts.
            return stored
    if not _supersedes(stored, told, sight.open_at):
        return stored
    return replace(told, job=_with_measurements(stored.job, told.job))


def _supersedes(stored: Known, told: Known, open_at: datetime | None) -> bool:
    """Whether ``told`` knows more than ``stored``, or as much and later.

    That a job goes on unlearns an end only where nobody else had told that end, and the job was seen after it.
    """
    before, now = stored.job, told.job
    if now.end is None and before.end is None:
        unlearns_start = now.start is None and before.start is not None
        return not unlearns_start and not _seen_before(before, now)
    if before.end is None:
        return True
    certain, then = _CERTAINTY[told.account.end_told], _CERTAINTY[stored.account.end_told]
    over = stored.account.end_told is EndTold.ITSELF
    if now.end is None:
        seen = now.last_seen if now.outcome is Outcome.CENSORED else open_at
        later = seen is not None and (seen > before.end or (seen == before.end and now.outcome is Outcome.CENSORED))
        return later and not over and (now.start is not None or before.start is None)
    if certain == then:
        return told.account.end_told is not EndTold.NOBODY or now.end >= before.end
    return certain > then or (not over and now.end > before.end)


def _seen_before(before: Job, now: Job) -> bool:
    """Whether a job without a known end was seen later already than it is now: an older reading, told late."""
    return now.last_seen is not None and before.last_seen is not None and now.last_seen < before.last_seen


def _with_measurements(before: Job, now: Job) -> Job:
    """With what was measured of the ended job where it is told again without: metrics age sooner than jobs."""
    if now.end is None or now.end != before.end or now.usage is not None:
        return now
    return replace(now, usage=before.usage)


def _with_what_went_before(stored: Known, told: Known, back_to: datetime) -> Known:
    """``told`` as its source would tell of it had it seen the job from its beginning.

    Raises:
        Refused: no job can have gone like that.
    """
    before, now = stored.job, told.job
    runs = _all_runs(_runs_of(stored), _runs_of(told), back_to)
    start = runs[0].start if runs else None
    measured_whole = now.end == before.end and before.usage is not None and now.start != before.start
    return Known(
        replace(
            now,
            start=start,
            scheduled=_first_scheduled(before, now, start),
            usage=before.usage if measured_whole else now.usage,
            **_counts(stored, now, runs),
            **{name: _either(before, now, name) for name in _IF_UNKNOWN},
            **{name: _most(before, now, name) for name in _MOST_COUNTS},
            told_by_node=tuple(name for name in TOLD_BY_NODES if name in before.told_by_node + now.told_by_node),
        ),
        replace(told.account, runs=runs),
    )


def _counts(stored: Known, now: Job, runs: Sequence[JobRun]) -> dict[str, Any]:
    """How long it paused and how often it began anew, over all of its ``runs``."""
    before = stored.job
    failed = sum(run.failed for run in runs[:-1])
    known = {
        "paused_seconds": _paused(runs),
        "restarts": max(sum(run.restarts for run in runs) + failed, now.restarts or 0),
        "evictions": max(len(runs) - 1 - failed, now.evictions or 0),
    }
    if not stored.account.runs:
        # Stored before runs were kept, these totals are all that is left of them.
        known = {name: max(value, getattr(before, name) or 0) for name, value in known.items()}
    never = {name for name in ("restarts", "evictions") if getattr(before, name) is None and getattr(now, name) is None}
    return {name: None if name in never else value for name, value in known.items()}


def _all_runs(stored: Sequence[JobRun], told: Sequence[JobRun], back_to: datetime) -> tuple[JobRun, ...]:
    """The runs that were ``told``, begun when they are ``stored`` to have, after those that ended before ``back_to``.

    Of what was there since then the reading knows all: a stored run that it does not show was none.
    """
    runs = list(told)
    for earlier in stored:
        place = next((place for place, run in enumerate(runs) if _overlap(earlier, run)), None)
        if place is not None:
            run = runs[place]
            begun, restarts = min(run.start, earlier.start), max(run.restarts, earlier.restarts)
            runs[place] = replace(run, start=begun, restarts=restarts)
        elif earlier.end is not None and earlier.end < back_to:
            runs.append(earlier)
    return tuple(sorted(runs, key=lambda run: run.start))


def _overlap(one: JobRun, other: JobRun) -> bool:
    return (other.end is None or one.start <= other.end) and (one.end is None or other.start <= one.end)


def _runs_of(known: Known) -> tuple[JobRun, ...]:
    """Its runs; where there was one, it is the job's own start and end."""
    job = known.job
    if known.account.runs or job.start is None:
        return known.account.runs
    failed = job.outcome is Outcome.FAILED
    return (JobRun(start=job.start, end=job.gone_at, failed=failed, restarts=job.restarts or 0),)


def _paused(runs: Sequence[JobRun]) -> float:
    gaps = (after.start - run.end for run, after in pairwise(runs) if run.end is not None)
    return sum(max(gap.total_seconds(), 0.0) for gap in gaps)


def _first_scheduled(before: Job, now: Job, start: datetime | None) -> datetime | None:
    moments = [moment for moment in (before.scheduled, now.scheduled) if moment is not None]
    if not moments:
        return None
    return min(moments) if start is None else min(*moments, start)


def _either(before: Job, now: Job, name: str) -> Any:  # noqa: ANN401 - whatever the field holds
    value = getattr(now, name)
    return getattr(before, name) if value is None else value


def _most(before: Job, now: Job, name: str) -> Any:  # noqa: ANN401 - whatever the field holds
    values = [value for job in (before, now) if (value := getattr(job, name)) is not None]
    return max(values, default=None)
