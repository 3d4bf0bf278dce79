"""The trade between cost and waiting: one curve a policy, one point a setting."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from advisor.domain.warm_reports import KEEP_ALIVE, WarmComparison, WarmPoint
from dashboards.charts.figure import Chart, Key, axis, figure, line

__all__ = ["policy_name", "setting_in_words", "wait_cost_frontier"]

_STYLES = {
    "advisor": Key("Advisor", "@accent", "line"),
    KEEP_ALIVE: Key("Keep-alive alone", "@second", "line"),
    "static": Key("Fixed fleet", "@soft", "dash"),
    "trailing_max": Key("Trailing maximum", "@muted", "dash"),
    "rise_quantile": Key("Quantile of recent rises", "@ink", "dots"),
    "clairvoyant": Key("Perfect foresight", "@muted", "dots"),
}
_NAMES = {"index_cautious": "Index rule, c = 0.5", "index_full": "Index rule, c = 1"}
_DASHES = {"line": "solid", "dash": "dash", "dots": "dot"}
_SETTINGS = {
    "consolidate_after_minutes": "consolidateAfter {:g} min",
    "gpus": "{:g} GPUs",
    "window_minutes": "window {:g} min",
    "waiting_ratio": "a waiting GPU-minute worth {:g} paid ones",
    "quantile": "quantile {:g}",
}
_DEAREST = 1.35


def policy_name(name: str) -> str:
    """A policy as people read it."""
    return _STYLES[name].label if name in _STYLES else _NAMES.get(name, name)


def setting_in_words(point: WarmPoint) -> str:
    """What a policy was set to."""
    return ", ".join(_SETTINGS.get(name, name + " {:g}").format(value) for name, value in point.setting.items())


def wait_cost_frontier(pool: str, number: int, comparison: WarmComparison) -> Chart:
    """Wait by cost of every policy of a pool; nearer to the lower left corner is better."""
    shown = {name: points for name, points in comparison.curves.items() if name in _STYLES}
    cheapest = min(point.cost for points in shown.values() for point in points)
    most = cheapest * _DEAREST
    data = [_curve(name, [p for p in points if p.cost <= most]) for name, points in reversed(shown.items())]
    layout = {
        "xaxis": axis("Node-minutes paid over wanted"),
        "yaxis": axis("Wait per GPU newly asked for, min", rangemode="tozero"),
        "hovermode": "closest",
    }
    return Chart(
        id=f"frontier-{number}",
        title=f"What waiting costs: {pool}",
        summary="Each curve is a policy and each point a setting of it; lower is less waiting for the same money.",
        keys=tuple(_STYLES[name] for name in shown),
        figure=figure(data, layout, height=380),
    )


def _curve(name: str, points: Sequence[WarmPoint]) -> dict[str, Any]:
    key = _STYLES[name]
    ordered = sorted(points, key=lambda point: point.cost)
    return line(
        ([p.cost for p in ordered], [p.wait_per_new_gpu_minutes for p in ordered]),
        key.label,
        key.colour,
        {"dash": _DASHES[key.shape], "width": 2.5 if name == "advisor" else 1.5},
        mode="lines+markers",
        customdata=[[setting_in_words(p), p.node_starts] for p in ordered],
        hovertemplate=f"{key.label}: cost %{{x:.3f}}, wait %{{y:.2f}} min<br>%{{customdata[0]}}, "
        "%{customdata[1]} node starts<extra></extra>",
    )
