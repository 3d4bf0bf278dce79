"""How long will this run: the predictor that answers online, kept current by every submission, start and end.

The same class replays history after a restart; its state then equals that of one that was never stopped.
Whoever calls it sees to it that one thread at a time changes it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import datetime
from itertools import islice, starmap
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from advisor.domain.explanations import DurationExplanation, FeatureEffect
from advisor.domain.forecasts import DurationDistribution, DurationForecast
from advisor.domain.jobs import Job, JobIdentity
from advisor.domain.units import utc
from advisor.features.duration import DurationFeatures, Memo
from advisor.features.latest import LATEST
from advisor.features.replay import Event, EventKind, events_of
from advisor.forecast.baselines import MEDIAN_OF_5, PRIOR, MedianOfFive, ages_of
from advisor.forecast.duration_model import UNKNOWN, DurationModel
from advisor.forecast.explain import effects_of, narrower
from advisor.forecast.live import Inquiry, LiveAnswer, LiveModel, Placement, place, refusal
from advisor.forecast.past import PastJobs

__all__ = ["MODEL", "DurationModel", "DurationPredictor"]

Floats = NDArray[np.float64]
Singles = NDArray[np.float32]

MODEL = "model"

_NO_MODEL = "no_model: no model has been fitted; the median of the last five stands in"
_CHUNK = 50_000
_PLACED_TOGETHER = 125
"""Jobs placed and answered at a time."""


class DurationPredictor:
    """Answers for any jobs at any time from a model, or from the baseline where there is none.

    Feed it with :meth:`replay` first, then with :meth:`replay` again or with the single verbs.
    """

    def __init__(self, model: DurationModel | None = None) -> None:
        self._features = DurationFeatures(with_usage=model is not None and model.with_usage)
        self._live = None if model is None else LiveModel(model)
        self._floor = MedianOfFive(PRIOR) if self._live is None else self._live.floor
        self._placed: dict[JobIdentity, Placement] = {}
        self._rows: dict[JobIdentity, Floats] = {}
        self._past = PastJobs()

    @property
    def version(self) -> str | None:
        """The version of the model that answers, None where the baseline does."""
        return None if self._live is None else self._live.model.version

    def replay(self, jobs: Sequence[Job], until: datetime) -> None:
        """Take in what happened to ``jobs`` up to and including ``until``, in the order it happened.

        May be called again with later or with the same jobs, however old: what is known already is passed over.
        """
        limit = utc(until, "until")
        past = [self._is_past(job) for job in jobs]
        self.take([event for event in events_of(jobs, limit) if not past[event.place]])

    def take(self, events: Sequence[Event]) -> None:
        """Take in ``events``, in the order given, none of which was told before.

        However a sequence of events is cut into calls, the state it leaves is the same to the bit.
        """
        for first in range(0, len(events), _CHUNK):
            self._take(events[first : first + _CHUNK])

    def submitted(self, job: Job) -> None:
        """``job`` was submitted; where its start is its submission it runs from here on."""
        self._take_one(EventKind.SUBMITTED, job, job.submit)

    def started(self, job: Job) -> None:
        """``job`` began to run, at its start."""
        if job.start is not None:
            self._take_one(EventKind.STARTED, job, job.start)

    def ended(self, job: Job) -> None:
        """``job`` ended, or was lost sight of; from here on it counts in every answer."""
        gone = job.gone_at
        if gone is not None:
            self._take_one(EventKind.ENDED, job, max(gone, job.start or job.submit))

    def _take_one(self, kind: EventKind, job: Job, moment: datetime) -> None:
        if self._is_past(job):
            return
        events = [Event(moment.timestamp(), 0, 0, kind, moment, job)]
        if kind is not EventKind.SUBMITTED and not self._features.is_open(job.identity):
            # Seen for the first time when it had already started or ended: better late than never.
            events.insert(0, Event(job.submit.timestamp(), 0, 0, EventKind.SUBMITTED, job.submit, job))
        self._take(events)

    @property
    def passed_over(self) -> int:
        """How often a job was not taken in because it is too old to be told from one that was, long ago."""
        return self._past.passed_over

    def _is_past(self, job: Job) -> bool:
        """Whether ``job`` was taken in before and is gone."""
        return not self._features.is_open(job.identity) and self._past.holds(job.identity, job.submit.timestamp())

    def _take(self, events: Sequence[Event]) -> None:
        """Histories first, since they need no model; then all new jobs are placed at once; then the leaves."""
        asked: dict[int, _Asked] = {}
        # A source may use one id again, one job after the other: what counts is what is open at each event's turn.
        placed_now: dict[JobIdentity, bool] = {}
        ends = {event.job.identity: at for at, event in enumerate(events) if event.kind is EventKind.ENDED}
        for at, event in enumerate(events):
            job = event.job
            if event.kind is EventKind.SUBMITTED:
                known = placed_now.get(job.identity, job.identity in self._placed)
                if self._live is not None and job.submit >= self._live.model.leaves_since and not known:
                    asked[at] = self._asked(job, event, self._live, open_ended=ends.get(job.identity, -1) < at)
                    placed_now[job.identity] = True
                self._features.submitted(job)
            elif event.kind is EventKind.STARTED:
                self._features.started(job)
            else:
                self._features.ended(job, event.moment)
                self._past.add(job.identity, job.submit.timestamp())
                placed_now[job.identity] = False
        if self._live is None:
            self._take_to_floor(events)
        else:
            self._take_to_model(self._live, events, asked)

    def _asked(self, job: Job, event: Event, live: LiveModel, *, open_ended: bool) -> _Asked:
        """What is known of ``job`` as it is submitted; the hazard only where it may be asked for."""
        row = self._features.row(job, event.moment)
        if not open_ended and event.moment < live.model.fitted_at:
            return _Asked(row, _UNASKED, hazard=False)
        return _Asked(row, self._features.latest(job, event.moment), hazard=True)

    def _take_to_floor(self, events: Sequence[Event]) -> None:
        for event in events:
            if event.kind is EventKind.SUBMITTED:
                self._floor.submitted(event.job)
            elif event.kind is EventKind.ENDED:
                self._floor.ended(event.job)

    def _take_to_model(self, live: LiveModel, events: Sequence[Event], asked: dict[int, _Asked]) -> None:
        placed = dict(zip(asked, _placed(live.model, list(asked.values())), strict=True))
        for at, event in enumerate(events):
            identity, placement = event.job.identity, placed.get(at)
            if placement is not None:
                self._placed[identity], self._rows[identity] = placement, asked[at].row
            live.take(event, placement)
            if event.kind is EventKind.ENDED:
                self._placed.pop(identity, None)
                self._rows.pop(identity, None)

    def forecast(
        self, jobs: Sequence[Job], now: datetime, elapsed: Sequence[float] | None = None
    ) -> list[DurationForecast]:
        """One answer per job as of ``now``; of the remaining time where it has already run ``elapsed`` seconds.

        Changes nothing, and no answer depends on the others asked for with it: jobs that are not known
        are hypothetical, submitted at ``now``. Jobs known to be open are answered from what was known at
        their submission and what has ended since.

        Raises:
            Refused: ages that do not fit the jobs.
        """
        moment = utc(now, "now")
        ages = ages_of(jobs, elapsed)
        live = self._live
        if live is None:
            return [self._stand_in(job, age, (_NO_MODEL,)) for job, age in zip(jobs, ages, strict=True)]
        inquiries = starmap(Inquiry, zip(jobs, self._placements(live.model, jobs, moment), ages, strict=True))
        found: list[DurationForecast] = []
        while asked := list(islice(inquiries, _PLACED_TOGETHER)):
            answers = live.answers(asked, moment.timestamp())
            found += [self._answer(live.model, one, answer) for one, answer in zip(asked, answers, strict=True)]
        return found

    def _answer(self, model: DurationModel, asked: Inquiry, answer: LiveAnswer | None) -> DurationForecast:
        refused = refusal(asked.placement, None if answer is None else answer.cdf)
        if answer is None or refused is not None:
            return self._stand_in(asked.job, asked.age_seconds, refused or ())
        key, count = self._floor.evidence(asked.job)
        return DurationForecast(
            distribution=DurationDistribution(model.grid.log_edges, answer.cdf).given_age(asked.age_seconds),
            served=MODEL,
            model_version=model.version,
            key=key,
            key_count=count,
            reasons=asked.placement.reasons,
            outcomes=answer.chances,
        )

    def explain(
        self, jobs: Sequence[Job], now: datetime, elapsed: Sequence[float] | None = None
    ) -> list[DurationExplanation]:
        """Why the answers to ``jobs``, asked now, are what they are; those known to be open as of their submission.

        Costs far more than the answers do: the trees are asked what each feature has moved.

        Raises:
            Refused: ages that do not fit the jobs.
        """
        moment = utc(now, "now")
        answers = self.forecast(jobs, moment, elapsed)
        effects: list[tuple[FeatureEffect, ...]] = [()] * len(jobs)
        if self._live is not None and jobs:
            rows = [
                self._rows[job.identity] if job.identity in self._rows else self._features.row(job, moment)
                for job in jobs
            ]
            effects = effects_of(self._live.model, np.array(rows))
        return [
            self._explanation(job, answer, moved, age)
            for job, answer, moved, age in zip(jobs, answers, effects, ages_of(jobs, elapsed), strict=True)
        ]

    def _explanation(
        self, job: Job, answer: DurationForecast, effects: tuple[FeatureEffect, ...], age: float
    ) -> DurationExplanation:
        key, count = self._floor.evidence(job)
        modelled = self._live is not None and answer.served == MODEL
        unsaid = [reason.split(":")[0].removeprefix(UNKNOWN) for reason in answer.reasons if reason.startswith(UNKNOWN)]
        return DurationExplanation(
            key=key,
            key_count=count,
            last_end=self._floor.last_end(job),
            weights=self._live.shares_of(job) if self._live is not None and modelled else {MEDIAN_OF_5: 1.0},
            effects=effects if modelled else (),
            narrower=narrower(job, answer.distribution, (key, count), unsaid, runs=age > 0),
        )

    def _stand_in(self, job: Job, age: float, reasons: tuple[str, ...]) -> DurationForecast:
        answer = self._floor.answer(job, age)
        return replace(answer, reasons=reasons + answer.reasons)

    def _placements(self, model: DurationModel, jobs: Sequence[Job], now: datetime) -> Iterator[Placement]:
        unknown = [job for job in jobs if job.identity not in self._placed]
        fresh = self._fresh(model, unknown, now)
        for job in jobs:
            yield self._placed[job.identity] if job.identity in self._placed else next(fresh)

    def _fresh(self, model: DurationModel, jobs: Sequence[Job], now: datetime) -> Iterator[Placement]:
        """Where jobs fall that nobody has told of yet.

        Trees work outside the interpreter's lock: while they place some jobs, the rows of the next are made, and
        those before are answered.
        """
        rows: Memo = {}
        latest: Memo = {}
        chunks = (
            [
                _Asked(self._features.row(job, now, rows), self._features.latest(job, now, latest), hazard=True)
                for job in jobs[first : first + _PLACED_TOGETHER]
            ]
            for first in range(0, len(jobs), _PLACED_TOGETHER)
        )
        if len(jobs) <= _PLACED_TOGETHER:
            for chunk in chunks:
                yield from _placed(model, chunk)
            return
        with ThreadPoolExecutor(1) as beside:
            for under_way in [beside.submit(_placed, model, chunk) for chunk in chunks]:
                yield from under_way.result()


class _Asked(NamedTuple):
    """What is known of a job at the moment of asking, and whether its hazard may be asked for."""

    row: Floats
    latest: Singles
    hazard: bool


_UNASKED = np.full(LATEST, np.nan, dtype=np.float32)


def _placed(model: DurationModel, asked: Sequence[_Asked]) -> list[Placement]:
    if not asked:
        return []
    rows, latest = np.array([one.row for one in asked]), np.array([one.latest for one in asked])
    return place(model, rows, latest, np.array([one.hazard for one in asked]))
