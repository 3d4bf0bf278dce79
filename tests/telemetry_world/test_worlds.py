"""The generator's own promises: a world holds together, and a seed is a world."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import fields
from datetime import UTC, datetime
from itertools import pairwise

import numpy as np
import pytest

from advisor.domain.asks import ContainerAsk, GpuNode, effective_ask, physical_gpus
from advisor.domain.jobs import Job, Outcome
from advisor.telemetry.gangs import jobs_of
from advisor.telemetry.pods import CreatorRecord, PodRecord
from advisor.telemetry.tally import RejectionTally
from tests.telemetry_world.dialects import DIALECTS
from tests.telemetry_world.exposition import Telemetry
from tests.telemetry_world.observer import Expected, _Observer, expected, kube_state_scrapes
from tests.telemetry_world.things import Pod, Sharing, Work
from tests.telemetry_world.usage import usage_of
from tests.telemetry_world.world import World, WorldSpec, a_world

_DIALECT_OF = {dialect.sharing: dialect for dialect in DIALECTS.values()}


@pytest.fixture(scope="module", params=list(Sharing))
def world(request) -> World:
    return a_world(WorldSpec(days=2, gpus=6, jobs=80, sharing=request.param))


def test_a_seed_is_a_world():
    spec = WorldSpec(days=2, gpus=6, jobs=60, seed=5)
    assert a_world(spec) == a_world(spec)
    assert a_world(spec).works != a_world(WorldSpec(days=2, gpus=6, jobs=60, seed=6)).works


def test_no_slot_is_held_by_two_pods_at_once(world):
    held = defaultdict(list)
    for pod in world.pods:
        for slot in pod.slots:
            held[slot.uuid, slot.number].append((pod.scheduled, pod.holds_until or world.end))
    assert held
    for spans in held.values():
        spans.sort()
        assert all(before[1] <= after[0] for before, after in pairwise(spans))


def test_pods_hold_gpus_of_a_node_that_is_there(world):
    for pod in world.pods:
        if pod.slots:
            assert {slot.uuid for slot in pod.slots} <= {device.uuid for device in pod.node.devices}
            assert pod.node.created <= pod.scheduled
            assert pod.node.removed is None or (pod.holds_until or world.end) <= pod.node.removed


def test_gpus_of_a_pod_are_the_shares_it_holds_and_what_its_containers_ask_for(world):
    for pod in world.pods:
        if not pod.slots:
            continue
        assert pod.ask.gpus == pytest.approx(sum(slot.share for slot in pod.slots))
        names = {name for box in pod.containers for name in box.asks}
        asks = {
            name: effective_ask(ContainerAsk(box.asks.get(name, 0.0), box.init, box.sidecar) for box in pod.containers)
            for name in names
        }
        of = pod.node
        node = GpuNode(replicas=of.replicas, gpu_kind=of.gpu_kind, memory_mib=of.memory_mib)
        assert physical_gpus(asks, node) == pytest.approx(pod.ask.gpus)


def test_moments_of_a_pod_are_in_order(world):
    for pod in world.pods:
        lives = [moment for one in pod.attempts for moment in (one.start, one.end)]
        moments = [pod.created, pod.scheduled, pod.kubelet, *lives, pod.ended, pod.deleted]
        known = [moment for moment in moments if moment is not None]
        assert known == sorted(known), pod
        assert all(moment < world.end for moment in known)


def test_every_story_is_told():
    stories = {work.story for work in a_world(WorldSpec(days=4, gpus=12, jobs=150)).works}
    assert stories >= {"bare", "retried", "over_time", "suspended", "gang_JobSet", "tasks", "on_spot", "short"}
    assert stories >= {"name_again", "rejected", "placeholder", "reservation", "cpu_only", "stuck_image", "evicted"}
    assert len(stories) >= 30


def test_every_outcome_is_there_and_so_is_work_that_still_runs():
    world = a_world(WorldSpec(days=4, gpus=12, jobs=200))
    found = {one.job.outcome for one in expected(Telemetry(world, _DIALECT_OF[Sharing.WHOLE])) if one.job is not None}
    assert found == {*Outcome, None}


def test_no_gpu_computes_more_than_it_can(world):
    times = world.start + 37.0 * np.arange(int(world.spec.days * 86400 / 37))
    for uuid in world.loads.tenants:
        instances = {slot.instance for node in world.nodes for d in node.devices for slot in d.slots if d.uuid == uuid}
        parts = [world.loads.of_device(uuid, instance, times) for instance in instances]
        assert max(compute.max() for compute, _ in parts) <= 1.0 + 1e-9
        assert sum(memory.max() for _, memory in parts) <= world.loads.memory_mib[uuid]


def test_energy_of_a_gpu_is_that_of_its_idle_and_busy_time():
    """One GPU-minute at load c takes 60 s x (55 W + 290 W x c)."""
    world = a_world(WorldSpec(days=1, gpus=6, jobs=40))
    (pod, use) = next(
        (pod, use)
        for pod in world.pods
        for use in world.loads.uses(pod)
        if use.energy_joules is not None and use.end - use.start > 1200 and len(pod.attempts) == 1
    )
    seconds = use.end - use.start
    assert use.energy_joules == pytest.approx(seconds * (55 + 290 * use.compute_mean), rel=0.02)
    assert 0 <= use.idle_share <= 1
    assert pod.uid in world.loads.profiles


def test_what_work_did_is_known_where_it_ran(world):
    ran = [work for work in world.works if any(pod.attempts and pod.slots for pod in work.pods)]
    usages = [usage_of(world, work) for work in ran]
    assert all(usage is not None and usage.compute_mean <= usage.compute_peak + 1e-9 for usage in usages)
    assert len({round(usage.compute_mean, 2) for usage in usages}) > 10


def _record(observer: _Observer, pod: Pod, creator: CreatorRecord | None) -> PodRecord | None:
    seen = observer._pod(pod)
    if seen is None:
        return None
    node = pod.node if seen.scheduled is not None else None
    censored = seen.outcome is Outcome.CENSORED
    return PodRecord(
        uid=pod.uid,
        namespace=pod.namespace,
        name=pod.name,
        created=_at(pod.created),
        gpus=0.0 if pod.ask is None else pod.ask.gpus,
        scheduled=_at(seen.scheduled),
        started=_at(seen.started),
        ended=None if censored else _at(seen.gone),
        last_seen=_at(seen.gone) if censored else None,
        outcome=seen.outcome,
        reason=pod.reason if pod.reason_from and observer._any(pod.reason_from, pod.deleted) else None,
        restarts=seen.restarts,
        creator=creator,
        node=None if node is None else node.name,
        pool=None if node is None else node.pool,
        gpu_kind=None if node is None else node.gpu_kind,
        user=pod.labels.get("label_user"),
        placeholder=pod.noise == "placeholder",
    )


def _at(moment: float | None) -> datetime | None:
    return None if moment is None else datetime.fromtimestamp(moment, UTC)


def _creator(observer: _Observer, work: Work) -> CreatorRecord | None:
    if work.creator is None:
        return None
    (one,) = observer._objects(work) or [None]
    if one is None:
        first = min(pod.created for pod in work.pods)
        return CreatorRecord(kind=work.creator[0], namespace=work.namespace, name=work.name, created=_at(first))
    said = observer._said(one)
    return CreatorRecord(
        kind=work.creator[0],
        namespace=work.namespace,
        name=work.name,
        created=_at(one.created),
        ended=_at(said[0]) if said else None,
        outcome=said[1] if said else None,
        parallelism=one.parallelism,
        completions=one.completions,
        evictions=observer._suspensions([one]),
        time_limit_seconds=one.deadline,
    )


def _by_gangs(observer: _Observer, one: Expected) -> tuple[Job, ...]:
    creator = _creator(observer, one.work)
    records = [record for pod in one.work.pods if (record := _record(observer, pod, creator)) is not None]
    return jobs_of(records, (), RejectionTally())


def _differences(job: Job, other: Job) -> dict[str, tuple]:
    pairs = {field.name: (getattr(job, field.name), getattr(other, field.name)) for field in fields(Job)}
    same = pairs.pop("paused_seconds")
    # What only the node told is no part of the truth of a world.
    pairs.pop("told_by_node")
    assert same[0] == pytest.approx(same[1], abs=1e-3)
    return {name: pair for name, pair in pairs.items() if pair[0] != pair[1]}


def test_the_project_makes_the_expected_jobs_of_perfect_records(world):
    """The oracle and the code that makes jobs of pods were written apart; given the same pods they must agree."""
    telemetry = Telemetry(world, _DIALECT_OF[world.spec.sharing])
    observer = _Observer(kube_state_scrapes(telemetry), telemetry.interval, 0.0)
    compared = 0
    for one in expected(telemetry):
        jobs = _by_gangs(observer, one)
        if one.job is None:
            assert not jobs, one.why
        elif not one.in_doubt:
            (job,) = jobs
            assert not _differences(job, one.job), one.work.story
            compared += 1
    assert compared > 50
