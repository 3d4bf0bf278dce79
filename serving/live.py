"""The running product: what the API and the pages ask, answered from one consistent state.

A state is built whole and swapped whole, so that no answer mixes two models. Between two cycles its foresight is
fed with what the history gains (:meth:`LiveAdvisor.take_in`).
"""

from __future__ import annotations

import math
import threading
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from itertools import islice

import structlog

from advisor.clock import Clock
from advisor.cycle import AdviceCycle, CycleMemory
from advisor.domain.decisions import DecisionRecord
from advisor.domain.forecasts import DemandForecast
from advisor.domain.jobs import Job
from advisor.domain.plans import Advice, Money
from advisor.domain.promises import KeptPromises
from advisor.domain.slices import Allocation
from advisor.errors import AdvisorError, Transient
from advisor.forecast.registry import ModelRegistry
from advisor.history.status import HistoryStatus
from advisor.history.store import HistoryStore
from advisor.planning.allocator import allocate
from advisor.reconciler.pacing import RecentWants
from advisor.reconciler.reconcile import ReconcileInputs
from advisor.settings import Settings
from dashboards.data import DemandPoint, HistorySummary, JobView, RegisteredModel
from serving import wiring
from serving.advice_json import advice_document
from serving.answers import (
    LiveState,
    duration_answers,
    job_views,
    of_several,
    remaining_of_running,
    searched_text,
    slice_request,
)
from serving.api.service import AllocationAsk, DurationAnswer, DurationAsk, ModelSummary, Readiness, Unknown
from serving.champions import Champions
from serving.foresight import Foresight
from serving.manifest_notes import with_manifest_notes
from serving.model_shelf import ModelShelf
from serving.wiring import ClusterChoice, ClusterKind

__all__ = ["LiveAdvisor", "LiveParts"]

_log = structlog.get_logger(__name__)

_MOST_AT_ONCE = 2000
"""So many changed jobs at most are fed to a state that answers meanwhile; more of them are a new history."""

_JOBS_AT_A_TIME = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveParts:
    """What the live advisor is made of.

    ``as_of`` pins the moment; None takes the history's end or the clock. ``continuous`` says that cycle
    follows cycle, so that a lower limit may wait for a quiet while; a single look has no memory for that.
    """

    settings: Settings
    history: HistoryStore
    registry: ModelRegistry
    clock: Clock
    cluster: ClusterChoice
    as_of: datetime | None = None
    continuous: bool = False


