"""One frozen tree of settings, read once at the edge from a TOML file and the environment.

Precedence: environment (``GSA_`` and ``__`` between levels, e.g. ``GSA_PRICES__PER_GPU_HOUR=3.1``),
then the file, then the defaults. Each piece is handed down on its own: a planner receives its
prices, never the world.

=============  ====================================================================
``loading``    the tree, and how it is read
``groups``     what is kept, priced, fitted, planned, guarded and served
``telemetry``  where job history is read from
``piece``      what every group is
=============  ====================================================================
"""

from advisor.settings.groups import (
    DemandSettings,
    DurationSettings,
    GuardSettings,
    PriceSettings,
    ServerSettings,
    SliceSettings,
    StorageSettings,
    WarmSettings,
)
from advisor.settings.loading import Settings, load_settings
from advisor.settings.telemetry import DcgmSettings, PrometheusOptions, TelemetrySettings

__all__ = [
    "DcgmSettings",
    "DemandSettings",
    "DurationSettings",
    "GuardSettings",
    "PriceSettings",
    "PrometheusOptions",
    "ServerSettings",
    "Settings",
    "SliceSettings",
    "StorageSettings",
    "TelemetrySettings",
    "WarmSettings",
    "load_settings",
]
