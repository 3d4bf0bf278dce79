"""A connection to the store's database: opened, migrated, one transaction at a time, errors in our own words."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any

from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from alembic.util import CommandError
from sqlalchemy import URL, Connection, Engine, StaticPool, create_engine, event, make_url, text
from sqlalchemy.exc import ArgumentError, DatabaseError, NoSuchModuleError, OperationalError, SQLAlchemyError

from advisor.errors import Defect, Refused, Transient, sentences

__all__ = ["Database", "ReadOnlyStore"]

_MIGRATIONS = Path(__file__).parent / "migrations"
_VERSION_TABLE = "gsa_history_version"
_WRITES = "gsa_writes"
# SQLite says readonly, PostgreSQL read-only.
_READ_ONLY = re.compile(r"read-?only", re.IGNORECASE)
_BUSY_SECONDS = 30.0
# Any number does, as long as every program of this project takes the same one.
_WRITER_LOCK = 7_305_310_152_013
# Alembic keeps the migration it runs in one place of the process.
_MIGRATING = Lock()
_JSON = partial(json.dumps, allow_nan=False, ensure_ascii=False)
_EXAMPLE = "Give for instance sqlite:////var/lib/gsa/history.db or postgresql+psycopg://user@host/database."


class ReadOnlyStore(Transient):
    """The store may be read and not written: no waiting mends that, somebody has to."""


class Database:
    """An open, migrated database. Reads see one consistent state; one writer at a time, all or nothing.

    SQLite runs in WAL mode, so that readers do not wait for the writer; PostgreSQL writers take
    turns through an advisory lock.
    """

    def __init__(self, engine: Engine) -> None:
        """Use :meth:`open`."""
        self._engine = engine
        self._writer = engine.execution_options(**{_WRITES: True})

    @classmethod
    def open(cls, url: str) -> Database:
        """Connect to ``url`` (SQLAlchemy's form), create what is missing and bring the tables up to date.

        Raises:
            Refused: the URL, or what lies behind it, is not a store this version can use.
            Transient: the database cannot be reached or is locked.
            ReadOnlyStore: it would have to be written, and may not be.
        """
        parsed = _parsed(url)
        with _translated(parsed):
            database = cls(_engine(parsed))
            try:
                database._migrate(parsed)
            except BaseException:
                database.close()
                raise
        return database

    def close(self) -> None:
        """Give back every connection."""
        self._engine.dispose()

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        """A connection inside a transaction for reading."""
        with _translated(self._engine.url), self._engine.begin() as connection:
            yield connection

    @contextmanager
    def writing(self) -> Iterator[Connection]:
        """A connection inside the only transaction that writes; everything or nothing is kept."""
        with _translated(self._engine.url), self._writer.begin() as connection:
            if connection.dialect.name == "postgresql":
                connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _WRITER_LOCK})
            yield connection

    def _migrate(self, url: URL) -> None:
        config = Config()
        config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
        config.set_main_option("version_table", _VERSION_TABLE)
        newest = set(ScriptDirectory.from_config(config).get_heads())
        with self.reading() as connection:
            if _revisions(connection) == newest:
                return
        try:
            with _MIGRATING, self.writing() as connection:
                config.attributes["connection"] = connection
                command.upgrade(config, "head")
        except CommandError as error:
            raise Refused(
                "history store", _shown(url), f"its tables are of no version known here: {error}",
                "Upgrade gpu-slice-advisor, or give another store.",
            ) from error  # fmt: skip


def _revisions(connection: Connection) -> set[str]:
    context = MigrationContext.configure(connection, opts={"version_table": _VERSION_TABLE})
    return set(context.get_current_heads())


def _shown(url: URL) -> str:
    return url.render_as_string(hide_password=True)


def _parsed(url: str) -> URL:
    try:
        parsed = make_url(url)
    except ArgumentError as error:
        # A password may hide in what could not be parsed.
        raise Refused("history store", url.rsplit("@", 1)[-1], "it is no database URL", _EXAMPLE) from error
    if parsed.get_backend_name() not in {"sqlite", "postgresql"}:
        raise Refused("history store", _shown(parsed), "only SQLite and PostgreSQL can hold it", _EXAMPLE)
    return parsed


def _engine(url: URL) -> Engine:
    if url.get_backend_name() == "sqlite":
        return _sqlite_engine(url)
    try:
        return create_engine(url, json_serializer=_JSON, pool_pre_ping=True)
    except (ModuleNotFoundError, NoSuchModuleError) as error:
        raise Refused(
            "history store", _shown(url), f"its driver is not installed: {error}", "Install psycopg 3, or use SQLite."
        ) from error


def _sqlite_engine(url: URL) -> Engine:
    patience = {} if "timeout" in url.query else {"timeout": _BUSY_SECONDS}
    options: dict[str, Any] = {"json_serializer": _JSON, "connect_args": patience}
    if url.database in {None, "", ":memory:"}:
        # One connection is the whole database; threads of a test server share it.
        options["poolclass"] = StaticPool
        options["connect_args"] = {**patience, "check_same_thread": False}
    else:
        _make_folder(url)
    engine = create_engine(url, **options)
    event.listen(engine, "connect", _prepare_sqlite)
    event.listen(engine, "begin", _begin_sqlite)
    return engine


def _make_folder(url: URL) -> None:
    folder = Path(str(url.database)).parent
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Refused(
            "history store", _shown(url), f"its folder cannot be made: {error.strerror}", "Choose a writable folder."
        ) from error


def _prepare_sqlite(connection: Any, _record: object) -> None:  # noqa: ANN401 - the driver's own connection type
    for pragma in ("journal_mode=WAL", "synchronous=NORMAL", "foreign_keys=ON"):
        connection.execute(f"PRAGMA {pragma}")


def _begin_sqlite(connection: Connection) -> None:
    # A reader that turns writer halfway may find the database changed and fail at once; a writer says so first.
    writes = connection.get_execution_options().get(_WRITES, False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _unwritable(url: URL) -> bool:
    """Whether the file, or the folder that needs room beside it, may not be written by this user."""
    if url.get_backend_name() != "sqlite" or url.database in {None, "", ":memory:"}:
        return False
    file = Path(str(url.database))
    return file.parent.is_dir() and not all(os.access(each, os.W_OK) for each in (file.parent, file) if each.exists())


def _read_only(url: URL, error: DatabaseError) -> ReadOnlyStore:
    trouble = f"the history store {_shown(url)} cannot be written: {error.orig}"
    remedy = "Let this user write the file and its folder, or choose another store (GSA_STORAGE__HOME)"
    return ReadOnlyStore(sentences(trouble, remedy))


@contextmanager
def _translated(url: URL) -> Iterator[None]:
    """Errors of the database and its driver as errors of this project."""
    try:
        yield
    except OperationalError as error:
        if _READ_ONLY.search(str(error.orig)) or _unwritable(url):
            raise _read_only(url, error) from error
        trouble = f"the history store {_shown(url)} cannot be used now: {error.orig}"
        remedy = "Check that it is reachable and not locked by another program, then try again."
        raise Transient(sentences(trouble, remedy)) from error
    except (UnicodeEncodeError, OverflowError) as error:
        raise Refused(
            "job", str(error), "the database holds UTF-8 text and 64-bit integers", "Correct the source."
        ) from error
    except DatabaseError as error:
        if _READ_ONLY.search(str(error.orig)):
            raise _read_only(url, error) from error
        if "not a database" in str(error.orig):
            raise Refused(
                "history store", _shown(url), "the file is no SQLite database", "Give another path, or move it away."
            ) from error
        raise Defect(f"the history store {_shown(url)} answered: {error.orig}") from error
    except SQLAlchemyError as error:
        raise Defect(f"the history store {_shown(url)} could not be asked: {error}") from error
