"""By what jobs are taken together into one demand: their NodePool, their GPU kind, their namespace, or all as one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from enum import StrEnum

from advisor.domain.jobs import DEFAULT_POOL, Job

__all__ = ["PoolKey", "pooled"]


class PoolKey(StrEnum):
    """What makes one pool: the same pool (else GPU kind), GPU kind, namespace; or the whole cluster is one."""

    POOL = "pool"
    GPU_KIND = "gpu-kind"
    NAMESPACE = "namespace"
    CLUSTER = "cluster"


def pooled(jobs: Iterable[Job], key: PoolKey) -> list[Job]:
    """``jobs`` with the pool that ``key`` puts each into; one of which that is not known belongs to ``default``."""
    if key is PoolKey.POOL:
        return list(jobs)
    if key is PoolKey.CLUSTER:
        return [replace(job, pool="cluster") for job in jobs]
    if key is PoolKey.GPU_KIND:
        return [replace(job, pool=job.gpu_kind or DEFAULT_POOL) for job in jobs]
    return [replace(job, pool=job.namespace or DEFAULT_POOL) for job in jobs]
