"""What a source that is read for ever leaves in the store: as much as was said, not as often as it was."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from datetime import timedelta

import pytest
from sqlalchemy import func, select

from advisor.domain.ingest import JobBatch, Rejection
from advisor.history.schema import INGESTS, NOTES, REJECTIONS
from advisor.history.store import HistoryStore
from tests.builders import NOON, a_job
from tests.older_stores import taken_back

MINUTE = timedelta(minutes=1)


@pytest.fixture
def store() -> Iterator[HistoryStore]:
    with HistoryStore.open("sqlite://") as opened:
        yield opened


def turn(store: HistoryStore, number: int, *jobs, **more) -> None:
    now = NOON + number * MINUTE
    store.append(JobBatch(source="live", jobs=jobs, watermark=now, overlapping=True, **more), now)


def rows(store: HistoryStore) -> list[int]:
    with store._database.reading() as connection:
        tables = (INGESTS, NOTES, REJECTIONS)
        return [connection.execute(select(func.count()).select_from(table)).scalar_one() for table in tables]


def dropped(count: int, example: str) -> tuple[Rejection, ...]:
    return (Rejection(reason="sentinel", count=count, example=example),)


def test_turns_without_a_change_of_jobs_leave_one_row_that_moves_on(store):
    turn(store, 0, a_job("a"), notes=("nodes gone: 1", "no claims"), rejections=dropped(3, "GPU-0"))
    seen = store.revision()
    for number in range(1, 20):
        turn(store, number, notes=(f"nodes gone: {number}",), rejections=dropped(3, f"GPU-{number}"))

    (source,) = store.status().sources
    assert rows(store) == [1, 2, 1]
    assert source.watermark == source.last_ingest == NOON + 19 * MINUTE
    assert source.notes == ("nodes gone: 19", "no claims")
    assert store.revision() == seen


def test_where_readings_overlap_the_fullest_counts_with_its_own_example(store):
    for number, count in enumerate((3, 7, 5)):
        turn(store, number, rejections=dropped(count, f"GPU-{number}"))

    assert store.status().rejections == dropped(7, "GPU-1")


def test_what_sources_say_of_themselves_is_kept_apart(store):
    turn(store, 0, notes=("nodes gone: 1",))
    store.append(JobBatch(source="other", jobs=(), notes=("nodes gone: 2",)), NOON)

    assert [source.notes for source in store.status().sources] == [("nodes gone: 1",), ("nodes gone: 2",)]


def test_a_source_that_says_something_else_each_time_is_heard_a_hundred_times(store):
    words = ("".join(chr(97 + int(digit)) for digit in str(number)) for number in range(150))
    for number, word in enumerate(words):
        turn(store, number, notes=(word,))

    assert rows(store)[1] == 100


def test_notes_written_by_the_version_before_are_kept_once_a_kind(tmp_path):
    url = f"sqlite:///{tmp_path}/history.db"
    with HistoryStore.open(url) as store:
        turn(store, 0, a_job("a"))
        turn(store, 1, a_job("b"))
    taken_back(url, "0003")
    _write_notes(str(tmp_path / "history.db"))

    with HistoryStore.open(url) as store:
        assert store.status().notes == ("nodes gone: 4", "no claims")
        assert len(store.jobs(NOON + timedelta(days=1))) == 2


def _write_notes(file: str) -> None:
    with sqlite3.connect(file) as raw:
        for row, notes in ((1, '["nodes gone: 3", "no claims"]'), (2, '["nodes gone: 4"]')):
            raw.execute("UPDATE gsa_ingests SET notes = ? WHERE id = ?", (notes, row))
    raw.close()
