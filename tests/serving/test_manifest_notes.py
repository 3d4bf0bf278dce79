"""Beside a manifest stands where its pool may be no NodePool: on Slurm, or where no cluster was described."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

import pytest

from advisor.clock import ManualClock
from advisor.domain.ingest import PARTITIONS, JobBatch
from advisor.history.store import HistoryStore
from advisor.settings import load_settings
from serving.live import LiveAdvisor, LiveParts
from serving.manifest_notes import with_manifest_notes
from serving.wiring import ClusterChoice, open_registry
from tests.builders import NOON, a_history, a_job
from tests.serving.fake_values import a_pool, an_advice


def jobs(*pairs: tuple[str, str]):
    """One job for each source and pool."""
    return [a_job(f"job-{place}", pool=pool, source=source) for place, (source, pool) in enumerate(pairs)]


def notes(advice, known, partitioned=()):
    return {pool.pool: pool.manifest_notes for pool in with_manifest_notes(advice, known, partitioned).pools}


def test_a_pool_of_slurm_is_called_no_nodepool_with_what_to_do_instead():
    known = jobs(("west", "a100"), ("west", "a100"), ("prom", "a100"), ("prom", "l4-shared"))

    said = notes(an_advice(), known, {"west"})

    (line,) = said["a100"]
    assert line.startswith("2 of this pool's 3 jobs came from Slurm (west), whose partitions are no NodePools")
    assert "only where Karpenter runs a NodePool a100" in line
    assert "SuspendTime" in line
    assert said["l4-shared"] == ()


def test_a_pool_all_of_whose_jobs_are_of_slurm_says_all():
    (line,) = notes(an_advice(), jobs(("slurm", "a100")), {"slurm"})["a100"]
    assert line.startswith("this pool's jobs all came from Slurm (slurm)")


def test_a_single_pool_takes_the_jobs_of_every_partition():
    (line,) = notes(an_advice(a_pool("gpu")), jobs(("slurm", "long"), ("slurm", "short")), {"slurm"})["gpu"]
    assert "this pool's jobs all came from Slurm" in line


def test_where_no_cluster_was_described_nobody_knows_whether_there_is_such_a_nodepool():
    assumed = replace(an_advice(), cluster_assumed=True)

    (line,) = notes(assumed, jobs(("prom", "a100")))["a100"]

    assert line.startswith("no cluster was described, so nobody knows whether there is a NodePool a100")
    assert notes(an_advice(), jobs(("prom", "a100")))["a100"] == ()


def test_a_pool_without_a_manifest_needs_no_note():
    assumed = replace(an_advice(replace(a_pool(), patch=None)), cluster_assumed=True)
    assert notes(assumed, jobs(("slurm", "a100")), {"slurm"})["a100"] == ()


@pytest.fixture
def store() -> Iterator[HistoryStore]:
    with HistoryStore.open("sqlite://") as opened:
        yield opened


def test_what_slurm_filled_is_known_by_its_note_under_any_name(store, tmp_path, monkeypatch):
    monkeypatch.setenv("GSA_STORAGE__HOME", str(tmp_path))
    settings = load_settings()
    history = [replace(job, pool="gpu") for job in a_history(60, seed=2)]
    store.append(JobBatch(source="west", jobs=tuple(history), notes=(PARTITIONS,)), history[-1].submit)
    live = LiveAdvisor(
        LiveParts(
            settings=settings,
            history=store,
            registry=open_registry(settings),
            clock=ManualClock(NOON + timedelta(days=1)),
            cluster=ClusterChoice(),
        )
    )

    live.refresh()

    assert store.status().partitioned == {"west"}
    (pool,) = live.advice().pools
    assert pool.patch is not None or pool.manifests
    assert "came from Slurm (west)" in pool.manifest_notes[0]
