"""The table of generated pages, and what to do with them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from docs.generators.api import api_page
from docs.generators.commands import commands_page
from docs.generators.errors import errors_page
from docs.generators.guards import guards_page
from docs.generators.metrics import metrics_page
from docs.generators.settings import settings_page

__all__ = ["PAGES", "REFERENCE", "stale", "write"]

REFERENCE = Path(__file__).resolve().parent.parent / "reference"

PAGES: dict[str, Callable[[], str]] = {
    "api.md": api_page,
    "commands.md": commands_page,
    "errors.md": errors_page,
    "guards.md": guards_page,
    "metrics.md": metrics_page,
    "settings.md": settings_page,
}
"""File name under ``docs/reference`` to the function that makes its text."""


def stale() -> list[str]:
    """Pages whose file is missing or says something else than the code does now."""
    return [name for name, make in PAGES.items() if not _says(REFERENCE / name, make())]


def write() -> list[str]:
    """Bring every page up to date; the names of those that changed."""
    changed = []
    for name, make in PAGES.items():
        text = make()
        if not _says(REFERENCE / name, text):
            (REFERENCE / name).write_text(text, encoding="utf-8")
            changed.append(name)
    return changed


def _says(file: Path, text: str) -> bool:
    return file.exists() and file.read_text(encoding="utf-8") == text
