"""The errors of this project, named for what the caller should do.

::

    AdvisorError
    ├── Refused        the input is wrong: tell the user, do not retry     (exit code 3)
    ├── Transient      something needed is unavailable: retry later        (exit code 4)
    ├── Stale          what was read has aged: refresh, then retry         (exit code 4)
    └── Defect         a promise inside this program broke: report a bug   (exit code 1)

Library exceptions never cross a package boundary: they are translated into one of these and chained.
"""

from __future__ import annotations

import re

__all__ = ["AdvisorError", "Defect", "Refused", "Stale", "Transient", "sentences"]

_ASKED = ("?", "!", "…")
_CLOSING = re.compile(r"[\s.,;:]+$")


def sentences(*parts: str) -> str:
    """``parts`` as sentences in a row, each closed once, whatever mark it came with; empty ones are left out.

    >>> sentences("it cannot be listened on; is it taken?", "no such file.", "Check the path")
    'it cannot be listened on; is it taken? no such file. Check the path.'
    """
    return " ".join(closed for part in parts if (closed := _closed(part)))


def _closed(part: str) -> str:
    text = part.strip()
    if text.endswith("..."):
        return text
    bare = _CLOSING.sub("", text)
    return bare if not bare or bare.endswith(_ASKED) else f"{bare}."


class AdvisorError(Exception):
    """Root of the tree; catch it only at the outermost edge."""


class Refused(AdvisorError):
    """Input that cannot be accepted, with everything a person needs to mend it.

    The message names the field, the value (None: nothing was given), the limit it broke and the remedy.
    """

    def __init__(self, field: str, value: object, limit: str, remedy: str) -> None:
        """Compose the message from its four parts."""
        self.field = field
        self.value = value
        self.limit = limit
        self.remedy = remedy
        given = "nothing was given" if value is None else f"{_shown(value)} is refused"
        super().__init__(f"{field}: {given}; {sentences(limit, remedy)}")


class Transient(AdvisorError):
    """Something outside is unavailable now; the same call may succeed later."""


class Stale(AdvisorError):
    """What was read is older than the decision allows; refresh it first."""


class Defect(AdvisorError):
    """An invariant of this program broke; retrying will not help."""


_LONGEST_SHOWN = 120


def _shown(value: object) -> str:
    """The value as a person would recognise it, cut so that a whole file never lands in a message."""
    text = repr(value)
    return text if len(text) <= _LONGEST_SHOWN else text[: _LONGEST_SHOWN - 1] + "…"
