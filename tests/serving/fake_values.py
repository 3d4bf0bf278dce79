"""Values of the domain as the fake service answers them."""

from __future__ import annotations

import math
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from advisor.domain.explanations import DurationExplanation, FeatureEffect
from advisor.domain.forecasts import (
    DemandForecast,
    DurationDistribution,
    DurationForecast,
    HorizonForecast,
)
from advisor.domain.jobs import Job, Outcome
from advisor.domain.plans import Advice, Change, Mode, PoolAdvice, WarmCurvePoint, WarmPlan
from advisor.domain.promises import KeptPromises, Promise
from advisor.domain.slices import CurvePoint, SliceClass, SlicePlan
from dashboards.data import Compared, ModelVersion, PoolSkill, RegisteredModel

NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)
_CANDIDATES = (5.0, 7.5, 10.0, 15.0, 20.0, 30.0, 45.0, 60.0, 90.0, 120.0, 180.0, 240.0, 480.0)
_LEVELS = (0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.99)


def durations_around(median_seconds: float, sigma: float = 1.2) -> DurationDistribution:
    """A smooth law with the given median: logistic in ln seconds, cut at both ends."""
    edges = np.linspace(math.log(median_seconds) - 5 * sigma, math.log(median_seconds) + 5 * sigma, 121)
    cdf = 1.0 / (1.0 + np.exp(-(edges - math.log(median_seconds)) * 1.7 / sigma))
    return DurationDistribution(edges, (cdf - cdf[0]) / (cdf[-1] - cdf[0]))


def a_slice_class(
    name: str = "all", *, mean_minutes: float = 52.0, minutes: float | None = 15.0, current: float | None = 30.0
) -> SliceClass:
    """A class whose curve is the unused tail of half a slice plus one switch of a minute a slice."""

    def cost(length: float) -> float:
        return 0.25 * length / mean_minutes + 1.0 / length

    curve = tuple(CurvePoint(length, cost(length), feasible=length >= 7.5) for length in _CANDIDATES)
    return SliceClass(
        name=name,
        longest_minutes=None,
        share_of_jobs=1.0,
        mean_minutes=mean_minutes,
        minutes=minutes,
        if_sliced_minutes=45.0,
        quantum_minutes=4.5,
        double_switch_minutes=20.0,
        confidence="moderate",
        current_minutes=current,
        rule_of_thumb_minutes=mean_minutes - 1.0,
        closed_form_minutes=math.sqrt(4 * mean_minutes),
        cost=cost(minutes or 480.0),
        current_cost=None if current is None else cost(current),
        binding_constraint=None,
        curve=curve,
        reasons=("the lowest point of the curve", "half a slice is lost at the end, a minute at each switch"),
    )


def a_demand(pool: str = "a100", *, now_gpus: float = 148.0, made_at: datetime = NOON) -> DemandForecast:
    """A forecast whose spread grows with the horizon; the day ahead is served by a baseline."""
    horizons = []
    for minutes in (5, 15, 30, 60, 1440):
        spread = now_gpus * 0.02 * math.sqrt(minutes / 5)
        gpus = tuple(max(0.0, now_gpus + spread * offset) for offset in (-1.2, -0.6, 0.0, 0.7, 1.5, 2.1, 3.2))
        served = "model" if minutes < 1440 else "seasonal"
        horizons.append(
            HorizonForecast(
                horizon_minutes=minutes,
                levels=_LEVELS,
                gpus=gpus,
                skill=0.12 if served == "model" else -0.03,
                served=served,
            )
        )
    return DemandForecast(
        pool=pool, made_at=made_at, gpus_now=now_gpus, horizons=tuple(horizons), model_version="3", reasons=()
    )


