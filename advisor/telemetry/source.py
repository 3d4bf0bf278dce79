"""What every source of job events answers."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Protocol

from advisor.domain.ingest import JobBatch

__all__ = ["Progress", "Source"]

Progress = Callable[[int, int], None]
"""Told how many rows of how many are done."""


class Source(Protocol):
    """Answers one question: which job events happened since a time?"""

    @property
    def name(self) -> str:
        """The same text for the same stream of jobs, always: with a job's id it is the job's identity."""
        ...

    def read(self, since: datetime | None, now: datetime) -> JobBatch:
        """Every job with an event after ``since`` (None: from the beginning) and up to ``now``.

        It may hold jobs that are known already: appending them again changes nothing. The batch's
        watermark is up to when the source has been read, and is the next ``since``. Nothing in it
        happens after ``now``. Reading twice gives the same batch.

        Raises:
            Refused: the source's input or description is wrong as a whole.
            Transient: it cannot be reached now.
        """
        ...
