"""One run: a workload, a cluster and a policy, from the first submission until the last job has ended."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from random import Random

from advisor.domain.units import SECONDS_PER_DAY
from advisor.errors import Refused
from advisor.simulator.accounts import Accounts, check_conservation
from advisor.simulator.cluster import Priority, SimulatedCluster
from advisor.simulator.engine import Engine, SimulatedClock
from advisor.simulator.policies.protocol import Policy
from advisor.simulator.tasks import SimulatedJob, Task
from advisor.simulator.terms import ClusterTerms

__all__ = ["Checkpoint", "SimulatedRun", "simulate"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The accounts at ``at`` seconds, and the useful GPU-seconds behind all jobs by then."""

    at: float
    accounts: Accounts
    useful: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedRun:
    """What came of a run. ``days`` are checkpoints every 24 h, ``horizon`` is the last submission."""

    tasks: tuple[Task, ...]
    days: tuple[Checkpoint, ...]
    horizon: Checkpoint
    end: Checkpoint
    node_starts: int


def simulate(
    jobs: Sequence[SimulatedJob],
    terms: ClusterTerms,
    policy: Policy,
    seed: int = 0,
    places: Sequence[int] | None = None,
) -> SimulatedRun:
    """Run ``jobs`` (in order of submission) to the end of the last, and check every law of conservation.

    ``places`` are their rows in what the policy foresees, where that is in another order.
    Costs are compared up to the last submission, since nobody pays for the emptying of a real cluster.

    Raises:
        Refused: no job, jobs out of order, or one that the limit can never hold.
        Defect: a law of conservation is broken.
    """
    _check(jobs, terms)
    rows = range(len(jobs)) if places is None else places
    tasks = tuple(Task(place, job) for place, job in zip(rows, jobs, strict=True))
    return _Simulation(tasks, terms, policy, seed).run()


class _Simulation:
    def __init__(self, tasks: tuple[Task, ...], terms: ClusterTerms, policy: Policy, seed: int) -> None:
        self._policy = policy
        self._engine = Engine(SimulatedClock(_EPOCH, tasks[0].job.submit))
        self._cluster = SimulatedCluster(terms, self._engine, Random(seed))  # noqa: S311 - no secrets here
        self._cluster.finished = self._ended
        if policy.lease_seconds is not None:
            self._cluster.lease(policy.lease_seconds, partial(policy.boundary, self._cluster))
        self._tasks = tasks
        self._left = len(self._tasks)
        self._days: list[Checkpoint] = []
        self._horizon: Checkpoint | None = None
        self._window: float | None = None
        self._closed = False
        self._asked = 0.0
        self._wanted = 0

    def run(self) -> SimulatedRun:
        """Everything that happens, until nothing is left to happen."""
        first, last = self._tasks[0].job.submit, self._tasks[-1].job.submit
        self._submit_next(0)
        self._engine.schedule(last, Priority.TICK + 1, self._reach_horizon)
        self._engine.schedule(first, Priority.TICK + 1, self._day)
        for name, every in self._policy.ticks.items():
            self._engine.schedule(first + every, Priority.TICK, partial(self._tick, name, every))
        self._engine.run(self._settle)
        end = self._checkpoint()
        check_conservation(end.accounts, self._tasks)
        assert self._horizon is not None  # noqa: S101 - scheduled above
        return SimulatedRun(
            tasks=self._tasks,
            days=tuple(self._days),
            horizon=self._horizon,
            end=end,
            node_starts=self._cluster.node_starts,
        )

    # What happens -----------------------------------------------------------------------------------------------

    def _submit_next(self, place: int) -> None:
        self._engine.schedule(self._tasks[place].job.submit, Priority.SUBMIT, partial(self._submit, place))

    def _submit(self, place: int) -> None:
        task = self._tasks[place]
        task.queued_since = self._engine.now
        if place + 1 < len(self._tasks):
            self._submit_next(place + 1)
        self._policy.submitted(self._cluster, task)

    def _ended(self, task: Task) -> None:
        self._left -= 1
        self._policy.ended(self._cluster, task)

    def _tick(self, name: str, every: float) -> None:
        if self._left:
            self._policy.tick(self._cluster, name)
            self._engine.schedule(self._engine.now + every, Priority.TICK, partial(self._tick, name, every))

    def _day(self) -> None:
        if self._horizon is None:
            self._days.append(self._checkpoint())
            self._engine.schedule(self._engine.now + SECONDS_PER_DAY, Priority.TICK + 1, self._day)

    def _reach_horizon(self) -> None:
        self._horizon = self._checkpoint()
        self._days.append(self._horizon)

    def _checkpoint(self) -> Checkpoint:
        now = self._engine.now
        useful = math.fsum(task.useful(now) * task.gpus for task in self._tasks)
        return Checkpoint(now, self._cluster.accounts(), useful)

    # The end of every moment ------------------------------------------------------------------------------------

    def _settle(self) -> None:
        cluster, policy = self._cluster, self._policy
        policy.act(cluster)
        cluster.freed = False
        for node in list(cluster.expired.values()):
            if policy.may_go(cluster, node):
                cluster.remove(node)
        self._gather()

    def _gather(self) -> None:
        """Launch what is wanted if a batch window has closed; open one where nodes are wanted.

        Whatever is wanted on top while one is open keeps it open.
        """
        if self._closed:
            self._closed = False
            self._cluster.launch(self._policy.nodes_wanted(self._cluster))
        if self._cluster.headroom == 0:
            return
        wanted = self._policy.nodes_wanted(self._cluster)
        now, terms = self._engine.now, self._cluster.terms
        if wanted > self._wanted:
            self._asked = now
        self._wanted = wanted
        if wanted and self._window is None:
            self._window = now
            self._engine.schedule(now + terms.batch_idle_seconds, Priority.TICK + 1, self._close)

    def _close(self) -> None:
        """The batch window closes once it has run its time; what is wanted is seen when the moment settles."""
        opened, terms = self._window, self._cluster.terms
        assert opened is not None  # noqa: S101 - only an open window is closed
        due = min(opened + terms.batch_most_seconds, self._asked + terms.batch_idle_seconds)
        if self._engine.now < due:
            self._engine.schedule(due, Priority.TICK + 1, self._close)
            return
        self._window = None
        self._wanted = 0
        self._closed = True


def _check(jobs: Sequence[SimulatedJob], terms: ClusterTerms) -> None:
    if not jobs:
        raise Refused("jobs", 0, "a simulation needs at least one job", "Bring in more history.")
    if any(later.submit < job.submit for job, later in itertools.pairwise(jobs)):
        raise Refused("jobs", "out of order", "jobs come in the order of their submission", "Sort them.")
    most = max(terms.nodes_for(job.gpus) for job in jobs)
    limit = terms.limit_nodes
    if limit is not None and most > max(limit, terms.static_nodes):
        raise Refused("limit_nodes", limit, f"the largest job needs {most} nodes", "Raise the quota.")
