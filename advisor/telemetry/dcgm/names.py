"""Metric names of every generation of dcgm-exporter as what they measure.

Version 4.9 of the exporter (DCGM 4.7) renamed its defaults and changed the units of some; both spellings stand here,
and so do those of the first exporter (before 2.0). The new names of energy and memory are not all published: the
spellings that the published ones imply are accepted too. What is not in the table (temperatures, clocks, and the
sliding ``DCGM_EXP_XID_ERRORS_COUNT``, which falls again by itself and so counts nothing) is not read.
"""

from __future__ import annotations

from enum import IntEnum
from types import MappingProxyType

__all__ = ["COUNTERS", "QUANTITIES", "Quantity", "metric_names"]


class Quantity(IntEnum):
    """What a metric measures, and in what it is kept here."""

    SM_ACTIVE = 0
    """Share (0 to 1) of cycles with work resident, averaged over the multiprocessors."""
    ENGINE_ACTIVE = 1
    """Share of time in which any graphics or compute engine worked; relative to the instance under MIG."""
    UTILISATION = 2
    """Share of time in which at least one kernel ran; absent or always 0 under MIG."""
    MEMORY_USED = 3
    """Bytes."""
    MEMORY_FREE = 4
    """Bytes."""
    MEMORY_RESERVED = 5
    """Bytes."""
    MEMORY_TOTAL = 6
    """Bytes."""
    POWER = 7
    """Watts, of the whole card."""
    ENERGY = 8
    """Joules since the driver was loaded, of the whole card: a counter."""
    XID = 9
    """The code of the last error; it stays until the driver or the exporter starts again."""


COUNTERS = frozenset({Quantity.ENERGY})
"""Quantities that only grow, and so pass through the numbers that mean "no value" elsewhere."""

_SPELLINGS: dict[Quantity, tuple[str, ...]] = {
    Quantity.SM_ACTIVE: ("DCGM_FI_PROF_SM_ACTIVE", "DCGM_FI_PROF_SM_UTIL_RATIO"),
    Quantity.ENGINE_ACTIVE: ("DCGM_FI_PROF_GR_ENGINE_ACTIVE", "DCGM_FI_PROF_GR_ENGINE_UTIL_RATIO"),
    Quantity.UTILISATION: ("DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_GPU_UTIL_RATIO", "dcgm_gpu_utilization"),
    Quantity.MEMORY_USED: ("DCGM_FI_DEV_FB_USED", "DCGM_FI_DEV_FB_USED_BYTES", "dcgm_fb_used"),
    Quantity.MEMORY_FREE: ("DCGM_FI_DEV_FB_FREE", "DCGM_FI_DEV_FB_FREE_BYTES", "dcgm_fb_free"),
    Quantity.MEMORY_RESERVED: ("DCGM_FI_DEV_FB_RESERVED", "DCGM_FI_DEV_FB_RESERVED_BYTES"),
    Quantity.MEMORY_TOTAL: ("DCGM_FI_DEV_FB_TOTAL", "DCGM_FI_DEV_FB_TOTAL_BYTES", "DCGM_FI_DEV_FB_CAPACITY_BYTES"),
    Quantity.POWER: (
        "DCGM_FI_DEV_POWER_USAGE",
        "DCGM_FI_DEV_BOARD_POWER_WATTS",
        "DCGM_FI_DEV_POWER_USAGE_WATTS",
        "dcgm_power_usage",
    ),
    Quantity.ENERGY: (
        "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION",
        "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION_JOULES",
        "DCGM_FI_DEV_TOTAL_ENERGY_CONSUMPTION_JOULES_TOTAL",
        "DCGM_FI_DEV_ENERGY_CONSUMPTION_JOULES_TOTAL",
        "DCGM_FI_DEV_BOARD_ENERGY_JOULES_TOTAL",
        "DCGM_FI_DEV_TOTAL_ENERGY_JOULES",
        "dcgm_total_energy_consumption",
    ),
    Quantity.XID: ("DCGM_FI_DEV_XID_ERRORS", "DCGM_FI_DEV_XID_ERROR", "dcgm_xid_errors"),
}

QUANTITIES = MappingProxyType({name: quantity for quantity, names in _SPELLINGS.items() for name in names})
"""Every known metric name as what it measures."""


def metric_names(quantity: Quantity) -> tuple[str, ...]:
    """The names to ask a server for, the oldest generation still in use first.

    >>> metric_names(Quantity.XID)[0]
    'DCGM_FI_DEV_XID_ERRORS'
    """
    return _SPELLINGS[quantity]
