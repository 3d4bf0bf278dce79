"""What is new since a revision: nothing is ever left out, whoever writes, and whenever one asks."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.domain.ingest import JobBatch
from advisor.domain.jobs import Job
from advisor.history.store import HistoryStore
from tests.builders import NOON, a_job
from tests.older_stores import taken_back

LATER = NOON + timedelta(days=1)


@pytest.fixture
def store() -> Iterator[HistoryStore]:
    with HistoryStore.open("sqlite://") as opened:
        yield opened


def append(store: HistoryStore, *jobs: Job, source: str = "test") -> None:
    store.append(JobBatch(source=source, jobs=jobs), LATER)


def test_without_a_revision_every_job_is_told_of_with_its_source(store):
    append(store, a_job("b"), a_job("a", submit=NOON + timedelta(hours=1)))
    append(store, a_job("b"), source="another")

    changes = store.changed_since(None)

    assert changes.revision == store.revision()
    assert [(job.source, job.id) for job in changes.jobs] == [("another", "b"), ("test", "b"), ("test", "a")]


def test_only_what_an_ingest_added_or_changed_is_new(store):
    append(store, a_job("a"), a_job("b", seconds=None))
    seen = store.revision()
    assert store.changed_since(seen).jobs == ()

    append(store, a_job("a"), a_job("b"), a_job("c"))

    changes = store.changed_since(seen)
    assert changes.jobs == (a_job("b"), a_job("c"))
    assert store.changed_since(changes.revision).jobs == ()


def test_what_lies_ahead_of_any_moment_is_told_as_it_is_stored(store):
    ahead = a_job("ahead", submit=LATER + timedelta(days=9))
    append(store, ahead)
    assert store.changed_since(None).jobs == (ahead,)


def test_an_ingest_that_only_says_something_new_changes_no_job(store):
    append(store, a_job("a"))
    seen = store.revision()
    store.append(JobBatch(source="test", jobs=(a_job("a"),), notes=("read again",)), LATER)
    assert store.revision() > seen
    assert store.changed_since(seen).jobs == ()


@given(st.lists(st.lists(st.tuples(st.integers(0, 5), st.sampled_from([None, 60.0])), max_size=4), max_size=8))
def test_following_the_changes_ends_with_the_whole(batches):
    with HistoryStore.open("sqlite://") as store:
        known, revision = {}, None
        for batch in batches:
            append(store, *[a_job(f"job-{number}", seconds=seconds) for number, seconds in batch])
            changes = store.changed_since(revision)
            known |= {job.identity: job for job in changes.jobs}
            revision = changes.revision
        assert sorted(known.values(), key=lambda job: job.id) == store.jobs(LATER)


def test_a_store_of_the_version_before_is_brought_up_to_date(tmp_path):
    """Its jobs are known since ever: not new to whoever has seen any revision, and all there to who has seen none."""
    url = f"sqlite:///{tmp_path}/history.db"
    with HistoryStore.open(url) as store:
        append(store, a_job("old"))
        seen = store.revision()
    taken_back(url, "0001")

    with HistoryStore.open(url) as store:
        append(store, a_job("new"))
        assert store.changed_since(seen).jobs == (a_job("new"),)
        assert [job.id for job in store.changed_since(None).jobs] == ["new", "old"]