def a_warm_plan(pool: str = "a100", *, warm_nodes: int = 2) -> WarmPlan:
    """A plan in which each further node saves half of what the one before it does."""
    curve = tuple(
        WarmCurvePoint(
            nodes=n, cost_per_hour=20.0, saving_per_hour=88.0 * 0.5 ** (n - 1), probability_needed=0.8 * 0.55 ** (n - 1)
        )
        for n in range(1, 6)
    )
    return WarmPlan(
        pool=pool,
        warm_gpus=8 * warm_nodes,
        boot_nodes=warm_nodes,
        keep_nodes=warm_nodes + 1,
        node_gpus=8,
        keep_alive_seconds=600,
        start_latency_seconds=300.0,
        served="model",
        curve=curve,
        reasons=("the second warm node saves 44.00 USD an hour and costs 20.00 USD",),
    )


def a_pool(pool: str = "a100", *, now_gpus: float = 148.0, classes: tuple[SliceClass, ...] = ()) -> PoolAdvice:
    """A pool with one allowed and one refused change."""
    changes = (
        Change(
            object=f"NodePool/{pool}",
            field="spec.disruption.consolidateAfter",
            old="180s",
            new="600s",
            allowed=True,
            reasons=("an empty node is wanted again within 10 min more often than not",),
        ),
        Change(
            object=f"NodePool/{pool}",
            field="spec.limits.nvidia.com/gpu",
            old="160",
            new="256",
            allowed=False,
            reasons=("a limit may grow at most twofold at once, and changed 12 min ago",),
        ),
    )
    return PoolAdvice(
        pool=pool,
        slice_plan=SlicePlan(
            pool=pool,
            switch_cost_minutes=1.0,
            classes=classes or (a_slice_class(),),
            reasons=("switches not measured",),
        ),
        sharing_factor=1,
        warm=a_warm_plan(pool),
        gpu_limit=256,
        demand=a_demand(pool, now_gpus=now_gpus),
        durations=durations_around(1510.0),
        changes=changes,
        patch={
            "apiVersion": "karpenter.sh/v1",
            "kind": "NodePool",
            "metadata": {"name": pool},
            "spec": {"disruption": {"consolidateAfter": "600s"}},
        },
        reasons=("urgent arrivals are not taken into account",),
    )


def an_advice(*pools: PoolAdvice, time: datetime = NOON, synthetic: bool = True) -> Advice:
    """The advice of one cycle, labelled synthetic unless said otherwise."""
    short = replace(a_slice_class("short", mean_minutes=9.0, minutes=10.0), longest_minutes=20.0, share_of_jobs=0.72)
    long = replace(
        a_slice_class("long", mean_minutes=610.0, minutes=None, current=60.0),
        share_of_jobs=0.28,
        rule_of_thumb_minutes=None,
        binding_constraint="urgent wait",
    )
    return Advice(
        time=time,
        mode=Mode.RECOMMEND,
        pools=pools or (a_pool(), a_pool("l4-shared", now_gpus=23.0, classes=(short, long))),
        models={"durations": "4", "demand": "3"},
        synthetic=synthetic,
    )


def a_forecast(median_seconds: float = 1510.0, *, version: str | None = "4") -> DurationForecast:
    """A prediction by the model, or by a baseline where ``version`` is None."""
    return DurationForecast(
        distribution=durations_around(median_seconds),
        served="model" if version else "median_of_5",
        model_version=version,
        key="user+gpus",
        key_count=214,
        reasons=() if version else ("no model has been promoted yet",),
    )


def an_explanation(now: datetime = NOON) -> DurationExplanation:
    """Why a prediction is what it is: a known and an unknown feature."""
    known = FeatureEffect(
        name="og_median_5",
        meaning="jobs of the same owner and GPU count: median of the last five that ended",
        unit="s",
        value=1420.0,
        longer=False,
        share=0.21,
    )
    unknown = replace(known, name="cpus", meaning="CPUs asked for", unit="CPUs", value=None, longer=True, share=0.03)
    return DurationExplanation(
        key="user+gpus",
        key_count=214,
        last_end=now - timedelta(minutes=12),
        weights={"forest": 0.6, "hazard": 0.38, "median_of_5": 0.02},
        effects=(known, unknown),
        narrower=("give the job a name or an image that stays the same when the same work runs again",),
    )


