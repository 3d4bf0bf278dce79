"""One cycle over several pools: what is wrong with one is told, and stops no other."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from advisor.clock import ManualClock
from advisor.cluster.memory import MemoryCluster
from advisor.cycle import AdviceCycle, CycleMemory, CycleTerms
from advisor.domain.forecasts import DemandForecast, DurationDistribution, DurationForecast
from advisor.domain.start_latency import NodeStart, StartLatency, StartPart
from advisor.errors import Refused, Transient
from advisor.planning.advice import AdviceTerms
from advisor.planning.costs import Prices
from advisor.planning.slice_terms import SliceTerms
from advisor.reconciler.reconcile import ReconcileInputs
from tests.builders import NOON, a_cluster, a_job, a_job_of_every_field, a_node_pool, a_pool_advice


class TwentyMinutes:
    """Every job will last about twenty minutes."""

    def forecast(self, jobs, now, elapsed=None):
        del now, elapsed
        law = DurationDistribution.point(1200.0, spread=1.0)
        return [DurationForecast(distribution=law, served="model", model_version="1", key="user", key_count=9)] * len(
            jobs
        )


class EightGpus:
    """Every pool will want eight, except those that cannot be forecast."""

    def __init__(self, *unknown: str) -> None:
        self.unknown = unknown

    def demand(self, pool, jobs, now) -> DemandForecast:
        del jobs
        if pool in self.unknown:
            raise Refused("pool", pool, "its samples are of another step", "Fit it anew.")
        return replace(a_pool_advice(pool).demand, made_at=now)

    def rise(self, pool, jobs, now):
        del pool, jobs, now


class Asked(TwentyMinutes):
    """Remembers what it was asked about."""

    def __init__(self):
        self.jobs = []

    def forecast(self, jobs, now, elapsed=None):
        self.jobs += jobs
        return super().forecast(jobs, now, elapsed)


def run(demand: EightGpus, *pools):
    terms = CycleTerms(advice=AdviceTerms(slices=SliceTerms(switch_minutes=1.0)), prices=Prices())
    cluster = MemoryCluster(a_cluster(*pools), ManualClock(NOON))
    cycle = AdviceCycle(cluster, TwentyMinutes(), demand, terms)
    return cycle.run([a_job()], ReconcileInputs(now=NOON, history_as_of=NOON), CycleMemory(), {})


def test_a_pool_that_cannot_be_advised_on_is_named_and_the_others_go_on():
    outcome = run(EightGpus("odd"), a_node_pool("odd"), a_node_pool("sound"))

    assert [pool.pool for pool in outcome.advice.pools] == ["sound"]
    assert set(outcome.memory.pools) == {"sound"}
    (odd,) = outcome.advice.without_advice
    assert odd.pool == "odd"
    assert str(odd).startswith("no advice for pool odd: pool: 'odd' is refused")


def test_the_next_tasks_are_like_past_ones_whatever_became_of_those():
    past, now, asked = a_job_of_every_field(), NOON + timedelta(days=1), Asked()
    cluster = MemoryCluster(a_cluster(a_node_pool("gpu"), time=now), ManualClock(now))
    terms = CycleTerms(advice=AdviceTerms(slices=SliceTerms(switch_minutes=1.0)), prices=Prices())

    outcome = AdviceCycle(cluster, asked, EightGpus(), terms).run(
        [past], ReconcileInputs(now=now, history_as_of=NOON), CycleMemory(), {}
    )

    assert outcome.advice.without_advice == ()
    assert asked.jobs == [replace(past.as_asked(), id="next:full", submit=now)]


def test_where_no_pool_can_be_advised_on_the_cycle_fails_with_the_reason():
    with pytest.raises(Transient, match=r"pool odd: .*another step.*pool strange: .*another step"):
        run(EightGpus("odd", "strange"), a_node_pool("odd"), a_node_pool("strange"))


@pytest.mark.parametrize("limit", ["1e3", "1e400", "lots", "-8"])
def test_no_limit_of_one_pool_keeps_another_from_its_advice(limit: str):
    outcome = run(EightGpus(), a_node_pool("odd", limits={"nvidia.com/gpu": limit}), a_node_pool("sound"))

    odd, sound = outcome.advice.pools
    assert sound.changes
    assert odd.slice_plan.classes
    assert any("cannot be read" in reason for reason in odd.reasons) is (limit in {"lots", "-8"})


def test_each_pool_is_planned_with_its_own_measured_start():
    parts = {StartPart.LAUNCHED: 10.0, StartPart.REGISTERED: 20.0, StartPart.INITIALISED: 70.0}
    measured = StartLatency.of("fast", [NodeStart(parts)] * 5)
    terms = CycleTerms(advice=AdviceTerms(slices=SliceTerms(switch_minutes=1.0)), prices=Prices())
    cluster = MemoryCluster(a_cluster(a_node_pool("fast"), a_node_pool("other")), ManualClock(NOON))
    cycle = AdviceCycle(cluster, TwentyMinutes(), EightGpus(), terms, [measured])

    outcome = cycle.run([a_job()], ReconcileInputs(now=NOON, history_as_of=NOON), CycleMemory(), {})

    assert [pool.warm.start_latency_seconds for pool in outcome.advice.pools] == [100.0, 300.0]
