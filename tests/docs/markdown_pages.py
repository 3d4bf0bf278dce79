"""The project's own Markdown files and what stands in them, for the tests of this folder."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"

_FENCE = re.compile(r"^```(?P<info>[^\n]*)\n(?P<body>.*?)^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"!?\[[^\]]*\]\((?P<target>[^)\s]+)\)")
_HEADING = re.compile(r"^#{1,6} (?P<text>.+)$", re.MULTILINE)
_INLINE = re.compile(r"`([^`\n]+)`")


class Block(NamedTuple):
    """One fenced block: its language line and its lines."""

    info: str
    body: str


def markdown_files() -> list[Path]:
    """Every page at the root and below ``docs``, without what the site's build leaves behind."""
    pages = [*ROOT.glob("*.md"), *DOCS.rglob("*.md")]
    return sorted(page for page in pages if "_build" not in page.parts)


def blocks(text: str) -> list[Block]:
    """The fenced blocks in order."""
    return [Block(found["info"].strip(), found["body"]) for found in _FENCE.finditer(text)]


def prose(text: str) -> str:
    """The text without its fenced blocks."""
    return _FENCE.sub("", text)


def links(text: str) -> list[str]:
    """Targets of links and images outside fenced blocks."""
    return [found["target"] for found in _LINK.finditer(prose(text))]


def anchors(text: str) -> set[str]:
    """The anchors of the headings, made as GitHub and MyST make them."""
    return {_slug(found["text"]) for found in _HEADING.finditer(prose(text))}


def inline_codes(text: str) -> Iterator[str]:
    """What stands between single backticks outside fenced blocks."""
    return (found.group(1) for found in _INLINE.finditer(prose(text)))


def _slug(heading: str) -> str:
    kept = re.sub(r"[^\w\- ]", "", heading.replace("`", "").lower())
    return kept.strip().replace(" ", "-")
