"""Opening, migrating, transactions and errors, on real files."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.runtime.migration import MigrationContext

from advisor.domain.ingest import JobBatch
from advisor.domain.jobs import Outcome
from advisor.errors import Defect, Refused, Transient
from advisor.history import database
from advisor.history.database import Database
from advisor.history.schema import METADATA
from advisor.history.store import HistoryStore, ReadOnlyStore
from tests.builders import NOON, a_job
from tests.older_stores import taken_back

ROOT = Path(__file__).resolve().parents[3]
LATER = NOON + timedelta(days=1)


def test_the_migrations_build_the_tables_the_code_uses():
    database = Database.open("sqlite://")
    with database.reading() as connection:
        context = MigrationContext.configure(connection, opts={"version_table": "gsa_history_version"})
        assert compare_metadata(context, METADATA) == []
    database.close()


def test_jobs_stored_before_usage_was_known_are_kept(tmp_path):
    url = f"sqlite:///{tmp_path}/history.db"
    with HistoryStore.open(url) as store:
        store.append(JobBatch(source="test", jobs=(a_job("a"),)), LATER)
    taken_back(url, "0001")
    with HistoryStore.open(url) as store:
        assert store.jobs(LATER) == [a_job("a")]


@pytest.mark.parametrize("source, corrected", [("prometheus", True), ("prometheus/eu", True), ("slurm", False)])
def test_an_end_that_an_earlier_version_concluded_from_silence_can_be_corrected(tmp_path, source, corrected):
    url = f"sqlite:///{tmp_path}/history.db"
    with HistoryStore.open(url) as store:
        store.append(JobBatch(source=source, jobs=(a_job("a", outcome=Outcome.CANCELLED),)), LATER)
    taken_back(url, "0004")
    with HistoryStore.open(url) as store:
        store.append(JobBatch(source=source, jobs=(a_job("a", seconds=None),), seen_at=LATER), LATER)
        assert (store.jobs(LATER)[0].outcome is None) is corrected


def test_a_store_on_file_keeps_what_it_was_given(tmp_path):
    url = f"sqlite:///{tmp_path}/some/folder/history.db"
    with HistoryStore.open(url) as store:
        store.append(JobBatch(source="test", jobs=(a_job("a"),)), LATER)
    with HistoryStore.open(url) as store:
        assert store.jobs(LATER) == [a_job("a")]


def test_many_may_open_a_new_store_at_once(tmp_path):
    url = f"sqlite:///{tmp_path}/history.db"
    with ThreadPoolExecutor(4) as pool:
        stores = list(pool.map(HistoryStore.open, [url] * 4))
    stores[0].append(JobBatch(source="test", jobs=(a_job("a"),)), LATER)
    assert [store.jobs(LATER) for store in stores] == [[a_job("a")]] * 4
    for store in stores:
        store.close()


def test_a_reader_does_not_wait_for_the_writer(tmp_path):
    url = f"sqlite:///{tmp_path}/history.db?timeout=0.05"
    with HistoryStore.open(url) as reader, HistoryStore.open(url) as writer:
        seen = []
        batch = JobBatch(source="test", jobs=(a_job("a"),))
        writer.append(batch, LATER, lambda *_: seen.append(reader.jobs(LATER)))
        assert seen == [[]]
        assert reader.jobs(LATER) == [a_job("a")]


def test_a_second_writer_is_told_to_come_back_later(tmp_path):
    url = f"sqlite:///{tmp_path}/history.db?timeout=0.05"
    batch = JobBatch(source="test", jobs=(a_job("a"),))
    with HistoryStore.open(url) as first, HistoryStore.open(url) as second:

        def meanwhile(*_: int) -> None:
            with pytest.raises(Transient, match="locked"):
                second.append(batch, LATER)

        first.append(batch, LATER, meanwhile)


def test_a_store_that_may_only_be_read_is_told_apart_from_one_that_is_locked(tmp_path, monkeypatch):
    url = f"sqlite:///{tmp_path}/history.db?timeout=0.05"
    with HistoryStore.open(url) as store:
        store.check_writable()

    def reading_only(connection, _):
        connection.execute("PRAGMA query_only=ON")

    monkeypatch.setattr(database, "_prepare_sqlite", reading_only)
    with HistoryStore.open(url) as store:
        assert store.jobs(LATER) == []
        with pytest.raises(ReadOnlyStore, match=r"cannot be written.*Let this user write the file and its folder"):
            store.check_writable()


def test_an_append_that_fails_halfway_leaves_nothing(tmp_path):
    with HistoryStore.open(f"sqlite:///{tmp_path}/history.db") as store:

        def fail(done: int, total: int) -> None:
            if done > 2000:
                raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            store.append(JobBatch(source="test", jobs=tuple(a_job(str(n)) for n in range(5000))), LATER, fail)

        assert store.jobs(LATER) == []
        assert store.status().sources == ()


def test_a_process_killed_halfway_through_an_append_leaves_nothing(tmp_path):
    url = f"sqlite:///{tmp_path}/history.db"
    HistoryStore.open(url).close()
    program = """
        import os, signal, sys
        from datetime import timedelta
        from advisor.domain.ingest import JobBatch
        from advisor.history.store import HistoryStore
        from tests.builders import NOON, a_job

        def die(done, total):
            if done > 2000:
                os.kill(os.getpid(), signal.SIGKILL)

        jobs = tuple(a_job(str(n)) for n in range(5000))
        HistoryStore.open(sys.argv[1]).append(JobBatch(source="test", jobs=jobs), NOON + timedelta(days=1), die)
    """
    ended = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program), url],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        check=False,
    )
    assert ended.returncode == -signal.SIGKILL

    with HistoryStore.open(url) as store:
        assert store.jobs(LATER) == []
        store.append(JobBatch(source="test", jobs=(a_job("a"),)), LATER)
        assert store.jobs(LATER) == [a_job("a")]


@pytest.mark.parametrize(
    "url, limit",
    [
        ("nonsense", "no database URL"),
        ("mysql://host/name", "only SQLite and PostgreSQL"),
        ("postgresql+nodriver://host/name", "driver is not installed"),
    ],
)
def test_a_url_that_cannot_be_a_store_is_refused(url, limit):
    with pytest.raises(Refused, match=limit):
        HistoryStore.open(url)


def test_a_password_never_shows_in_an_error():
    for url in ("postgresql+nodriver://ann:secret@host/name", "mysql://ann:secret@host/name", "://ann:secret@host"):
        with pytest.raises(Refused) as caught:
            HistoryStore.open(url)
        assert "secret" not in str(caught.value)


def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("shopping list, long enough to be taken for a page header" * 20)
    with pytest.raises(Refused, match="no SQLite database"):
        HistoryStore.open(f"sqlite:///{path}")
    assert path.read_text().startswith("shopping list")


def test_a_folder_that_cannot_be_made_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(Refused, match="folder cannot be made"):
        HistoryStore.open(f"sqlite:///{tmp_path}/file/history.db")


def test_a_store_of_a_newer_version_is_refused(tmp_path):
    path = tmp_path / "history.db"
    HistoryStore.open(f"sqlite:///{path}").close()
    with sqlite3.connect(path) as raw:
        raw.execute("UPDATE gsa_history_version SET version_num = '9999'")
    raw.close()
    with pytest.raises(Refused, match="Upgrade gpu-slice-advisor"):
        HistoryStore.open(f"sqlite:///{path}")


def test_a_store_whose_tables_are_gone_is_a_defect(tmp_path):
    path = tmp_path / "history.db"
    HistoryStore.open(f"sqlite:///{path}").close()
    with sqlite3.connect(path) as raw:
        raw.execute("DROP TABLE gsa_ledger")
    raw.close()
    with HistoryStore.open(f"sqlite:///{path}") as store, pytest.raises((Defect, Transient), match="gsa_ledger"):
        store.decisions(1)
