"""The documents of the JSON page, and whether a real document has the shape described there."""

from __future__ import annotations

import json
import re
from typing import Any

from tests.docs.markdown_pages import DOCS, blocks

__all__ = ["differences", "documented"]


def documented(title: str) -> Any:
    """The document described under the heading of that command."""
    text = (DOCS / "reference" / "json.md").read_text(encoding="utf-8")
    section = re.split(r"^## ", text, flags=re.MULTILINE)
    found = next(part for part in section if part.startswith(f"`{title}`"))
    return json.loads(blocks(found)[0].body)


def differences(described: Any, real: Any, place: str = "") -> list[str]:
    """Where ``real`` lacks what is described, or holds a key that is not; empty lists and text match anything."""
    if isinstance(described, dict) and isinstance(real, dict):
        return _of_objects(described, real, place)
    if isinstance(described, list) and isinstance(real, list):
        if not described:
            return []
        return [found for item in real for found in differences(described[0], item, f"{place}[]")]
    if isinstance(described, (dict, list)):
        return [f"{place}: described as {type(described).__name__}, is {real!r}"]
    return []


def _of_objects(described: dict[str, Any], real: dict[str, Any], place: str) -> list[str]:
    any_key = next((value for key, value in described.items() if key.startswith("<")), None)
    named = {key: value for key, value in described.items() if not key.startswith("<")}
    found = [f"{place}.{key} is missing" for key in named if key not in real]
    for key, value in real.items():
        if key in named:
            found += differences(named[key], value, f"{place}.{key}")
        elif any_key is None:
            found.append(f"{place}.{key} is not described")
        else:
            found += differences(any_key, value, f"{place}.{key}")
    return found
