"""What must be said beside a manifest: where its pool may be no NodePool at all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace

from advisor.domain.jobs import Job, pool_of
from advisor.domain.plans import Advice, PoolAdvice

__all__ = ["with_manifest_notes"]

_ASSUMED = (
    "no cluster was described, so nobody knows whether there is a NodePool {pool}; apply this only where there is one"
)
_PARTITION = (
    "{jobs} came from Slurm ({sources}), whose partitions are no NodePools: apply this only where Karpenter runs a "
    "NodePool {pool}; elsewhere take the figures, and set what Slurm has for them (keep-alive is its SuspendTime)"
)


def with_manifest_notes(advice: Advice, jobs: Sequence[Job], partitioned: Collection[str]) -> Advice:
    """``advice`` whose manifests are noted where their pool may be no NodePool.

    ``jobs`` are those of the history, ``partitioned`` the sources whose pools are partitions of
    Slurm.
    """
    if not any(_has_manifests(pool) for pool in advice.pools):
        return advice
    by_pool: dict[str, Counter[str]] = {}
    # A single pool takes all jobs, whatever they call theirs; so it does in the cycle.
    only = advice.pools[0].pool if len(advice.pools) == 1 else None
    for job in jobs:
        by_pool.setdefault(only or pool_of(job), Counter())[job.identity[0]] += 1
    return replace(
        advice,
        pools=tuple(
            replace(pool, manifest_notes=_notes(pool.pool, by_pool.get(pool.pool, Counter()), partitioned, advice))
            if _has_manifests(pool)
            else pool
            for pool in advice.pools
        ),
    )


def _has_manifests(pool: PoolAdvice) -> bool:
    return pool.patch is not None or bool(pool.manifests)


def _notes(pool: str, jobs: Counter[str], partitioned: Collection[str], advice: Advice) -> tuple[str, ...]:
    from_slurm = {source: count for source, count in jobs.items() if source in partitioned}
    if from_slurm:
        some, every = sum(from_slurm.values()), jobs.total()
        share = "this pool's jobs all" if some == every else f"{some:,} of this pool's {every:,} jobs"
        return (_PARTITION.format(jobs=share, sources=", ".join(sorted(from_slurm)), pool=pool),)
    return (_ASSUMED.format(pool=pool),) if advice.cluster_assumed else ()
