"""The report on durations as one page: everything on it, nothing from outside, nothing unescaped."""

from __future__ import annotations

import math
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from advisor.domain.reports import DurationReport
from advisor.errors import Defect
from dashboards.assets import Assets
from dashboards.charts import calibration_curve, coverage_by_week, error_by_duration
from dashboards.charts.quality import _chance_band, factor_off
from dashboards.fields import explanations
from dashboards.pages import DurationReportPage, duration_report_page
from dashboards.render import Renderer
from dashboards.report import duration_report_html
from tests.dashboards.recording import recorded
from tests.dashboards.reports import a_duration_report


class Elements(HTMLParser):
    """What a page names in its elements' attributes, and which elements it has."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.named: list[str] = []
        self.ids: list[str] = []
        self.elements: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append(tag)
        given = dict(attrs)
        self.named += [value for name in ("src", "href", "action", "data") if (value := given.get(name)) is not None]
        self.ids += [value for name, value in attrs if name == "id" and value is not None]


@pytest.fixture(scope="module")
def report() -> DurationReport:
    return a_duration_report()


@pytest.fixture(scope="module")
def page(report) -> str:
    return duration_report_html(report)


def trace(chart, name):
    (found,) = [t for t in chart.figure["data"] if t["name"] == name]
    return found


def test_the_page_needs_nothing_but_itself(page):
    elements = Elements(page)

    assert {name for name in elements.named if not name.startswith("#")} == {"data:,"}
    assert {name[1:] for name in elements.named if name.startswith("#")} <= set(elements.ids)
    assert "default-src 'none'" in page
    assert page.count("Plotly.react(") >= 1
    assert "plotly.js v" in page
    assert "/static/" not in page
    assert not re.search(r"@import|url\(", Assets().text("style.css"))


def test_every_field_of_the_page_is_shown_and_explained(report):
    read: set[tuple[str, str]] = set()
    for one in (report, a_duration_report(0)):
        context = recorded(duration_report_page(one), read)
        Renderer(Assets()).page("duration_report.html", context, DurationReportPage)

    declared = {(kind, field) for kind, texts in explanations(DurationReportPage).items() for field in texts}
    assert declared - read == set()
    for kind, texts in explanations(DurationReportPage).items():
        for field, text in texts.items():
            assert text.endswith("."), f"{kind}.{field}: {text!r}"


def test_no_name_is_given_to_two_elements(page):
    ids = Elements(page).ids
    assert sorted(set(ids)) == sorted(ids)


def test_what_comes_from_outside_is_text_and_never_markup():
    evil = "</script><img src=x onerror=alert(1)>"
    page = duration_report_html(a_duration_report(60, assumed=(evil,), data_digest=evil, versions={evil: "1"}))

    assert evil not in page
    assert page.count("&lt;/script&gt;&lt;img") == 3
    assert "img" not in Elements(page).elements


def test_a_file_that_would_end_its_element_is_not_put_inside_a_page(monkeypatch):
    assets = Assets()
    asset = assets.get("page.js")
    monkeypatch.setitem(asset.__dict__, "content", b"const end = '</script>';")

    with pytest.raises(Defect, match="holds the end of an element"):
        assets.text("page.js")


def test_a_generated_history_is_labelled_and_a_real_one_is_not(page):
    assert "SYNTHETIC" in duration_report_html(a_duration_report(60, synthetic=True))
    assert "SYNTHETIC</strong>" not in page


def test_a_report_on_no_jobs_says_so_and_how_it_was_measured():
    page = duration_report_html(a_duration_report(0))

    assert "Nothing could be scored" in page
    assert "0123456789abcdef" in page
    assert 'data-chart="' not in page


@pytest.mark.parametrize("predictors", [("median_of_5", "model"), ("median_of_5", "model", "champion")])
def test_everybody_who_answered_stands_in_every_table(predictors):
    context = duration_report_page(a_duration_report(predictors=predictors))

    assert len(context.predictors) == len(predictors)
    assert {len(row.values) for table in context.measures for row in table.rows} == {len(predictors)}
    assert {len(row.cells) for grouping in context.groupings for row in grouping.rows} == {len(predictors)}
    assert [one.age for one in context.running] == ["10 min", "1 h", "6 h"]
    assert {tuple(row.predictor for row in one.rows) for one in context.running} == {context.predictors}


def test_the_best_is_marked_and_of_coverage_that_is_the_nearest_to_the_promise(report):
    rows = {row.label: row for table in duration_report_page(report).measures for row in table.rows}
    scores = list(report.scores.values())

    assert rows["CRPS"].best == int(np.argmin([s.crps_log for s in scores]))
    assert rows["Within a factor of 2"].best == int(np.argmax([s.within_2x for s in scores]))
    assert rows["Ended by P80"].best == int(np.argmin([abs(s.coverage["0.8"] - 0.8) for s in scores]))
    assert rows["Crossing answers"].best is None, "all are level"


def test_the_headline_is_of_who_is_served_beside_the_other():
    by_model = duration_report_page(a_duration_report(served="model"))
    by_floor = duration_report_page(a_duration_report(served="median_of_5"))

    assert by_model.headlines[0].value == by_floor.headlines[0].note.split()[-1]
    assert by_floor.headlines[0].note.startswith("model ")
    assert (by_model.served, by_floor.served) == ("Model", "Median of five")


def test_groups_are_named_as_people_say_them(report):
    names = {g.id: [row.name for row in g.rows] for g in duration_report_page(report).groupings}

    assert names["history"] == ["Warm", "Cold"]
    assert names["key"] == ["Same user and GPU count", "Same user", "Same GPU count", "Any job at all"]
    assert names["gpus"] == ["0.25 GPU", "1 GPU", "2 GPUs", "8 GPUs", "16 GPUs"]
    assert names["decade"][:4] == [
        "1 to 10 s",
        "100 to 1,000 s",
        "17\u00a0min to 2.8\u00a0h",
        "2.8\u00a0h to 28\u00a0h",
    ]


def test_the_calibration_curve_is_the_measured_one_between_its_fixed_ends(report):
    chart = calibration_curve(report)

    model = trace(chart, "Model")
    assert model["x"][0] == model["y"][0] == 0.0
    assert model["x"][-1] == model["y"][-1] == 100.0
    assert model["y"][1:-1] == pytest.approx([100 * share for share in report.scores["model"].reliability.values()])
    assert trace(chart, "As promised")["x"] == trace(chart, "As promised")["y"] == [0, 100]


def test_a_week_without_jobs_is_a_gap_in_coverage_and_in_its_band(report):
    chart = coverage_by_week(report)

    band, model = trace(chart, "By chance alone, 19 weeks in 20"), trace(chart, "Model")
    assert [place for place, y in enumerate(model["y"]) if y is None] == [2]
    assert [place for place, y in enumerate(band["y"]) if y is None] == [2]
    assert model["customdata"] == report.scores["model"].n_by_week
    assert model["x"][0] == "2026-03-06T00:00:00", "the middle of the week that begins with the split"
    lowest = min(y for y in [*model["y"], *trace(chart, "Median of five")["y"]] if y is not None)
    assert chart.figure["layout"]["yaxis"]["range"][0] < lowest
    assert "of 3 weeks" in chart.summary


@pytest.mark.parametrize("count,level", [(1, 0.9), (7, 0.9), (60, 0.8), (700, 0.9), (20_000, 0.9)])
def test_the_band_of_chance_holds_what_chance_does(count, level):
    low, high = _chance_band(count, level)

    hits = np.random.default_rng(8).binomial(count, level, size=40_000) / count
    assert np.mean(hits < low) <= 0.025 + 0.003
    assert np.mean(hits > high) <= 0.025 + 0.003
    assert np.mean(hits <= low) >= 0.025 - 0.003
    assert np.mean(hits >= high) >= 0.025 - 0.003


def test_errors_stand_over_their_decades_with_a_gap_where_no_job_was(report):
    model = trace(error_by_duration(report), "Model")

    assert model["x"][:5] == [1.0, 10.0, None, 100.0, 1000.0]
    assert model["y"][0] == model["y"][1] == report.by_decade["model"]["1"].log_mae
    assert model["y"][2] is None


@pytest.mark.parametrize(
    "error,shown",
    [(None, "\u2013"), (0.0, "\u00d71.00"), (math.log(2.6), "\u00d72.60"), (math.log(1234), "\u00d71,234")],
)
def test_an_error_is_shown_as_the_factor_that_it_is(error, shown):
    assert factor_off(error) == shown
