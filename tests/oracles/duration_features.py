"""Every duration feature from the raw jobs, anew at each question: slow, obvious, sharing nothing with the real one."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import numpy as np

from advisor.domain.jobs import Job, Outcome
from advisor.features.names import template_of

CODES = {Outcome.COMPLETED: 0.0, Outcome.FAILED: 1.0, Outcome.CANCELLED: 2.0}


def oracle_row(jobs: Sequence[Job], place: int) -> dict[str, float]:
    """The features of ``jobs[place]`` as asked at its submission; ``jobs`` stand in order of submission."""
    asked, now = jobs[place], jobs[place].submit
    # Earlier ones of the same second have been submitted, and whoever is gone by now is known to be.
    before = jobs[:place]
    gone = [job for job in before if job.gone_at is not None and job.gone_at <= now]
    # Jobs end in the order of their ends, those of one instant in the order they were submitted.
    gone.sort(key=lambda job: (job.gone_at, _turn(job)))
    row: dict[str, float] = {}
    owner = lambda job: ("user", job.user) if job.user is not None else ("namespace", job.namespace)  # noqa: E731
    work = lambda job: template_of(job.name or job.image or "")  # noqa: E731
    for prefix, same in (
        ("og", lambda job: owner(job) == owner(asked) and job.gpus == asked.gpus),
        ("o", lambda job: owner(job) == owner(asked)),
        (
            "ogn",
            lambda job: (
                (owner(job), job.gpus, work(job)) == (owner(asked), asked.gpus, work(asked)) and work(asked) is not None
            ),
        ),
    ):
        mine = _of_key([j for j in before if same(j)], [j for j in gone if same(j)], now)
        mine |= _usage([j for j in gone if same(j)])
        row |= {f"{prefix}_{name}": value for name, value in mine.items()}
    row["og_last_outcome"] = _last_outcome([j for j in gone if owner(j) == owner(asked) and j.gpus == asked.gpus])
    row |= _of_parents(before, gone, asked, now)
    row["hour"] = now.hour + now.minute / 60 if asked.calendar_known else np.nan
    row["gpus"] = asked.gpus
    row["nodes"] = np.nan if asked.nodes is None else asked.nodes
    row["cpus"] = np.nan if asked.cpus is None else asked.cpus
    row["priority"] = np.nan if asked.priority is None else asked.priority
    row["time_limit"] = np.log(asked.time_limit_seconds) if asked.time_limit_seconds else np.nan
    return row


def _usage(gone: Sequence[Job]) -> dict[str, float]:
    told = [job.usage for job in gone if job.usage is not None and job.outcome is not Outcome.CENSORED]
    compute = np.array([each.compute_mean for each in told if each.compute_mean is not None])
    memory = np.log([max(each.memory_peak_bytes, 1.0) for each in told if each.memory_peak_bytes is not None])
    row = {}
    for name, values in (("compute", compute), ("memory", memory)):
        row[f"last_{name}"] = values[-1] if values.size else np.nan
        row[f"median_5_{name}"] = _quantile(values[-5:], 0.5)
    return row


def _turn(job: Job) -> int:
    """Who ends the instant it starts or is submitted does so after those who end then anyway."""
    if job.start is not None and job.start > job.submit:
        return 1 if job.gone_at == job.start else 0
    return 2 if job.gone_at == job.submit else 0


def _logs(gone: Sequence[Job]) -> np.ndarray:
    seconds = [job.duration_seconds for job in gone if job.outcome is not Outcome.CENSORED]
    return np.log([s for s in seconds if s is not None and s > 0])


def _within(moments: Sequence[datetime], now: datetime, seconds: float) -> float:
    return float(np.log1p(sum((now - moment).total_seconds() <= seconds for moment in moments)))


def _quantile(values: np.ndarray, level: float) -> float:
    return float(np.quantile(values, level)) if values.size else np.nan


def _of_key(before: Sequence[Job], gone: Sequence[Job], now: datetime) -> dict[str, float]:
    ends = [job for job in gone if job.outcome is not Outcome.CENSORED]
    logs = _logs(gone)
    last = logs[-20:]
    five = [job.outcome for job in ends][-5:]
    submits = [job.submit for job in before]
    end_times = [job.end for job in ends if job.end is not None]
    row = {
        "last": logs[-1] if logs.size else np.nan,
        "second_last": logs[-2] if logs.size > 1 else np.nan,
        "median_5": _quantile(logs[-5:], 0.5),
        "median_20": _quantile(last, 0.5),
        "q10_20": _quantile(last, 0.1),
        "q90_20": _quantile(last, 0.9),
        "sd_20": float(np.std(last, ddof=1)) if last.size > 1 else np.nan,
        "repeats": float(np.mean(np.abs(np.diff(last)) <= np.log(1.25))) if last.size > 1 else np.nan,
        "count": float(np.log1p(logs.size)),
        "passed": five.count(Outcome.COMPLETED) / len(five) if five else np.nan,
        "failed": five.count(Outcome.FAILED) / len(five) if five else np.nan,
        "since_end": float(np.log1p((now - max(end_times)).total_seconds())) if end_times else np.nan,
        "gap": float(np.log1p((now - submits[-1]).total_seconds())) if submits else np.nan,
        "second_gap": float(np.log1p((submits[-1] - submits[-2]).total_seconds())) if len(submits) > 1 else np.nan,
        "burst_position": _burst(submits, now),
        "ended_1h": _within(end_times, now, 3600),
        "ended_1d": _within(end_times, now, 86400),
        "burst_ended": _burst_ended(before, ends, now),
    }
    for name, seconds in (("1m", 60), ("10m", 600), ("1h", 3600), ("1d", 86400)):
        row[f"submitted_{name}"] = _within(submits, now, seconds)
    return row | _kaplan_meier(before[-20:], now) | _running(before, gone, now)


def _burst(submits: Sequence[datetime], now: datetime) -> float:
    position = 0
    for later, earlier in zip([now, *reversed(submits)], reversed(submits), strict=False):
        if (later - earlier).total_seconds() > 10:
            break
        position += 1
    return float(np.log1p(position))


def _burst_ended(before: Sequence[Job], ends: Sequence[Job], now: datetime) -> float:
    recent = [job for job in before if (now - job.submit).total_seconds() <= 600]
    ended = {job.id for job in ends}
    return sum(job.id in ended for job in recent) / len(recent) if recent else np.nan


def _kaplan_meier(recent: Sequence[Job], now: datetime) -> dict[str, float]:
    """By the textbook: at every distinct end, survival falls by the share of those at risk that ended there."""
    seen: list[tuple[float, bool]] = []
    for job in recent:
        gone = job.gone_at
        if gone is not None and gone <= now:
            if job.start is not None and (gone - job.start).total_seconds() > 0:
                seen.append((float(np.log((gone - job.start).total_seconds())), job.outcome is not Outcome.CENSORED))
        elif job.start is not None and job.start <= now:
            age = max((now - job.start).total_seconds(), 1.0)
            seen.append((float(np.log(age)), False))
    survival, steps = 1.0, []
    for value in sorted({value for value, ended in seen if ended}):
        at_risk = sum(other >= value for other, _ in seen)
        survival *= 1 - sum(other == value and ended for other, ended in seen) / at_risk
        steps.append((value, survival))
    found = {}
    for level in (25, 50, 75, 90):
        reached = [value for value, left in steps if 1 - left >= level / 100 - 1e-9]
        found[f"km_q{level}"] = reached[0] if reached else np.nan
    found["longest"] = max((value for value, _ in seen), default=np.nan)
    return found


def _running(before: Sequence[Job], gone: Sequence[Job], now: datetime) -> dict[str, float]:
    over = {job.id for job in gone}
    starts = [job.start for job in before if job.id not in over and job.start is not None and job.start <= now]
    ages = np.array(sorted((now - start).total_seconds() for start in starts))
    if not ages.size:
        return {"running": 0.0, "oldest_running": np.nan, "median_running": np.nan, "youngest_running": np.nan}
    oldest, middle, youngest = np.log(np.maximum([ages[-1], np.median(ages), ages[0]], 1.0))
    return {
        "running": float(np.log1p(ages.size)),
        "oldest_running": oldest,
        "median_running": middle,
        "youngest_running": youngest,
    }


def _last_outcome(gone: Sequence[Job]) -> float:
    outcomes = [job.outcome for job in gone if job.outcome is not None and job.outcome is not Outcome.CENSORED]
    return CODES[outcomes[-1]] if outcomes else np.nan


def _of_parents(before: Sequence[Job], gone: Sequence[Job], asked: Job, now: datetime) -> dict[str, float]:
    same_gpus, every = _logs([job for job in gone if job.gpus == asked.gpus])[-20:], _logs(gone)
    # A namespace is a key of its own only of jobs that name a user too.
    shared = [j for j in gone if j.user is not None and j.namespace == asked.namespace]
    same_space = _logs(shared if asked.user is not None and asked.namespace is not None else [])[-20:]
    alike = [job for job in gone if job.gpu_kind == asked.gpu_kind]
    same_kind = _logs(alike if asked.gpu_kind is not None else [])[-20:]
    ends = [job.end for job in gone if job.end is not None and job.outcome is not Outcome.CENSORED]
    return {
        "namespace_median_20": _quantile(same_space, 0.5),
        "namespace_q90_20": _quantile(same_space, 0.9),
        "kind_median_20": _quantile(same_kind, 0.5),
        "kind_q90_20": _quantile(same_kind, 0.9),
        "gpus_median_20": _quantile(same_gpus, 0.5),
        "gpus_q90_20": _quantile(same_gpus, 0.9),
        "all_median_5": _quantile(every[-5:], 0.5),
        "all_median_20": _quantile(every[-20:], 0.5),
        "all_median_100": _quantile(every[-100:], 0.5),
        "all_q90_100": _quantile(every[-100:], 0.9),
        "all_ended_1h": _within(ends, now, 3600),
        "all_submitted_10m": _within([job.submit for job in before], now, 600),
    }
