"""Six ways in which sharing and dcgm-exporter show the same world, as data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

from tests.telemetry_world.things import Sharing

__all__ = ["DIALECTS", "Dialect", "Labelling", "Metric", "Quantity"]


class Quantity(Enum):
    """What a metric of dcgm says."""

    BUSY = "busy"
    ENGINE = "engine"
    MEMORY = "memory"
    ENERGY = "energy"


class Labelling(Enum):
    """Whose pod a line of a GPU is given to.

    ``ONE`` pod has the GPU; each of the pods that share it gets a ``COPY`` of its value; each gets its ``OWN`` value
    and the GPU a line without pod besides; ``NONE`` is ever named.
    """

    ONE = "one"
    COPY = "copy"
    OWN = "own"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Metric:
    """A metric: what it says, what a share, a MiB or a joule is multiplied by, and whose lines it has."""

    quantity: Quantity
    scale: float
    labelling: Labelling


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """How a world is shown.

    ``host_label`` holds the node's name, ``driver_label`` the driver's version; ``honor_labels`` is whether Prometheus
    leaves the exporters' own pod labels alone; ``bus``, ``pod_uid`` and ``vgpu`` are labels only some have.
    """

    name: str
    sharing: Sharing
    metrics: Mapping[str, Metric]
    host_label: str = "Hostname"
    driver_label: str = "DCGM_FI_DRIVER_VERSION"
    driver: str = "550.54.15"
    honor_labels: bool = True
    bus: bool = True
    pod_uid: bool = False
    vgpu: bool = False
    xid: str = "DCGM_FI_DEV_XID_ERRORS"


_KINDS = {
    "DCGM_FI_DEV_GPU_UTIL": (Quantity.BUSY, 100.0),
    "DCGM_FI_PROF_GR_ENGINE_ACTIVE": (Quantity.ENGINE, 1.0),
    "DCGM_FI_DEV_FB_USED": (Quantity.MEMORY, 1.0),
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION": (Quantity.ENERGY, 1000.0),
}
_UTIL, _ENGINE, _MEMORY, _ENERGY = _KINDS


def _metrics(*names: str, labelling: Labelling, **special: Labelling) -> dict[str, Metric]:
    return {name: Metric(*_KINDS[name], special.get(name, labelling)) for name in names}


_RENAMED = {
    "DCGM_FI_DEV_GPU_UTIL_RATIO": Metric(Quantity.BUSY, 1.0, Labelling.ONE),
    "DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO": Metric(Quantity.ENGINE, 1.0, Labelling.ONE),
    # The release says that these two changed their unit; what they are called now had to be guessed.
    "DCGM_FI_DEV_FB_USED_BYTES": Metric(Quantity.MEMORY, float(1 << 20), Labelling.ONE),
    "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION_JOULES": Metric(Quantity.ENERGY, 1.0, Labelling.ONE),
}

DIALECTS: Mapping[str, Dialect] = {
    dialect.name: dialect
    for dialect in (
        Dialect(
            name="exporter-3.3-relabelled",
            sharing=Sharing.WHOLE,
            metrics=_metrics(_UTIL, _MEMORY, _ENERGY, labelling=Labelling.ONE),
            driver="535.161.08",
            honor_labels=False,
        ),
        Dialect(
            name="exporter-4.5-time-sliced",
            sharing=Sharing.TIME_SLICED,
            metrics=_metrics(_UTIL, _ENGINE, _MEMORY, _ENERGY, labelling=Labelling.COPY),
            vgpu=True,
        ),
        Dialect(
            name="exporter-4.8-per-process",
            sharing=Sharing.TIME_SLICED,
            metrics=_metrics(
                *_KINDS,
                labelling=Labelling.COPY,
                DCGM_FI_DEV_GPU_UTIL=Labelling.OWN,
                DCGM_FI_DEV_FB_USED=Labelling.OWN,
            ),
            driver="570.86.15",
            pod_uid=True,
            vgpu=True,
        ),
        Dialect(
            name="exporter-4.9-renamed",
            sharing=Sharing.WHOLE,
            metrics=_RENAMED,
            host_label="hostname",
            driver_label="DCGM_FI_SYSTEM_DRIVER_VERSION",
            driver="580.65.06",
            xid="DCGM_FI_DEV_XID_ERROR",
        ),
        Dialect(
            name="exporter-4.5-mig",
            sharing=Sharing.MIG,
            metrics=_metrics(_ENGINE, _MEMORY, labelling=Labelling.ONE),
        ),
        Dialect(
            name="hami",
            sharing=Sharing.HAMI,
            metrics=_metrics(_UTIL, _ENGINE, _MEMORY, _ENERGY, labelling=Labelling.NONE),
        ),
    )
}
"""Dialects by name; each needs a world whose GPUs are cut its way."""
