"""The report on durations in a real Chromium, opened as a file: light and dark, wide and narrow, and alone."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

from dashboards.report import duration_report_html
from tests.dashboards.reports import a_duration_report
from tests.e2e.charts import wait_for_charts

pytestmark = pytest.mark.browser

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
STICKS_OUT = "document.documentElement.scrollWidth > document.documentElement.clientWidth"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine; apt-get install chromium")
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield launched
        launched.close()


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Addresses of files by how many predictors or jobs they have."""
    folder: Path = tmp_path_factory.mktemp("reports")
    made = {
        "four": a_duration_report(),
        "two": a_duration_report(predictors=("median_of_5", "model"), synthetic=True),
        "none": a_duration_report(0),
    }
    for name, report in made.items():
        (folder / f"{name}.html").write_text(duration_report_html(report), encoding="utf-8")
    return {name: (folder / f"{name}.html").as_uri() for name in made}


@pytest.fixture(params=[("light", 1280), ("dark", 1280), ("light", 390), ("dark", 390)], ids=lambda p: f"{p[0]}-{p[1]}")
def page(request: pytest.FixtureRequest, browser: Browser) -> Iterator[Page]:
    scheme, width = request.param
    context = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 900}, offline=True)
    yield context.new_page()
    context.close()


@pytest.mark.parametrize("name", ["four", "two", "none"])
def test_the_report_draws_itself_without_a_server_and_fits_its_window(page: Page, reports, name) -> None:
    wrong: list[str] = []
    page.on("console", lambda message: wrong.append(message.text))
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.on("request", lambda asked: None if asked.url.startswith(("file:", "data:")) else wrong.append(asked.url))

    page.goto(reports[name], wait_until="load")
    wait_for_charts(page)

    assert wrong == []
    assert page.locator(".plot").count() == (0 if name == "none" else 3)
    assert not page.evaluate(STICKS_OUT)


def test_the_theme_can_be_switched_and_the_charts_follow(page: Page, reports) -> None:
    page.goto(reports["two"], wait_until="load")
    wait_for_charts(page)
    ink = "getComputedStyle(document.querySelector('.xtick text')).fill"
    before = page.evaluate(ink)

    page.locator("#theme").click()

    expect(page.locator(".xtick text").first).not_to_have_css("fill", before)
