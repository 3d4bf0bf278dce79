"""What is known, when a job is submitted, about how long it may run.

One incremental implementation answers online, in training and in replay. It is told of submissions,
starts and ends in the order they happen; a duration exists only once the job has ended, and counts from
the start. Jobs submitted in the same second are taken in the order they are told.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from advisor.domain.jobs import Job, JobIdentity, Outcome
from advisor.features.key_history import HOUR, KEY_FEATURES, TEN_MINUTES, KeyHistory, Run
from advisor.features.keys import JobKeys, keys_of
from advisor.features.latest import LATEST_OF_ALL, LATEST_OF_KEY, latest_of
from advisor.features.recent import RecentTimes, RecentValues, median_of, quantile_of
from advisor.features.table import Feature, FeatureSchema, KnownWhen
from advisor.features.usage_history import KEY_USAGE, usage_values

__all__ = ["DURATION_SCHEMA", "USAGE_SCHEMA", "DurationFeatures", "Memo", "schema_of"]

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]

_OUTCOME_CODES = {Outcome.COMPLETED: 0.0, Outcome.FAILED: 1.0, Outcome.CANCELLED: 2.0}


_KEYS = {
    "og": "jobs of the same owner and GPU count",
    "o": "jobs of the same owner",
    "ogn": "jobs of the same owner, GPU count and name",
}


def _of_key(prefix: str, features: Sequence[Feature] = KEY_FEATURES) -> list[Feature]:
    return [replace(f, name=f"{prefix}_{f.name}", meaning=f"{_KEYS[prefix]}: {f.meaning}") for f in features]


def _of_group(prefix: str, whose: str) -> list[Feature]:
    return [
        Feature(f"{prefix}_median_20", f"{whose}: median of the last 20 that ended", "ln s", KnownWhen.OTHERS),
        Feature(f"{prefix}_q90_20", f"{whose}: 90 % quantile of the last 20 that ended", "ln s", KnownWhen.OTHERS),
    ]


DURATION_SCHEMA = FeatureSchema(
    (
        *_of_key("og"),
        *_of_key("o"),
        *_of_key("ogn"),
        Feature("og_last_outcome", "how the latest of the same owner and GPU count ended", "0 done, 1 failed, 2 cut"),
        *_of_group("namespace", "jobs of the same namespace"),
        *_of_group("kind", "jobs of the same GPU kind"),
        *_of_group("gpus", "jobs of the same GPU count"),
        Feature("all_median_5", "all jobs: median of the last five that ended", "ln s"),
        Feature("all_median_20", "all jobs: median of the last 20 that ended", "ln s"),
        Feature("all_median_100", "all jobs: median of the last 100 that ended", "ln s"),
        Feature("all_q90_100", "all jobs: 90 % quantile of the last 100 that ended", "ln s"),
        Feature("all_ended_1h", "all jobs: ends in the last hour", "ln(1 + jobs)"),
        Feature("all_submitted_10m", "all jobs: submissions in the last 10 minutes", "ln(1 + jobs)"),
        Feature("hour", "hour of the day, UTC", "h", KnownWhen.REQUEST),
        Feature("gpus", "GPUs asked for", "GPUs", KnownWhen.REQUEST),
        Feature("nodes", "nodes asked for", "nodes", KnownWhen.REQUEST),
        Feature("cpus", "CPUs asked for", "CPUs", KnownWhen.REQUEST),
        Feature("priority", "priority asked for", "as given", KnownWhen.REQUEST),
        Feature("time_limit", "time limit asked for", "ln s", KnownWhen.REQUEST),
    )
)
"""The columns of every row, in order. Unknown is NaN."""

_USAGE_FEATURES = tuple(feature for prefix in _KEYS for feature in _of_key(prefix, KEY_USAGE))
USAGE_SCHEMA = FeatureSchema(DURATION_SCHEMA.features + _USAGE_FEATURES)
"""The same, and behind them what telemetry tells of GPUs: the columns of rows where a history has any of it."""


def schema_of(columns: Collection[str]) -> FeatureSchema:
    """The schema of a model fitted on ``columns``: those of every row, and those of usage that it was fitted on."""
    chosen = tuple(feature for feature in _USAGE_FEATURES if feature.name in columns)
    return FeatureSchema(DURATION_SCHEMA.features + chosen) if chosen else DURATION_SCHEMA


_UNSEEN = KeyHistory()
_NOT_OPEN: tuple[None, list[KeyHistory]] = (None, [])
_GROUP_WINDOW = 20


Memo: TypeAlias = dict[int, list[float]]
"""What was made of a history for one job, kept for the others asked about with it."""


class DurationFeatures:
    """The live state behind :data:`DURATION_SCHEMA`, and where wanted behind :data:`USAGE_SCHEMA`.

    The verbs change it and come in the order things happened; :meth:`row` and :meth:`history` only look.
    Telling of the same submission, start or end twice changes nothing while the job is open.
    """

    def __init__(self, *, with_usage: bool = False) -> None:
        """Rows have the columns of usage too if ``with_usage``."""
        self._with_usage = with_usage
        self._keys: dict[tuple[object, ...], KeyHistory] = {}
        self._groups: dict[tuple[object, ...], RecentValues] = {}
        self._all = RecentValues(100)
        self._latest: deque[Run] = deque(maxlen=LATEST_OF_ALL)
        self._all_ends = RecentTimes(HOUR)
        self._all_submits = RecentTimes(TEN_MINUTES)
        self._all_values: list[float] | None = None
        self._open: dict[JobIdentity, tuple[Run, list[KeyHistory]]] = {}

    def submitted(self, job: Job) -> None:
        """``job`` was submitted; where its start is its submission, it also runs from here on."""
        if job.identity in self._open:
            return
        run = Run(job.submit.timestamp())
        histories = self._histories(job)
        # Kept with the job: what is said of it may change before it ends, a name that comes late for one.
        self._open[job.identity] = (run, histories)
        self._latest.append(run)
        self._all_submits.add(run.submit)
        for history in histories:
            history.submitted(run)
        if job.start == job.submit:
            self.started(job)

    def started(self, job: Job) -> None:
        """``job`` began to run, at its ``start``."""
        run, histories = self._open.get(job.identity, _NOT_OPEN)
        if run is None or job.start is None or not math.isnan(run.start):
            return
        run.start = job.start.timestamp()
        for history in histories:
            history.started(run)

    def ended(self, job: Job, at: datetime) -> None:
        """``job`` is gone since ``at``: it ended, or nothing has been seen of it since (censored).

        A duration of zero or less is no duration: it counts as an end and nothing is learnt from it.
        """
        run, histories = self._open.get(job.identity, _NOT_OPEN)
        if run is None:
            return
        self.started(job)
        del self._open[job.identity]
        moment = at.timestamp()
        run.gone = True
        run.censored = job.outcome is Outcome.CENSORED
        seconds = moment - run.start - job.paused_seconds
        if seconds > 0:
            run.log_seconds = math.log(seconds)
        for history in histories:
            history.ended(run, moment, job.outcome)
        if run.censored:
            return
        self._count_end(job, run.log_seconds, moment)
        if job.usage is not None:
            for history in histories:
                history.measured(job.usage)

    def is_open(self, job: JobIdentity) -> bool:
        """Whether that job was submitted and is not gone."""
        return job in self._open

    def _count_end(self, job: Job, log_seconds: float, moment: float) -> None:
        self._all_ends.add(moment)
        if math.isnan(log_seconds):
            return
        self._all.add(log_seconds)
        self._all_values = None
        for group in _groups_of(job.gpu_kind, keys_of(job)):
            if group is not None:
                if group not in self._groups:
                    self._groups[group] = RecentValues(_GROUP_WINDOW)
                self._groups[group].add(log_seconds)

    def _histories(self, job: Job) -> list[KeyHistory]:
        keys = keys_of(job)
        found = []
        for key in (keys.owner_gpus, keys.owner, keys.owner_gpus_name):
            if key is None:
                continue
            history = self._keys.get(key)
            if history is None:
                history = self._keys[key] = KeyHistory()
            found.append(history)
        return found

    def row(self, job: Job, now: datetime, memo: Memo | None = None) -> Floats:
        """The features of ``job`` as if submitted at ``now``, one number per column of the schema.

        Only what the request says of itself is read from ``job``: never its start, end, outcome or usage, nor what its
        node told. Jobs that are asked about together may share a ``memo``, empty at first, for as long as nothing is
        told and ``now`` stays.
        """
        moment = now.timestamp()
        keys = keys_of(job)
        same = self._keys.get(keys.owner_gpus, _UNSEEN)
        owner = self._keys.get(keys.owner, _UNSEEN)
        outcome = same.last_outcome
        # A job without a name is one whose name has not been seen: it is not refused where all others have names.
        called = self._keys.get(keys.owner_gpus_name, _UNSEEN) if keys.owner_gpus_name is not None else _UNSEEN
        values: list[float] = []
        for history in (same, owner, called):
            values += _once(memo, history, history.values, moment)
        values.append(math.nan if outcome is None else _OUTCOME_CODES[outcome])
        for group in _groups_of(job.asked("gpu_kind"), keys):
            values += self._of_group(group)
        values += _once(memo, self, self._of_all, moment)
        values += (
            now.hour + now.minute / 60.0 if job.calendar_known else math.nan,
            job.gpus,
            _number(job.asked("nodes")),
            _number(job.asked("cpus")),
            math.nan if job.priority is None else job.priority,
            math.log(job.time_limit_seconds) if job.time_limit_seconds else math.nan,
        )
        if self._with_usage:
            for history in (same, owner, called):
                values += usage_values(history.usage)
        return np.array(values, dtype=np.float64)

    def latest(self, job: Job, now: datetime, memo: Memo | None = None) -> Singles:
        """The latest submissions around ``job`` at ``now``, as :mod:`advisor.features.latest` lays them out.

        ``memo`` as in :meth:`row`, but one of its own.
        """
        moment = now.timestamp()
        keys = keys_of(job)
        same = self._keys.get(keys.owner_gpus, _UNSEEN)
        owner = self._keys.get(keys.owner, _UNSEEN)
        named = keys.owner_gpus_name
        called = _UNSEEN if named is None else self._keys.get(named, _UNSEEN)
        return np.array(
            [
                *_once(memo, called, partial(latest_of, called.recent, LATEST_OF_KEY), moment),
                *_once(memo, same, partial(latest_of, same.recent, LATEST_OF_KEY), moment),
                *_once(memo, owner, partial(latest_of, owner.recent, LATEST_OF_KEY), moment),
                *_once(memo, self, partial(latest_of, self._latest, LATEST_OF_ALL), moment),
            ],
            dtype=np.float32,
        )

    def _of_group(self, group: tuple[object, ...] | None) -> tuple[float, float]:
        recent = None if group is None else self._groups.get(group)
        if recent is None:
            return (math.nan, math.nan)
        return (median_of(recent.ordered), quantile_of(recent.ordered, 0.9))

    def _of_all(self, now: float) -> list[float]:
        if self._all_values is None:
            recent = self._all
            if len(recent):
                medians = [median_of(recent.latest(count)) for count in (5, 20, 100)]
                self._all_values = [*medians, quantile_of(recent.ordered, 0.9)]
            else:
                self._all_values = [math.nan] * 4
        in_hour = self._all_ends.since(now - HOUR)
        in_ten_minutes = self._all_submits.since(now - TEN_MINUTES)
        return [*self._all_values, math.log1p(in_hour), math.log1p(in_ten_minutes)]


def _once(memo: Memo | None, of: object, make: Callable[[float], list[float]], moment: float) -> list[float]:
    """What ``make`` says of ``of`` at ``moment``, made once for all who share ``memo``."""
    if memo is None:
        return make(moment)
    found = memo.get(id(of))
    if found is None:
        found = memo[id(of)] = make(moment)
    return found


def _number(value: float | None) -> float:
    return math.nan if value is None else value


def _groups_of(gpu_kind: str | None, keys: JobKeys) -> tuple[tuple[object, ...] | None, ...]:
    """Namespace, GPU kind and GPU count, as far as the job has them: coarse keys of which only levels are known."""
    return keys.namespace, None if gpu_kind is None else ("kind", gpu_kind), keys.gpus
