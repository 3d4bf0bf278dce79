"""The forecasters of a running server: made from the whole history once, then fed with what is new.

Completions reach the leaves, the key histories and the calibration as soon as they are taken in. A state that was
fed equals one rebuilt from the store, to the bit; where it cannot (something came late, or was corrected), the
foresight says that it should be made anew, and goes on answering until another takes its place.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from typing import NamedTuple

import structlog

from advisor.domain.forecasts import DurationForecast
from advisor.domain.jobs import Job
from advisor.domain.promises import Promise
from advisor.errors import Transient
from advisor.features.intake import Intake, JobKey, Told
from advisor.features.replay import Event, EventKind
from advisor.forecast.duration import DurationPredictor
from advisor.forecast.registry import DEMAND
from advisor.history.store import HistoryStore
from advisor.settings import DemandSettings
from serving.champions import Champions
from serving.demand_outlook import DemandOutlook

__all__ = ["Foresight", "Look"]

_AFTERWARDS = 500
"""So many jobs at most, the newest that are gone already, are promised to afterwards in one go."""

_SLICE = 100
"""So many events at most are taken in before whoever waits for an answer has a turn."""

_log = structlog.get_logger(__name__)


class Look(NamedTuple):
    """The duration predictor at one moment; to be asked only while the look lasts."""

    now: datetime
    durations: DurationPredictor
    champions: Champions


class Foresight:
    """Forecasters of one set of champions, current as of the last :meth:`take_in`.

    Safe for threads: feeding and looking take turns, and whoever looks sees one moment of one model.
    """

    def __init__(self, champions: Champions, history: HistoryStore, settings: DemandSettings) -> None:
        """Knows nothing before the first :meth:`take_in`, which reads the whole history."""
        self.champions = champions
        self.demand = DemandOutlook(champions.demand, champions.versions[DEMAND], settings, self.forecast)
        self._history = history
        self._durations = DurationPredictor(champions.durations)
        self._intake = Intake()
        self._now: datetime | None = None
        self._revision: int | None = None
        self._overtaken = False
        self._unrecorded: list[Promise] = []
        self._feeding = threading.Lock()
        self._turn = threading.Lock()

    # -- feeding ---------------------------------------------------------------------------------

    def take_in(self, now: datetime, most: int | None = None) -> bool:
        """Take in what the history has gained and what has happened up to ``now``; whether that could be done.

        It cannot where ``now`` lies before what was taken in, or where more than ``most`` jobs have changed at
        once: answers would wait too long for it. Then the foresight stays as it was, to be made anew.

        Raises:
            Transient: the history cannot be read; nothing was taken in.
        """
        with self._feeding:
            if self._overtaken or self._intake.beyond(now):
                return False
            revision = self._history.revision()
            if (now, revision) != (self._now, self._revision) and not self._follow(now, revision, most):
                return False
            self._record()
            return True

    def _follow(self, now: datetime, revision: int, most: int | None) -> bool:
        jobs: Sequence[Job] = ()
        if revision != self._revision:
            changes = self._history.changed_since(self._revision)
            revision, jobs = changes.revision, changes.jobs
        if most is not None and len(jobs) > most:
            self._overtaken = True
            return False
        # Until it is through: a feeding that broke off halfway leaves a state of no moment.
        self._overtaken = True
        with self._turn:
            self._intake.tell(jobs)
            told = self._intake.events(now)
        asked = self._asked(told, now)
        for first in range(0, len(told), _SLICE):
            with self._turn:
                self._take(told[first : first + _SLICE], asked, now)
                # What has been taken in is what is known of.
                self._now = max(told[first : first + _SLICE][-1].event.moment, self._now or told[0].event.moment)
            # Who waits for a turn gets it: a lock by itself lets the last holder have it again.
            time.sleep(0)
        with self._turn:
            self._now, self._revision = now, revision
        self._overtaken = False
        if told:
            _log.debug("events_taken_in", events=len(told), now=now.isoformat(), exact=self._intake.exact)
        return True

    def _take(self, told: Sequence[Told], asked: Mapping[JobKey, bool], now: datetime) -> None:
        """Feed the predictor, asking about jobs just before their submission is taken in, to keep the promise."""
        waiting: list[Event] = []
        for one in told:
            if one.event.kind is EventKind.SUBMITTED and one.key in asked:
                self._durations.take(waiting)
                waiting = []
                self._unrecorded.append(self._promise(one, now, replayed=asked[one.key] or one.late))
            waiting.append(one.event)
        self._durations.take(waiting)

    def _asked(self, told: Sequence[Told], now: datetime) -> dict[JobKey, bool]:
        """The jobs to make a promise to as their submission comes by, and whether that is afterwards."""
        rebuilding = self._revision is None
        open_now: list[JobKey] = []
        gone: list[JobKey] = []
        for key, event, _ in told:
            if event.kind is EventKind.SUBMITTED:
                job = event.job.as_of(now)
                (open_now if job is not None and job.gone_at is None else gone).append(key)
        asked = dict.fromkeys(open_now, rebuilding) | dict.fromkeys(gone[-_AFTERWARDS:], True)
        if rebuilding:
            promised = self._history.promised([(key.source, key.id) for key in asked])
            asked = {key: value for key, value in asked.items() if (key.source, key.id) not in promised}
        return asked

    def _promise(self, told: Told, now: datetime, *, replayed: bool) -> Promise:
        job, moment = told.event.job, told.event.moment
        (forecast,) = self._durations.forecast([job.as_asked()], moment)
        named = self.champions.named_by_registry(forecast)
        return Promise.of(told.key.source, told.key.id, named, now, replayed=replayed)

    def _record(self) -> None:
        """Keep the promises made; where the history cannot be written just now, with the next call."""
        if not self._unrecorded:
            return
        try:
            self._history.record_promises(self._unrecorded)
        except Transient as error:
            _log.warning("promises_not_recorded", promises=len(self._unrecorded), reason=str(error))
        else:
            self._unrecorded = []

    def serves(self, champions: Champions, now: datetime) -> bool:
        """Whether this may go on answering with ``champions`` at ``now``: its state equals a rebuilt one."""
        usable = not self._overtaken and not self._intake.beyond(now) and self._intake.exact
        return usable and champions is self.champions

    # -- asking ----------------------------------------------------------------------------------

    @contextmanager
    def looking(self) -> Iterator[Look]:
        """The predictor as it stands, which nobody feeds meanwhile."""
        with self._turn:
            yield Look(self.now, self._durations, self.champions)

    @property
    def now(self) -> datetime:
        """The moment up to which everything known has been taken in."""
        if self._now is None:
            raise RuntimeError("a foresight is asked before it has taken anything in")
        return self._now

    def forecast(
        self, jobs: Sequence[Job], now: datetime, elapsed: Sequence[float] | None = None
    ) -> list[DurationForecast]:
        """One duration forecast per job, all of one state: the advice cycle asks this way."""
        with self.looking() as look:
            return look.durations.forecast(jobs, now, elapsed)

    def jobs(self) -> tuple[datetime, list[Job]]:
        """Now, and every job as known now, by submission, then id, then source."""
        with self._turn:
            now, stored = self.now, self._intake.jobs()
        return now, [known for job in stored if (known := job.as_of(now)) is not None]

    def called(self, job_id: str) -> tuple[datetime, list[Job]]:
        """Now, and the jobs of that id as known now, one a source at most, by the names of their sources."""
        with self._turn:
            now, stored = self.now, self._intake.called(job_id)
        return now, [known for job in stored if (known := job.as_of(now)) is not None]
