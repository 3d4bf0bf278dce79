"""The glossary defines what the code speaks of."""

from __future__ import annotations

import importlib
import inspect
import pkgutil

import advisor.domain
from tests.docs.markdown_pages import DOCS, inline_codes


def _domain_classes() -> set[str]:
    classes = set()
    for module in pkgutil.iter_modules(advisor.domain.__path__):
        found = importlib.import_module(f"advisor.domain.{module.name}")
        classes |= {name for name in found.__all__ if inspect.isclass(getattr(found, name))}
    return classes


def test_every_value_of_the_domain_is_named_by_the_glossary():
    named = set(inline_codes((DOCS / "glossary.md").read_text(encoding="utf-8")))
    assert _domain_classes() - named == set()


def test_the_glossary_names_no_value_that_is_gone():
    text = (DOCS / "glossary.md").read_text(encoding="utf-8")
    lines = [line for line in text.split("\n\n") if line.startswith("In the code:")]
    named = {name for line in lines for name in inline_codes(line)}
    assert named - _domain_classes() == set()
