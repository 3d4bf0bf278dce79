"""Request bodies and queries, and how they convert to what the service is asked."""

from __future__ import annotations

from pydantic import Field

from advisor.errors import Refused
from serving.api.fields import Ask, Gpus, Name, Nodes, Priority, TaskGpus, UtcTime
from serving.api.service import AllocationAsk, DurationAsk

__all__ = ["MOST_EXPLAINED", "AllocationsAsk", "DemandQuery", "DurationsAsk", "JobAsk", "TaskAsk"]

MOST_EXPLAINED = 50
"""An explanation costs as much as some dozens of predictions."""

_LONGEST_SECONDS = 10 * 366 * 86_400.0


class _JobFields(Ask):
    """What is known of a job when it is submitted."""

    id: Name | None = Field(None, description="Echoed in the answer; its position in the list where left out.")
    gpus: Gpus = Field(description="GPUs it asks for; below 1 a share of one GPU.")
    user: Name | None = Field(None, description="Who submitted it: the history that predicts best.")
    namespace: Name | None = Field(None, description="Kubernetes namespace, virtual cluster or account.")
    name: Name | None = Field(None, description="Name of the job; digits at its end do not matter.")
    image: Name | None = Field(None, description="Container image.")
    gpu_kind: Name | None = Field(None, description="Kind of GPU it asks for.")
    pool: Name | None = Field(None, description="NodePool it is bound to.")
    cpus: float | None = Field(None, ge=0, le=1_000_000, description="CPU cores it asks for.")
    nodes: Nodes | None = Field(None, description="Nodes it spreads over.")
    priority: Priority | None = Field(None, description="Priority it asks for.")
    time_limit_seconds: float | None = Field(
        None, gt=0, le=_LONGEST_SECONDS, description="Seconds after which it would be stopped."
    )

    def known(self, position: int, elapsed_seconds: float | None = None) -> DurationAsk:
        """The job as the service speaks of it, ``position`` standing in for a missing id."""
        return DurationAsk(
            id=self.id or str(position),
            gpus=self.gpus,
            user=self.user,
            namespace=self.namespace,
            name=self.name,
            image=self.image,
            gpu_kind=self.gpu_kind,
            pool=self.pool,
            cpus=self.cpus,
            nodes=self.nodes,
            priority=self.priority,
            time_limit_seconds=self.time_limit_seconds,
            elapsed_seconds=elapsed_seconds,
        )


class JobAsk(_JobFields):
    """A job whose duration is asked."""

    elapsed_seconds: float | None = Field(
        None, ge=0, le=_LONGEST_SECONDS, description="Seconds it has run already; adds what remains to the answer."
    )

    def ask(self, position: int) -> DurationAsk:
        """What the service is asked, ``position`` standing in for a missing id."""
        return self.known(position, self.elapsed_seconds)


class TaskAsk(_JobFields):
    """A job that asks for slices."""

    gpus: TaskGpus = Field(description="Whole GPUs it asks for, or a share of one below 1.")
    urgent: bool = Field(False, description="Goes before everything that is not urgent.")
    deadline: UtcTime | None = Field(None, description="When it must have ended.")
    slice_minutes: float | None = Field(
        None, ge=0.1, le=10_080, description="Length of its slices; left out, the pool's recommended one."
    )

    def ask(self, position: int) -> AllocationAsk:
        """What the service is asked, ``position`` standing in for a missing id."""
        return AllocationAsk(
            job=self.known(position), urgent=self.urgent, deadline=self.deadline, slice_minutes=self.slice_minutes
        )


class DurationsAsk(Ask):
    """Jobs whose durations are asked, answered in the same order."""

    jobs: list[JobAsk] = Field(min_length=1, description="At least one job; the server states the most it takes.")
    explain: bool = Field(
        False, description=f"Say of each prediction why it is what it is; of at most {MOST_EXPLAINED} jobs at once."
    )

    def asks(self) -> tuple[DurationAsk, ...]:
        """What the service is asked.

        Raises:
            Refused: too many jobs are to be explained.
        """
        if self.explain and len(self.jobs) > MOST_EXPLAINED:
            limit = f"at most {MOST_EXPLAINED} jobs can be explained at once"
            raise Refused("jobs", len(self.jobs), limit, "Ask for fewer, or leave explain out.")
        return tuple(job.ask(position) for position, job in enumerate(self.jobs))


class AllocationsAsk(Ask):
    """Jobs that ask for slices; each is answered on the cluster as it is now, nothing is reserved."""

    jobs: list[TaskAsk] = Field(min_length=1, description="At least one job; the server states the most it takes.")

    def asks(self) -> tuple[AllocationAsk, ...]:
        """What the service is asked."""
        return tuple(job.ask(position) for position, job in enumerate(self.jobs))


class DemandQuery(Ask):
    """Which pool's demand is asked."""

    pool: Name | None = Field(None, description="One pool; left out, every pool.")
