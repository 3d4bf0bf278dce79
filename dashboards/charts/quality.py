"""How good duration forecasts have been: calibration, coverage from week to week, error by what came of the jobs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from advisor.domain.reports import DurationReport, DurationScores
from advisor.domain.units import counted
from dashboards.charts.figure import Chart, Key, axis, duration_axis, figure, line
from dashboards.formats import percent

__all__ = ["calibration_curve", "coverage_by_week", "error_by_duration", "factor_off", "predictor_name"]

_NAMES = {"median_of_5": "Median of five", "model": "Model", "champion": "Champion", "challenger": "Challenger"}
_STYLES = {
    "model": ("@accent", "line"),
    "median_of_5": ("@soft", "dash"),
    "champion": ("@second", "line"),
    "challenger": ("@ink", "dash"),
}
_OTHER = ("@ink", "line")
_PROMISED = Key("As promised", "@muted", "dots")
_BAND = Key("By chance alone, 19 weeks in 20", "@fan2", "area")
_FEW_TICKS = ((1.0, "1 s"), (60.0, "1 min"), (3600.0, "1 h"), (86_400.0, "1 d"), (2_592_000.0, "30 d"))
_WEEK = timedelta(days=7)
_FACTORS = (1.0, 1.2, 1.5, 2.0, 3.0, 5.0, 10.0, 20.0, 50.0, 100.0, 300.0, 1000.0, 10_000.0, 100_000.0)


def predictor_name(name: str) -> str:
    """A predictor as people read it."""
    return _NAMES.get(name, name)


def factor_off(log_error: float | None) -> str:
    """A mean error of ln seconds as the factor that it is, with a sign of multiplication before it."""
    if log_error is None:
        return "\u2013"
    factor = math.exp(log_error)
    return f"\u00d7{factor:,.0f}" if factor >= 99.5 else f"\u00d7{factor:#.3g}".rstrip(".")


def calibration_curve(report: DurationReport) -> Chart | None:
    """The share of jobs that ended by every promised quantile; None where nothing was scored."""
    curves = {name: _curve(scores) for name, scores in report.scores.items() if scores.reliability}
    if not curves:
        return None
    whole: tuple[list[Any], list[Any]] = ([0, 100], [0, 100])
    data = [line(whole, _PROMISED.label, _PROMISED.colour, {"width": 1.5, "dash": "dot"}, hoverinfo="skip")]
    for name, curve in reversed(curves.items()):
        told = f"{predictor_name(name)}: %{{y:.1f}} % ended by their P%{{x:.0f}}<extra></extra>"
        data.append(_drawn(name, curve, hovertemplate=told))
    layout = {
        "xaxis": axis("Promised, % of jobs", range=[0, 100], dtick=20, constrain="domain"),
        "yaxis": axis("Ended by then, % of jobs", range=[0, 100], dtick=20),
    }
    return Chart(
        id="calibration",
        title="Calibration curve",
        summary=_said_of_curve(report.served, report.scores),
        keys=(*(_key(name) for name in curves), _PROMISED),
        figure=figure(data, layout, height=340),
    )


def coverage_by_week(report: DurationReport, level: str = "0.9") -> Chart | None:
    """The share of each week's jobs that ended by the quantile at ``level``, with what chance alone would do to it.

    None where nothing was scored, or no moment of the split is known.
    """
    first, shown = report.protocol.split_time, {n: s for n, s in report.scores.items() if s.n_by_week}
    if first is None or not shown:
        return None
    counts = next(iter(shown.values())).n_by_week
    middles = [_day(first + (week + 0.5) * _WEEK) for week in range(len(counts))]
    bands = [_chance_band(count, float(level)) for count in counts]
    promised = 100 * float(level)
    data = [_bars(middles, bands), _level(middles, first, promised)]
    for name, scores in reversed(shown.items()):
        shares = [None if share is None else 100 * share for share in scores.coverage_by_week[level]]
        told = f"{predictor_name(name)}: %{{y:.1f}} %, jobs: %{{customdata:,}}<extra></extra>"
        marker = {"size": 6, "color": _STYLES.get(name, _OTHER)[0]}
        dotted = {"mode": "lines+markers", "marker": marker, "customdata": counts, "hovertemplate": told}
        data.append(_drawn(name, (middles, shares), **dotted))
    lowest = min([100 * low for low, _ in filter(None, bands)] + [y for d in data[2:] for y in d["y"] if y is not None])
    layout = {
        "xaxis": axis("Submitted in the week around, UTC", type="date", tickformat="%d %b\n%Y", nticks=6),
        "yaxis": axis(f"Ended by their P{promised:g}, % of jobs", range=[max(5 * math.floor(lowest / 5) - 5, 0), 101]),
        "bargap": 0,
        "margin": {"l": 56, "r": 16, "t": 12, "b": 64},
    }
    return Chart(
        id="coverage-by-week",
        title=f"Coverage of P{promised:g} by week",
        summary=_said_of_weeks(report.served, shown, bands, level),
        keys=(*(_key(name) for name in shown), Key(f"Promised {promised:g} %", "@muted", "dots"), _BAND),
        figure=figure(data, layout, height=340),
    )


def error_by_duration(report: DurationReport) -> Chart | None:
    """How far off the medians were, by the decade of the duration that came; None where nothing was scored."""
    tables = {name: table for name, table in report.by_decade.items() if table}
    if not tables:
        return None
    lows = sorted({float(decade) for table in tables.values() for decade in table})
    data = [_stepped(name, tables[name]) for name in reversed(tables)]
    highest = max(y for trace in data for y in trace["y"] if y is not None)
    ticks = [factor for factor in _FACTORS if math.log(factor) <= 1.1 * highest]
    layout = {
        "xaxis": duration_axis("Actual duration", lows[0], lows[-1] * 10) | _ticks(lows[0], lows[-1] * 10),
        "yaxis": axis(
            "Off by a factor of",
            automargin=True,
            range=[0, 1.1 * highest],
            tickvals=[math.log(factor) for factor in _spaced(ticks, 1.1 * highest)],
            ticktext=[f"\u00d7{factor:,g}" for factor in _spaced(ticks, 1.1 * highest)],
        ),
    }
    return Chart(
        id="error-by-duration",
        title="Error by duration",
        summary=(
            "Sorted by what came of the jobs, which nobody could know beforehand: even a perfect forecast is too high "
            "for what turned out short and too low for what turned out long. Compare the predictors with each other."
        ),
        keys=tuple(_key(name) for name in tables),
        figure=figure(data, layout, height=320),
    )


def _ticks(low: float, high: float) -> dict[str, Any]:
    # Few enough that they stay level on a phone.
    shown = [(at, text) for at, text in _FEW_TICKS if low <= at <= high]
    return {"tickvals": [at for at, _ in shown], "ticktext": [text for _, text in shown]} if len(shown) > 1 else {}


def _spaced(factors: Sequence[float], highest: float) -> list[float]:
    """Those of ``factors`` whose labels do not touch."""
    kept: list[float] = []
    for factor in factors:
        if not kept or math.log(factor) - math.log(kept[-1]) >= 0.1 * highest:
            kept.append(factor)
    return kept


def _curve(scores: DurationScores) -> tuple[list[Any], list[Any]]:
    levels = [100 * float(level) for level in scores.reliability]
    return [0.0, *levels, 100.0], [0.0, *(100 * share for share in scores.reliability.values()), 100.0]


def _drawn(name: str, across: tuple[list[Any], list[Any]], **more: object) -> dict[str, Any]:
    colour, shape = _STYLES.get(name, _OTHER)
    return line(across, predictor_name(name), colour, {"dash": "dash" if shape == "dash" else "solid"}, **more)


def _key(name: str) -> Key:
    return Key(predictor_name(name), *_STYLES.get(name, _OTHER))


def _bars(middles: list[str], bands: Sequence[tuple[float, float] | None]) -> dict[str, Any]:
    """One bar a week rather than an area, so that a week without jobs is a gap."""
    return {
        "type": "bar",
        "name": _BAND.label,
        "x": middles,
        "base": [None if band is None else 100 * band[0] for band in bands],
        "y": [None if band is None else 100 * (band[1] - band[0]) for band in bands],
        "width": _WEEK.total_seconds() * 1000,
        "marker": {"color": "@fan2", "line": {"width": 0}},
        "hoverinfo": "skip",
    }


def _level(middles: list[str], first: datetime, promised: float) -> dict[str, Any]:
    ends = [_day(first), _day(first + len(middles) * _WEEK)]
    return line((ends, [promised] * 2), "Promised", "@muted", {"width": 1.5, "dash": "dot"}, hoverinfo="skip")


def _stepped(name: str, table: dict[str, DurationScores]) -> dict[str, Any]:
    """One level stretch a decade; a decade without jobs is a gap."""
    across: list[float | None] = []
    up: list[float | None] = []
    words: list[str] = []
    for decade, scores in table.items():
        low = float(decade)
        if across and across[-1] is not None and not math.isclose(across[-1], low):
            across, up, words = [*across, None], [*up, None], [*words, ""]
        across += [low, low * 10]
        up += [scores.log_mae, scores.log_mae]
        words += [f"{factor_off(scores.log_mae)} on {counted(scores.n, 'job')}"] * 2
    told = f"{predictor_name(name)}: %{{customdata}}<extra></extra>"
    return _drawn(name, (across, up), customdata=words, hovertemplate=told)


def _chance_band(count: int, level: float) -> tuple[float, float] | None:
    """Where the share of hits among ``count`` independent jobs lies in 95 % of weeks if each is hit with ``level``.

    The 2.5 % and 97.5 % quantiles of the binomial distribution, None where there are no jobs.
    """
    if not count:
        return None
    hits = np.arange(1, count + 1)
    ratios = np.log((count - hits + 1) / hits) + math.log(level / (1 - level))
    logs = count * math.log(1 - level) + np.concatenate([[0.0], np.cumsum(ratios)])
    cdf = np.cumsum(np.exp(logs))
    return float(np.searchsorted(cdf, 0.025)) / count, min(float(np.searchsorted(cdf, 0.975)) / count, 1.0)


def _said_of_curve(served: str, scores: dict[str, DurationScores]) -> str:
    gaps = [abs(share - float(level)) for level, share in scores[served].reliability.items()]
    return (
        f"On the diagonal, promises are kept. {predictor_name(served)}, which is served, is off by "
        f"{percent(float(np.mean(gaps)))} of jobs on average over the levels, and by {percent(max(gaps))} at the worst."
    )


def _said_of_weeks(
    served: str, shown: dict[str, DurationScores], bands: Sequence[tuple[float, float] | None], level: str
) -> str:
    pairs = [
        (share, band)
        for share, band in zip(shown[served].coverage_by_week[level], bands, strict=True)
        if share is not None and band is not None
    ]
    inside = sum(low <= share <= high for share, (low, high) in pairs)
    return (
        f"{predictor_name(served)} lies within the band in {inside} of {len(pairs)} "
        f"{'week' if len(pairs) == 1 else 'weeks'}. People submit in bursts of "
        "jobs that end alike, so that even an honest forecast leaves a band made for independent jobs more often."
    )


def _day(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S")
