"""Help text beside every field of a page: written once, shown on the page, held by a test.

A context declares its fields as ``gpus: Annotated[int, "What it is, in a sentence."]``.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import get_args, get_type_hints

__all__ = ["explained", "explanations"]


def explained(context: type) -> dict[str, str]:
    """Every field of one context class with its help text; empty text where somebody forgot it."""
    hints = get_type_hints(context, include_extras=True)
    return {field.name: _help(hints[field.name]) for field in dataclasses.fields(context)}


def explanations(context: type) -> dict[str, dict[str, str]]:
    """The help texts of a page's context and of every context class within it, by class name."""
    return {one.__name__: explained(one) for one in _within(context)}


def _help(hint: object) -> str:
    texts = [part for part in getattr(hint, "__metadata__", ()) if isinstance(part, str)]
    return texts[0] if texts else ""


def _within(context: type) -> Iterator[type]:
    found = [context]
    for one in found:
        yield one
        for hint in get_type_hints(one).values():
            for part in (hint, *_parts(hint)):
                if dataclasses.is_dataclass(part) and isinstance(part, type) and part not in found:
                    found.append(part)


def _parts(hint: object) -> Iterator[object]:
    for part in get_args(hint):
        yield part
        yield from _parts(part)
