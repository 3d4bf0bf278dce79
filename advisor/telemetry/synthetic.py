"""A generated workload for trying the product without data of one's own; labelled wherever it is shown.

Users come back to a few templates of work whose durations are log-normal around a median that moves
from week to week; work follows day and weekday, some of it comes in trains of equal jobs, some as
gangs over several nodes; jobs fail early, are cancelled, or run ten times as long. Waits are those of
starting nodes; that jobs queue for each other is not modelled.

Every day is drawn from the seed and its own date alone: a workload that ends later holds the same jobs
on the days it shares with one that ends earlier.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta

import numpy as np

from advisor.domain.ingest import JobBatch
from advisor.domain.jobs import Job, Outcome
from advisor.domain.units import SECONDS_PER_DAY, SECONDS_PER_HOUR, utc
from advisor.errors import Refused

__all__ = ["SYNTHETIC", "SyntheticSource", "synthetic_workload"]

SYNTHETIC = "synthetic"
"""Name of the source of generated jobs."""

_USERS = 24
_SUBMISSIONS_PER_DAY = 225.0
_WEEKEND = 0.35
_LONGEST_SECONDS = 6 * SECONDS_PER_DAY
_SHORTEST_SECONDS = 5.0
# Share of a day's work per hour UTC: quiet nights, a dip at noon, a second wind in the evening.
_HOURS = np.array(
    [2, 1.5, 1, 1, 1, 1.5, 2.5, 4, 6.5, 8, 8.5, 8, 6, 7, 8.5, 8.5, 8, 6.5, 5, 4.5, 4.5, 4, 3, 2.5], dtype=np.float64
)
# Sub-streams of the seed, so that adding draws to one leaves the others as they were.
_POPULATION, _WEEKS, _DAYS = 0, 1, 2


@dataclass(frozen=True, slots=True, kw_only=True)
class _Template:
    """Work that one user submits again and again."""

    user: str
    namespace: str
    name: str
    pool: str
    gpus: int
    nodes: int
    median_seconds: float
    sigma: float
    failing: float
    cancelled: float
    train: int
    weight: float


class SyntheticSource:
    """The generated workload as a source: its last ``days`` before the time of reading."""

    def __init__(self, seed: int, days: int = 21) -> None:
        """Draw from ``seed``; see :func:`synthetic_workload`."""
        self._seed = seed
        self._days = days

    @property
    def name(self) -> str:
        """Always ``synthetic``."""
        return SYNTHETIC

    def read(self, since: datetime | None, now: datetime) -> JobBatch:
        """The workload that ends at ``now``; jobs older than ``since`` are the same as before."""
        del since  # jobs that ran at that time have ended by now, so the days before it count too
        return synthetic_workload(self._seed, now, self._days)


def synthetic_workload(seed: int, end: datetime, days: int = 21) -> JobBatch:
    """About 450 jobs a day on the pools ``a100`` and ``t4``, over ``days`` days up to ``end``.

    Jobs that wait or run at ``end`` do so in the batch. The same arguments give the same jobs.

    Raises:
        Refused: ``days`` is not between 1 and 366, or the seed is negative.
    """
    if not 1 <= days <= 366:
        raise Refused("days", days, "a workload spans 1 to 366 days", "Give a number in between.")
    if seed < 0:
        raise Refused("seed", seed, "a seed is 0 or more", "Give a whole number from 0 on.")
    end = utc(end, "end")
    begin = end - timedelta(days=days)
    templates = _templates(np.random.default_rng([seed, _POPULATION]))
    jobs = []
    for ordinal in range(begin.date().toordinal(), end.date().toordinal() + 1):
        for job in _day(seed, ordinal, templates):
            known = job.as_of(end) if job.submit >= begin else None
            if known is not None:
                jobs.append(known)
    return JobBatch(
        source=SYNTHETIC,
        jobs=tuple(jobs),
        watermark=end,
        notes=(f"generated workload (seed {seed}): no real cluster did this",),
        synthetic=True,
    )


def _templates(rng: np.random.Generator) -> list[_Template]:
    """Everybody's templates; a few users and templates make most of the work."""
    counts = rng.integers(2, 7, size=_USERS)
    return [_template(rng, user, number) for user in range(_USERS) for number in range(int(counts[user]))]


