"""What each further warm node costs and saves, and how many are worth it."""

from __future__ import annotations

from typing import Any

from advisor.domain.plans import WarmCurvePoint, WarmPlan
from advisor.domain.units import counted
from dashboards.charts.figure import Chart, Key, axis, figure, line
from dashboards.formats import minutes

__all__ = ["warm_nodes"]

_WORTH_IT = Key("Saves, recommended", "@accent", "area")
_NOT_WORTH_IT = Key("Saves, not worth it", "@fan2", "area")
_COSTS = Key("Costs", "@second", "line")


def _needed(point: WarmCurvePoint) -> str:
    within = "" if point.horizon_minutes is None else f" within {minutes(point.horizon_minutes)}"
    return f"{100 * point.probability_needed:.0f} %{within}"


def warm_nodes(plan: WarmPlan, currency: str) -> Chart | None:
    """Marginal cost and saving per hour of the first, second, ... warm node; None without candidates."""
    if not plan.curve:
        return None
    nodes = [point.nodes for point in plan.curve]
    chosen = plan.warm_gpus // plan.node_gpus
    bars = [_WORTH_IT if node <= chosen else _NOT_WORTH_IT for node in nodes]
    savings: dict[str, Any] = {
        "type": "bar",
        "x": nodes,
        "y": [point.saving_per_hour for point in plan.curve],
        "name": "Saves",
        "marker": {"color": [bar.colour for bar in bars]},
        "customdata": [_needed(point) for point in plan.curve],
        "hovertemplate": f"saves %{{y:.2f}} {currency}/h, needed with %{{customdata}}<extra></extra>",
    }
    costs = line(
        (nodes, [point.cost_per_hour for point in plan.curve]),
        _COSTS.label,
        _COSTS.colour,
        mode="lines+markers",
        hovertemplate=f"costs %{{y:.2f}} {currency}/h<extra></extra>",
    )
    layout = {
        "xaxis": axis(f"Warm node, of {counted(plan.node_gpus, 'GPU')} each", dtick=1),
        "yaxis": axis(f"{currency} per hour, of this node", rangemode="tozero"),
        "hovermode": "x unified",
        "bargap": 0.45,
    }
    summary = (
        f"{chosen or 'No'} warm {'nodes are' if chosen > 1 else 'node is'} worth it: "
        "bars are what a node saves in waiting, the line what it costs to keep."
    )
    return Chart(
        id="warm-nodes",
        title="What the next warm node is worth",
        summary=summary,
        keys=(*dict.fromkeys(bars), _COSTS),
        figure=figure([savings, costs], layout),
    )
