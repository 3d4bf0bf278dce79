"""What any cluster answers and accepts: one question, and three kinds of write.

Writes have the semantics of server-side apply with one field manager a port: what a manager applied
before and now leaves out is *removed* (a limit becomes unlimited), what another manager claimed with a
different value is a conflict and nothing is written, and an expected resource version that has passed
is :class:`~advisor.errors.Stale`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Protocol, TypeAlias

from advisor.cluster.fields import FieldValue, check_field
from advisor.domain.nodepools import ClusterSnapshot, WarmBuffer
from advisor.domain.units import positive
from advisor.errors import Refused

__all__ = [
    "FIELD_MANAGER",
    "Applied",
    "ClusterPort",
    "ClusterWrite",
    "FieldConflict",
    "PoolPatch",
    "SliceSetting",
    "WarmCapacity",
]

FIELD_MANAGER = "gpu-slice-advisor"
"""The name under which this program claims fields."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolPatch:
    """Everything this program wants to own of one NodePool: field path to value, never empty.

    ``expected_resource_version`` None writes whatever the version is. ``force`` takes a field over
    from its owner, which is a person's decision per pool and never a default.
    """

    pool: str
    fields: Mapping[str, FieldValue]
    expected_resource_version: str | None = None
    force: bool = False

    def __post_init__(self) -> None:
        """Check every field and its shape, and freeze the mapping.

        Raises:
            Refused: no field at all, one that may not be written, or a value of the wrong shape.
        """
        if not self.pool:
            raise Refused("pool", self.pool, "a patch names its NodePool", "Give the name.")
        if not self.fields:
            raise Refused(
                "fields",
                {},
                "an empty apply would delete every field applied before, limits among them",
                "Apply the values that shall stay.",
            )
        for field, value in self.fields.items():
            check_field(field, value)
        object.__setattr__(self, "fields", MappingProxyType(dict(self.fields)))


@dataclass(frozen=True, slots=True, kw_only=True)
class WarmCapacity:
    """The warm capacity of one pool, kept as an object of our own; 0 chunks keep the object, empty."""

    pool: str
    buffer: WarmBuffer


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceSetting:
    """The slice length of one pool, in minutes, kept on an object of our own."""

    pool: str
    minutes: float

    def __post_init__(self) -> None:
        """Check the length.

        Raises:
            Refused: not positive and finite.
        """
        positive(self.minutes, "slice length", "minutes")


ClusterWrite: TypeAlias = PoolPatch | WarmCapacity | SliceSetting
"""Anything that may be written."""


@dataclass(frozen=True, slots=True)
class FieldConflict:
    """A field that another manager has claimed with another value."""

    field: str
    manager: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Applied:
    """What became of a write: the fields whose values it changed, or the conflicts that stopped all of it."""

    resource_version: str
    changed: tuple[str, ...] = ()
    conflicts: tuple[FieldConflict, ...] = ()

    @property
    def written(self) -> bool:
        """True unless a conflict stopped it; a write that changed nothing counts as written."""
        return not self.conflicts


class ClusterPort(Protocol):
    """A cluster, as much of it as this program needs."""

    def observe(self) -> ClusterSnapshot:
        """The cluster now.

        Raises:
            Transient: it cannot be reached; the same call may succeed later.
            Refused: it answered that this program may not look, or that Karpenter is not there.
        """
        ...

    def apply(self, write: ClusterWrite) -> Applied:
        """Write all of it or nothing.

        Raises:
            Refused: the pool does not exist, or the cluster's own validation says no.
            Stale: the expected resource version has passed; observe again.
            Transient: it cannot be reached.
        """
        ...
