"""The series of NVIDIA's dcgm-exporter as one value per device and moment. Pure: no I/O, no clock.

Belongs here: what the exporter's names, units, labels and values mean in every version of it.
Must not be here: how series are fetched (``prometheus``), what a pod or a job is (``pods``, ``gangs``).

================  ====================================================================
``names``         metric names of every generation as what they measure
``scales``        which unit a metric is in, how that was decided, and what is remembered
``lines``         labels as device, pod, node and generation
``columns``       all samples as flat columns: cleaned, scaled, one per device and moment
``counters``      readings that mean something only beside the one before
``holdings``      which pods were shown, and which of their values are their own
``tracks``        what comes out: a chunk of one track a device
``assembly``      columns taken apart into tracks
``normalise``     the way from series to a chunk
``attribution``   who had a device at a moment, and with how many
``usage``         what each job did with its GPUs, chunk after chunk
================  ====================================================================
"""

from advisor.telemetry.dcgm.normalise import normalise

__all__ = ["normalise"]
