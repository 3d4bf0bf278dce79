"""A page context that notes which of its fields a template reads."""

from __future__ import annotations

import dataclasses
from typing import Any


class Recorder:
    """Stands in for a context, and for every context within it."""

    def __init__(self, context: Any, read: set[tuple[str, str]]) -> None:
        self._context = context
        self._read = read

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._context, name)
        self._read.add((type(self._context).__name__, name))
        return recorded(value, self._read)


def recorded(value: Any, read: set[tuple[str, str]]) -> Any:
    """``value`` with every context in it replaced by its recorder."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return Recorder(value, read)
    if isinstance(value, tuple):
        return tuple(recorded(item, read) for item in value)
    return value
