"""``python -m docs.generators.screenshots [URL]``: pictures of the running product, taken by a real Chromium.

Start ``make run`` first. The pictures show whatever it serves; a generated workload is labelled on the page itself.
"""

from __future__ import annotations

import json
import shutil
import sys
import urllib.request
from pathlib import Path

from playwright.sync_api import Browser, ViewportSize, sync_playwright

IMAGES = Path(__file__).resolve().parent.parent / "images"
_VIEW: ViewportSize = {"width": 1280, "height": 800}


def main(arguments: list[str]) -> int:
    """Exit code 4 where no Chromium is installed."""
    url = (arguments or ["http://127.0.0.1:8080"])[0].rstrip("/")
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None:
        sys.stderr.write("no Chromium is installed; on Debian: apt-get install chromium\n")
        return 4
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        pool = _first_pool(url)
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
    if section is None:
        page.screenshot(path=target)
    else:
        page.locator(f"section[aria-labelledby={section}]").screenshot(path=target)
    page.close()
    sys.stdout.write(f"written: docs/images/{target.name}\n")


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
