"""Links between the pages lead somewhere, and every page can be reached from the first."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.docs.markdown_pages import DOCS, ROOT, anchors, blocks, links, markdown_files

PAGES = markdown_files()


def _names(page: Path) -> str:
    return str(page.relative_to(ROOT))


def _dead(page: Path) -> list[str]:
    dead = []
    for target in links(page.read_text(encoding="utf-8")):
        if target.startswith(("http://", "https://", "mailto:")):
            continue
        path, _, anchor = target.partition("#")
        aim = page if not path else (page.parent / path).resolve()
        if not aim.exists() or (anchor and anchor not in anchors(aim.read_text(encoding="utf-8"))):
            dead.append(target)
    return dead


@pytest.mark.parametrize("page", PAGES, ids=_names)
def test_links_of_a_page_lead_to_files_and_headings_that_exist(page):
    assert _dead(page) == []


def test_a_link_to_a_missing_page_or_heading_would_be_noticed(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("# Here\n[a](gone.md) [b](#there) [c](#here) ![d](gone.png)\n", encoding="utf-8")
    assert _dead(page) == ["gone.md", "#there", "gone.png"]


def _listed(page: Path) -> list[Path]:
    found = []
    for block in blocks(page.read_text(encoding="utf-8")):
        if block.info == "{toctree}":
            entries = [line.strip() for line in block.body.splitlines()]
            found += [(page.parent / f"{entry}.md").resolve() for entry in entries if entry and entry[0] != ":"]
    return found


def test_every_page_of_the_guide_stands_in_a_table_of_contents():
    reached, waiting = {DOCS / "index.md"}, [DOCS / "index.md"]
    while waiting:
        for page in _listed(waiting.pop()):
            assert page.exists(), f"a table of contents names {page}, which does not exist"
            if page not in reached:
                reached.add(page)
                waiting.append(page)
    assert {page for page in PAGES if DOCS in page.parents} == reached
