"""The cost of every candidate slice length, and where today's, the recommended and the rule of thumb lie."""

from __future__ import annotations

import math
from typing import Any

from advisor.domain.slices import CurvePoint, SliceClass
from dashboards.charts.figure import Chart, Key, Mark, axis, duration_axis, figure, line, mark_keys, uprights
from dashboards.formats import minutes

__all__ = ["slice_cost"]

_HOVER = "%{customdata}<br>%{y:.1f} GPU-min lost per 100 useful<extra></extra>"


_RECOMMENDED = Key("Recommended", "@accent", "dot")
_IN_USE = Key("In use", "@second", "diamond")
_FORBIDDEN = Key("Not allowed", "@muted", "cross")
_SYMBOLS = {"dot": ("circle", 13), "diamond": ("diamond", 18), "cross": ("x-thin-open", 7)}


def slice_cost(one: SliceClass, position: int) -> Chart | None:
    """The cost curve of one class of a pool (``position`` makes its name unique); None without candidates."""
    points = sorted((p for p in one.curve if math.isfinite(p.cost)), key=lambda p: p.minutes)
    if not points:
        return None
    shown = [
        (_RECOMMENDED, [] if one.minutes is None else [CurvePoint(one.minutes, one.cost)]),
        (_IN_USE, _in_use(one)),
        (_FORBIDDEN, [p for p in points if not p.feasible]),
    ]
    data = [_curve(points), *(_dots(at, key) for key, at in reversed(shown) if at)]
    lengths = [p.minutes * 60 for p in points]
    layout = {
        "xaxis": duration_axis("Slice length", lengths[0] * 0.9, lengths[-1] * 1.1) | _ticks(points),
        "yaxis": axis("GPU-min lost per 100 useful", range=[0, _top(one, points)]),
        **uprights(_thumb(one)),
    }
    return Chart(
        id=f"slice-cost-{position}",
        title=f"Cost of a slice length, class {one.name}",
        summary=_summary(one),
        keys=(*(key for key, at in shown if at), *mark_keys(_thumb(one))),
        figure=figure(data, layout),
    )


def _curve(points: list[CurvePoint]) -> dict[str, Any]:
    allowed = [p.cost * 100 if p.feasible else None for p in points]
    return line(
        ([p.minutes * 60 for p in points], allowed),
        "Cost",
        "@soft",
        mode="lines+markers",
        marker={"size": 5, "color": "@soft"},
        customdata=[_minutes(p.minutes) for p in points],
        hovertemplate=_HOVER,
    )


def _in_use(one: SliceClass) -> list[CurvePoint]:
    if one.current_minutes is None or one.current_cost is None or not math.isfinite(one.current_cost):
        return []
    return [CurvePoint(one.current_minutes, one.current_cost)]


def _dots(points: list[CurvePoint], key: Key) -> dict[str, Any]:
    symbol, size = _SYMBOLS[key.shape]
    return {
        "type": "scatter",
        "mode": "markers",
        "x": [p.minutes * 60 for p in points],
        "y": [p.cost * 100 for p in points],
        "name": key.label,
        "marker": {"symbol": symbol, "size": size, "color": key.colour, "line": {"width": 1.5, "color": "@surface"}},
        "customdata": [_minutes(p.minutes) for p in points],
        "hovertemplate": f"{key.label}: {_HOVER}",
    }


def _ticks(points: list[CurvePoint]) -> dict[str, Any]:
    # Few enough that they stay level on a phone.
    shown = [m for m in (1, 5, 15, 60, 240, 1440) if points[0].minutes <= m <= points[-1].minutes]
    return {"tickvals": [m * 60 for m in shown], "ticktext": [_minutes(m) for m in shown]} if len(shown) > 1 else {}


def _top(one: SliceClass, points: list[CurvePoint]) -> float:
    # Far too short lengths cost so much that they would press the rest of the curve flat.
    ceiling = 100 * max(3 * one.cost, 1.4 * (one.current_cost or 0.0))
    return max(min(1.1 * 100 * max(p.cost for p in points), ceiling), 0.1)


def _thumb(one: SliceClass) -> tuple[Mark, ...]:
    if one.rule_of_thumb_minutes is None or one.rule_of_thumb_minutes <= 0:
        return ()
    return (
        Mark(one.rule_of_thumb_minutes * 60, f"Rule of thumb, {minutes(one.rule_of_thumb_minutes)}", "@muted", "dot"),
    )


def _summary(one: SliceClass) -> str:
    if one.minutes is None:
        return f"No slice length pays for class {one.name}: its tasks are better left to run."
    said = f"{_minutes(one.minutes)} loses {one.cost * 100:.1f} GPU-minutes per 100 useful"
    if one.current_minutes is not None and one.current_cost is not None:
        said += f"; the {_minutes(one.current_minutes)} in use loses {one.current_cost * 100:.1f}"
    bound = f" It is bound by: {one.binding_constraint}." if one.binding_constraint else ""
    return f"{said}.{bound}"


def _minutes(minutes: float) -> str:
    return f"{minutes:g} min" if minutes < 60 else f"{minutes / 60:g} h"
