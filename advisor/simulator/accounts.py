"""What the GPU time of a simulated cluster was spent on, and the laws of conservation that must hold."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from advisor.errors import Defect
from advisor.simulator.nodes import SimulatedNode
from advisor.simulator.tasks import Task

__all__ = ["NOTHING", "Accounts", "check_conservation", "plus_gone", "plus_present"]

_HAIR = 1e-6


@dataclass(frozen=True, slots=True)
class Accounts:
    """GPU-seconds up to a moment: ``paid`` is ``used`` + ``idle`` + ``booting``.

    ``used`` are the GPUs jobs asked for while they had them, restoring included; ``held`` what nobody else could
    have because of jobs, which is more where a job has whole nodes.
    """

    paid: float
    used: float
    idle: float
    booting: float
    held: float

    @property
    def balanced(self) -> bool:
        """Whether everything paid for was spent on something."""
        return math.isclose(self.paid, self.used + self.idle + self.booting, rel_tol=_HAIR, abs_tol=_HAIR)


NOTHING = Accounts(0.0, 0.0, 0.0, 0.0, 0.0)
"""The accounts before anything was paid."""


def plus_gone(accounts: Accounts, node: SimulatedNode, now: float, least_billed_seconds: float) -> Accounts:
    """The accounts with a node that goes ``now``."""
    billed = node.close(now, least_billed_seconds)
    return Accounts(
        accounts.paid + billed,
        accounts.used + node.used,
        accounts.idle + node.idle,
        accounts.booting + node.booting,
        accounts.held + node.held,
    )


def plus_present(accounts: Accounts, nodes: Iterable[SimulatedNode], now: float) -> Accounts:
    """The accounts with the nodes that are there, billed to the second."""
    present = list(nodes)
    for node in present:
        node.settle(now)
    return Accounts(
        accounts.paid + math.fsum(node.paid(now) for node in present),
        accounts.used + math.fsum(node.used for node in present),
        accounts.idle + math.fsum(node.idle for node in present),
        accounts.booting + math.fsum(node.booting if node.ready_at is not None else node.paid(now) for node in present),
        accounts.held + math.fsum(node.held for node in present),
    )


def check_conservation(accounts: Accounts, tasks: Sequence[Task]) -> None:
    """Every second that was paid for and every second that a job was there is accounted for, once.

    Raises:
        Defect: a law is broken, which means that the simulator is wrong.
    """
    if not accounts.balanced:
        raise Defect(f"paid GPU time is not used, idle or booting: {accounts}")
    for task in tasks:
        job, finish = task.job, task.finish
        if finish is None or finish < job.submit:
            raise Defect(f"job {job.id} did not end once after its submission")
        spent = task.waited + job.seconds + task.lost
        if not math.isclose(finish - job.submit, spent, rel_tol=1e-9, abs_tol=1e-3):
            raise Defect(f"job {job.id} was there for {finish - job.submit} s, of which {spent} s are known")
    worked = math.fsum((task.job.seconds + task.lost) * task.gpus for task in tasks)
    if not math.isclose(worked, accounts.used, rel_tol=_HAIR, abs_tol=1e-3):
        raise Defect(f"jobs used {worked} GPU-seconds, nodes gave {accounts.used}")
