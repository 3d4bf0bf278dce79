"""What a piece of work did with its GPUs in truth, to compare what was measured of it with."""

from __future__ import annotations

import numpy as np

from advisor.domain.usage import ComputeSource, GpuUsage
from tests.telemetry_world.load import MIB
from tests.telemetry_world.things import Work
from tests.telemetry_world.world import World

__all__ = ["usage_of"]

_EVERY = 30.0


def usage_of(world: World, work: Work) -> GpuUsage | None:
    """Compute averaged over its GPUs (or MIG instances) at each moment, over all its runs; None if it never ran.

    Moments before a pod's first start and between its attempts count as idle where its pod was there. Energy
    is None unless it had each of its GPUs to itself. Under time slicing and HAMi compute is its own share of the GPU.
    """
    loads = world.loads
    computes, peak = [], 0.0
    joules: list[float | None] = []
    for run in sorted({pod.run for pod in work.pods}):
        pods = [pod for pod in work.pods if pod.run == run and pod.uid in loads.profiles]
        if not pods:
            continue
        begin = min(pod.attempts[0].start for pod in pods)
        until = max(pod.holds_until or world.end for pod in pods)
        times = np.arange(begin, until, min(_EVERY, max((until - begin) / 100, 1.0)))
        shares = []
        for pod in pods:
            for place in dict.fromkeys((slot.uuid, slot.instance) for slot in pod.slots):
                slots = [slot for slot in pod.slots if (slot.uuid, slot.instance) == place]
                compute, memory = loads.of_pod(pod, slots, times)
                shares.append(compute)
                peak = max(peak, float(memory.max()))
            joules += [use.energy_joules for use in loads.uses(pod)]
        computes.append(np.mean(shares, axis=0))
    if not computes:
        return None
    compute = np.concatenate(computes)
    known = [one for one in joules if one is not None]
    return GpuUsage(
        compute_mean=float(compute.mean()),
        compute_p95=float(np.quantile(compute, 0.95)),
        compute_peak=float(compute.max()),
        compute_source=ComputeSource.GIVEN,
        memory_peak_bytes=peak * MIB,
        energy_joules=sum(known) if len(known) == len(joules) else None,
        idle_share=float((compute == 0.0).mean()),
    )
