"""What one key (an owner, or an owner with a GPU count) has done so far, kept ready to be asked."""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections.abc import Sequence
from itertools import pairwise

from advisor.domain.jobs import Outcome
from advisor.domain.usage import GpuUsage
from advisor.features.recent import RecentTimes, RecentValues, kept, median_of, quantile_of
from advisor.features.survival import kaplan_meier_quantiles
from advisor.features.table import Feature
from advisor.features.usage_history import UsageHistory

__all__ = ["KEY_FEATURES", "KeyHistory", "Run"]

MINUTE, TEN_MINUTES, HOUR, DAY = 60.0, 600.0, 3600.0, 86400.0

_WINDOW = 20
_OUTCOMES = 5
_BURST_GAP = 10.0
_REPEAT = math.log(1.25)
_KAPLAN_MEIER_LEVELS = (0.25, 0.5, 0.75, 0.9)

KEY_FEATURES = (
    Feature("last", "latest duration that ended", "ln s"),
    Feature("second_last", "the one that ended before it", "ln s"),
    Feature("median_5", "median of the last five that ended", "ln s"),
    Feature("median_20", "median of the last 20 that ended", "ln s"),
    Feature("q10_20", "10 % quantile of the last 20 that ended", "ln s"),
    Feature("q90_20", "90 % quantile of the last 20 that ended", "ln s"),
    Feature("sd_20", "standard deviation of the last 20 that ended", "ln s"),
    Feature("repeats", "share of consecutive pairs of the last 20 within 25 % of each other", "share"),
    Feature("count", "how many have ended", "ln(1 + jobs)"),
    Feature("passed", "share of the last five ends that completed", "share"),
    Feature("failed", "share of the last five ends that failed", "share"),
    Feature("km_q25", "Kaplan-Meier 25 % quantile of the last 20 submissions", "ln s"),
    Feature("km_q50", "Kaplan-Meier median of the last 20 submissions", "ln s"),
    Feature("km_q75", "Kaplan-Meier 75 % quantile of the last 20 submissions", "ln s"),
    Feature("km_q90", "Kaplan-Meier 90 % quantile of the last 20 submissions", "ln s"),
    Feature("longest", "longest of the last 20 submissions, running ones at their age", "ln s"),
    Feature("since_end", "time since the latest end", "ln(1 + s)"),
    Feature("gap", "time since the submission before", "ln(1 + s)"),
    Feature("second_gap", "time between the two submissions before", "ln(1 + s)"),
    Feature("burst_position", "submissions before this one without a pause above 10 s", "ln(1 + jobs)"),
    Feature("submitted_1m", "submissions in the last minute", "ln(1 + jobs)"),
    Feature("submitted_10m", "submissions in the last 10 minutes", "ln(1 + jobs)"),
    Feature("submitted_1h", "submissions in the last hour", "ln(1 + jobs)"),
    Feature("submitted_1d", "submissions in the last day", "ln(1 + jobs)"),
    Feature("ended_1h", "ends in the last hour", "ln(1 + jobs)"),
    Feature("ended_1d", "ends in the last day", "ln(1 + jobs)"),
    Feature("burst_ended", "share of the last 10 minutes' submissions that have ended", "share"),
    Feature("running", "jobs running now", "ln(1 + jobs)"),
    Feature("oldest_running", "age of the longest running", "ln s"),
    Feature("median_running", "median age of those running", "ln s"),
    Feature("youngest_running", "age of the latest started", "ln s"),
)
"""What is asked of one key; a prefix tells the keys apart."""


class Run:
    """One job as the histories of its keys share it: times are Unix seconds, NaN while unknown."""

    __slots__ = ("censored", "gone", "log_seconds", "start", "submit")

    def __init__(self, submit: float) -> None:
        self.submit = submit
        self.start = math.nan
        self.log_seconds = math.nan
        self.gone = False
        self.censored = False


