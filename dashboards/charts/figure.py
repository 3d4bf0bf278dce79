"""What every chart shares: frame, axes, marks, and the words that stand in for the picture."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, Any

__all__ = ["Chart", "Key", "Mark", "axis", "duration_axis", "figure", "line", "mark_keys", "uprights"]

_HEIGHT = 300
_SHAPES = {"solid": "line", "dash": "dash", "dot": "dots"}
"""How the legend draws the dashes of a line."""
_MARGIN = {"l": 56, "r": 16, "t": 12, "b": 48}
_DURATION_TICKS = (
    (1.0, "1 s"),
    (10.0, "10 s"),
    (60.0, "1 min"),
    (600.0, "10 min"),
    (3600.0, "1 h"),
    (21_600.0, "6 h"),
    (86_400.0, "1 d"),
    (604_800.0, "1 wk"),
    (2_592_000.0, "30 d"),
    (31_536_000.0, "1 yr"),
)


@dataclass(frozen=True, slots=True)
class Key:
    """One entry of a chart's legend: what a colour and shape stand for."""

    label: Annotated[str, "What it stands for."]
    colour: Annotated[str, "Name of its colour."]
    shape: Annotated[str, "How it is drawn: line, dash, dots, thin, area, dot, diamond or cross."]


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A figure, and what it says in words for those who cannot or will not look at it."""

    id: Annotated[str, "Name of the chart on its page."]
    title: Annotated[str, "What the chart shows."]
    summary: Annotated[str, "What the chart says, in words."]
    keys: Annotated[tuple[Key, ...], "The legend; empty where one line says it all."]
    figure: Annotated[dict[str, Any], "The figure: data and layout as Plotly takes them, colours by name."]


@dataclass(frozen=True, slots=True)
class Mark:
    """A vertical line at ``x``, in a named colour, with what the legend calls it."""

    x: float | str
    label: str
    colour: str = "@ink"
    dash: str = "solid"


def figure(data: list[dict[str, Any]], layout: dict[str, Any], height: int = _HEIGHT) -> dict[str, Any]:
    """A figure in the product's frame: transparent, quiet grid, no legend of its own."""
    framed: dict[str, Any] = {
        "height": height,
        "margin": _MARGIN,
        "paper_bgcolor": "rgba(0,0,0,0)",
        "plot_bgcolor": "rgba(0,0,0,0)",
        "font": {"color": "@ink", "size": 13},
        "hoverlabel": {"bgcolor": "@surface", "bordercolor": "@line", "font": {"color": "@ink"}},
        "showlegend": False,
        "dragmode": False,
        **layout,
    }
    return {"data": data, "layout": framed}


def axis(title: str, **more: object) -> dict[str, Any]:
    """An axis with its unit in the title, and a grid that stays in the background."""
    return {
        "title": {"text": title, "font": {"color": "@muted", "size": 12}, "standoff": 8},
        "gridcolor": "@grid",
        "linecolor": "@line",
        "zeroline": False,
        "tickfont": {"color": "@muted", "size": 12},
        "fixedrange": True,
        **more,
    }


def duration_axis(title: str, low_seconds: float, high_seconds: float, **more: object) -> dict[str, Any]:
    """A logarithmic axis of seconds with ticks as people name durations."""
    ticks = [(at, text) for at, text in _DURATION_TICKS if low_seconds <= at <= high_seconds]
    return axis(
        title,
        type="log",
        tickvals=[at for at, _ in ticks],
        ticktext=[text for _, text in ticks],
        **more,
    )


def line(
    across: tuple[list[Any], list[Any]], name: str, colour: str, style: dict[str, Any] | None = None, **more: object
) -> dict[str, Any]:
    """A line trace in a named colour."""
    styled = {"color": colour, "width": 2, **(style or {})}
    return {"type": "scatter", "mode": "lines", "x": across[0], "y": across[1], "name": name, "line": styled, **more}


def uprights(marks: tuple[Mark, ...]) -> dict[str, Any]:
    """Layout of vertical lines over the whole height.

    They are named by :func:`mark_keys` in the legend: a name beside its line would sooner or later be crossed by
    another line, or by what the chart shows.
    """
    return {"shapes": [_upright(mark) for mark in marks]}


def mark_keys(marks: tuple[Mark, ...]) -> tuple[Key, ...]:
    """The entries of the legend that name ``marks``."""
    return tuple(Key(mark.label, mark.colour, _SHAPES[mark.dash]) for mark in marks)


def _upright(mark: Mark) -> dict[str, Any]:
    style = {"color": mark.colour, "width": 1.5, "dash": mark.dash}
    return {"type": "line", "xref": "x", "yref": "paper", "x0": mark.x, "x1": mark.x, "y0": 0, "y1": 1, "line": style}
