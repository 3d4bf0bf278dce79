"""The key hierarchy: whose history a job's duration is predicted from, most specific first."""

from __future__ import annotations

from typing import NamedTuple

from advisor.domain.jobs import Job
from advisor.features.names import template_of

__all__ = ["LEVELS", "JobKeys", "keys_of"]

LEVELS = ("owner_gpus_name", "owner_gpus", "owner", "namespace", "gpus", "all")
"""Jobs of the same owner, GPU count and name; owner and GPU count; owner; namespace; GPU count; all jobs."""

ALL = ("all",)


class JobKeys(NamedTuple):
    """The keys of one job by level, None at a level that it does not have."""

    owner_gpus_name: tuple[str, str, float, str] | None
    owner_gpus: tuple[str, str, float]
    owner: tuple[str, str]
    namespace: tuple[str, str] | None
    gpus: tuple[str, float]
    all: tuple[str]

    def shown(self, level: str) -> str:
        """The key of ``level`` as people read it, for instance ``user+gpus``; an owner may be ``anyone``."""
        kind = self.owner[0]
        owners = {"owner_gpus_name": f"{kind}+gpus+name", "owner_gpus": f"{kind}+gpus", "owner": kind}
        return owners.get(level, level)


def keys_of(job: Job) -> JobKeys:
    """The keys of ``job``: its owner is the user, else the namespace; jobs that name neither are one group.

    The namespace is a level of its own where it is not the owner. A name counts by its template, an image
    stands in where there is no name and the request has one.

    >>> from datetime import UTC, datetime
    >>> job = Job(id="1", submit=datetime(2026, 1, 1, tzinfo=UTC), gpus=2, namespace="vision", name="eval-17")
    >>> keys_of(job).owner_gpus_name
    ('namespace', 'vision', 2, 'eval-#')
    """
    namespace = None
    if job.user is not None:
        kind, name = "user", job.user
        if job.namespace is not None:
            namespace = ("namespace", job.namespace)
    elif job.namespace is not None:
        kind, name = "namespace", job.namespace
    else:
        kind, name = "anyone", ""
    called = job.name or job.asked("image")
    template = None if called is None else template_of(called)
    named = None if template is None else (kind, name, job.gpus, template)
    return JobKeys(named, (kind, name, job.gpus), (kind, name), namespace, ("gpus", job.gpus), ALL)
