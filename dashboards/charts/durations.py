"""How long work may run: the density above, the share still running below, on one axis of durations."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from advisor.domain.forecasts import DurationDistribution
from advisor.domain.units import shown_duration
from dashboards.charts.figure import Chart, Mark, axis, duration_axis, figure, line, mark_keys, uprights

__all__ = ["duration_chart"]

Floats = NDArray[np.float64]

_BINS = 72
_TAIL = 0.002
_HEIGHT = 340


def duration_chart(
    name: str, title: str, durations: DurationDistribution, marks: tuple[Mark, ...] = (), *, whole: bool = True
) -> Chart:
    """The law of ``durations`` with its P50 and P90, and with ``marks`` (seconds) of the caller's own.

    A law that is not ``whole`` was kept in few points: its mean and typical value are not told from it.
    """
    edges = _edges(durations, marks)
    survival = durations.survival_at(edges)
    share = -np.diff(survival)
    centres = np.sqrt(edges[:-1] * edges[1:])
    p50, p90 = durations.quantile(0.5), durations.quantile(0.9)
    data = [_density(centres, share), _survival(edges, survival)]
    shown = (
        Mark(p50, f"P50 {shown_duration(p50)}", "@accent"),
        Mark(p90, f"P90 {shown_duration(p90)}", "@accent", "dash"),
        *marks,
    )
    layout = {
        "xaxis": duration_axis("Duration", float(edges[0]), float(edges[-1]), anchor="y2"),
        "yaxis": axis("Likelihood", domain=[0.58, 1.0], showticklabels=False, rangemode="tozero"),
        "yaxis2": axis("Still running, %", domain=[0.0, 0.48], range=[0, 102], anchor="x"),
        **uprights(shown),
    }
    summary = f"Half end within {shown_duration(p50)}, nine in ten within {shown_duration(p90)}"
    if whole:
        summary += f"; the mean is {shown_duration(durations.mean)}, typical is {shown_duration(durations.typical)}"
    summary += "."
    return Chart(id=name, title=title, summary=summary, keys=mark_keys(shown), figure=figure(data, layout, _HEIGHT))


def _edges(durations: DurationDistribution, marks: tuple[Mark, ...]) -> Floats:
    seconds = [durations.quantile(_TAIL), durations.quantile(1 - _TAIL)]
    seconds += [mark.x for mark in marks if not isinstance(mark.x, str) and mark.x > 0]
    low, high = min(seconds) / 1.15, max(seconds) * 1.15
    return np.geomspace(low, high, _BINS + 1)


def _density(centres: Floats, share: Floats) -> dict[str, Any]:
    return line(
        (centres.tolist(), share.tolist()),
        "Likelihood",
        "@accent",
        {"shape": "hvh", "width": 1.5},
        fill="tozeroy",
        fillcolor="@fan2",
        hoverinfo="skip",
    )


def _survival(edges: Floats, survival: Floats) -> dict[str, Any]:
    return line(
        (edges.tolist(), (survival * 100).tolist()),
        "Still running",
        "@accent",
        yaxis="y2",
        customdata=[shown_duration(float(x)) for x in edges],
        hovertemplate="%{y:.0f} % still running after %{customdata}<extra></extra>",
    )