class LiveAdvisor:
    """Implements ``AdvisorService`` and ``DashboardData``; safe to call from several threads."""

    def __init__(self, parts: LiveParts) -> None:
        self._parts = parts
        self._shelf = ModelShelf(parts.registry)
        self._state: LiveState | None = None
        self._failure: str | None = "the first cycle has not finished yet"
        self._one_at_a_time = threading.Lock()
        self._changing = threading.Lock()

    # -- keeping current -------------------------------------------------------------------------

    def refresh(self) -> float:
        """Read the history, load the champions, run one cycle and take its state; the seconds to the next look.

        On an error the last good state stays and the reason is told by :meth:`readiness`.

        Raises:
            AdvisorError: history, registry or cluster cannot be used now.
        """
        with self._one_at_a_time:
            try:
                state = self._next_state()
                with self._changing:
                    # What came while the cycle ran is known before the state is seen.
                    state.foresight.take_in(self._moment())
                    self._state = state
            except AdvisorError as error:
                self._failure = str(error)
                raise
            except Exception as error:
                self._failure = f"the last cycle broke: {type(error).__name__}"
                raise
            self._failure = None
            return state.next_look_seconds

    def take_in(self) -> bool:
        """Let submissions, starts and ends reach the answers now; False where they wait for the next :meth:`refresh`.

        Cheap where nothing has changed. Before the first cycle there is nothing to feed.

        Raises:
            AdvisorError: the history cannot be used now.
        """
        with self._changing:
            state = self._state
            return state is None or state.foresight.take_in(self._moment(), _MOST_AT_ONCE)

    def _next_state(self) -> LiveState:
        """The state after one more cycle; until then the last one answers, and is fed."""
        parts, last = self._parts, self._state
        foresight = self._foresight(last)
        now, jobs = foresight.jobs()
        status = parts.history.status()
        summary = self._summary(status, jobs, now)
        cluster = wiring.open_cluster(parts.cluster, jobs, now)
        starts = parts.history.start_latencies(now)
        cycle = AdviceCycle(cluster, foresight, foresight.demand, wiring.cycle_terms(parts.settings), starts)
        memory = _first_memory(parts) if last is None else last.memory
        outcome = cycle.run(jobs, self._inputs(now), memory, foresight.champions.versions)
        advice = replace(
            outcome.advice,
            synthetic=summary.synthetic,
            reasons=(*outcome.advice.reasons, *foresight.champions.reasons),
        )
        advice = with_manifest_notes(advice, jobs, status.partitioned)
        self._keep(now, advice, outcome.decisions)
        return LiveState(
            now=now,
            foresight=foresight,
            advice=advice,
            snapshot=outcome.snapshot,
            memory=outcome.memory,
            summary=summary,
            next_look_seconds=outcome.next_look_seconds,
        )

    def _foresight(self, last: LiveState | None) -> Foresight:
        """The last one brought up to date, or a new one where that would not equal it."""
        parts, now = self._parts, self._moment()
        champions = self._champions(last)
        if last is not None and last.foresight.serves(champions, now) and last.foresight.take_in(now, _MOST_AT_ONCE):
            return last.foresight
        made = Foresight(champions, parts.history, parts.settings.demand)
        made.take_in(now)
        return made

    def _champions(self, last: LiveState | None) -> Champions:
        """Those of the last state, unless the registry names others now."""
        if last is not None and last.foresight.champions.current(self._parts.registry):
            return last.foresight.champions
        return Champions.of(self._parts.registry)

    def _keep(self, now: datetime, advice: Advice, decisions: Sequence[DecisionRecord]) -> None:
        if decisions:
            self._parts.history.record_decisions(decisions)
        self._parts.history.record_advice(now, advice_document(advice))
        _log.debug("cycle_finished", time=now.isoformat(), pools=len(advice.pools), models=dict(advice.models))

    def _moment(self) -> datetime:
        """A live cluster is looked at now; one in memory lives where the history ends: at its last submission."""
        parts = self._parts
        if parts.as_of is not None:
            return parts.as_of
        if parts.cluster.kind is ClusterKind.KUBERNETES:
            return parts.clock.now()
        last = parts.history.last_submit()
        if last is None:
            raise Transient("the history is empty; ingest one first (gsa ingest)")
        return last

    def _inputs(self, now: datetime) -> ReconcileInputs:
        parts = self._parts
        return ReconcileInputs(
            now=now,
            history_as_of=parts.history.last_event(now),
            rules=wiring.guard_rules(parts.settings),
            last_applied=lambda pool, field: parts.history.last_applied(pool, field, now),
            paused=parts.settings.guards.paused,
            interval_seconds=parts.settings.server.refresh_seconds,
            cluster_assumed=parts.cluster.kind is ClusterKind.MEMORY and parts.cluster.file is None,
        )

    def _summary(self, status: HistoryStatus, jobs: Sequence[Job], now: datetime) -> HistorySummary:
        return HistorySummary(
            jobs=len(jobs),
            first=jobs[0].submit if jobs else None,
            last=self._parts.history.last_event(now),
            sources=tuple(source.source for source in status.sources),
            dropped=sum(rejection.count for rejection in status.rejections),
            synthetic=status.synthetic,
        )

    def _current(self) -> LiveState:
        state = self._state
        if state is None:
            raise Transient(f"there is no advice yet: {self._failure}")
        return state

    # -- AdvisorService --------------------------------------------------------------------------

    def now(self) -> datetime:
        """The moment that answers about durations and jobs refer to."""
        return self._current().foresight.now

    def synthetic(self) -> bool:
        """Whether the history is a generated workload."""
        return self._current().summary.synthetic

    def durations(self, asks: Sequence[DurationAsk], *, explain: bool = False) -> tuple[DurationAnswer, ...]:
        """One answer per ask, in order, all from one state."""
        state = self._current()
        return duration_answers(state, asks, explain=explain)

    def demand(self, pool: str | None) -> tuple[DemandForecast, ...]:
        """Forecasts of every pool, or of one."""
        advice = self._current().advice
        if pool is None:
            return tuple(one.demand for one in advice.pools)
        found = advice.of_pool(pool)
        if found is None:
            known = ", ".join(one.pool for one in advice.pools)
            raise Unknown("pool", pool, f"known pools are {known}", "Use one of them.")
        return (found.demand,)

    def advice(self) -> Advice:
        """The newest advice."""
        return self._current().advice

    def allocate(self, asks: Sequence[AllocationAsk]) -> tuple[Allocation, ...]:
        """One allocation per ask, on the newest snapshot; nothing is reserved."""
        state = self._current()
        answers = duration_answers(state, [ask.job for ask in asks])
        requests = [slice_request(ask, answer, state.now) for ask, answer in zip(asks, answers, strict=True)]
        plans = {one.pool: one.slice_plan for one in state.advice.pools}
        terms = wiring.allocation_terms(self._parts.settings, state.advice)
        return allocate(state.snapshot, requests, plans, terms, state.now, remaining_of_running(state))

    def models(self) -> tuple[ModelSummary, ...]:
        """Registered versions, newest first."""
        return self._shelf.summaries()

    def readiness(self) -> Readiness:
        """Ready once a state stands; a later failure is told beside it."""
        reasons = () if self._failure is None else (self._failure,)
        return Readiness(ready=self._state is not None, reasons=reasons)

    def sources(self) -> HistoryStatus:
        """What the history says now of where it comes from, whichever process reads the sources."""
        return self._parts.history.status()

    # -- DashboardData ---------------------------------------------------------------------------

    def money(self) -> Money:
        """Prices, for money beside minutes."""
        return wiring.money(self._parts.settings)

    def history(self) -> HistorySummary:
        """What the advice stands on."""
        return self._current().summary

    def recent_demand(self, pool: str, hours: float) -> tuple[DemandPoint, ...]:
        """The pool's demand over the last ``hours``, oldest first."""
        state = self._current()
        series = state.foresight.demand.series(pool)
        if series is None:
            return ()
        recent = range(max(0, len(series) - int(hours * 60 / series.step_minutes)), len(series))
        return tuple(
            DemandPoint(
                time=series.time_at(at),
                running=_known(series.running[at]),
                pending=None if series.pending is None else _known(series.pending[at]),
            )
            for at in recent
        )

    def jobs(self, text: str | None, limit: int) -> tuple[JobView, ...]:
        """The newest jobs whose id, user, namespace or name holds ``text``."""
        foresight = self._current().foresight
        now, known = foresight.jobs()
        wanted = text.lower() if text else ""
        found = iter([one for one in reversed(known) if wanted in searched_text(one)])
        views: list[JobView] = []
        while len(views) < limit and (some := list(islice(found, max(limit, _JOBS_AT_A_TIME)))):
            promises = self._parts.history.promises([job.identity for job in some])
            shown = [job for job in some if job.gone_at is None or job.identity in promises]
            views += job_views(foresight, now, shown[: limit - len(views)], promises)
        return tuple(views)

    def job(self, job_id: str, source: str | None = None) -> JobView | None:
        """One job, None if it is unknown, or ended without a promise ever made to it.

        Raises:
            Refused: several sources have a job of that id, and ``source`` names none.
        """
        foresight = self._current().foresight
        now, called = foresight.called(job_id)
        found = [job for job in called if source is None or job.source == source]
        promises = self._parts.history.promises([job.identity for job in found])
        shown = [job for job in found if job.gone_at is None or job.identity in promises]
        if len(shown) > 1:
            raise of_several("job", shown, f"Ask for one, as in ?source={shown[0].source}.")
        return next(iter(job_views(foresight, now, shown, promises, explain=True)), None)

    def kept_promises(self, days: int) -> tuple[KeptPromises, ...]:
        """How promises to jobs submitted in the last ``days`` were kept, by day (UTC) and origin, oldest first."""
        now = self._current().foresight.now
        since = now.replace(hour=0, minute=0, second=0, microsecond=0) - timedelta(days=days - 1)
        return tuple(self._parts.history.kept_promises(now, since))

    def registered(self) -> tuple[RegisteredModel, ...]:
        """What the registry holds."""
        return self._shelf.registered()


def _first_memory(parts: LiveParts) -> CycleMemory:
    return CycleMemory(wants=RecentWants() if parts.continuous else None)


def _known(gpus: float) -> float | None:
    return None if math.isnan(gpus) else float(gpus)
