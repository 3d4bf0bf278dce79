"""Series written as an exporter exposes them, one line each, with a value for each minute."""

from __future__ import annotations

import re

import numpy as np

from advisor.telemetry.prometheus.samples import Series

MINUTE = 60.0
A100 = 'gpu="0",UUID="GPU-a",device="nvidia0",modelName="NVIDIA A100-SXM4-80GB",Hostname="n1"'
OLD = f'{A100},DCGM_FI_DRIVER_VERSION="550.54.15"'
NEW = f'{A100.replace("Hostname", "hostname")},DCGM_FI_SYSTEM_DRIVER_VERSION="595.10.01"'

_LINE = re.compile(r"(?P<name>\w+)\{(?P<labels>.*)\}\s+(?P<values>.*)")
_LABEL = re.compile(r'(\w+)="([^"]*)"')


def exposed(*lines: str, begin: float = 0.0) -> list[Series]:
    """Each line as a series; its values follow the labels, a minute apart, with ``-`` where there is none.

    Labels that are empty are left out, as Prometheus leaves them out.
    """
    return [_series(line.strip(), begin) for text in lines for line in text.strip().splitlines()]


def _series(line: str, begin: float) -> Series:
    found = _LINE.fullmatch(line)
    assert found, line
    labels = {name: value for name, value in _LABEL.findall(found["labels"]) if value}
    words = found["values"].split()
    kept = [(begin + at * MINUTE, float(word)) for at, word in enumerate(words) if word != "-"]
    times, values = zip(*kept, strict=True)
    return Series({"__name__": found["name"], **labels}, np.array(times), np.array(values))
