"""Series as OpenMetrics text with timestamps, fast: a run of equal values is written in one go."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TextIO

import numpy as np

from advisor.telemetry.prometheus.samples import Series

__all__ = ["write_families"]

_FEW = 8
"""Runs a series may have on average of so many samples to be written as runs."""


class _Stamps(dict[float, str]):
    """Times as text; scrapes share theirs."""

    def __missing__(self, time: float) -> str:
        text = f"{time:.3f}"
        self[time] = text
        return text


class _Numbers(dict[float, str]):
    """Values as text; a NaN, which is not even equal to itself, is never kept."""

    def __missing__(self, value: float) -> str:
        if value != value:  # noqa: PLR0124 - that is what NaN is
            return "NaN"
        text = str(int(value)) if value.is_integer() else repr(value).replace("inf", "+Inf").replace("-+", "-")
        if len(self) < 100_000:
            self[value] = text
        return text


def write_families(families: Iterable[tuple[str, Sequence[Series]]], file: TextIO) -> tuple[int, int]:
    """Write each metric as one block; how many lines and characters that was."""
    stamps, numbers = _Stamps(), _Numbers()
    lines = size = 0
    for name, found in families:
        if not found:
            continue
        # Any other type would bind the name to a suffix or keep one from it.
        size += file.write(f"# TYPE {name} unknown\n")
        lines += 1
        for series in found:
            size += file.write(_text(series, stamps, numbers))
            lines += len(series.times)
    size += file.write("# EOF\n")
    return lines + 1, size


def _text(series: Series, stamps: _Stamps, numbers: _Numbers) -> str:
    head = _head(series)
    values = series.values
    times = list(map(stamps.__getitem__, series.times.tolist()))
    if values.strides[0] == 0:
        return _run(head, numbers[float(values[0])], times)
    changes = np.flatnonzero(values[1:] != values[:-1]) + 1
    if len(changes) * _FEW > len(values):
        shown = map(numbers.__getitem__, values.tolist())
        return "".join([f"{head}{value} {time}\n" for value, time in zip(shown, times, strict=True)])
    edges = [0, *changes.tolist(), len(values)]
    return "".join(_run(head, numbers[float(values[first])], times[first:last]) for first, last in pairwise(edges))


def _run(head: str, value: str, times: Sequence[str]) -> str:
    start = f"{head}{value} "
    return start + f"\n{start}".join(times) + "\n"


def _head(series: Series) -> str:
    shown = ",".join(f'{key}="{_escaped(value)}"' for key, value in series.labels.items() if key != "__name__")
    return f"{series.labels['__name__']}{{{shown}}} "


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
