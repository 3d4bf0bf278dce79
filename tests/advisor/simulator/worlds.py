"""Small simulated worlds."""

from __future__ import annotations

from typing import Any

from advisor.simulator.policies.fifo import Karpenter
from advisor.simulator.simulation import SimulatedRun, simulate
from advisor.simulator.tasks import SimulatedJob
from advisor.simulator.terms import ClusterTerms, StartParts


def some_work(submit: float, gpus: float, seconds: float, **more: Any) -> SimulatedJob:
    """A job named after its submission and size."""
    return SimulatedJob(**{"id": f"{submit:g}s-{gpus:g}", "submit": submit, "gpus": gpus, "seconds": seconds, **more})


def terms(**more: Any) -> ClusterTerms:
    """Nodes of 8 GPUs that take 300 s, a keep-alive of 180 s, and requests that are never gathered."""
    return ClusterTerms(**{"start": StartParts.constant(300.0), "batch_idle_seconds": 0.0, **more})


def replayed(*jobs: SimulatedJob, policy: Any = None, seed: int = 0, **more: Any) -> SimulatedRun:
    """The jobs under ``policy`` (first come, first served, where none is given)."""
    return simulate(sorted(jobs, key=lambda job: job.submit), terms(**more), policy or Karpenter(), seed)


def waits(run: SimulatedRun) -> list[float]:
    """Seconds that each job waited, in order of submission."""
    return [round(task.finish - task.job.submit - task.job.seconds, 6) for task in run.tasks if task.finish is not None]
