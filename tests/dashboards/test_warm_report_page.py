"""The report on warm capacity as one page: everything on it, nothing from outside, every field shown."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from advisor.domain.reports import RunProtocol
from advisor.domain.warm_reports import WarmComparison, WarmPoint, WarmReport
from dashboards.assets import Assets
from dashboards.charts.frontier import wait_cost_frontier
from dashboards.fields import explanations
from dashboards.pages import WarmReportPage, warm_report_page
from dashboards.render import Renderer
from dashboards.report import warm_report_html
from tests.builders import NOON
from tests.dashboards.recording import recorded
from tests.dashboards.test_duration_report_page import Elements
from training.warm_choice import Choice, comparison

KNOBS = {
    "keep_alive": "consolidate_after_minutes",
    "static": "gpus",
    "trailing_max": "window_minutes",
    "clairvoyant": "waiting_ratio",
    "index_full": "waiting_ratio",
    "rise_quantile": "quantile",
}
PROTOCOL = RunProtocol(
    data_digest="0123456789abcdef",
    rows=44_640,
    split_time=NOON,
    refits=9,
    seed=1,
    versions={"lightgbm": "4.7.0"},
    assumed=("<b>nodes</b> of 8 GPUs",),
)


def a_point(knob: str, place: int, level: float) -> WarmPoint:
    return WarmPoint(
        setting={knob: float(place)},
        cost=1.01 + 0.03 * place,
        mean_wait_minutes=level / (place + 1) / 100.0,
        p95_wait_minutes=5.0 - place,
        node_starts=100 + 50 * place,
        utilisation=0.9,
        wait_per_new_gpu_minutes=level / (place + 1),
        boot_share=0.004,
    )


def a_comparison() -> WarmComparison:
    curves = {
        name: tuple(a_point(knob, place, 3.0 / (number + 1)) for place in range(5))
        for number, (name, knob) in enumerate(KNOBS.items())
    }
    return comparison(curves, Choice("index_full", "it waited least before the split", {}))


@pytest.fixture(scope="module")
def report() -> WarmReport:
    one = a_comparison()
    return WarmReport(protocol=PROTOCOL, pools={"a <pool>": one, "b": one, "shared": one}, apart=one)


@pytest.fixture(scope="module")
def page(report) -> str:
    return warm_report_html(report)


def test_the_page_needs_nothing_but_itself_and_escapes_what_others_wrote(page):
    elements = Elements(page)
    assert {name for name in elements.named if not name.startswith("#")} == {"data:,"}
    assert len(elements.ids) == len(set(elements.ids))
    assert "a &lt;pool&gt;" in page
    assert "<b>nodes</b>" not in page


def test_every_field_is_shown_and_explained(report):
    read: set[tuple[str, str]] = set()
    context = warm_report_page(report)
    Renderer(Assets()).page("warm_report.html", recorded(context, read), WarmReportPage)
    declared = {(name, field) for name, texts in explanations(WarmReportPage).items() for field in texts}
    assert declared - read == set()


def test_every_pool_has_its_curves_and_its_table(report):
    context = warm_report_page(report)
    assert [pool.name for pool in context.pools] == ["a <pool>", "b", "shared", "apart"]
    pool = context.pools[0]
    assert pool.served == "Index rule, c = 1"
    assert pool.costs == ("1.05", "1.10")
    assert [row.policy for row in pool.rows][:2] == ["Advisor", "Keep-alive alone"]
    assert [setting.cost for setting in pool.settings] == ["1.010", "1.040", "1.070", "1.100", "1.130"]


def test_the_frontier_names_the_setting_of_each_point():
    chart = wait_cost_frontier("pool", 1, a_comparison())
    kept = next(trace for trace in chart.figure["data"] if trace["name"] == "Keep-alive alone")
    assert kept["customdata"][2] == ["consolidateAfter 2 min", 200]
    assert {key.label for key in chart.keys} == {trace["name"] for trace in chart.figure["data"]}


def test_what_costs_far_more_than_the_cheapest_is_left_out_of_the_picture():
    one = a_comparison()
    dear = replace(one.curves["static"][0], cost=9.0)
    chart = wait_cost_frontier("pool", 1, replace(one, curves={**one.curves, "static": (*one.curves["static"], dear)}))
    assert max(max(trace["x"]) for trace in chart.figure["data"] if trace["x"]) < 2.0


def test_a_generated_history_is_marked(report, page):
    assert "SYNTHETIC" not in page
    assert "SYNTHETIC" in warm_report_html(replace(report, protocol=replace(PROTOCOL, synthetic=True)))


def test_a_cost_that_no_setting_reaches_is_a_dash(report):
    one = a_comparison()
    curves = {**one.curves, "keep_alive": tuple(replace(p, cost=p.cost + 1.0) for p in one.curves["keep_alive"])}
    found = comparison(curves, Choice("index_full", "", {}))
    context = warm_report_page(replace(report, pools={"dear": found}, apart=None))
    kept = next(row for row in context.pools[0].rows if row.policy == "Keep-alive alone")
    assert kept.cells[0].wait == "\u2013"
    assert re.match(r"\d", kept.cells[-1].wait)
