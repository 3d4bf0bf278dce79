"""Which jobs have been taken in and are gone, so that one told of again is not counted twice."""

from __future__ import annotations

from heapq import heappush, heappushpop

from advisor.domain.jobs import JobIdentity

__all__ = ["PastJobs"]

_REMEMBERED = 100_000


class PastJobs:
    """Remembers one by one the jobs with the latest submissions, and of all before only up to when they were submitted.

    So nothing is ever taken in twice, and the memory stays bounded, whatever a clock says: it goes by submissions,
    and one that lies in the future is merely among the latest. A job heard of for the first time though it was
    submitted before everything remembered cannot be told from one taken in long ago: it is passed over and counted.
    """

    def __init__(self, remembered: int = _REMEMBERED) -> None:
        self._remembered = remembered
        self._jobs: set[JobIdentity] = set()
        self._by_submit: list[tuple[float, JobIdentity]] = []
        self._forgotten_until = float("-inf")
        self.passed_over = 0
        """How often a job was passed over that is not remembered itself."""

    def __len__(self) -> int:
        """How many are remembered one by one."""
        return len(self._jobs)

    def add(self, job: JobIdentity, submit: float) -> None:
        """A job submitted at ``submit`` (Unix seconds) was taken in and is gone."""
        if job in self._jobs or submit <= self._forgotten_until:
            return
        self._jobs.add(job)
        if len(self._by_submit) < self._remembered:
            heappush(self._by_submit, (submit, job))
            return
        self._forgotten_until, oldest = heappushpop(self._by_submit, (submit, job))
        self._jobs.discard(oldest)

    def holds(self, job: JobIdentity, submit: float) -> bool:
        """Whether a job that is not open must be taken for one of these."""
        if job in self._jobs:
            return True
        if submit > self._forgotten_until:
            return False
        self.passed_over += 1
        return True
