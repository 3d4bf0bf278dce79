"""A TOML table read strictly: every key is asked for by its type, and whatever nobody asked for is refused."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import TypeVar

from advisor.errors import Refused

__all__ = ["StrictTable"]

_MOST = 1_000_000_000

T = TypeVar("T")


class StrictTable:
    """One table of a file; ``path`` is what a person would call it, such as ``pools[0]``."""

    def __init__(self, content: Mapping[str, object], path: str) -> None:
        self._content = content
        self._path = path
        self._asked: set[str] = set()

    def where(self, key: str) -> str:
        """The key as a person would find it in the file."""
        return f"{self._path}.{key}" if self._path else key

    def has(self, key: str) -> bool:
        """Whether the key stands in the file."""
        return key in self._content

    def text(self, key: str) -> str | None:
        """Text, None where the key is absent."""
        return self._typed(key, str, "text in quotes")

    def required(self, key: str) -> str:
        """Text that must be there.

        Raises:
            Refused: it is not, or is empty.
        """
        found = self.text(key)
        if not found:
            raise Refused(self.where(key), found, "it must be given", f'Add {key} = "...".')
        return found

    def flag(self, key: str, default: bool) -> bool:
        """True or false."""
        found = self._typed(key, bool, "true or false")
        return default if found is None else found

    def whole(self, key: str, least: int, most: int = _MOST) -> int | None:
        """A whole number from ``least`` to ``most``, None where absent.

        Raises:
            Refused: anything else.
        """
        found = self._typed(key, int, "a whole number")
        if found is not None and found < least:
            raise Refused(self.where(key), found, f"it is {least} or more", "Correct the number.")
        if found is not None and found > most:
            raise Refused(self.where(key), found, f"it is {most:,} at most", "Correct the number.")
        return found

    def number(self, key: str, above: float, most: float = _MOST) -> float | None:
        """A number above ``above`` and up to ``most``, None where absent.

        Raises:
            Refused: anything else.
        """
        found = self._typed(key, (int, float), "a number")
        if found is not None and not above < found <= most:
            limit = f"it is a finite number above {above:g} and up to {most:,.0f}"
            raise Refused(self.where(key), found, limit, "Correct the number.")
        return None if found is None else float(found)

    def texts(self, key: str) -> tuple[str, ...] | None:
        """A list of texts, None where absent."""
        return self._listed(key, str, "a list of texts")

    def wholes(self, key: str) -> tuple[int, ...] | None:
        """A list of whole numbers, None where absent."""
        return self._listed(key, int, "a list of whole numbers")

    def moment(self, key: str) -> str | datetime | None:
        """A time as written: text, or TOML's own date-time; None where absent."""
        found = self._typed(key, (str, datetime), "a time")
        return found if isinstance(found, (str, datetime)) else None

    def texts_by_key(self, key: str) -> dict[str, str]:
        """A table of texts, empty where absent."""
        found = self._typed(key, dict, "a table") or {}
        for name, value in found.items():
            if not isinstance(value, str):
                raise Refused(f"{self.where(key)}.{name}", value, "it is text in quotes", f'Write "{value}".')
        return dict(found)

    def tables(self, key: str) -> tuple[StrictTable, ...] | None:
        """A list of tables, None where absent.

        Raises:
            Refused: anything else.
        """
        found = self._listed(key, dict, f"a list of tables, written [[{key}]]")
        return None if found is None else tuple(StrictTable(t, f"{self.where(key)}[{n}]") for n, t in enumerate(found))

    def refuse_unknown(self) -> None:
        """Nothing where every key was asked for.

        Raises:
            Refused: naming the first key that nobody knows.
        """
        unknown = sorted(set(self._content) - self._asked)
        if unknown:
            known = ", ".join(sorted(self._asked))
            raise Refused(self.where(unknown[0]), self._content[unknown[0]], f"known keys are {known}", "Remove it.")

    def _typed(self, key: str, kind: type[T] | tuple[type[T], ...], limit: str) -> T | None:
        self._asked.add(key)
        if key not in self._content:
            return None
        found = self._content[key]
        if not isinstance(found, kind) or (isinstance(found, bool) and kind is not bool):
            raise Refused(self.where(key), found, f"it must be {limit}", "Correct the value.")
        return found

    def _listed(self, key: str, kind: type[T], limit: str) -> tuple[T, ...] | None:
        found = self._typed(key, list, limit)
        if found is None:
            return None
        for item in found:
            if not isinstance(item, kind) or isinstance(item, bool):
                raise Refused(self.where(key), item, f"it must be {limit}", "Correct the value.")
        return tuple(found)
