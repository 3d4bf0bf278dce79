"""How a source came to what it says of a job: what a later reading needs to mend an earlier one and never spoil it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

__all__ = ["NAME_IS_FREE_AFTER", "EndTold", "JobAccount", "JobRun"]

NAME_IS_FREE_AFTER = timedelta(hours=1)
"""An object that tells nothing of itself, and whose name comes back after so long without any pod, is another."""


class EndTold(StrEnum):
    """Who said that a job has ended.

    ``ITSELF``: its own status or line says so, and it is over. ``PODS``: all of its pods have ended, and the object
    behind them may make another. ``NOBODY``: it was no longer told of, so it was taken to have ended when it was last
    seen; whoever sees it later knows better.
    """

    ITSELF = "itself"
    PODS = "pods"
    NOBODY = "nobody"


@dataclass(frozen=True, slots=True, kw_only=True)
class JobRun:
    """A stretch of time in which a job held its GPUs; ``end`` is None while it does.

    ``failed`` says that it ended by a failure of its own, not by the hand of the system; ``restarts`` counts how often
    containers began anew within it.
    """

    start: datetime
    end: datetime | None = None
    failed: bool = False
    restarts: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class JobAccount:
    """What a source knows of a job beside the job: its ``runs`` in order, and who told its end.

    ``by_its_pods`` says that nothing is told of its object but the name: when it was created, and so which of several
    of that name it is, is then known by the first of its pods that is still told of.
    """

    runs: tuple[JobRun, ...] = ()
    end_told: EndTold = EndTold.ITSELF
    by_its_pods: bool = False