def some_jobs(now: datetime = NOON) -> tuple[Job, ...]:
    """One job in every state, newest first."""
    ago = timedelta(hours=1)
    return (
        Job(id="vision/train-21", submit=now - ago / 6, gpus=4.0, user="grace", name="train"),
        Job(
            id="train-20",
            submit=now - ago,
            start=now - ago / 2,
            gpus=1.0,
            user="ada",
            name="resnet",
            namespace="vision",
        ),
        Job(
            id="train-19",
            submit=now - 5 * ago,
            start=now - 5 * ago,
            end=now - 4.5 * ago,
            outcome=Outcome.COMPLETED,
            gpus=8.0,
            user="ada",
            pool="a100",
            start_assumed=True,
        ),
        Job(
            id="train-18",
            submit=now - 30 * ago,
            start=now - 29 * ago,
            end=now - 4 * ago,
            outcome=Outcome.FAILED,
            gpus=0.25,
            user="lin",
        ),
        Job(
            id="train-17",
            submit=now - 40 * ago,
            start=now - 39 * ago,
            last_seen=now - 38 * ago,
            outcome=Outcome.CENSORED,
            gpus=2.0,
        ),
    )


def a_promise(job: Job, forecast: DurationForecast) -> Promise | None:
    """What was promised to ``job``: in time, afterwards where it ended by itself; nothing to one that was lost."""
    if job.outcome is Outcome.CENSORED:
        return None
    return Promise.of("test", job.id, forecast, job.submit, replayed=job.outcome is Outcome.COMPLETED)


def some_kept_promises(now: datetime = NOON) -> tuple[KeptPromises, ...]:
    """Twenty days of promises, one of them without any that came due; the newest begins today.

    A server has run for ten days; of the days before it, promises were made afterwards, and still are of some jobs.
    """
    today = now.replace(hour=0, minute=0, second=0, microsecond=0)
    rng = np.random.default_rng(5)
    found = []
    for ago in range(19, -1, -1):
        for replayed in (False,) if ago < 8 else (True,) if ago > 10 else (False, True):
            counted = 0 if ago == 9 else int(rng.integers(80, 400))
            overdue = counted // 40
            ended = counted - overdue
            found.append(
                KeptPromises(
                    begin=today - timedelta(days=ago),
                    replayed=replayed,
                    ended=ended,
                    overdue=overdue,
                    within_p50=int(ended * rng.uniform(0.45, 0.6)),
                    within_p90=int(ended * rng.uniform(0.85, 0.97)),
                )
            )
    return tuple(found)


def some_models(now: datetime = NOON) -> tuple[RegisteredModel, ...]:
    """Three versions of the duration model, the newest still a challenger, and one of the demand model."""

    def version(number: int, *aliases: str, **more: Any) -> ModelVersion:
        made = now - timedelta(days=7 * (5 - number))
        return ModelVersion(
            version=str(number),
            aliases=aliases,
            made_at=made,
            fitted_until=made - timedelta(hours=1),
            rows=80_000 + 500 * number,
            data_digest=f"{number}" * 64,
            synthetic=True,
            **more,
        )

    floor = [("log_mae", 0.92, "median_of_5", 1.13), ("pinball_90", 0.26, "median_of_5", 0.41)]
    rivals = [*floor, ("log_mae", 0.91, "champion", 0.9)]
    compared = tuple(Compared(measure=m, model=ours, rival=who, of_rival=its) for m, ours, who, its in rivals)
    skills = tuple(
        PoolSkill(pool=pool, minutes=minutes, skill=skill)
        for pool, minutes, skill in (("a100", 30, 0.08), ("a100", 1440, -0.29), ("l4-shared", 30, 0.01))
    )
    why = ("log_mae: 0.9200 is below the 1.1300 of median_of_5",)
    durations = (
        version(5, "challenger", compared=compared, reasons=why),
        version(4, "champion", compared=compared[:2], reasons=why),
        version(3),
    )
    return (
        RegisteredModel(name="durations", versions=durations, in_all=5),
        RegisteredModel(name="demand", versions=(version(3, "champion", skills=skills),), in_all=1),
    )
