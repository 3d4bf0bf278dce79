"""One kind of object kept current by a list and a watch, whatever becomes of the connection.

A list gives the version to watch from; events and bookmarks move it on. When it is no longer kept (410) the list is
read anew and the watch goes on from there, so that nothing is missed and nothing told twice. Objects are cut down as
their page arrives. What has gone is kept with its last state until it is forgotten.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Generic, Protocol, TypeVar

from advisor.clock import Clock
from advisor.cluster.objects import Expired, Json, ObjectKind, ObjectReader, Page, WatchEvent, WatchType
from advisor.errors import Refused, Transient

__all__ = ["Held", "Pace", "Projection", "Reflector", "Unreadable"]

T = TypeVar("T")

_PAGE = 500
_MOST_LISTS = 3
_WATCH_SECONDS = 300.0
_LEAST_SECONDS = 1.0
_FIRST_PAUSE = 1.0
_LONGEST_PAUSE = 60.0


class Projection(Protocol[T]):
    """Cuts an object down to what is kept of it."""

    def __call__(self, document: Json, before: T | None, at: datetime | None) -> T | None:
        """What is kept, None where the object is of no interest.

        ``before`` is what was kept of it last, and ``at`` the moment its change was seen, None where it was found in
        a list, since nobody knows for how long it has been so.

        Raises:
            Refused: it cannot be understood.
        """
        ...


@dataclass(frozen=True, slots=True)
class Held(Generic[T]):
    """What is kept of one object and its version.

    ``seen`` is up to when it is known to have been there. ``gone`` is when it was told to be deleted; an object that
    a list no longer has is ``vanished``: it went at some time after it was last seen.
    """

    value: T
    version: str
    seen: datetime
    gone: datetime | None = None
    vanished: bool = False

    @property
    def there(self) -> bool:
        """Whether it is still there as far as is known."""
        return self.gone is None and not self.vanished


@dataclass(frozen=True, slots=True)
class Unreadable:
    """An object that could not be understood, as a person names it, and why."""

    shown: str
    error: Refused


@dataclass(frozen=True, slots=True)
class Pace:
    """Time as a reflector takes it: ``clock`` tells it, ``pause`` waits so many seconds, ``chance`` is in [0, 1).

    Pauses double with every failure in a row and are spread over their upper half, lest all clients come back at once.
    """

    clock: Clock
    pause: Callable[[float], None]
    chance: Callable[[], float]

    def back_off(self, failures: int) -> None:
        """Wait after so many failures in a row."""
        longest = min(_FIRST_PAUSE * 2.0 ** min(failures - 1, 10), _LONGEST_PAUSE)
        self.pause(longest * (0.5 + 0.5 * self.chance()))


class Reflector(Generic[T]):
    """Keeps every object of ``kind``; ``objects`` by uid, ``refused`` what could not be understood of those there.

    ``restarts`` counts the lists that had to be read again because the server no longer kept the version watched.
    """

    def __init__(self, kind: ObjectKind, reader: ObjectReader, project: Projection[T], pace: Pace) -> None:
        """Nothing is asked before the first :meth:`refresh`."""
        self.kind = kind
        self.objects: dict[str, Held[T]] = {}
        self.refused: dict[str, Unreadable] = {}
        self.restarts = 0
        self._reader = reader
        self._project = project
        self._pace = pace
        self._version: str | None = None
        self._contact: datetime | None = None

    @property
    def version(self) -> str | None:
        """The version that the next watch begins after, None before the first list."""
        return self._version

    @property
    def contact(self) -> datetime | None:
        """Up to when everything that happened is known, None before the first list."""
        return self._contact

    def refresh(self) -> None:
        """Read the list; objects it no longer has are marked vanished. A list that expires is begun again.

        Raises:
            NotServed: there is no such kind.
            Refused: we may not list it.
            Transient: the API server cannot be asked now, or its lists expire again and again.
        """
        for attempt in range(1, _MOST_LISTS + 1):
            try:
                self._list()
            except Expired:
                if attempt < _MOST_LISTS:
                    self._pace.back_off(attempt)
            else:
                return
        raise Transient(f"the list of {self.kind.plural} expired {_MOST_LISTS} times between pages; ask again later")

    def follow(self, seconds: float) -> None:
        """Take what changes for so many seconds; broken connections are made again.

        Raises:
            NotServed, Refused: as :meth:`refresh`; a watch may be denied where the list is not.
        """
        until, failures = self._pace.clock.now() + timedelta(seconds=seconds), 0
        while (left := (until - self._pace.clock.now()).total_seconds()) > 0:
            try:
                if self._version is None:
                    self.refresh()
                told = self._watch(self._version, min(max(left, _LEAST_SECONDS), _WATCH_SECONDS))
            except Expired:
                self._version = None
                self.restarts += 1
                told = False
            except Transient:
                told = False
            failures = 0 if told else failures + 1
            if failures and self._pace.clock.now() < until:
                self._pace.back_off(failures)

    def forget(self, uids: Iterable[str]) -> None:
        """Drop objects that have gone; those that are there stay."""
        for uid in uids:
            held = self.objects.get(uid)
            if held is not None and not held.there:
                del self.objects[uid]

    def _list(self) -> None:
        began = self._pace.clock.now()
        listed: set[str] = set()
        page = self._page(None)
        # The version of the first page: all pages are of one snapshot.
        version = page.version
        while True:
            for document in page.items:
                uid, its_version = _identity(document)
                listed.add(uid)
                self._keep(uid, its_version, document, began, at=None)
            if page.token is None:
                break
            page = self._page(page.token)
        for uid, held in self.objects.items():
            if held.there and uid not in listed:
                # It was there for as long as the watch told of everything.
                seen = held.seen if self._contact is None else max(held.seen, self._contact)
                self.objects[uid] = replace(held, seen=seen, vanished=True)
        self.refused = {uid: error for uid, error in self.refused.items() if uid in listed}
        self._version, self._contact = version, began

    def _page(self, token: str | None) -> Page:
        page = self._reader.list(self.kind, _PAGE, token)
        if page.token is not None and page.token == token:
            raise Transient(f"the API server answers the same page of {self.kind.plural} again and again")
        if not page.version:
            raise Transient(f"the list of {self.kind.plural} has no version to watch from")
        return page

    def _watch(self, version: str | None, timeout: float) -> bool:
        """Take one watch to its end; whether it told anything, or lasted, so that the next may begin at once."""
        assert version is not None  # noqa: S101 - refresh has just set it
        began = self._pace.clock.now()
        told = False
        for event in self._reader.watch(self.kind, version, timeout):
            self._take(event)
            told = True
        # The server ended it in good order, so there was nothing more to tell.
        self._contact = self._pace.clock.now()
        return told or (self._pace.clock.now() - began).total_seconds() >= _LEAST_SECONDS

    def _take(self, event: WatchEvent) -> None:
        now = self._pace.clock.now()
        uid, version = _identity(event.document)
        if not version:
            raise Transient(f"an event of {self.kind.plural} has no version")
        if event.type is not WatchType.BOOKMARK:
            self._keep(uid, version, event.document, now, at=now)
            if event.type is WatchType.DELETED:
                self.refused.pop(uid, None)
                if uid in self.objects:
                    self.objects[uid] = replace(self.objects[uid], gone=now)
        self._version, self._contact = version, now

    def _keep(self, uid: str, version: str, document: Json, now: datetime, *, at: datetime | None) -> None:
        held = self.objects.get(uid)
        if held is not None and held.version == version:
            self.objects[uid] = replace(held, seen=max(held.seen, now), vanished=False)
            return
        try:
            value = self._project(document, None if held is None else held.value, at)
        except Refused as error:
            self.refused[uid] = Unreadable(_shown(document), error)
            return
        self.refused.pop(uid, None)
        if value is None:
            self.objects.pop(uid, None)
        else:
            self.objects[uid] = Held(value, version, now)


def _identity(document: Json) -> tuple[str, str]:
    metadata = document.get("metadata")
    if not isinstance(metadata, Mapping):
        return "", ""
    return str(metadata.get("uid") or ""), str(metadata.get("resourceVersion") or "")


def _shown(document: Json) -> str:
    metadata = document.get("metadata")
    found = metadata if isinstance(metadata, Mapping) else {}
    return "/".join(str(found[key]) for key in ("namespace", "name") if found.get(key))
