"""One advice cycle: observe, build, predict, advise. What is done about it is the reconciler's.

The cycle is handed everything it needs, the time included, and keeps nothing between calls except what
:class:`CycleMemory` returns, so that it runs unchanged against a simulated cluster.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Protocol

from advisor.cluster.port import ClusterPort
from advisor.domain.decisions import DecisionRecord
from advisor.domain.forecasts import DemandForecast, DurationForecast, RiseForecast
from advisor.domain.jobs import Job, pool_of
from advisor.domain.nodepools import ClusterSnapshot, NodePool
from advisor.domain.plans import Advice, Mode, PoolAdvice, PoolWithoutAdvice
from advisor.domain.start_latency import StartLatency
from advisor.domain.units import counted
from advisor.errors import Refused, Transient
from advisor.planning.advice import AdviceTerms, PoolForesight, advise_pool, gpu_need
from advisor.planning.costs import Prices
from advisor.planning.durations import PoolDurations
from advisor.planning.limits import GpuNeed
from advisor.reconciler.pacing import RecentWants
from advisor.reconciler.reconcile import ReconcileInputs, reconcile

__all__ = ["AdviceCycle", "CycleMemory", "CycleOutcome", "CycleTerms", "DemandSource", "DurationSource"]

_SAMPLE = 400
_SAMPLE_DAYS = 14.0
_NEEDS_KEPT = timedelta(hours=2)


class DurationSource(Protocol):
    """Predicts durations from the state of a history."""

    def forecast(
        self, jobs: Sequence[Job], now: datetime, elapsed: Sequence[float] | None = None
    ) -> list[DurationForecast]:
        """One forecast per job."""
        ...


class DemandSource(Protocol):
    """Predicts a pool's demand from the history as of a time."""

    def demand(self, pool: str, jobs: Sequence[Job], now: datetime) -> DemandForecast:
        """Demand at each horizon."""
        ...

    def rise(self, pool: str, jobs: Sequence[Job], now: datetime) -> RiseForecast | None:
        """How far need may rise, None where nothing foresees it."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleTerms:
    """Everything a person decides: mode, planning terms and prices."""

    advice: AdviceTerms
    prices: Prices
    mode: Mode = Mode.RECOMMEND


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleMemory:
    """What one cycle leaves for the next: the last advice of each pool, recent needs and recent wants."""

    pools: Mapping[str, PoolAdvice] = field(default_factory=dict)
    needs: Mapping[str, tuple[GpuNeed, ...]] = field(default_factory=dict)
    wants: RecentWants | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleOutcome:
    """The advice of a cycle, the snapshot it was made on, the ledger's entries and what to remember."""

    advice: Advice
    snapshot: ClusterSnapshot
    decisions: tuple[DecisionRecord, ...]
    memory: CycleMemory
    next_look_seconds: float


class AdviceCycle:
    """Runs cycles against one cluster with one pair of forecasters."""

    def __init__(
        self,
        cluster: ClusterPort,
        durations: DurationSource,
        demand: DemandSource,
        terms: CycleTerms,
        starts: Iterable[StartLatency] = (),
    ) -> None:
        """Plan by ``terms``, and by ``starts`` where those of a pool's nodes were measured."""
        self._cluster = cluster
        self._durations = durations
        self._demand = demand
        self._terms = terms
        self._starts = {each.pool: each for each in starts}

    def run(
        self, jobs: Sequence[Job], inputs: ReconcileInputs, memory: CycleMemory, models: Mapping[str, str | None]
    ) -> CycleOutcome:
        """Advice for every NodePool of the cluster, judged and (in Apply only) acted upon.

        ``jobs`` is the history as known at ``inputs.now``; ``models`` the versions the forecasters serve.

        A pool that cannot be advised on is named with the reason and stops no other.

        Raises:
            Transient: the cluster cannot be observed, or no pool at all can be advised on.
        """
        now = inputs.now
        snapshot = self._cluster.observe()
        grouped = _by_pool(jobs, snapshot.pools)
        advised: dict[str, PoolAdvice] = {}
        needs: dict[str, tuple[GpuNeed, ...]] = {}
        without: list[PoolWithoutAdvice] = []
        for pool in snapshot.pools:
            try:
                foresight = self._foresight(pool, grouped.get(pool.name, ()), now, memory)
                advice = advise_pool(pool, snapshot, foresight, self._terms.advice, self._terms.prices, now)
            except Refused as error:
                without.append(PoolWithoutAdvice(pool.name, str(error)))
                continue
            need = gpu_need(foresight.demand, advice.warm, self._terms.advice)
            advised[pool.name] = advice
            needs[pool.name] = (*foresight.recent_needs, GpuNeed(now, need))
        if without and not advised:
            raise Transient("; ".join(map(str, without)))
        homeless = sorted(set(grouped) - {pool.name for pool in snapshot.pools})
        advice_of_all = Advice(
            time=now,
            mode=self._terms.mode,
            pools=tuple(advised.values()),
            models=dict(models),
            without_advice=tuple(without),
            reasons=(
                *snapshot.notes,
                *(_homeless(name, len(grouped[name])) for name in homeless),
            ),
        )
        report = reconcile(advice_of_all, self._cluster, replace(inputs, wants=memory.wants))
        return CycleOutcome(
            advice=report.advice,
            snapshot=snapshot,
            decisions=report.decisions,
            memory=CycleMemory(pools=advised, needs=needs, wants=report.wants),
            next_look_seconds=report.next_look_seconds,
        )

    def _foresight(self, pool: NodePool, jobs: Sequence[Job], now: datetime, memory: CycleMemory) -> PoolForesight:
        last = memory.pools.get(pool.name)
        recent = tuple(need for need in memory.needs.get(pool.name, ()) if need.time > now - _NEEDS_KEPT)
        return PoolForesight(
            durations=self._next_durations(jobs, now),
            demand=self._demand.demand(pool.name, jobs, now),
            rise=self._demand.rise(pool.name, jobs, now),
            # What the pool says it uses now outranks what was last recommended to it.
            last_slices=None if last is None or pool.slice_minutes is not None else last.slice_plan,
            recent_needs=recent,
            start_latency=self._starts.get(pool.name),
        )

    def _next_durations(self, jobs: Sequence[Job], now: datetime) -> PoolDurations:
        """What the next tasks may last: forecasts, as of now, of tasks like those submitted most recently."""
        since = now - timedelta(days=_SAMPLE_DAYS)
        recent = [job for job in jobs if job.submit >= since][-_SAMPLE:] or list(jobs[-_SAMPLE:])
        alike = [_like(job, now) for job in recent]
        forecasts = self._durations.forecast(alike, now)
        return PoolDurations(
            parts=tuple(forecast.distribution for forecast in forecasts),
            weights=tuple(job.gpus for job in recent),
            ended_jobs=sum(job.duration_seconds is not None for job in jobs),
        )


def _like(job: Job, now: datetime) -> Job:
    """A job not yet submitted that asks for what ``job`` asked for."""
    return replace(job.as_asked(), id=f"next:{job.id}", submit=now)


def _by_pool(jobs: Sequence[Job], pools: Sequence[NodePool]) -> dict[str, list[Job]]:
    """Jobs by pool, in order; a single pool takes all jobs, since its name in the cluster is chosen freely."""
    grouped: dict[str, list[Job]] = {}
    only = pools[0].name if len(pools) == 1 else None
    for job in jobs:
        grouped.setdefault(only or pool_of(job), []).append(job)
    return grouped


def _homeless(pool: str, jobs: int) -> str:
    return f"the history has {counted(jobs, 'job')} of pool {pool}, which the cluster does not have"
