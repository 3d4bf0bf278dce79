"""What each further warm node costs and saves, and how many are worth it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from advisor.domain.plans import WarmCurvePoint, WarmPlan
from advisor.domain.units import counted
from dashboards.charts.figure import Chart, Key, axis, figure, line
from dashboards.formats import minutes

__all__ = ["warm_nodes"]

_WORTH_IT = Key("Saves, recommended", "@accent", "dot")
_NOT_WORTH_IT = Key("Saves, not worth it", "@soft", "dot")
_COSTS = Key("Costs", "@second", "diamond")
_LEAST_DECADES = 0.5
_NOTHING = 0.001
"""Amounts an hour up to this one count as nothing, in any currency."""
_SYMBOLS = {"dot": ("circle", 11), "diamond": ("diamond", 12)}


def warm_nodes(plan: WarmPlan, currency: str) -> Chart | None:
    """Marginal cost and saving per hour of the first, second, ... warm node; None without candidates.

    On a logarithmic axis, since either may be a hundred times the other; what is nothing stands on its floor.
    """
    if not plan.curve:
        return None
    chosen = plan.warm_gpus // plan.node_gpus
    saved = {
        _WORTH_IT: [point for point in plan.curve if point.nodes <= chosen],
        _NOT_WORTH_IT: [point for point in plan.curve if point.nodes > chosen],
    }
    floor, top = _span(plan.curve)
    data = [_gaps(plan.curve, floor)]
    data += [_savings(points, key, floor, currency) for key, points in saved.items() if points]
    data.append(_costs(plan.curve, floor, currency))
    layout = {
        "xaxis": axis(f"Warm node, of {counted(plan.node_gpus, 'GPU')} each", dtick=1, showgrid=False),
        "yaxis": axis(
            f"{currency} per hour, of this node",
            type="log",
            range=[math.log10(floor), math.log10(top)],
            **_ticks(floor, top),
        ),
        "hovermode": "x unified",
    }
    summary = (
        f"{chosen or 'No'} warm {'nodes are' if chosen > 1 else 'node is'} worth it: "
        "circles are what a node saves in waiting, diamonds what it costs to keep; where the circle is higher, it pays."
    )
    return Chart(
        id="warm-nodes",
        title="What the next warm node is worth",
        summary=summary,
        keys=(*(key for key, points in saved.items() if points), _COSTS),
        figure=figure(data, layout),
    )


def _span(curve: tuple[WarmCurvePoint, ...]) -> tuple[float, float]:
    """The ends of the axis: a little beyond every amount above nothing, and at least half a decade apart."""
    amounts = [
        amount for point in curve for amount in (point.cost_per_hour, point.saving_per_hour) if amount > _NOTHING
    ]
    low, high = min(amounts, default=1.0), max(amounts, default=1.0)
    return low / 2.0, max(high * 1.6, low * 10**_LEAST_DECADES)


def _ticks(floor: float, top: float) -> dict[str, Any]:
    """Powers of ten as plain amounts; where the axis holds less than two of them, halves and fifths too."""
    decades = range(math.floor(math.log10(floor)), math.ceil(math.log10(top)) + 1)
    whole = [10.0**power for power in decades]
    shown = [at for at in whole if floor <= at <= top]
    if len(shown) < 3:
        shown = [step * at for at in whole for step in (1, 2, 5) if floor <= step * at <= top]
    return {"tickvals": shown, "ticktext": [f"{at:,.10g}" for at in shown]}


def _gaps(curve: tuple[WarmCurvePoint, ...], floor: float) -> dict[str, Any]:
    """A thin line of each node from what it saves to what it costs."""
    nodes = [at for point in curve for at in (point.nodes, point.nodes, None)]
    amounts = [at for p in curve for at in (_at(p.saving_per_hour, floor), _at(p.cost_per_hour, floor), None)]
    return line((nodes, amounts), "Gap", "@line", {"width": 2}, hoverinfo="skip")


def _savings(points: list[WarmCurvePoint], key: Key, floor: float, currency: str) -> dict[str, Any]:
    return _dots(points, [point.saving_per_hour for point in points], key, floor) | {
        "customdata": [[f"{point.saving_per_hour:,.2f}", _needed(point)] for point in points],
        "hovertemplate": f"saves %{{customdata[0]}} {currency}/h, needed with %{{customdata[1]}}<extra></extra>",
    }


def _costs(curve: tuple[WarmCurvePoint, ...], floor: float, currency: str) -> dict[str, Any]:
    return _dots(curve, [point.cost_per_hour for point in curve], _COSTS, floor) | {
        "customdata": [f"{point.cost_per_hour:,.2f}" for point in curve],
        "hovertemplate": f"costs %{{customdata}} {currency}/h<extra></extra>",
    }


def _dots(points: Sequence[WarmCurvePoint], amounts: list[float], key: Key, floor: float) -> dict[str, Any]:
    symbol, size = _SYMBOLS[key.shape]
    return {
        "type": "scatter",
        "mode": "markers",
        "x": [point.nodes for point in points],
        "y": [_at(one, floor) for one in amounts],
        "name": key.label,
        "marker": {"symbol": symbol, "size": size, "color": key.colour, "line": {"width": 1.5, "color": "@surface"}},
        "cliponaxis": False,
    }


def _at(one: float, floor: float) -> float:
    return max(one, floor)


def _needed(point: WarmCurvePoint) -> str:
    within = "" if point.horizon_minutes is None else f" within {minutes(point.horizon_minutes)}"
    return f"{100 * point.probability_needed:.0f} %{within}"
