"""Work in a simulated world: what a job is from outside, and how far it has come."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from datetime import datetime

from advisor.domain.jobs import Job
from advisor.domain.units import finite, positive
from advisor.errors import Refused

__all__ = ["SimulatedJob", "Task", "simulated_job"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedJob:
    """A job as the world brings it: submitted at ``submit`` seconds, it needs ``seconds`` on its GPUs, whoever decides.

    Only a ``checkpointable`` job may be stopped and resumed without losing more than the switch.
    """

    id: str
    submit: float
    gpus: float
    seconds: float
    checkpointable: bool = False
    urgent: bool = False

    def __post_init__(self) -> None:
        """Check the numbers.

        Raises:
            Refused: no GPUs, a negative duration or submission, or more than one GPU and a fraction.
        """
        positive(self.gpus, "gpus", "GPUs")
        for name in ("submit", "seconds"):
            if finite(getattr(self, name), name) < 0:
                raise Refused(name, getattr(self, name), "seconds from the beginning, 0 or more", "Correct it.")
        if self.gpus > 1 and self.gpus != int(self.gpus):
            raise Refused("gpus", self.gpus, "a share of one GPU, or whole ones", "Round it up.")


def simulated_job(job: Job, origin: datetime, *, checkpointable: bool = False) -> SimulatedJob:
    """A job of a history that has run, with its times counted from ``origin``.

    A censored one is taken to have ended when it was last seen; parts of several GPUs are rounded up.

    Raises:
        Refused: it never ran, or runs still, so how long it takes is not known.
    """
    if job.run_seconds is None:
        raise Refused("job", job.id, "how long it runs is not known", "Leave it out of the replay.")
    return SimulatedJob(
        id=job.id,
        submit=(job.submit - origin).total_seconds(),
        gpus=job.gpus if job.gpus <= 1 else float(math.ceil(job.gpus)),
        seconds=max(job.run_seconds, 0.0),
        checkpointable=checkpointable,
    )


@dataclass(slots=True, eq=False)
class Task:
    """A job in the world: waiting, running on ``on`` since ``began``, or finished; times in seconds.

    ``place`` is its row in everything foreseen about jobs. ``done`` is what earlier runs achieved, ``overhead``
    what the present one spends on restoring. ``waited`` sums its times in the queue, ``lost`` the restoring.
    """

    place: int
    job: SimulatedJob
    on: tuple[int, ...] = ()
    began: float = 0.0
    overhead: float = 0.0
    done: float = 0.0
    run: int = 0
    queued_since: float | None = None
    waited: float = 0.0
    lost: float = 0.0
    finish: float | None = None
    preemptions: int = 0
    moves: int = 0
    held: float = field(default=0.0)

    @property
    def gpus(self) -> float:
        """The GPUs it asks for."""
        return self.job.gpus

    @property
    def running(self) -> bool:
        """True while it holds GPUs."""
        return bool(self.on)

    @property
    def suspended(self) -> bool:
        """True if it has run before and will have to be restored."""
        return self.run > 0 and not self.on and self.finish is None

    def useful(self, now: float) -> float:
        """Seconds of its duration that are behind it at ``now``: its useful age."""
        if not self.on:
            return self.done
        return self.done + max(0.0, now - self.began - self.overhead)
