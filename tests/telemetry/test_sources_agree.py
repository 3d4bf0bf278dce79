"""The API server, watched or listed, and a Prometheus tell the same of one cluster, and what they tell is true.

What each may tell otherwise is written down here, and nothing else is let through:

* A Job that waits and has no pod yet is known to the API server alone.
* A list tells the start of a pod that was evicted, or had restarted more than once, as no earlier than its kubelet
  took it, and not which pool and kind of GPU a pod had whose node is gone.
* Samples tell the end of what vanished, or lost its node, to the scrape, and miss what was there for less than one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TypeAlias

import pytest

from advisor.domain.ingest import JobBatch
from advisor.domain.jobs import Job
from advisor.history.store import HistoryStore
from tests.servers.prometheus import MetricsServers
from tests.telemetry.reading import through_kubernetes, through_prometheus
from tests.telemetry_world.comparing import Compared, differences
from tests.telemetry_world.dialects import DIALECTS
from tests.telemetry_world.exposition import Telemetry
from tests.telemetry_world.observer import Expected, expected, watched
from tests.telemetry_world.things import Pod, Sharing, Work
from tests.telemetry_world.world import World, WorldSpec, a_world

Named: TypeAlias = tuple[str | None, ...]

LATER = datetime(2100, 1, 1, tzinfo=UTC)
EIGHTHS = [number / 8 for number in range(1, 17)]
DIALECT_OF = {dialect.sharing: dialect for dialect in DIALECTS.values()}


def a_small_world(sharing: Sharing, seed: int = 3) -> World:
    return a_world(WorldSpec(days=2, gpus=10, jobs=150, seed=seed, sharing=sharing))


def named(job: Job) -> Named:
    """What tells a job from all others, whatever its source calls it."""
    return (job.id,) if job.created_by is None else (job.namespace, job.created_by, job.submit.isoformat())


def called_alike(batch: JobBatch, truth: Iterable[Expected]) -> JobBatch:
    """``batch`` with the ids of the truth; jobs of which that has none keep theirs."""
    ids = {named(each.job): each.job.id for each in truth if each.job is not None}
    return replace(batch, jobs=tuple(replace(job, id=ids.get(named(job), job.id)) for job in batch.jobs))


def without(batch: JobBatch, ids: Iterable[str]) -> JobBatch:
    left_out = set(ids)
    return replace(batch, jobs=tuple(job for job in batch.jobs if job.id not in left_out))


def without_waiting(batch: JobBatch, truth: Iterable[Expected]) -> JobBatch:
    """``batch`` without the Jobs that have no pod yet, all of which have to be in it as they are."""
    jobs = {(job.namespace, job.name, job.created_by): job for job in batch.jobs}
    waiting = [
        jobs[each.work.namespace, each.work.name, f"Job/{each.work.name}"]
        for each in truth
        if each.why == "no_pods" and each.work.creator is not None and _open(each.work)
    ]
    assert all(job.start is None and job.gone_at is None and job.gpus > 0 for job in waiting)
    return without(batch, (job.id for job in waiting))


def _open(work: Work) -> bool:
    return any(one.deleted is None and one.owner is None for one in work.objects)


@pytest.mark.parametrize("seed", [3, 4])
@pytest.mark.parametrize("sharing", Sharing)
@pytest.mark.parametrize("last_phase", [True, False])
def test_who_follows_a_cluster_knows_the_truth(sharing: Sharing, seed: int, last_phase: bool) -> None:
    world = a_small_world(sharing, seed)
    truth = watched(world)
    batch = called_alike(through_kubernetes(world, follow=True, last_phase=last_phase), truth)
    assert differences(Compared(truth, without_waiting(batch, truth))) == []


@pytest.mark.parametrize("days", [0.5, 1.0])
def test_it_knows_the_truth_at_any_time(days: float) -> None:
    world = a_small_world(Sharing.WHOLE).until(days)
    truth = watched(world)
    batch = called_alike(through_kubernetes(world, follow=True), truth)
    assert differences(Compared(truth, without_waiting(batch, truth))) == []


@pytest.mark.parametrize("sharing", Sharing)
def test_a_list_tells_the_truth_of_all_work_whose_pods_are_still_there(sharing: Sharing) -> None:
    compared, found = 0, []
    for days in EIGHTHS:
        world = a_small_world(sharing).until(days)
        truth = watched(world)
        listed = [_as_listed(each, world.end) for each in truth if all(pod.deleted is None for pod in each.work.pods)]
        others = {each.job.id for each in truth if each.job} - {each.job.id for each in listed if each.job}
        batch = without_waiting(called_alike(through_kubernetes(world, follow=False), truth), truth)
        found += differences(Compared(tuple(listed), without(batch, others)))
        compared += sum(each.job is not None for each in listed)
    assert found == []
    assert compared > 50


def _as_listed(each: Expected, end: int) -> Expected:
    """What is to be found in a list: less is told of some pods than to one who had watched."""
    if each.job is None:
        return each
    guessed = [pod for pod in each.work.pods if pod.reason == "Evicted" or len(pod.attempts) > 2]
    apart = max((pod.started - pod.kubelet for pod in guessed if pod.started and pod.kubelet), default=0)
    each = replace(each, start_within=each.start_within + apart)
    nodes = [pod.node for pod in each.work.pods if pod.node is not None]
    if not nodes or any(node.removed is None or node.removed >= end for node in nodes):
        return each
    return replace(each, job=replace(each.job, pool=None, gpu_kind=None), gpus_known=False)


@pytest.mark.prometheus
@pytest.mark.parametrize("sharing", Sharing)
def test_prometheus_and_kubernetes_tell_the_same(
    sharing: Sharing, prometheus_servers: MetricsServers, tmp_path: Path
) -> None:
    world = a_small_world(sharing)
    telemetry = Telemetry(world, DIALECT_OF[sharing])
    known = watched(world)
    followed = through_kubernetes(world, follow=True)
    objects = called_alike(followed, known)
    samples = through_prometheus(prometheus_servers, telemetry, tmp_path)
    told = tuple(_told_by(without_waiting(objects, known), known, expected(telemetry), telemetry.interval))
    assert differences(Compared(told, samples)) == []
    assert sum(each.job is not None and not each.in_doubt for each in told) > 120
    # Called otherwise by each, and yet one: whoever comes second finds what the other has.
    work = {named(job) for job in (*followed.jobs, *samples.jobs)}
    for first, second in ((followed, samples), (samples, followed)):
        with HistoryStore.open("sqlite://") as store:
            store.append(first, LATER)
            store.append(second, LATER)
            assert sorted(map(str, map(named, store.jobs(LATER)))) == sorted(map(str, work))


def _told_by(
    batch: JobBatch, known: Iterable[Expected], scraped: Iterable[Expected], interval: float
) -> Iterator[Expected]:
    """What ``batch`` says of each piece of work, as what samples of so many seconds are to say too."""
    jobs = {job.id: job for job in batch.jobs}
    for by_object, by_sample in zip(known, scraped, strict=True):
        if by_object.job is None or by_sample.job is None:
            # What was never scraped is not told of.
            assert by_object.job is None or any(_brief(pod, interval) for pod in by_object.work.pods)
            yield by_sample
            continue
        job = replace(jobs[by_object.job.id], id=by_sample.job.id)
        missed = _missed(by_object.work, interval)
        yield replace(by_sample, job=job, in_doubt=by_sample.in_doubt or missed)


def _missed(work: Work, interval: float) -> bool:
    """Whether some of it was told of for less than a scrape."""
    said = (moment for one in work.objects for moment in (one.completed, one.failed) if moment and one.deleted)
    gone = next((one.deleted for one in work.objects if one.deleted), 0)
    return any(_brief(pod, interval) for pod in work.pods) or any(gone - moment < interval for moment in said)


def _brief(pod: Pod, interval: float) -> bool:
    """Whether it was there, had a node, ran or had ended for less than a scrape before it went."""
    moments = [pod.created, pod.scheduled, pod.started, pod.ended, *(one.end for one in pod.attempts)]
    before_gone = pod.deleted is not None and any(
        pod.deleted - moment < interval for moment in moments if moment is not None and moment != pod.deleted
    )
    return before_gone or any(one.end is not None and one.end - one.start < interval for one in pod.attempts)
