"""On a public trace the simulator gives what an independent one, written in another language, gave."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from advisor.simulator.policies.fifo import Karpenter, Traditional
from advisor.simulator.simulation import simulate
from advisor.simulator.tasks import SimulatedJob, simulated_job
from advisor.simulator.terms import ClusterTerms
from advisor.telemetry.traces import TraceFile, TraceFormat

pytestmark = pytest.mark.traces


@pytest.fixture(scope="module")
def held_out(traces) -> list[SimulatedJob]:
    """The last 30 % of the jobs, in time."""
    batch = TraceFile(traces / "philly" / "philly_passed_jobs.csv", TraceFormat("philly")).read(None, datetime.now(UTC))
    jobs = sorted(batch.jobs, key=lambda job: job.submit)
    split = jobs[int(0.7 * len(jobs))].submit
    return [simulated_job(job, split) for job in jobs if job.submit >= split]


@pytest.mark.parametrize("policy, paid, waited", [(Traditional, 2.551, 2.43), (Karpenter, 1.144, 0.79)])
def test_both_ways_of_first_come_first_served_cost_and_wait_as_measured_elsewhere(held_out, policy, paid, waited):
    run = simulate(held_out, ClusterTerms(), policy())
    assert run.horizon.accounts.paid / run.horizon.useful == pytest.approx(paid, rel=0.01)
    waits = [task.finish - task.job.submit - task.job.seconds for task in run.tasks if task.finish is not None]
    # The other's submissions were shaken one by one, which takes a tenth off the waits for bursts.
    assert sum(waits) / len(waits) / 60.0 == pytest.approx(waited, rel=0.15)
