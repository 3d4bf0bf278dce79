"""The few pieces of Markdown that the reference pages are made of."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

__all__ = ["code", "document", "plain", "table"]

_ROLE = re.compile(r":\w+:`~?(?:[\w.]*\.)?(\w+)`")


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A pipe table; line breaks and pipes inside a cell are made harmless."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(_cell(cell) for cell in line) + " |" for line in lines)


def code(text: str) -> str:
    """``text`` as inline code, nothing for nothing."""
    return f"`{text}`" if text else ""


def plain(docstring: str | None) -> str:
    """A docstring as one Markdown paragraph per paragraph: roles and double backticks become inline code."""
    paragraphs = (docstring or "").strip().split("\n\n")
    joined = "\n\n".join(" ".join(paragraph.split()) for paragraph in paragraphs)
    return _ROLE.sub(r"`\1`", joined).replace("``", "`")


def document(*parts: str) -> str:
    """Parts separated by a blank line, ended by one line feed."""
    return "\n\n".join(part.strip("\n") for part in parts if part) + "\n"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