def _template(rng: np.random.Generator, user: int, number: int) -> _Template:
    training = rng.random() < 0.6
    gang = training and rng.random() < 0.12
    if training:
        gpus = 16 if gang else int(rng.choice([1, 2, 4, 8], p=[0.6, 0.15, 0.13, 0.12]))
        median = float(np.exp(rng.normal(np.log(2700.0), 1.2)))
    else:
        gpus = 1
        median = float(np.exp(rng.normal(np.log(1200.0), 1.0)))
    bulk = gpus <= 2 and rng.random() < 0.35
    return _Template(
        user=f"user-{user:02d}",
        namespace=f"team-{user % 5}",
        name=f"user-{user:02d}-{'train' if training else 'infer'}-{number}",
        pool="a100" if training else "t4",
        gpus=gpus,
        nodes=gpus // 8 if gang else 1,
        median_seconds=min(max(median, 40.0), 8 * SECONDS_PER_HOUR),
        sigma=float(rng.uniform(0.1, 0.8)),
        failing=float(rng.beta(1.5, 9.0)),
        cancelled=float(rng.beta(1.2, 14.0)),
        train=int(rng.integers(4, 25)) if bulk else 1,
        weight=_share(user) * (0.25 if gang else 1.0) * float(rng.uniform(0.3, 1.7)) / (3.0 if bulk else 1.0),
    )


def _share(user: int) -> float:
    return float((user + 1.0) ** -0.8)


def _day(seed: int, ordinal: int, templates: list[_Template]) -> Iterator[Job]:
    """The jobs submitted on one date, whole, in order of their numbers."""
    rng = np.random.default_rng([seed, _DAYS, ordinal])
    speed, activity = _week(seed, ordinal // 7, len(templates))
    weights = np.array([template.weight for template in templates]) * activity
    midnight = datetime.combine(date.fromordinal(ordinal), time(), tzinfo=UTC)
    busy = _WEEKEND if midnight.weekday() >= 5 else 1.0
    number = 0
    for hour in range(24):
        rate = _SUBMISSIONS_PER_DAY * busy * _HOURS[hour] / _HOURS.sum()
        for _ in range(int(rng.poisson(rate))):
            which = int(rng.choice(len(templates), p=weights / weights.sum()))
            template = templates[which]
            moment = midnight + timedelta(hours=hour, seconds=float(rng.uniform(0.0, SECONDS_PER_HOUR)))
            members = 1 if template.train == 1 else 1 + int(rng.poisson(template.train))
            for _ in range(members):
                yield _job(rng, template, moment, float(speed[which]), f"{SYNTHETIC}-{seed}-{ordinal}-{number}")
                number += 1
                moment += timedelta(seconds=float(rng.uniform(1.0, 6.0)))


def _week(seed: int, week: int, count: int) -> tuple[np.ndarray, np.ndarray]:
    """How much slower each template runs in a week, and how much of it is submitted: projects come and go."""
    rng = np.random.default_rng([seed, _WEEKS, week])
    speed = np.exp(rng.normal(0.0, 0.35, count))
    activity = np.where(rng.random(count) < 0.7, rng.uniform(0.5, 1.5, count), 0.02)
    return speed, activity


def _job(rng: np.random.Generator, template: _Template, submit: datetime, speed: float, identity: str) -> Job:
    seconds = template.median_seconds * speed * float(np.exp(rng.normal(0.0, template.sigma)))
    fate = rng.random()
    outcome = Outcome.COMPLETED
    if fate < template.failing:
        outcome, seconds = Outcome.FAILED, seconds * float(rng.uniform(0.01, 0.6))
    elif fate < template.failing + template.cancelled:
        outcome, seconds = Outcome.CANCELLED, seconds * float(rng.uniform(0.05, 1.0))
    elif rng.random() < 0.015:
        seconds *= float(rng.uniform(5.0, 15.0))
    start = _whole(submit + timedelta(seconds=_wait(rng, template)))
    length = min(max(round(seconds), _SHORTEST_SECONDS), _LONGEST_SECONDS)
    return Job(
        id=identity,
        submit=_whole(submit),
        start=start,
        end=start + timedelta(seconds=length),
        outcome=outcome,
        gpus=float(template.gpus),
        nodes=template.nodes,
        user=template.user,
        namespace=template.namespace,
        name=template.name,
        gpu_kind=template.pool,
        pool=template.pool,
    )


def _wait(rng: np.random.Generator, template: _Template) -> float:
    """Seconds from submission to start: most find a node, others wait for one to boot, gangs for the last of them."""
    if rng.random() < 0.7 and template.nodes == 1:
        return float(rng.uniform(1.0, 8.0))
    return float(max(rng.gamma(6.0, 35.0, size=template.nodes)))


def _whole(moment: datetime) -> datetime:
    return moment.replace(microsecond=0)
