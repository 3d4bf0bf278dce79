"""Samples of dcgm-exporter normalised a second, beside only laying the same samples one after another.

Eight metrics of ``GSA_BENCH_DEVICES`` (default 512) GPUs, in two shapes: chunks of an hour at 60 s (many short
series) and of a week of one in 64 (few long ones). Of the GPUs one half are held by a pod each, a quarter
shared by four, with the values copied to every pod, and a quarter by two, with values per process beside the device's.
"""

from __future__ import annotations

import os
import time

import numpy as np

from advisor.telemetry.dcgm import normalise
from advisor.telemetry.dcgm.tracks import Carried
from advisor.telemetry.prometheus.samples import Series

METRICS = {
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE": 1.0,
    "DCGM_FI_DEV_GPU_UTIL": 100.0,
    "DCGM_FI_DEV_FB_USED": 30_000.0,
    "DCGM_FI_DEV_FB_FREE": 40_000.0,
    "DCGM_FI_DEV_FB_RESERVED": 600.0,
    "DCGM_FI_DEV_POWER_USAGE": 400.0,
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": 1e10,
    "DCGM_FI_DEV_XID_ERRORS": 0.0,
}
SAMPLES = 4_000_000
STEP_SECONDS = 60.0


def main() -> None:
    """Measure both shapes, and print one line each."""
    devices = int(os.environ.get("GSA_BENCH_DEVICES", "512"))
    for name, points, count in (("an hour", 60, devices), ("a week", 10_080, max(devices // 64, 4))):
        chunks = [world(count, points, 1_700_000_000.0 + at * points * STEP_SECONDS) for at in range(2)]
        size = sum(one.times.size for one in chunks[0])
        rounds = max(1, SAMPLES // (2 * size))
        bare = _bare_seconds(chunks, rounds)
        normal = _seconds(chunks, rounds)
        total = size * len(chunks) * rounds
        print(
            f"chunks of {name:<8} {len(chunks[0]):>7,} series x {points:>6,}: {total / normal:>12,.0f} samples/s, "
            f"{normal / bare:.0f} x laying them one after another"
        )


def world(devices: int, points: int, begin: float) -> list[Series]:
    """The series of one chunk."""
    random = np.random.default_rng(7)
    times = begin + STEP_SECONDS * np.arange(points)
    found = []
    for device in range(devices):
        labels = {
            "gpu": str(device % 8),
            "UUID": f"GPU-{device:08d}",
            "device": f"nvidia{device % 8}",
            "modelName": "NVIDIA A100-SXM4-80GB",
            "Hostname": f"node-{device // 8}",
            "DCGM_FI_DRIVER_VERSION": "550.54.15",
            "instance": f"10.0.0.{device // 8}:9400",
            "job": "dcgm",
        }
        for name, most in METRICS.items():
            values = np.rint(most * random.random(points)) if most > 1.0 else most * random.random(points)
            if "ENERGY" in name:
                values = most + np.cumsum(1e7 * random.random(points)) + begin * 3e5
            for pod in _pods(device, name):
                own = values / 2 + len(pod) if device % 4 == 3 and pod else values
                more = {"exported_namespace": "ml", "exported_pod": pod, "exported_container": "c"} if pod else {}
                found.append(Series({"__name__": name, **labels, **more}, times, own))
    return found


def _pods(device: int, name: str) -> list[str]:
    if device % 4 < 2:
        return [f"pod-{device}"]
    if device % 4 == 2:
        return [f"pod-{device}-{at}" for at in range(4)]
    return ["", f"pod-{device}-a", f"pod-{device}-longer"] if name.endswith(("UTIL", "USED")) else [""]


def _seconds(chunks: list[list[Series]], rounds: int) -> float:
    began = time.perf_counter()
    for _ in range(rounds):
        carried = Carried()
        for chunk in chunks:
            carried = normalise(chunk, carried).carried
    return time.perf_counter() - began


def _bare_seconds(chunks: list[list[Series]], rounds: int) -> float:
    began = time.perf_counter()
    for _ in range(rounds):
        for chunk in chunks:
            np.concatenate([one.values for one in chunk])
            np.concatenate([one.times for one in chunk])
    return time.perf_counter() - began


if __name__ == "__main__":
    main()
