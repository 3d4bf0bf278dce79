"""Reading objects of any kind as the API server holds them: the port behind lists and watches."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol, TypeAlias

from advisor.errors import AdvisorError

__all__ = ["Expired", "Json", "NotServed", "ObjectKind", "ObjectReader", "Page", "WatchEvent", "WatchType"]

Json: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ObjectKind:
    """A kind as the API serves it: its plural, its group (empty for core) and the versions to try, best first.

    ``kind`` is the name in an object's ``kind`` field, which lists leave out.
    """

    plural: str
    kind: str
    group: str = ""
    versions: tuple[str, ...] = ("v1",)

    @property
    def paths(self) -> tuple[str, ...]:
        """Where every namespace's objects are listed, one path a version."""
        root = f"/apis/{self.group}" if self.group else "/api"
        return tuple(f"{root}/{version}/{self.plural}" for version in self.versions)

    @property
    def resource(self) -> str:
        """As a rule of RBAC names it: ``jobs.batch``."""
        return f"{self.plural}.{self.group}" if self.group else self.plural


@dataclass(frozen=True, slots=True)
class Page:
    """A part of a list: its objects, the version of the whole list, and what to ask the next page with."""

    items: Sequence[Json]
    version: str
    token: str | None = None


class WatchType(StrEnum):
    """What a watch event says."""

    ADDED = "ADDED"
    MODIFIED = "MODIFIED"
    DELETED = "DELETED"
    BOOKMARK = "BOOKMARK"


@dataclass(frozen=True, slots=True)
class WatchEvent:
    """One line of a watch. Errors are no events: a reader raises them."""

    type: WatchType
    document: Json


class Expired(AdvisorError):
    """The version or page asked for is no longer kept (410): list anew."""


class NotServed(AdvisorError):
    """The API server knows no such kind (404)."""


class ObjectReader(Protocol):
    """Answers two questions of one kind of object: what is there, and what has changed since."""

    @property
    def name(self) -> str:
        """What people call this cluster; the same text every time."""
        ...

    def list(self, kind: ObjectKind, limit: int, token: str | None) -> Page:
        """At most ``limit`` objects, those after the page that gave ``token``.

        Raises:
            Expired: the list went away between two pages.
            NotServed: there is no such kind.
            Refused: we may not list it.
            Transient: the API server is unreachable, overloaded, or answered no list.
        """
        ...

    def watch(self, kind: ObjectKind, version: str, timeout_seconds: float) -> Iterator[WatchEvent]:
        """What changed after ``version``, as it comes, until the server ends it, at the latest after the timeout.

        Raises:
            Expired: ``version`` is no longer kept, said by status or by an event.
            Refused: we may not watch it.
            Transient: the connection broke, the server is overloaded, or a line is no event.
        """
        ...
