"""What a pool wanted lately, and the fan of what it will want."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from advisor.domain.forecasts import DemandForecast, HorizonForecast
from dashboards.charts.figure import Chart, Key, Mark, axis, figure, line, mark_keys, uprights
from dashboards.data import DemandPoint
from dashboards.formats import gpus, minutes

__all__ = ["demand_fan"]

# Horizons up to here are joined to a fan; what lies between an hour and a day is not forecast, so not drawn.
_NEAR_MINUTES = 180

_HOVER = "%{y:.4~g} GPUs"
_TOTAL = Key("Running + pending", "@ink", "line")
_RUNNING = Key("Running", "@soft", "thin")
_P50 = Key("P50", "@accent", "line")
_P90 = Key("P90", "@accent", "dash")
_OTHERS = Key("Other quantiles", "@fan2", "area")
_FANS = ("@fan1", "@fan2", "@fan3")


def demand_fan(recent: tuple[DemandPoint, ...], forecast: DemandForecast) -> Chart | None:
    """Recent demand with the quantile fan of the near horizons; None where there is neither."""
    near = sorted((h for h in forecast.horizons if h.horizon_minutes <= _NEAR_MINUTES), key=lambda h: h.horizon_minutes)
    if not recent and not near:
        return None
    data = [*_past(recent), *_fan(near, forecast)]
    now = (Mark(_at(forecast.made_at), "Now", "@muted", "dot"),)
    layout = {
        "xaxis": axis("Time, UTC", type="date", tickformat="%H:%M\n%d %b"),
        "yaxis": axis("GPUs", rangemode="nonnegative"),
        "hovermode": "x unified",
        **uprights(now),
    }
    return Chart(
        id="demand-fan",
        title="Demand, lately and next",
        summary=_summary(near, forecast),
        keys=((_TOTAL, _RUNNING) if recent else ()) + ((_P50, _P90, _OTHERS) if near else ()) + mark_keys(now),
        figure=figure(data, layout, height=340),
    )


def _past(recent: tuple[DemandPoint, ...]) -> list[dict[str, Any]]:
    if not recent:
        return []
    times = [_at(point.time) for point in recent]
    running = [point.running for point in recent]
    total = [None if p.running is None else p.running + (p.pending or 0.0) for p in recent]
    step = {"shape": "hv"}
    return [
        line((times, running), "Running", "@soft", {**step, "width": 1.5}, hovertemplate=_HOVER),
        line((times, total), "Running + pending", "@ink", step, hovertemplate=_HOVER),
    ]


def _fan(near: list[HorizonForecast], forecast: DemandForecast) -> list[dict[str, Any]]:
    if not near:
        return []
    times = [_at(forecast.made_at + timedelta(minutes=minutes)) for minutes in (0, *(h.horizon_minutes for h in near))]
    # Horizons may be served by different predictors, so only the levels that all of them have are joined.
    levels = sorted(set.intersection(*(set(h.levels) for h in near)))
    rows = [[forecast.gpus_now, *(h.quantile(level) for h in near)] for level in levels]
    traces: list[dict[str, Any]] = []
    for low, high in zip(range(len(levels)), range(1, len(levels)), strict=False):
        traces += _band(times, rows[low], rows[high], _shade(levels[low], levels[high], levels))
    for level, name, dash in ((0.5, "P50", "solid"), (0.9, "P90", "dash")):
        if level in levels:
            row = rows[levels.index(level)]
            traces.append(line((times, row), name, "@accent", {"dash": dash}, hovertemplate=_HOVER))
    return traces


def _band(times: list[str], low: list[float], high: list[float], colour: str) -> list[dict[str, Any]]:
    unseen = {"width": 0}
    return [
        line((times, low), "", "@accent", unseen, hoverinfo="skip"),
        line((times, high), "", "@accent", unseen, hoverinfo="skip", fill="tonexty", fillcolor=colour),
    ]


def _shade(low: float, high: float, levels: list[float]) -> str:
    # The first band beside the median is the strongest, the outermost the faintest.
    between = [level for level in levels if min(high, 0.5) <= level <= max(low, 0.5)]
    return _FANS[min(max(len(between) - 1, 0), len(_FANS) - 1)]


def _summary(near: list[HorizonForecast], forecast: DemandForecast) -> str:
    if not near:
        return f"Demand is {gpus(forecast.gpus_now)} now; nothing is forecast for the next hours."
    last = near[-1]
    return (
        f"Demand is {gpus(forecast.gpus_now)} now; in {minutes(last.horizon_minutes)} it is above "
        f"{gpus(last.quantile(0.5))} with even odds, and above {gpus(last.quantile(0.9))} once in ten times."
    )


def _at(time: datetime) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S")
