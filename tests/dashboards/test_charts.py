from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.domain.forecasts import DurationDistribution
from advisor.domain.slices import CurvePoint
from dashboards.charts import (
    Mark,
    calibration_curve,
    coverage_by_week,
    demand_fan,
    duration_chart,
    error_by_duration,
    slice_cost,
    warm_nodes,
)
from dashboards.data import DemandPoint
from tests.dashboards.reports import a_duration_report
from tests.serving.fake_service import FakePages
from tests.serving.fake_values import NOON, a_demand, a_slice_class, a_warm_plan, durations_around

STYLES = (Path(__file__).parents[2] / "dashboards" / "static" / "style.css").read_text(encoding="utf-8")


def colours(value: Any) -> set[str]:
    if isinstance(value, str):
        return {value[1:]} if value.startswith("@") else set()
    if isinstance(value, dict):
        return set().union(*(colours(item) for item in value.values()))
    if isinstance(value, list | tuple):
        return set().union(*(colours(item) for item in value))
    return set()


def every_chart():
    recent = FakePages().recent_demand("a100", 6.0)
    return [
        slice_cost(a_slice_class(), 0),
        duration_chart("d", "Durations", durations_around(600.0), (Mark(30.0, "now", "@second"),)),
        demand_fan(recent, a_demand()),
        warm_nodes(a_warm_plan(), "USD"),
        calibration_curve(a_duration_report()),
        coverage_by_week(a_duration_report()),
        error_by_duration(a_duration_report()),
    ]


def trace(chart, name: str) -> dict[str, Any]:
    (found,) = [t for t in chart.figure["data"] if t["name"] == name]
    return found


def test_every_chart_is_plain_json_with_words_beside_it():
    for chart in every_chart():
        json.dumps(chart.figure, allow_nan=False)
        assert chart.summary.endswith(".")


def test_every_colour_of_a_chart_is_one_of_both_themes():
    of_both = set(re.findall(r"--(\w+): light-dark\(.+, .+\);", STYLES))

    for chart in every_chart():
        assert colours(chart.figure) | colours([key.colour for key in chart.keys]) <= of_both


def test_the_cost_curve_shows_the_chosen_point_the_one_in_use_and_what_is_not_allowed():
    chart = slice_cost(a_slice_class(), 0)

    assert trace(chart, "Recommended")["x"] == [15 * 60]
    assert trace(chart, "In use")["x"] == [30 * 60]
    assert trace(chart, "Not allowed")["x"] == [5 * 60]
    assert trace(chart, "Cost")["y"][0] is None, "the curve does not run through what is not allowed"
    assert [key.label for key in chart.keys] == ["Recommended", "In use", "Not allowed", "Rule of thumb, 51 min"]
    assert chart.figure["layout"]["shapes"][0]["x0"] == 51 * 60
    assert "15 min loses 13.9 GPU-minutes per 100 useful" in chart.summary


def test_the_curve_is_not_pressed_flat_by_a_far_too_short_length():
    absurd = CurvePoint(0.1, 50.0)
    chart = slice_cost(replace(a_slice_class(), curve=(absurd, *a_slice_class().curve)), 0)

    assert chart.figure["layout"]["yaxis"]["range"][1] < 100


def test_a_class_without_candidates_has_no_cost_chart():
    assert slice_cost(replace(a_slice_class(), curve=()), 0) is None
    assert slice_cost(replace(a_slice_class(), curve=(CurvePoint(5.0, math.inf, feasible=False),)), 0) is None


def test_a_binding_constraint_is_said_in_words():
    assert "bound by: urgent wait" in slice_cost(replace(a_slice_class(), binding_constraint="urgent wait"), 0).summary


def test_the_densities_add_up_to_one_and_the_survival_falls():
    chart = duration_chart("d", "Durations", durations_around(600.0))

    assert sum(trace(chart, "Likelihood")["y"]) == pytest.approx(1.0, abs=0.01)
    survival = trace(chart, "Still running")["y"]
    assert survival == sorted(survival, reverse=True)
    assert survival[0] > 99


def test_quantiles_and_marks_are_named_in_the_legend_and_drawn_where_they_lie():
    chart = duration_chart("d", "Durations", durations_around(600.0), (Mark(30.0, "really 30 s", "@second"),))

    assert [(key.label, key.shape) for key in chart.keys] == [
        ("P50 10 min", "line"),
        ("P90 47.2 min", "dash"),
        ("really 30 s", "line"),
    ]
    lines = [(shape["x0"], shape["line"]["color"]) for shape in chart.figure["layout"]["shapes"]]
    assert lines[0] == (pytest.approx(600.0), "@accent")
    assert lines[2] == (30.0, "@second")


def test_no_words_stand_in_a_plot_where_a_line_could_cross_them():
    for chart in every_chart():
        assert "annotations" not in chart.figure["layout"], chart.id


