"""The job-history store: append, and ask what was known at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from types import TracebackType
from typing import Any, Self

from sqlalchemy import false, update

from advisor.domain.decisions import DecisionRecord
from advisor.domain.ingest import JobBatch
from advisor.domain.jobs import Job
from advisor.domain.promises import KeptPromises, Promise
from advisor.domain.start_latency import StartLatency
from advisor.domain.units import utc
from advisor.history import ledger, reading
from advisor.history.appending import AppendResult, Progress, append_batch
from advisor.history.database import Database, ReadOnlyStore
from advisor.history.ledger import StoredAdvice
from advisor.history.promises import kept_by_day, promised, read_promises, write_promises
from advisor.history.reading import JobChanges
from advisor.history.schema import INGESTS
from advisor.history.starts import read_start_latencies
from advisor.history.status import HistoryStatus, read_status

__all__ = ["AppendResult", "HistoryStore", "JobChanges", "ReadOnlyStore", "StoredAdvice"]


class HistoryStore:
    """Everything remembered about jobs, advice and actions.

    A job is identified by its source and id. Readers may be many and in many threads; writers take
    turns. Every verb raises ``Transient`` while the database cannot be reached or is locked.
    """

    def __init__(self, database: Database) -> None:
        """Use :meth:`open`."""
        self._database = database

    @classmethod
    def open(cls, url: str) -> HistoryStore:
        """The store behind ``url``, created and migrated where needed.

        ``sqlite:///relative/path``, ``sqlite:////absolute/path``, ``sqlite://`` (in memory, gone when
        closed) or ``postgresql+psycopg://...``. Missing folders of an SQLite path are made. A writer waits
        30 s for another one; ``?timeout=5`` behind an SQLite path makes it 5 s.

        Raises:
            Refused: the URL, or what lies behind it, is not a store this version can use.
            Transient: the database cannot be reached or is locked.
        """
        return cls(Database.open(url))

    def close(self) -> None:
        """Give back every connection; the store must not be used afterwards."""
        self._database.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def check_writable(self) -> None:
        """Write nothing, as everything else is written.

        Raises:
            ReadOnlyStore: it may only be read.
            Transient: the database cannot be reached or is locked.
        """
        with self._database.writing() as connection:
            connection.execute(update(INGESTS).where(false()).values(added=0))

    def append(self, batch: JobBatch, now: datetime, progress: Progress | None = None) -> AppendResult:
        """Add what ``batch`` brings, in one transaction: all of it is kept, or nothing.

        Appending the same batch again changes nothing. A known job is replaced by what is read of it
        later (a running one that has ended), but a known start or end is never unlearned. A job whose
        id is held by another job of its source (another submission time) is left out and counted. One that was
        open and is not in a batch that holds all of those is censored when its source was last read.
        Of starts of nodes each part is kept as it was told first. ``now`` is the time of the ingest.

        Raises:
            Refused: generated jobs would be mixed with real ones.
        """
        with self._database.writing() as connection:
            return append_batch(connection, batch, utc(now, "now"), progress)

    def watermark(self, source: str) -> datetime | None:
        """Up to when ``source`` has been read, None if never."""
        with self._database.reading() as connection:
            return reading.watermark(connection, source)

    def jobs(self, as_of: datetime, since: datetime | None = None) -> list[Job]:
        """Every job as it was known at ``as_of``, ordered by submission, then id.

        With ``since``, jobs that were gone before it are left out; those that still waited or ran then are kept.
        """
        with self._database.reading() as connection:
            return reading.jobs_known(connection, utc(as_of, "as_of"), since and utc(since, "since"))

    def finished_between(self, start: datetime, end: datetime) -> list[Job]:
        """Jobs that ended after ``start`` and up to and including ``end``, in order of completion, then id.

        Consecutive windows hold every ended job exactly once; censored jobs have no end and are in none.
        """
        with self._database.reading() as connection:
            return reading.finished_between(connection, utc(start, "start"), utc(end, "end"))

    def running_at(self, time: datetime) -> list[Job]:
        """Jobs that ran at ``time``, as they were known then, ordered by start, then id.

        A censored job runs until it was last seen.
        """
        with self._database.reading() as connection:
            return reading.running_at(connection, utc(time, "time"))

    def last_event(self, as_of: datetime | None = None) -> datetime | None:
        """The latest submission, start, end or sighting (up to ``as_of``), None while there is none."""
        with self._database.reading() as connection:
            return reading.last_event(connection, as_of and utc(as_of, "as_of"))

    def last_submit(self) -> datetime | None:
        """The latest submission, None while there is no job: the moment at which a finished history is looked at."""
        with self._database.reading() as connection:
            return reading.last_submit(connection)

    def revision(self) -> int:
        """A number that grows with every ingest that changed a job; while it stands, every read of jobs stands."""
        with self._database.reading() as connection:
            return reading.revision(connection)

    def changed_since(self, revision: int | None) -> JobChanges:
        """Jobs added or changed by ingests after ``revision``, every job with None, and the revision this reaches.

        The only read without an as-of time: jobs come as they are stored, whatever lies ahead included, and the
        reader takes in of them what has happened. A job may be told of twice, none is ever left out.
        """
        with self._database.reading() as connection:
            return reading.changed_since(connection, revision)

    def is_synthetic(self) -> bool:
        """Whether the jobs were generated, which must be said wherever something made of them is shown."""
        with self._database.reading() as connection:
            return reading.any_synthetic(connection)

    def status(self) -> HistoryStatus:
        """What is stored, from where, and what was dropped and why."""
        with self._database.reading() as connection:
            return read_status(connection)

    def start_latencies(self, as_of: datetime) -> tuple[StartLatency, ...]:
        """How long the newest 200 nodes of each NodePool took to start, as known at ``as_of``, by the pool's name."""
        with self._database.reading() as connection:
            return read_start_latencies(connection, utc(as_of, "as_of"))

    def record_decisions(self, decisions: Sequence[DecisionRecord]) -> None:
        """Append ``decisions`` to the ledger, all or none; one that is recorded already stays as it was."""
        with self._database.writing() as connection:
            ledger.write_decisions(connection, decisions)

    def decisions(self, limit: int, as_of: datetime | None = None) -> list[DecisionRecord]:
        """The last ``limit`` decisions (up to ``as_of``), newest first."""
        with self._database.reading() as connection:
            return ledger.read_decisions(connection, limit, as_of and utc(as_of, "as_of"))

    def last_applied(self, pool: str, field: str, as_of: datetime | None = None) -> datetime | None:
        """When ``field`` of an object of ``pool`` was last really changed (up to ``as_of``), None if never."""
        with self._database.reading() as connection:
            return ledger.last_applied(connection, pool, field, as_of and utc(as_of, "as_of"))

    def record_promises(self, promises: Sequence[Promise]) -> int:
        """Keep ``promises``, all or none; a job that has one keeps its first. How many were kept."""
        with self._database.writing() as connection:
            return write_promises(connection, promises)

    def promises(self, jobs: Sequence[tuple[str, str]]) -> dict[tuple[str, str], Promise]:
        """What was promised to the jobs of these sources and ids, as far as there is a promise."""
        with self._database.reading() as connection:
            return read_promises(connection, jobs)

    def promised(self, jobs: Sequence[tuple[str, str]]) -> set[tuple[str, str]]:
        """Those of these sources and ids to whom something was promised."""
        with self._database.reading() as connection:
            return set(promised(connection, jobs))

    def kept_promises(self, as_of: datetime, since: datetime | None = None) -> list[KeptPromises]:
        """How promises were kept, as known at ``as_of``, by the day of submission (UTC; from ``since`` on)."""
        with self._database.reading() as connection:
            return kept_by_day(connection, utc(as_of, "as_of"), since and utc(since, "since"))

    def record_advice(self, time: datetime, document: Mapping[str, Any]) -> None:
        """Keep the advice of the cycle at ``time`` as the JSON document shown; every number must be finite.

        The same advice for the same time is kept once.
        """
        with self._database.writing() as connection:
            ledger.write_advice(connection, time, document)

    def latest_advice(self, as_of: datetime | None = None) -> StoredAdvice | None:
        """The newest advice (up to ``as_of``), None if none was ever given."""
        with self._database.reading() as connection:
            return ledger.latest_advice(connection, as_of and utc(as_of, "as_of"))
