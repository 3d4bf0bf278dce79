"""Everything recommended for one pool."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest

from advisor.domain.forecasts import DemandForecast, HorizonForecast, RiseForecast
from advisor.domain.start_latency import NodeStart, StartLatency, StartPart
from advisor.errors import Refused
from advisor.planning.advice import AdviceTerms, PoolForesight, advise_pool, gpu_need
from advisor.planning.costs import Prices
from advisor.planning.durations import PoolDurations
from advisor.planning.limits import GpuNeed, LimitTerms
from advisor.planning.slice_terms import SliceTerms
from advisor.planning.warm_capacity import WarmTerms
from tests.builders import NOON, a_cluster, a_node, a_node_pool, a_workload, lognormal_durations

PRICES = Prices()
TERMS = AdviceTerms(slices=SliceTerms(switch_minutes=5.0), warm=WarmTerms(start_latency_seconds=240.0))
HEAVY = PoolDurations.one(lognormal_durations(300.0, 1.67), 500)
POOL = a_node_pool(limits={"nvidia.com/gpu": "8"}, slice_minutes=60.0)
CLUSTER = a_cluster(POOL, nodes=(a_node(),), workloads=(a_workload("busy", gpus=6.0),))


def a_demand(now: float, q95: float, *, skill: float | None = 0.2, **more) -> DemandForecast:
    horizon = HorizonForecast(
        horizon_minutes=60, levels=(0.5, 0.95), gpus=(min(now, q95), q95), skill=skill, served="model"
    )
    return DemandForecast(**{"pool": "default", "made_at": NOON, "gpus_now": now, "horizons": (horizon,), **more})


def a_rise(per_hour: float) -> RiseForecast:
    horizons = (5.0, 10.0, 30.0, 60.0, 240.0)
    rows = tuple((1.0 - float(np.exp(-per_hour * h / 60.0)),) for h in horizons)
    return RiseForecast(
        pool="default", made_at=NOON, node_gpus=8, horizons_minutes=horizons, probabilities=rows, served="model"
    )


FORESIGHT = PoolForesight(durations=HEAVY, demand=a_demand(8.0, 10.0))


def advise(foresight=FORESIGHT, terms=TERMS, pool=POOL, cluster=CLUSTER):
    return advise_pool(pool, cluster, foresight, terms, PRICES, NOON)


def test_one_advice_holds_every_part_with_its_reasons():
    advice = advise()
    assert advice.pool == advice.slice_plan.pool == advice.warm.pool == "default"
    assert advice.slice_plan.classes[0].minutes == 10.0
    assert advice.slice_plan.classes[0].current_minutes == 60.0
    assert advice.sharing_factor == 1
    assert advice.gpu_limit == 16
    assert advice.changes == ()
    assert advice.patch is None
    for topic in ("slices", "sharing", "warm capacity", "limit"):
        assert any(reason.startswith(f"{topic}: ") for reason in advice.reasons)


def test_what_the_pool_knows_of_itself_goes_into_the_slice_terms():
    """Six of eight GPUs busy; a start takes 12 min, so no lease is shorter than 15."""
    slow = replace(TERMS, warm=WarmTerms(start_latency_seconds=720.0))
    advice = advise(terms=slow)
    assert advice.slice_plan.classes[0].minutes == 15.0
    assert not any("load is unknown" in reason for reason in advice.reasons)


def test_a_pool_without_nodes_has_no_load():
    advice = advise(cluster=a_cluster(POOL))
    assert any("load is unknown" in reason for reason in advice.reasons)


def test_the_limit_leaves_room_for_the_warm_nodes():
    busy = replace(FORESIGHT, rise=a_rise(30.0))
    advice = advise(busy)
    assert advice.warm.warm_gpus == 8
    assert advice.gpu_limit == 24
    assert gpu_need(busy.demand, advice.warm, TERMS) == pytest.approx(18.0)


def test_warm_nodes_stay_within_the_cap_of_the_limit():
    capped = replace(TERMS, limits=LimitTerms(most_gpus=12))
    assert advise(replace(FORESIGHT, rise=a_rise(30.0)), capped).warm.warm_gpus == 0


def test_a_limit_falls_on_skill_only():
    pool = a_node_pool(limits={"nvidia.com/gpu": "32"})
    quiet = tuple(GpuNeed(NOON - timedelta(minutes=m), 8.0) for m in range(60, 0, -5))
    skilled = replace(FORESIGHT, recent_needs=quiet)
    assert advise(skilled, pool=pool).gpu_limit == 16
    unskilled = advise(replace(skilled, demand=a_demand(8.0, 10.0, skill=None)), pool=pool)
    assert unskilled.gpu_limit == 32
    assert any("without skill does not lower it" in reason for reason in unskilled.reasons)


def test_a_horizon_beyond_the_limits_reach_does_not_count():
    far = replace(TERMS, limit_horizon_minutes=30.0)
    assert advise(terms=far).gpu_limit == 8


def test_the_last_plan_is_what_a_new_one_is_measured_against():
    first = advise()
    again = advise(replace(FORESIGHT, last_slices=first.slice_plan))
    assert again.slice_plan.classes[0].current_minutes == 10.0
    assert any(reason.startswith("kept as it is") for reason in again.slice_plan.reasons)


def test_a_pool_without_history_is_answered_with_defaults():
    empty = PoolForesight(durations=PoolDurations((), ()), demand=a_demand(0.0, 0.0, skill=None))
    advice = advise(empty, pool=a_node_pool(slice_minutes=None))
    assert advice.slice_plan.classes[0].minutes == 15.0
    assert advice.warm.served == "default"
    assert advice.durations.mean > 0


def test_the_same_input_gives_the_same_advice():
    assert advise() == advise()


def test_forecasts_of_another_pool_are_refused():
    with pytest.raises(Refused, match="demand"):
        advise(replace(FORESIGHT, demand=a_demand(8.0, 10.0, pool="other")))


def test_a_reach_that_is_none_is_refused():
    with pytest.raises(Refused, match="limit_horizon_minutes"):
        replace(TERMS, limit_horizon_minutes=0.0)


@pytest.mark.parametrize("text", ["lots", "-8"])
def test_a_limit_that_cannot_be_read_is_left_alone_and_the_rest_is_advised(text):
    advice = advise(pool=a_node_pool(limits={"nvidia.com/gpu": text}))

    assert advice.gpu_limit is None
    assert any(
        reason.startswith(f"limit: it is left alone, since it cannot be read: limits: '{text}'")
        for reason in advice.reasons
    )
    assert advice.slice_plan.classes[0].minutes is not None


def starts(*to_gpu: float, pool: str = "default") -> StartLatency:
    parts = [{StartPart.LAUNCHED: 0.0, StartPart.REGISTERED: 0.0, StartPart.INITIALISED: each} for each in to_gpu]
    return StartLatency.of(pool, [NodeStart(each) for each in parts])


def test_a_pool_whose_starts_were_measured_is_planned_with_their_p90_and_says_so():
    measured = replace(FORESIGHT, rise=a_rise(2.0), start_latency=starts(600, 600, 600, 600, 1200))

    advice = advise(measured)

    assert advice.warm.start_latency_seconds == pytest.approx(960.0)
    assert any("start latency 16 min: P90 of the last 5 nodes" in reason for reason in advice.reasons)
    assert (
        advice.warm
        == advise(
            replace(measured, start_latency=None),
            replace(
                TERMS,
                warm=WarmTerms(start_latency_seconds=960.0, start_latency_reason=advice.warm.keep_alive_reasons[-1]),
            ),
        ).warm
    )


def test_too_few_starts_leave_the_setting_and_are_named():
    advice = advise(replace(FORESIGHT, start_latency=starts(600, 600, 600, 1200)))

    assert advice.warm.start_latency_seconds == 240.0
    assert any("as it was set: 4 whole starts measured, and 5 are needed" in reason for reason in advice.reasons)


def test_slices_are_planned_with_the_measured_start_too():
    fast = advise(replace(FORESIGHT, start_latency=starts(*[1.0] * 9)), replace(TERMS, warm=WarmTerms()))
    slow = advise(replace(FORESIGHT, start_latency=starts(*[3000.0] * 9)), replace(TERMS, warm=WarmTerms()))

    assert fast.slice_plan != slow.slice_plan
