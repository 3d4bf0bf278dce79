"""Charts as pure functions from values of the domain to Plotly figures, as plain JSON.

Belongs here: one function a chart, and what they share. Must not be here: reading data, markup, and the
plotting library itself, whose script draws in the browser. Colours are names such as ``@accent`` that
the page's script replaces by the theme's own, so that one figure serves light and dark.
"""

from __future__ import annotations

from dashboards.charts.demand import demand_fan
from dashboards.charts.durations import duration_chart
from dashboards.charts.figure import Chart, Mark
from dashboards.charts.promises import promises_kept
from dashboards.charts.quality import calibration_curve, coverage_by_week, error_by_duration
from dashboards.charts.slices import slice_cost
from dashboards.charts.warm import warm_nodes

__all__ = [
    "Chart",
    "Mark",
    "calibration_curve",
    "coverage_by_week",
    "demand_fan",
    "duration_chart",
    "error_by_duration",
    "promises_kept",
    "slice_cost",
    "warm_nodes",
]
