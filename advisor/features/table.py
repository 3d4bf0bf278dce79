"""Features declared as data: the declaration list is the documentation, and its fingerprint the contract."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from advisor.errors import Defect, Refused

__all__ = ["Feature", "FeatureSchema", "KnownWhen"]


class KnownWhen(StrEnum):
    """Since when a feature is known at the moment of asking, which decides what a gap in it means.

    ``REQUEST`` comes with the request itself (a gap: the asker did not say); ``HISTORY`` from what its owner
    had done before (a gap: there is no history yet); ``OTHERS`` from what had become of other people's jobs like
    it (a gap: it is the first of its kind); ``TELEMETRY`` from what was measured of its owner's jobs (a gap: nothing
    was).
    """

    REQUEST = "with the request"
    HISTORY = "from what happened before"
    OTHERS = "from what happened to others before"
    TELEMETRY = "from what was measured before"


@dataclass(frozen=True, slots=True)
class Feature:
    """One column: its name, what it means, its unit, and since when it is known."""

    name: str
    meaning: str
    unit: str
    known_when: KnownWhen = KnownWhen.HISTORY


@dataclass(frozen=True, slots=True)
class FeatureSchema:
    """An ordered list of features with a fingerprint that goes into every model fitted on them."""

    features: tuple[Feature, ...]
    names: tuple[str, ...] = field(init=False, repr=False)
    fingerprint: str = field(init=False)

    def __post_init__(self) -> None:
        """Derive names and fingerprint.

        Raises:
            Defect: two features share a name.
        """
        names = tuple(feature.name for feature in self.features)
        if len(set(names)) != len(names):
            raise Defect("two features share a name")
        text = "\n".join(f"{f.name}\t{f.meaning}\t{f.unit}\t{f.known_when}" for f in self.features)
        object.__setattr__(self, "names", names)
        object.__setattr__(self, "fingerprint", hashlib.sha256(text.encode()).hexdigest()[:16])

    def __len__(self) -> int:
        """How many columns a row has."""
        return len(self.features)

    def require(self, names: Sequence[str], fingerprint: str) -> None:
        """Check that a model fitted on columns ``names`` can read rows of this schema.

        Raises:
            Refused: naming the first column that differs, or the fingerprint where only a meaning or a
                unit was changed.
        """
        remedy = "Fit a model with this version of the program, or serve it with the version that fitted it."
        for position, (theirs, ours) in enumerate(zip(names, self.names, strict=False)):
            if theirs != ours:
                limit = f"column {position} is {ours!r} in this version of the program"
                raise Refused("feature schema", theirs, limit, remedy)
        if len(names) != len(self.names):
            longer = names if len(names) > len(self.names) else self.names
            first = longer[min(len(names), len(self.names))]
            limit = f"the model has {len(names)} columns and this version of the program {len(self.names)}"
            raise Refused("feature schema", first, limit, remedy)
        if fingerprint != self.fingerprint:
            limit = f"a meaning or a unit has changed: the fingerprint is now {self.fingerprint}"
            raise Refused("feature schema", fingerprint, limit, remedy)
