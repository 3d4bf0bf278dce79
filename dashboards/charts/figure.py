"""What every chart shares: frame, axes, marks, and the words that stand in for the picture."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Annotated, Any

__all__ = ["Chart", "Key", "Mark", "axis", "duration_axis", "figure", "line", "marked", "marked_above"]

_HEIGHT = 300
_LABEL_HEIGHT = 17
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
    keys: Annotated[tuple[Key, ...], "The legend; empty where labels stand in the picture."]
    figure: Annotated[dict[str, Any], "The figure: data and layout as Plotly takes them, colours by name."]


@dataclass(frozen=True, slots=True)
class Mark:
    """A labelled vertical line at ``x``, in a named colour."""

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


def marked(marks: tuple[Mark, ...], *, logarithmic: bool = False) -> dict[str, Any]:
    """Layout of vertical marks over the whole height, their labels in the plot."""
    return {
        "shapes": [_upright(mark) for mark in marks],
        "annotations": [_label(mark, logarithmic) for mark in marks],
    }


def marked_above(marks: tuple[Mark, ...], height: int) -> dict[str, Any]:
    """Layout of marks on a logarithmic axis of a figure of that height, their labels above the plot.

    Labels stand on as many levels as there are marks, so that close neighbours never meet; each line
    reaches up to its own.
    """
    layout = marked(marks, logarithmic=True)
    margin = _MARGIN | {"t": 16 + _LABEL_HEIGHT * len(marks)}
    plot = height - margin["t"] - margin["b"]
    for level, (shape, label) in enumerate(zip(layout["shapes"], layout["annotations"], strict=True)):
        lift = _LABEL_HEIGHT * (len(marks) - 1 - level)
        shape["y1"] = 1 + (lift + _LABEL_HEIGHT) / plot
        label |= {"yanchor": "bottom", "yshift": lift}
    return layout | {"height": height, "margin": margin}


def _upright(mark: Mark) -> dict[str, Any]:
    style = {"color": mark.colour, "width": 1.5, "dash": mark.dash}
    return {"type": "line", "xref": "x", "yref": "paper", "x0": mark.x, "x1": mark.x, "y0": 0, "y1": 1, "line": style}


def _label(mark: Mark, logarithmic: bool) -> dict[str, Any]:
    # On a logarithmic axis Plotly places shapes by the value but annotations by its logarithm.
    at = math.log10(mark.x) if logarithmic and not isinstance(mark.x, str) else mark.x
    return {
        "x": at,
        "xref": "x",
        "y": 1,
        "yref": "paper",
        "text": mark.label,
        "showarrow": False,
        "xanchor": "left",
        "yanchor": "top",
        "xshift": 4,
        "font": {"color": mark.colour, "size": 12},
    }
