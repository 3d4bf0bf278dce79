"""The worked numbers of the explanations are what the code computes."""

from __future__ import annotations

import doctest

import pytest

from tests.docs.markdown_pages import DOCS, blocks

PAGES = sorted(page for folder in ("explanation", "designs") for page in (DOCS / folder).glob("*.md"))


def _examples(text: str) -> str:
    return "\n".join(block.body for block in blocks(text) if block.info == "pycon")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_examples_of_a_page_print_what_it_says(page):
    examples = _examples(page.read_text(encoding="utf-8"))
    parsed = doctest.DocTestParser().get_doctest(examples, {}, page.name, str(page), 0)
    found: list[str] = []
    result = doctest.DocTestRunner(verbose=False).run(parsed, out=found.append)
    assert result.failed == 0, "".join(found)


def test_the_pages_hold_examples_at_all():
    assert sum(_examples(page.read_text(encoding="utf-8")).count(">>>") for page in PAGES) > 20
