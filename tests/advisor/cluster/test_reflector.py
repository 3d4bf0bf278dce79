"""Lists and watches that lose nothing, told by a script instead of a server."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.clock import ManualClock
from advisor.cluster.objects import Expired, Json, NotServed, ObjectKind, Page, WatchEvent, WatchType
from advisor.cluster.reflector import Pace, Reflector
from advisor.errors import Refused, Transient
from tests.builders import NOON

PODS = ObjectKind("pods", "Pod")


def an_object(uid: str, version: int, state: str = "new") -> dict[str, Any]:
    return {"metadata": {"uid": uid, "resourceVersion": str(version)}, "state": state}


def told(kind: str, uid: str, version: int, state: str = "new") -> WatchEvent:
    return WatchEvent(WatchType(kind), an_object(uid, version, state))


def bookmark(version: int) -> WatchEvent:
    return WatchEvent(WatchType.BOOKMARK, {"metadata": {"resourceVersion": str(version)}})


class Script:
    """Answers lists and watches in the order written; a watch lasts ``lasts`` seconds on the clock.

    An exception in place of an answer is raised.
    """

    name = "script"

    def __init__(self, clock: ManualClock, lists: list[Any], watches: list[list[Any]], lasts: float = 10.0) -> None:
        self.clock, self.lists, self.watches, self.lasts = clock, lists, watches, lasts
        self.tokens: list[str | None] = []
        self.versions: list[str] = []

    def list(self, kind: ObjectKind, limit: int, token: str | None) -> Page:
        assert (kind, limit) == (PODS, 500)
        self.tokens.append(token)
        answer = self.lists.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer

    def watch(self, kind: ObjectKind, version: str, timeout_seconds: float) -> Iterator[WatchEvent]:
        assert kind == PODS
        self.versions.append(version)
        for event in self.watches.pop(0) if self.watches else []:
            if isinstance(event, Exception):
                raise event
            yield event
        self.clock.advance(timedelta(seconds=min(self.lasts, timeout_seconds)))


def state_of(document: Json, before: str | None, at: datetime | None) -> str | None:
    if document["state"] == "odd":
        raise Refused("state", "odd", "it is odd", "Correct it.")
    return None if document["state"] == "dull" else document["state"]


class World:
    """A reflector over a script, with every pause noted and taken off the clock."""

    def __init__(self, lists: list[Any], watches: list[list[Any]] = (), **more: Any) -> None:
        self.clock = ManualClock(NOON)
        self.script = Script(self.clock, lists, list(watches), **more)
        self.pauses: list[float] = []
        self.reflector = Reflector(PODS, self.script, state_of, Pace(self.clock, self._pause, lambda: 0.0))

    def _pause(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.clock.advance(timedelta(seconds=seconds))

    @property
    def there(self) -> dict[str, str]:
        return {uid: held.value for uid, held in self.reflector.objects.items() if held.there}


def test_a_version_that_is_no_longer_kept_is_answered_with_a_new_list():
    """A21: ADDED x, bookmark 105, ERROR 410; meanwhile x finished and y was added."""
    missed = Page([an_object("x", 120, "finished"), an_object("y", 110)], "130")
    watches = [[told("ADDED", "x", 101), bookmark(105), Expired("410")]]
    world = World([Page([], "100"), missed], watches)

    world.reflector.refresh()
    world.reflector.follow(20)

    assert world.there == {"x": "finished", "y": "new"}
    assert len(world.reflector.objects) == 2
    assert world.reflector.restarts == 1
    assert world.script.versions[:2] == ["100", "130"]
    assert world.pauses == [0.5]


def test_a_watch_goes_on_from_the_last_bookmark():
    world = World([Page([], "100")], [[told("ADDED", "x", 101), bookmark(105)], [told("MODIFIED", "x", 106, "done")]])
    world.reflector.refresh()
    world.reflector.follow(20)
    assert world.script.versions == ["100", "105"]
    assert (world.there, world.reflector.version) == ({"x": "done"}, "106")
    assert world.reflector.restarts == 0


def test_what_is_deleted_is_told_with_its_last_state():
    world = World([Page([an_object("x", 90)], "100")], [[told("DELETED", "x", 101, "leaving")]])
    world.reflector.refresh()
    world.reflector.follow(5)
    held = world.reflector.objects["x"]
    assert (held.there, held.value, held.gone, held.vanished) == (False, "leaving", NOON, False)


def test_what_went_while_nobody_watched_was_last_seen_when_the_watch_last_told_something():
    world = World([Page([an_object("x", 90)], "100"), Page([], "200")], [[bookmark(105), Expired("410")]])
    world.reflector.refresh()
    world.clock.advance(timedelta(seconds=7))
    world.reflector.follow(12)
    held = world.reflector.objects["x"]
    assert (held.there, held.vanished, held.gone) == (False, True, None)
    assert held.seen == NOON + timedelta(seconds=7)


def test_everything_is_known_up_to_the_orderly_end_of_a_watch_and_not_of_a_broken_one():
    world = World([Page([], "100")], [[], [Transient("broken")]])
    world.reflector.refresh()
    assert world.reflector.contact == NOON
    world.reflector.follow(10)
    assert world.reflector.contact == NOON + timedelta(seconds=10)
    world.script.lasts = 0.0
    world.script.watches = [[Transient("broken")]] * 20
    world.reflector.follow(3)
    assert world.reflector.contact == NOON + timedelta(seconds=10)


def test_a_broken_watch_is_tried_again_ever_more_slowly_and_at_once_after_success():
    broken = [Transient("broken")]
    world = World([Page([], "100")], [broken, broken, broken, [told("ADDED", "x", 101)], broken])
    world.reflector.refresh()
    world.reflector.follow(30)
    assert world.pauses[:4] == [0.5, 1.0, 2.0, 0.5]
    assert world.script.versions[:5] == ["100", "100", "100", "100", "101"]
    assert world.there == {"x": "new"}


def test_pauses_have_an_upper_bound_and_jitter():
    paused: list[float] = []
    pace = Pace(ManualClock(NOON), paused.append, lambda: 0.999)
    for failures in (1, 2, 50):
        pace.back_off(failures)
    assert paused == pytest.approx([1.0, 2.0, 60.0], rel=0.001)


def test_a_server_that_ends_watches_at_once_is_not_hammered():
    world = World([Page([], "100")], lasts=0.0)
    world.reflector.refresh()
    world.reflector.follow(10)
    assert world.pauses[:3] == [0.5, 1.0, 2.0]


def test_a_list_that_expires_between_pages_is_begun_again_and_counts_nothing_twice():
    first, second = Page([an_object("x", 90)], "100", "more"), Page([an_object("y", 95)], "100")
    again = Page([an_object("x", 90)], "110", "more")
    world = World([first, Expired("410"), again, second])
    world.reflector.refresh()
    assert world.script.tokens == [None, "more", None, "more"]
    assert world.there == {"x": "new", "y": "new"}
    assert world.reflector.version == "110"


def test_a_list_that_was_not_read_to_its_end_is_never_watched_from():
    whole = Page([an_object("x", 90), an_object("y", 91)], "110")
    world = World([Page([an_object("x", 90)], "100", "more"), Transient("broken"), whole])
    with pytest.raises(Transient):
        world.reflector.refresh()
    assert (world.reflector.version, world.reflector.contact) == (None, None)
    world.reflector.follow(5)
    assert set(world.there) == {"x", "y"}
    assert world.script.versions == ["110"]


def test_a_list_that_always_expires_is_for_later():
    world = World([Expired("410")] * 3)
    with pytest.raises(Transient, match="expired 3 times"):
        world.reflector.refresh()


def test_a_server_that_answers_one_page_for_ever_is_for_later():
    world = World([Page([], "100", "again")] * 3)
    with pytest.raises(Transient, match="again and again"):
        world.reflector.refresh()


def test_a_list_without_a_version_is_never_watched_from():
    world = World([Page([], "")])
    with pytest.raises(Transient, match="no version"):
        world.reflector.refresh()


@pytest.mark.parametrize("error", [Refused("pods", "403", "denied", "Grant it."), NotServed("none")])
def test_what_another_try_would_not_mend_comes_through(error):
    world = World([Page([], "100")], [[error]])
    world.reflector.refresh()
    with pytest.raises(type(error)):
        world.reflector.follow(10)


def test_what_cannot_be_understood_is_kept_count_of_until_it_can_or_is_gone():
    odd = [an_object("x", 90, "odd"), an_object("y", 91, "odd"), an_object("z", 92, "dull")]
    events = [told("MODIFIED", "x", 101, "fine"), told("DELETED", "y", 102, "odd")]
    world = World([Page(odd, "100")], [events])
    world.reflector.refresh()
    assert set(world.reflector.refused) == {"x", "y"}
    assert world.there == {}
    world.reflector.follow(5)
    assert world.reflector.refused == {}
    assert world.there == {"x": "fine"}


def test_only_what_has_gone_is_forgotten():
    world = World([Page([an_object("x", 90), an_object("y", 91)], "100"), Page([an_object("y", 91)], "101")])
    world.reflector.refresh()
    world.reflector.refresh()
    world.reflector.forget(["x", "y", "never there"])
    assert set(world.reflector.objects) == {"y"}


@given(
    st.lists(st.tuples(st.sampled_from("abcd"), st.sampled_from(["ADDED", "MODIFIED", "DELETED"])), max_size=30),
    st.sets(st.integers(0, 29)),
    st.sets(st.integers(0, 29)),
)
def test_however_often_it_breaks_the_end_is_what_the_server_has(changes, breaks, expiries):
    """Property: any history, cut anywhere by lost connections and by 410, ends in the server's own state."""
    history = [told(kind, uid, 101 + place, f"s{place}") for place, (uid, kind) in enumerate(changes)]
    server: dict[str, str] = {}
    for event in history:
        uid = event.document["metadata"]["uid"]
        if event.type is WatchType.DELETED:
            server.pop(uid, None)
        else:
            server[uid] = event.document["state"]

    def after(place: int) -> Page:
        state: dict[str, Json] = {}
        for event in history[:place]:
            state[event.document["metadata"]["uid"]] = event.document
            if event.type is WatchType.DELETED:
                del state[event.document["metadata"]["uid"]]
        return Page(list(state.values()), str(100 + place))

    watches: list[list[Any]] = [[]]
    lists = [after(0)]
    missed = 0
    for place, event in enumerate(history):
        if place in expiries:
            watches[-1].append(Expired("410"))
            watches.append([])
            missed = place + 1
            lists.append(after(missed))
        if place >= missed:
            watches[-1].append(event)
        if place in breaks:
            watches[-1].append(Transient("broken"))
            watches.append([])
    world = World(lists, watches)
    world.reflector.refresh()
    world.reflector.follow(100_000)
    assert world.there == server