class KeyHistory:
    """The past of one key, changed by events and asked by :meth:`values`, which changes nothing."""

    __slots__ = (
        "_burst",
        "_ended_values",
        "_ends",
        "_gone_submits",
        "_last_end",
        "_last_submit",
        "_logs",
        "_outcomes",
        "_recent",
        "_second_submit",
        "_starts",
        "_submits",
        "count",
        "last_outcome",
        "usage",
    )

    def __init__(self) -> None:
        self.count = 0
        self.last_outcome: Outcome | None = None
        self.usage: UsageHistory | None = None
        self._logs = RecentValues(_WINDOW)
        self._outcomes: list[Outcome] = []
        self._recent: list[Run] = []
        self._submits = RecentTimes(DAY)
        self._ends = RecentTimes(DAY)
        self._gone_submits = RecentTimes(TEN_MINUTES)
        self._starts: list[float] = []
        self._last_submit = math.nan
        self._second_submit = math.nan
        self._last_end = math.nan
        self._burst = 0
        self._ended_values: list[float] | None = None

    @property
    def recent(self) -> Sequence[Run]:
        """The latest submissions, oldest first."""
        return self._recent

    def submitted(self, run: Run) -> None:
        """A job of this key was submitted."""
        kept(self._recent, run, _WINDOW)
        self._submits.add(run.submit)
        if run.submit < self._last_submit:
            return  # told of late: the latest submission stays the latest
        self._burst = self._burst_at(run.submit)
        self._second_submit = self._last_submit
        self._last_submit = run.submit

    def started(self, run: Run) -> None:
        """It began to run."""
        insort(self._starts, run.start)

    def ended(self, run: Run, at: float, outcome: Outcome | None) -> None:
        """It is gone; ``run`` says how long it ran, if it did and if that is known."""
        if not math.isnan(run.start):
            del self._starts[bisect_left(self._starts, run.start)]
        if run.censored:
            return
        self._ends.add(at)
        self._gone_submits.add(run.submit)
        self._last_end = at if math.isnan(self._last_end) else max(at, self._last_end)
        if outcome is not None:
            self.last_outcome = outcome
            kept(self._outcomes, outcome, _OUTCOMES)
        if not math.isnan(run.log_seconds):
            self.count += 1
            self._logs.add(run.log_seconds)
        self._ended_values = None

    def measured(self, usage: GpuUsage) -> None:
        """What a job that ended did with its GPUs."""
        if self.usage is None:
            self.usage = UsageHistory()
        self.usage.add(usage)

    def values(self, now: float) -> list[float]:
        """The features of :data:`KEY_FEATURES` for a job submitted at ``now`` (Unix seconds), in that order."""
        if self._ended_values is None:
            self._ended_values = self._of_ended()
        return [*self._ended_values, *self._of_recent(now), *self._of_times(now), *self._of_running(now)]

    def _of_ended(self) -> list[float]:
        outcomes = self._outcomes
        passed = failed = math.nan
        if outcomes:
            passed = outcomes.count(Outcome.COMPLETED) / len(outcomes)
            failed = outcomes.count(Outcome.FAILED) / len(outcomes)
        tail = [math.log1p(self.count), passed, failed]
        arrived, ordered = self._logs.arrived, self._logs.ordered
        size = len(ordered)
        if not size:
            return [math.nan] * 8 + tail
        second = deviation = repeats = math.nan
        if size > 1:
            second = arrived[-2]
            mean = math.fsum(ordered) / size
            deviation = math.sqrt(math.fsum((value - mean) ** 2 for value in ordered) / (size - 1))
            repeats = sum(abs(a - b) <= _REPEAT for a, b in pairwise(arrived)) / (size - 1)
        return [
            arrived[-1],
            second,
            median_of(self._logs.latest(5)),
            median_of(ordered),
            quantile_of(ordered, 0.1),
            quantile_of(ordered, 0.9),
            deviation,
            repeats,
            *tail,
        ]

    def _of_recent(self, now: float) -> list[float]:
        entries: list[tuple[float, bool]] = []
        for run in self._recent:
            if not run.gone:
                if run.start <= now:
                    entries.append((math.log(max(now - run.start, 1.0)), True))
            elif not math.isnan(run.log_seconds):
                entries.append((run.log_seconds, run.censored))
        if not entries:
            return [math.nan] * 5
        entries.sort()
        return [*kaplan_meier_quantiles(entries, _KAPLAN_MEIER_LEVELS), entries[-1][0]]

    def _burst_at(self, now: float) -> int:
        return self._burst + 1 if now - self._last_submit <= _BURST_GAP else 0

    def _of_times(self, now: float) -> list[float]:
        # max(NaN, 0) is NaN: what has never happened has no time since.
        log1p = math.log1p
        submits, ends = self._submits, self._ends
        in_ten_minutes = submits.since(now - TEN_MINUTES)
        burst_ended = self._gone_submits.since(now - TEN_MINUTES) / in_ten_minutes if in_ten_minutes else math.nan
        return [
            log1p(max(now - self._last_end, 0.0)),
            log1p(max(now - self._last_submit, 0.0)),
            log1p(max(self._last_submit - self._second_submit, 0.0)),
            log1p(self._burst_at(now)),
            log1p(submits.since(now - MINUTE)),
            log1p(in_ten_minutes),
            log1p(submits.since(now - HOUR)),
            log1p(submits.since(now - DAY)),
            log1p(ends.since(now - HOUR)),
            log1p(ends.since(now - DAY)),
            burst_ended,
        ]

    def _of_running(self, now: float) -> list[float]:
        starts = self._starts
        size = len(starts)
        if not size:
            return [0.0, math.nan, math.nan, math.nan]
        middle = starts[size >> 1] if size & 1 else (starts[(size >> 1) - 1] + starts[size >> 1]) / 2.0
        log = math.log
        return [
            math.log1p(size),
            log(max(now - starts[0], 1.0)),
            log(max(now - middle, 1.0)),
            log(max(now - starts[-1], 1.0)),
        ]
