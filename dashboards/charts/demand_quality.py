"""How good demand forecasts have been: the fan beside what came, skill by horizon, coverage of every level."""

from __future__ import annotations

from typing import Any

from advisor.domain.reports import DemandFan, HorizonScores
from dashboards.charts.figure import Chart, Key, axis, figure, line
from dashboards.formats import percent

__all__ = ["coverage_by_level", "fan_beside_truth", "skill_by_horizon"]

_CAME = Key("What came", "@ink", "line")
_MEDIAN = Key("P50 as forecast", "@accent", "line")
_OUTER = Key("P10 to P90", "@fan2", "area")
_TAIL = Key("P99", "@accent", "dash")
_MODEL = Key("Model against the best baseline", "@accent", "line")
_SERVED = Key("What was served", "@second", "line")
_NONE = Key("No skill", "@muted", "dots")
_PROMISED = Key("As promised", "@muted", "dots")
_BRACKET = Key("Below, and up to the quantile", "@accent", "area")
_CAPACITY_LEVELS = ("0.8", "0.9", "0.95", "0.99")
_STEP = {"shape": "hv", "width": 1.5}


def fan_beside_truth(fan: DemandFan) -> Chart | None:
    """The last days of one replay: quantiles as they would have been served, and the demand that came."""
    if not fan.times:
        return None
    times = [f"{moment:%Y-%m-%dT%H:%M:%SZ}" for moment in fan.times]

    def at(level: float) -> list[Any]:
        place = fan.levels.index(level)
        return [row[place] for row in fan.gpus]

    told = "%{y:.4~g} GPUs"
    data = [
        line((times, at(0.1)), "P10", "@fan2", {"shape": "hv", "width": 0}, hovertemplate=told),
        line((times, at(0.9)), "P90", "@fan2", {"shape": "hv", "width": 0}, fill="tonexty", fillcolor="@fan2")
        | {"hovertemplate": told},
        line((times, at(0.99)), "P99", "@accent", {**_STEP, "dash": "dash"}, hovertemplate=told),
        line((times, at(0.5)), "P50", "@accent", _STEP, hovertemplate=told),
        line((times, list(fan.came)), "What came", "@ink", _STEP, hovertemplate=told),
    ]
    layout = {
        "xaxis": axis("Time, UTC", type="date", tickformat="%H:%M\n%d %b"),
        "yaxis": axis("GPUs", rangemode="tozero"),
        "hovermode": "x unified",
    }
    inside = [low <= came <= high for low, came, high in zip(at(0.1), fan.came, at(0.9), strict=True)]
    return Chart(
        id=f"fan-{_slug(fan.pool)}-{fan.horizon_minutes}",
        title=f"{fan.pool}: {fan.horizon_minutes} min ahead",
        summary=f"In the days drawn, {percent(sum(inside) / len(inside))} of what came lay between P10 and P90.",
        keys=(_CAME, _MEDIAN, _OUTER, _TAIL),
        figure=figure(data, layout, height=260),
    )


def skill_by_horizon(pool: str, scores: dict[int, HorizonScores]) -> Chart | None:
    """Share of the best baseline's loss that the model saved, and that what was served saved, at every horizon."""
    minutes = sorted(h for h, one in scores.items() if one.skill is not None)
    if not minutes:
        return None
    names = [f"{h} min" for h in minutes]
    model = [100 * (scores[h].skill or 0.0) for h in minutes]
    served = [100 * _served_skill(scores[h]) for h in minutes]
    told = "%{y:.1f} % of the loss saved"
    points = {"mode": "lines+markers", "hovertemplate": told}
    data = [
        line((names, [0.0] * len(names)), _NONE.label, _NONE.colour, {"width": 1.5, "dash": "dot"}, hoverinfo="skip"),
        line((names, served), _SERVED.label, _SERVED.colour) | points,
        line((names, model), _MODEL.label, _MODEL.colour) | points,
    ]
    layout = {"xaxis": axis("Horizon", type="category"), "yaxis": axis("Skill, % of the loss saved")}
    best = max(minutes, key=lambda h: scores[h].skill or 0.0)
    return Chart(
        id=f"skill-{_slug(pool)}",
        title=f"{pool}: skill by horizon",
        summary=f"The model saved most at {best} min: {percent(scores[best].skill)} of the best baseline's loss.",
        keys=(_MODEL, _SERVED, _NONE),
        figure=figure(data, layout, height=260),
    )


def coverage_by_level(pool: str, scores: dict[int, HorizonScores]) -> Chart | None:
    """For every level the bracket of outcomes below the quantile and up to it, one bar a horizon."""
    if not scores:
        return None
    data: list[dict[str, Any]] = []
    missed = []
    for level in _CAPACITY_LEVELS:
        for horizon, one in sorted(scores.items()):
            below, upto = one.coverage[level]
            name = f"P{100 * float(level):g}, {horizon} min"
            missed += [name] if not below - 0.005 <= float(level) <= upto + 0.005 else []
            told = f"{name}: {percent(below)} below, {percent(upto)} up to it<extra></extra>"
            bar = {"type": "bar", "x": [name], "y": [100 * max(upto - below, 0.002)], "base": [100 * below]}
            data.append({**bar, "marker": {"color": "@accent"}, "hovertemplate": told, "name": name})
            data.append(_tick(name, 100 * float(level)))
    layout = {
        "xaxis": axis("Level and horizon", type="category", tickangle=-60, automargin=True),
        "yaxis": axis("Outcomes, %", range=[0, 101]),
        "barmode": "overlay",
    }
    told = f"Missed by more than half a point: {', '.join(missed)}." if missed else "Every bracket holds its level."
    return Chart(
        id=f"coverage-{_slug(pool)}",
        title=f"{pool}: coverage",
        summary=told,
        keys=(_BRACKET, _PROMISED),
        figure=figure(data, layout, height=320),
    )


def capacity_loss(losses: dict[str, float]) -> float:
    """Mean loss of the levels that capacity is decided by."""
    return sum(losses[level] for level in _CAPACITY_LEVELS) / len(_CAPACITY_LEVELS)


def best_baseline_loss(scores: HorizonScores) -> float:
    """The least mean loss of a baseline at the levels that capacity is decided by."""
    return min(capacity_loss(loss) for name, loss in scores.pinball.items() if name not in ("model", "served"))


def _served_skill(scores: HorizonScores) -> float:
    best = best_baseline_loss(scores)
    return 1.0 - capacity_loss(scores.pinball["served"]) / best if best > 0 else 0.0


def _tick(name: str, level: float) -> dict[str, Any]:
    marker = {"symbol": "line-ew", "size": 18, "line": {"width": 2, "color": "@ink"}}
    return {"type": "scatter", "mode": "markers", "x": [name], "y": [level], "marker": marker, "hoverinfo": "skip"}


def _slug(name: str) -> str:
    """A name as an element's id: what is not plain stands as its number, so that no two names meet."""
    return "".join(c if c.isascii() and c.isalnum() else f"-{ord(c):x}-" for c in name)
