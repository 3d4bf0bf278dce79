"""The key hierarchy: whose history a job's duration is predicted from, most specific first."""

from __future__ import annotations

from typing import NamedTuple

from advisor.domain.jobs import Job

__all__ = ["LEVELS", "JobKeys", "keys_of"]

LEVELS = ("owner_gpus", "owner", "gpus", "all")
"""The four levels: jobs of the same owner and GPU count, of the same owner, of the same GPU count, all jobs."""

ALL = ("all",)


class JobKeys(NamedTuple):
    """The four keys of one job, and what its owner is called (``user``, ``namespace`` or ``anyone``)."""

    owner_gpus: tuple[str, str, float]
    owner: tuple[str, str]
    gpus: tuple[str, float]
    all: tuple[str]

    def shown(self, level: str) -> str:
        """The key of ``level`` as people read it, for instance ``user+gpus``."""
        kind = self.owner[0]
        return {"owner_gpus": f"{kind}+gpus", "owner": kind, "gpus": "gpus", "all": "all"}[level]


def keys_of(job: Job) -> JobKeys:
    """The keys of ``job``: its owner is the user, else the namespace; jobs that name neither are one group.

    >>> from datetime import UTC, datetime
    >>> job = Job(id="1", submit=datetime(2026, 1, 1, tzinfo=UTC), gpus=2, namespace="vision")
    >>> keys_of(job).owner_gpus
    ('namespace', 'vision', 2)
    """
    if job.user is not None:
        kind, name = "user", job.user
    elif job.namespace is not None:
        kind, name = "namespace", job.namespace
    else:
        kind, name = "anyone", ""
    return JobKeys((kind, name, job.gpus), (kind, name), ("gpus", job.gpus), ALL)
