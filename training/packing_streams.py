"""Streams of pods made of a list: the same pods in copies shifted by whole days, as many as a load needs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from advisor.domain.packing import MILLI, HostShape, PodShape
from advisor.domain.units import SECONDS_PER_DAY
from advisor.errors import Refused
from advisor.telemetry.packing_lists import ListedPod
from training.packing_departures import Pod

__all__ = ["PodStream", "guard_penalties", "stream_of"]

_LONGEST_SECONDS = SECONDS_PER_DAY
_SCARCE_SHARE = 0.05
_PENALTY = 10.0


@dataclass(frozen=True, slots=True)
class PodStream:
    """Pods with known run times of at most a day: submission and duration in seconds, over ``span`` whole days."""

    submits: NDArray[np.float64]
    durations: NDArray[np.float64]
    shapes: tuple[PodShape, ...]
    span: float

    @property
    def gpus_in_use(self) -> float:
        """GPUs that one copy keeps busy, in the mean."""
        gpus = np.array([shape.total_gpu_milli / MILLI for shape in self.shapes])
        return float((gpus * self.durations).sum() / self.span)

    def only(self, hosts: Sequence[HostShape]) -> PodStream:
        """Without the pods that no node of ``hosts`` could hold were it empty."""
        fit = {shape for shape in set(self.shapes) if any(could_hold(host, shape) for host in hosts)}
        kept = np.array([shape in fit for shape in self.shapes])
        shapes = tuple(shape for shape in self.shapes if shape in fit)
        return PodStream(self.submits[kept], self.durations[kept], shapes, self.span)

    def copies(self, rng: np.random.Generator, gpus: float, until: float, sd: float) -> list[Pod]:
        """Pods that keep ``gpus`` busy in the mean, up to ``until`` seconds, each predicted with an error of ``sd``.

        Every copy is shifted by a number of whole days of its own, so that the hours of the day stay; a list that
        is shorter than ``until`` comes round again.
        """
        days = round(self.span / SECONDS_PER_DAY)
        shifts = rng.integers(days, size=max(1, round(gpus / self.gpus_in_use))) * SECONDS_PER_DAY
        first = (self.submits[None, :] + shifts[:, None]) % self.span
        rounds = np.arange(int(np.ceil(until / self.span))) * self.span
        times = (first[None, :, :] + rounds[:, None, None]).reshape(-1, self.submits.size)
        copy, at = np.nonzero(times < until)
        order = np.argsort(times[copy, at], kind="stable")
        at, moments = at[order], times[copy, at][order]
        errors = np.exp(rng.normal(0.0, sd, at.size)) if sd > 0 else np.ones(at.size)
        lasting = self.durations[at]
        return [
            Pod(float(moment), self.shapes[which], float(seconds), float(seconds * error))
            for moment, which, seconds, error in zip(moments, at, lasting, errors, strict=True)
        ]


def stream_of(pods: Sequence[ListedPod]) -> PodStream:
    """The pods of a list whose run time is known and at most a day.

    Raises:
        Refused: there are none, or none of them has a GPU.
    """
    known = [
        (pod.submit, pod.duration, pod.shape)
        for pod in pods
        if pod.submit is not None and pod.duration is not None and pod.duration <= _LONGEST_SECONDS
    ]
    if not any(shape.gpus for _, _, shape in known):
        limit = "no pod with a GPU has creation_time, scheduled_time and deletion_time within a day of each other"
        raise Refused("--pods", len(pods), limit, "Leave out --departures, or give a list with times.")
    first = min(submit for submit, _, _ in known)
    submits = np.array([submit - first for submit, _, _ in known])
    span = float(np.ceil((submits.max() + 1.0) / SECONDS_PER_DAY) * SECONDS_PER_DAY)
    return PodStream(submits, np.array([d for _, d, _ in known]), tuple(shape for _, _, shape in known), span)


def could_hold(host: HostShape, shape: PodShape) -> bool:
    """Whether an empty node of this shape could hold the pod."""
    enough = host.gpus >= shape.gpus and host.cpu_milli >= shape.cpu_milli and host.memory_mib >= shape.memory_mib
    return enough and (not shape.kinds or host.kind in shape.kinds)


def guard_penalties(hosts: Sequence[HostShape], shapes: set[PodShape]) -> dict[PodShape, NDArray[np.float64]]:
    """What each shape pays per node, (nodes,), so that nodes which few can replace are left to who needs them.

    A shape is scarce if at most 5 % of the nodes could ever hold it; every other one pays there.
    """
    ordered = sorted(shapes)
    able = {shape: np.array([could_hold(host, shape) for host in hosts]) for shape in ordered}
    scarce = {shape for shape, nodes in able.items() if 0.0 < nodes.mean() <= _SCARCE_SHARE}
    if not scarce:
        return {}
    kept = _PENALTY * np.any([able[shape] for shape in sorted(scarce)], axis=0)
    return {shape: kept for shape in ordered if shape not in scarce}
