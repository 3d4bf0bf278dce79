"""The dashboard in a real Chromium: every page in every state, light and dark, wide and narrow."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

from advisor.domain.plans import Advice, Mode, PoolAdvice
from tests.e2e.charts import wait_for_charts
from tests.serving.fake_service import FakePages, FakeService
from tests.serving.fake_values import NOON, a_demand, a_pool, a_warm_plan, an_advice, some_jobs
from tests.serving.http import an_app, running

pytestmark = pytest.mark.browser

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
BARE = replace(
    a_pool("bare"),
    demand=replace(a_demand("bare"), horizons=()),
    warm=replace(a_warm_plan("bare"), curve=(), warm_gpus=0),
    changes=(),
    patch=None,
)
STATES = {
    "fresh": FakePages(),
    "stale": FakePages(now_is=NOON + timedelta(hours=3)),
    "no-advice": FakePages(advice_now=None),
    "no-pools": FakePages(advice_now=Advice(time=NOON, mode=Mode.OBSERVE, pools=())),
    "unreadable-history": FakePages(history_trouble="the database is locked"),
    "bare": FakePages(advice_now=an_advice(BARE), recent=()),
    "no-jobs": FakePages(jobs_now=()),
    "no-promises": FakePages(kept=(), models=()),
    "first-run": FakePages(kept=tuple(replace(day, replayed=True) for day in FakePages().kept[-3:])),
}
VIEWS = [
    *(
        ("fresh", path)
        for path in ("/", "/pools/a100", "/pools/l4-shared", "/jobs", "/jobs?q=none", "/models", "/nope")
    ),
    *(("fresh", f"/jobs/{job}") for job in ("vision%2Ftrain-21", "train-20", "train-19", "train-18", "train-17")),
    *(("stale", path) for path in ("/", "/pools/a100", "/jobs/train-20")),
    *(("no-advice", path) for path in ("/", "/pools/a100", "/jobs")),
    ("no-pools", "/"),
    ("unreadable-history", "/"),
    ("bare", "/"),
    ("bare", "/pools/bare"),
    ("no-jobs", "/jobs"),
    ("no-promises", "/models"),
    ("first-run", "/models"),
]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if CHROMIUM is None:
        pytest.skip("no Chromium on this machine; apt-get install chromium")
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield launched
        launched.close()


@pytest.fixture(scope="module")
def bases() -> Iterator[dict[str, str]]:
    """One running server a state."""
    apps = {state: running(an_app(FakeService(), pages)) for state, pages in STATES.items()}
    yield {state: app.__enter__() for state, app in apps.items()}
    for app in apps.values():
        app.__exit__(None, None, None)


@pytest.fixture(params=[("light", 1440), ("dark", 1440), ("light", 390), ("dark", 390)], ids=lambda p: f"{p[0]}-{p[1]}")
def context(request, browser) -> Iterator[BrowserContext]:
    scheme, width = request.param
    made = browser.new_context(color_scheme=scheme, viewport={"width": width, "height": 900})
    yield made
    made.close()


def opened(context: BrowserContext, base: str, path: str) -> tuple[Page, list[str]]:
    """A page with its charts drawn, and everything that went wrong on the way."""
    page, wrong = context.new_page(), []
    page.on("console", lambda message: wrong.append(f"console: {message.text}"))
    page.on("pageerror", lambda error: wrong.append(f"error: {error}"))
    page.on(
        "request", lambda asked: wrong.append(f"off the origin: {asked.url}") if _foreign(asked.url, base) else None
    )
    page.goto(base + path, wait_until="load")
    wait_for_charts(page)
    return page, wrong


def _foreign(url: str, base: str) -> bool:
    return not url.startswith((f"{base}/", "data:"))


CONTRAST = """() => {
  const channel = (c) => { c /= 255; return c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4; };
  const parsed = (text) => text.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => 0.2126 * channel(r) + 0.7152 * channel(g) + 0.0722 * channel(b);
  const behind = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const colour = parsed(getComputedStyle(at).backgroundColor);
      if (colour.length === 3 || colour[3] === 1) return colour;
    }
    return [255, 255, 255];
  };
  const faint = [];
  for (const element of document.querySelectorAll("body *:not(svg *):not(.plot *)")) {
    const own = [...element.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim());
    if (!own || !element.checkVisibility() || element.closest(".hidden")) continue;
    const style = getComputedStyle(element);
    const a = light(parsed(style.color)), b = light(behind(element));
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) faint.push(`${ratio.toFixed(2)}: ${element.textContent.trim().slice(0, 40)}`);
  }
  return faint;
}"""


@pytest.mark.parametrize("state, path", VIEWS)
def test_a_page_is_whole_quiet_readable_and_stays_on_its_origin(context, bases, state, path):
    """Charts drawn, no console message, nothing fetched from outside, nothing wider than the screen, contrast AA."""
    page, wrong = opened(context, bases[state], path)

    # Chromium itself reports the status of an error page; the page is no less designed for it.
    assert [w for w in wrong if "Failed to load resource" not in w] == []
    assert page.evaluate("document.documentElement.scrollWidth") <= page.viewport_size["width"]
    assert page.evaluate(CONTRAST) == []


def _many_words(pool: PoolAdvice) -> PoolAdvice:
    """With the longest names and figures that a real cluster may have."""
    classes = tuple(
        replace(pool.slice_plan.classes[0], name=name, minutes=127.5) for name in ("short", "long", "longest")
    )
    return replace(
        pool,
        pool="gpu-a100-80gb-spot-eu-central-1b",
        slice_plan=replace(pool.slice_plan, classes=classes),
        demand=a_demand(now_gpus=12_345.0),
        manifest_notes=("this pool's jobs all came from Slurm (production-cluster-of-the-institute)",),
    )


UID = "0f6c1d2e-7a4b-4c1f-9b7e-5d1a9c41d2e0"
WIDEST = FakePages(
    advice_now=replace(an_advice(_many_words(a_pool()), a_pool("l4")), cluster_assumed=True),
    jobs_now=tuple(
        replace(
            job, id=f"{UID}-{place}", user="somebody.with.a.long.name@example.org", name="train-large-language-model"
        )
        for place, job in enumerate(some_jobs())
    ),
)


@pytest.mark.parametrize("width", [390, 600, 768, 800, 979, 981, 1024, 1160, 1280, 1440])
def test_at_no_width_is_a_page_or_a_table_wider_than_its_place(browser, width):
    """Neither does the page scroll sideways, nor is a column cut off within it."""
    context = browser.new_context(viewport={"width": width, "height": 900})
    with running(an_app(FakeService(), WIDEST)) as base:
        for path in ("/", "/jobs", f"/jobs/{UID}-2", "/models", "/pools/gpu-a100-80gb-spot-eu-central-1b"):
            page, _ = opened(context, base, path)
            page.locator("details.days").evaluate_all("all => all.forEach(one => { one.open = true; })")
            wide = page.evaluate(WIDE)
            assert wide == [], path
            page.close()
    context.close()


WIDE = """() => {
  const root = document.documentElement;
  const wide = root.scrollWidth > root.clientWidth ? [`the page: ${root.scrollWidth}`] : [];
  for (const cell of document.querySelectorAll("main th, main td, main dd, main .stat > *")) {
    const head = cell.closest("thead");
    if (head && getComputedStyle(head).position === "absolute") continue;
    const place = (cell.closest(".card, .stat, tr") ?? root).getBoundingClientRect();
    const { right, width } = cell.getBoundingClientRect();
    if (width > 1 && right > place.right + 1) wide.push(`${cell.textContent.trim().slice(0, 40)}: ${right}`);
    if (cell.clientWidth > 1 && cell.scrollWidth > cell.clientWidth + 8) wide.push(`in ${cell.textContent.trim()}`);
  }
  for (const place of document.querySelectorAll(".scroll")) {
    if (place.scrollWidth > place.clientWidth) wide.push(`to be scrolled: ${place.scrollWidth}`);
  }
  return wide;
}"""


def test_charts_take_the_colours_of_the_theme_and_follow_the_switch(browser, bases):
    context = browser.new_context(color_scheme="light")
    page, wrong = opened(context, bases["fresh"], "/pools/a100")
    ink = "() => getComputedStyle(document.querySelector('.plot .xtick text')).fill"

    light = page.evaluate(ink)
    page.click("#theme")
    dark = page.evaluate(ink)
    page.reload(wait_until="load")
    wait_for_charts(page)

    assert light != dark
    assert page.evaluate(ink) == dark, "the choice is kept"
    assert wrong == []
    context.close()


def test_a_page_is_walked_with_the_keyboard_alone(browser, bases):
    page, _ = opened(browser.new_context(), bases["fresh"], "/pools/a100")

    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to content"
    page.keyboard.press("Enter")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('main') !== null")
    page.evaluate("document.addEventListener('focusin', event => { event.target.dataset.visited = 1; })")
    controls = page.locator("main a, main button, main pre")
    page.keyboard.press("Shift+Tab")
    for _ in range(controls.count() + 2):
        page.keyboard.press("Tab")
    assert controls.count() > 20
    assert [c for c in controls.all() if not c.get_attribute("data-visited")] == []
    page.context.close()


def test_help_opens_by_key_and_closes_again(browser, bases):
    page, _ = opened(browser.new_context(viewport={"width": 390, "height": 844}), bases["fresh"], "/pools/a100")
    button = page.locator("button.tip").first

    button.focus()
    page.keyboard.press("Enter")
    text = page.locator("[popover]:popover-open")
    assert text.inner_text().startswith("Recommended slice length")
    box = text.bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 390
    page.keyboard.press("Escape")
    assert page.locator("[popover]:popover-open").count() == 0
    page.context.close()


def test_the_manifest_is_copied(browser, bases):
    context = browser.new_context(permissions=["clipboard-read", "clipboard-write"])
    page, _ = opened(context, bases["fresh"], "/pools/a100")

    page.click("button.copy")
    page.locator("button.copy", has_text="Copied").wait_for()

    assert page.evaluate("navigator.clipboard.readText()").startswith("apiVersion: karpenter.sh/v1")
    context.close()


def test_a_page_reads_without_scripts(browser, bases):
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(bases["fresh"] + "/pools/a100")

    assert "15 min loses 13.9 GPU-minutes per 100 useful" in page.inner_text("main")
    context.close()


def test_every_control_has_a_name_and_headings_do_not_skip_a_level(browser, bases):
    context = browser.new_context()
    for path in ("/", "/pools/a100", "/jobs", "/jobs/train-20"):
        page, _ = opened(context, bases["fresh"], path)
        nameless = page.evaluate(
            "[...document.querySelectorAll('a, button, input')].filter(e => !(e.textContent.trim() || "
            "e.getAttribute('aria-label') || (e.labels && e.labels.length))).map(e => e.outerHTML)"
        )
        levels = page.evaluate("[...document.querySelectorAll('main h1, main h2, main h3')].map(h => +h.tagName[1])")
        assert nameless == []
        assert levels[0] == 1
        assert all(b - a <= 1 for a, b in pairwise(levels))
        ids = page.evaluate("[...document.querySelectorAll('[id]')].map(e => e.id).filter(i => !i.startsWith('clip'))")
        assert len(ids) == len(set(ids)), path
    context.close()
