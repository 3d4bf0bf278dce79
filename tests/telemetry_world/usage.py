"""What a piece of work did with its GPUs in truth, to compare what was measured of it with."""

from __future__ import annotations

import numpy as np

from advisor.domain.usage import ComputeSource, GpuUsage
from tests.telemetry_world.load import MIB
from tests.telemetry_world.things import Work
from tests.telemetry_world.world import World

__all__ = ["usage_of"]

_EVERY = 30.0


def usage_of(world: World, work: Work, held_seconds: float = 0.0) -> GpuUsage | None:
    """Compute over all moments of its GPUs (or MIG instances) in all its runs; None if it never ran.

    Moments before a pod's first start and between its attempts count as idle where its pod was there. Energy
    is None unless it had each of its GPUs to itself. Peak memory is the most that was held for ``held_seconds`` on end.
    Under time slicing and HAMi compute is its own share of the GPU.
    """
    loads = world.loads
    computes: list[np.ndarray] = []
    peak = 0.0
    joules: list[float | None] = []
    spans = []
    for run in sorted({pod.run for pod in work.pods}):
        pods = [pod for pod in work.pods if pod.run == run and pod.uid in loads.profiles]
        if pods:
            spans.append(
                (pods, min(pod.attempts[0].start for pod in pods), max(p.holds_until or world.end for p in pods))
            )
    # One step for all runs, so that each counts by how long it was.
    every = min(_EVERY, max(sum(until - begin for _, begin, until in spans) / 100, 1.0))
    for pods, begin, until in spans:
        times = np.arange(begin, until, every)
        # What several of its pods do on one GPU is one share of it.
        shares: dict[tuple[str, int | None], np.ndarray] = {}
        memories: dict[tuple[str, int | None], np.ndarray] = {}
        for pod in pods:
            for place in dict.fromkeys((slot.uuid, slot.instance) for slot in pod.slots):
                slots = [slot for slot in pod.slots if (slot.uuid, slot.instance) == place]
                compute, memory = loads.of_pod(pod, slots, times)
                shares[place] = shares.get(place, 0.0) + compute
                memories[place] = memories.get(place, 0.0) + memory
            joules += [use.energy_joules for use in loads.uses(pod)]
        peak = max([peak, *(_held(memory, held_seconds / every) for memory in memories.values())])
        computes += [np.minimum(share, 1.0) for share in shares.values()]
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


def _held(memory: np.ndarray, steps: float) -> float:
    """The most that was held for so many steps on end; 0 where it was not there for so long."""
    window = int(np.ceil(steps)) + 1
    if len(memory) < window:
        return 0.0
    return float(np.lib.stride_tricks.sliding_window_view(memory, window).min(axis=1).max())
