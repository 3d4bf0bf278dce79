"""An API server of a world: it answers lists of one moment, and watches of all that changes after it."""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from operator import attrgetter
from typing import NamedTuple

from advisor.cluster.objects import NotServed, ObjectKind, Page, WatchEvent, WatchType
from tests.telemetry_world.api_objects import ApiObject, Document, api_objects
from tests.telemetry_world.world import World

__all__ = ["ThreadClock", "Told", "WorldServer", "told"]

_SERVED = ("pods", "nodes", "jobs", "jobsets", "pytorchjobs", "rayclusters", "workloads")


class Told(NamedTuple):
    """A watch event and when it is told, in Unix seconds."""

    moment: int
    event: WatchEvent


def told(objects: list[ApiObject]) -> list[Told]:
    """The events of ``objects`` in order; the version of the nth, from 1, is n."""
    found: list[tuple[int, int, WatchType, Document]] = []
    for place, one in enumerate(objects):
        kind, before = WatchType.ADDED, None
        for moment in one.moments:
            document = one.document(moment)
            if document != before:
                found.append((moment, place, kind, document))
                kind, before = WatchType.MODIFIED, document
        if one.deleted is not None:
            found.append((one.deleted, place, WatchType.DELETED, one.last))
    # Sorting is stable, so that an object that comes and goes within a second is told of in that order.
    found.sort(key=lambda each: each[:2])
    return [
        Told(moment, WatchEvent(kind, _versioned(document, number)))
        for number, (moment, _, kind, document) in enumerate(found, start=1)
    ]


def _versioned(document: Document, version: int) -> Document:
    return {**document, "metadata": {**document["metadata"], "resourceVersion": str(version)}}


class ThreadClock(threading.local):
    """A clock that each thread moves for itself: watches of several kinds go through the same time side by side."""

    def __init__(self, begin: list[int]) -> None:
        """Threads begin at the one moment in ``begin``, which may be changed for those to come."""
        self._begin = begin
        self._seconds = float(begin[0])

    def now(self) -> datetime:
        """The moment of this thread."""
        return datetime.fromtimestamp(self._seconds, UTC)

    def set(self, seconds: float) -> None:
        """Move this thread, never backwards."""
        self._seconds = max(self._seconds, seconds)

    def pause(self, seconds: float) -> None:
        """What others sleep."""
        self._seconds += seconds

    def everywhere(self, seconds: int) -> None:
        """Move this thread, and those that have not begun."""
        self._begin[0] = seconds
        self.set(seconds)


@dataclass(frozen=True, slots=True)
class _Kind:
    events: list[Told]

    def until(self, moment: float) -> int:
        """The version at a moment: how many events had been told."""
        return bisect_right(self.events, moment, key=attrgetter("moment"))


class WorldServer:
    """Lists of ``world`` at the moment of ``clock`` (the world's start at first), and watches that move it.

    It ends every watch after its timeout, however much happens in it.
    """

    name = "world"

    def __init__(self, world: World, *, last_phase: bool = True) -> None:
        """See :func:`.api_objects.api_objects` for ``last_phase``."""
        self.clock = ThreadClock([world.start])
        by_plural: dict[str, list[ApiObject]] = {plural: [] for plural in _SERVED}
        for one in api_objects(world, last_phase=last_phase):
            by_plural[one.plural].append(one)
        self._kinds = {plural: _Kind(told(objects)) for plural, objects in by_plural.items()}

    def list(self, kind: ObjectKind, limit: int, token: str | None) -> Page:
        """Everything that is there now, in one page."""
        del limit, token
        events, version = self._of(kind).events, self._of(kind).until(self.clock.now().timestamp())
        there: dict[str, Document] = {}
        for _, event in events[:version]:
            uid = event.document["metadata"]["uid"]
            if event.type is WatchType.DELETED:
                del there[uid]
            else:
                there[uid] = dict(event.document)
        return Page(list(there.values()), str(version))

    def watch(self, kind: ObjectKind, version: str, timeout_seconds: float) -> Iterator[WatchEvent]:
        """What changes from ``version`` on and within the timeout; this thread's clock goes along."""
        found = self._of(kind)
        until = self.clock.now() + timedelta(seconds=timeout_seconds)
        for moment, event in found.events[int(version) : found.until(until.timestamp())]:
            self.clock.set(moment)
            yield event
        self.clock.set(until.timestamp())

    def _of(self, kind: ObjectKind) -> _Kind:
        if kind.plural not in self._kinds:
            raise NotServed(kind.plural)
        return self._kinds[kind.plural]