@given(st.floats(0.01, 1e7), st.floats(0.001, 3.0), st.floats(1e-3, 1e9))
def test_any_law_and_any_mark_can_be_drawn(median, spread, mark):
    law = DurationDistribution.point(median, spread)

    chart = duration_chart("d", "Durations", law, (Mark(mark, "really", "@second"),))

    json.dumps(chart.figure, allow_nan=False)
    times = trace(chart, "Likelihood")["x"]
    assert times == sorted(times)
    assert times[0] > 0


def test_the_fan_starts_at_the_demand_of_now_and_widens():
    chart = demand_fan((), a_demand())

    p90 = trace(chart, "P90")["y"]
    assert p90[0] == 148
    assert p90 == sorted(p90)
    assert len(p90) == 5, "now and the four near horizons; a day ahead is not joined to the hour"


def test_bands_are_darkest_beside_the_median():
    chart = demand_fan((), a_demand())

    shades = [t["fillcolor"] for t in chart.figure["data"] if "fillcolor" in t]
    assert shades == ["@fan2", "@fan1", "@fan1", "@fan2", "@fan3", "@fan3"]


def test_a_gap_in_telemetry_stays_a_gap():
    points = (DemandPoint(time=NOON - timedelta(minutes=5), running=None, pending=None),)

    chart = demand_fan(points, a_demand())

    assert trace(chart, "Running + pending")["y"] == [None]


def test_pending_that_is_not_known_leaves_the_running_ones():
    points = (DemandPoint(time=NOON, running=8.0, pending=None),)

    assert trace(demand_fan(points, a_demand()), "Running + pending")["y"] == [8.0]


def test_nothing_known_of_demand_is_no_chart():
    assert demand_fan((), replace(a_demand(), horizons=())) is None


def test_horizons_of_different_levels_are_joined_by_what_they_share():
    first, *rest = a_demand().horizons
    lone = replace(first, levels=(0.5, 0.9), gpus=(148.0, 150.0))

    chart = demand_fan((), replace(a_demand(), horizons=(lone, *rest)))

    assert [t["fillcolor"] for t in chart.figure["data"] if "fillcolor" in t] == ["@fan1"]


def test_the_worthwhile_nodes_stand_out():
    chart = warm_nodes(a_warm_plan(warm_nodes=2), "USD")

    assert trace(chart, "Saves, recommended")["x"] == [1, 2]
    assert trace(chart, "Saves, not worth it")["x"] == [3, 4, 5]
    assert "2 warm nodes are worth it" in chart.summary


def test_the_legend_of_warm_nodes_names_what_is_drawn_and_no_more():
    none, some = (warm_nodes(a_warm_plan(warm_nodes=nodes), "USD") for nodes in (0, 2))

    assert [key.label for key in none.keys] == ["Saves, not worth it", "Costs"]
    assert "No warm node is worth it" in none.summary
    assert [key.label for key in some.keys] == ["Saves, recommended", "Saves, not worth it", "Costs"]


def test_savings_a_hundredth_of_the_costs_are_told_apart():
    """A tenth of the axis at least lies between any two of 0.14, 0.48 and 8.42 USD, and all of them within it."""
    points = [
        replace(a_warm_plan().curve[0], nodes=1 + place, cost_per_hour=8.42, saving_per_hour=saving)
        for place, saving in enumerate((0.48, 0.14))
    ]
    chart = warm_nodes(replace(a_warm_plan(warm_nodes=0), curve=tuple(points)), "USD")

    low, high = chart.figure["layout"]["yaxis"]["range"]
    shares = [(math.log10(amount) - low) / (high - low) for amount in (0.14, 0.48, 8.42)]
    assert all(0.02 < share < 0.98 for share in shares)
    assert all(later - earlier > 0.1 for earlier, later in pairwise(shares))
    assert trace(chart, "Saves, not worth it")["y"] == [0.48, 0.14]
    assert trace(chart, "Costs")["y"] == [8.42, 8.42]


@given(st.lists(st.tuples(st.floats(0, 1e6), st.floats(0, 1e6)), min_size=1, max_size=12))
def test_any_costs_and_savings_can_be_drawn_and_the_axis_has_amounts(amounts):
    first = a_warm_plan().curve[0]
    curve = tuple(
        replace(first, nodes=1 + place, cost_per_hour=cost, saving_per_hour=saving)
        for place, (cost, saving) in enumerate(amounts)
    )

    chart = warm_nodes(replace(a_warm_plan(), curve=curve), "USD")

    json.dumps(chart.figure, allow_nan=False)
    assert len(chart.figure["layout"]["yaxis"]["ticktext"]) >= 1
    low, high = chart.figure["layout"]["yaxis"]["range"]
    assert all(10**low * 0.999 <= y <= 10**high for y in trace(chart, "Costs")["y"])


def test_a_plan_without_candidates_has_no_chart():
    assert warm_nodes(replace(a_warm_plan(), curve=()), "USD") is None
