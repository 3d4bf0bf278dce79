"""``python -m docs.generators.screenshots [URL]``: pictures of the running product, taken by a real Chromium.

Start ``make run`` first. The pictures show whatever it serves; a generated workload is labelled on the page itself.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import urllib.request
from pathlib import Path

from playwright.sync_api import Browser, FloatRect, Page, ViewportSize, sync_playwright

IMAGES = Path(__file__).resolve().parent.parent / "images"
_VIEW: ViewportSize = {"width": 1280, "height": 800}
_EDGE = 20


def main(arguments: list[str]) -> int:
    """Exit code 4 where no Chromium is installed or nothing answers."""
    parser = argparse.ArgumentParser(prog="python -m docs.generators.screenshots", description=__doc__)
    parser.add_argument("url", nargs="?", default="http://127.0.0.1:8080", help="where gsa serves (%(default)s)")
    url = parser.parse_args(arguments).url.rstrip("/")
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        sys.stderr.write("no Chromium is installed; on Debian: apt-get install chromium\n")
        return 4
    try:
        pool = _first_pool(url)
    except OSError as error:
        sys.stderr.write(f"nothing answers at {url} ({error}); start it with: make run\n")
        return 4
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        for name, (address, section) in {
            "overview.png": (f"{url}/", None),
            "slice-length.png": (pool, "h-slices"),
            "demand.png": (pool, "h-demand"),
        }.items():
            _take(browser, address, section, IMAGES / name)
        browser.close()
    return 0


def _first_pool(url: str) -> str:
    """The address of the pool that needs attention first."""
    with urllib.request.urlopen(f"{url}/overview.json") as answer:  # noqa: S310 - an address given by hand
        return url + str(json.load(answer)["pools"][0]["url"])


def _take(browser: Browser, address: str, section: str | None, target: Path) -> None:
    """One page, or one section of it by the id of its heading."""
    page = browser.new_page(viewport=_VIEW, color_scheme="light")
    page.goto(address, wait_until="networkidle")
    page.screenshot(path=target, full_page=True, clip=None if section is None else _around(page, section))
    page.close()
    sys.stdout.write(f"written: docs/images/{target.name}\n")


def _around(page: Page, section: str) -> FloatRect | None:
    """The section with some of the page around it, so that nothing touches the edge of the picture."""
    box = page.locator(f"section[aria-labelledby={section}]").bounding_box()
    if box is None:
        return None
    return {
        "x": box["x"] - _EDGE,
        "y": box["y"] - _EDGE,
        "width": box["width"] + 2 * _EDGE,
        "height": box["height"] + 2 * _EDGE,
    }


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
